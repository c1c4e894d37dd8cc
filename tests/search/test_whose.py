"""A question that names whose something it asks for is not answered by what is another's."""

from __future__ import annotations

import pytest

from kledger.contract.recall import floor_of
from projections.search.match import Matches, covered, passages, weighed
from projections.search.whose import whose

ANOTHERS = [
    ("What is Tom's phone number?", "Dr. Meyer's phone number is 555-1234."),
    ("Tom\u2019s phone number", "The phone number of the doctor is 020 7946."),
    ("What is James' favourite restaurant?", "Irene's favourite restaurant is Casa Lupo."),
    ("Who is Maya's dentist?", "The dentist of the whole street is Dr. Lind."),
    ("I met the doctor. What is Tom's phone number?", "Dr. Meyer's phone number is 555-1234."),
    ("舅舅的生日是哪天", "爷爷的生日是农历六月初八。"),
    ("请问我舅舅的生日是哪天？", "爷爷的生日是农历六月初八。"),
    ("舅舅生日是哪天", "爷爷的生日是农历六月初八。"),
    ("小李的手机号是多少", "老陈的手机号是13800001111。"),
    ("舅舅的生日是哪天", "我的生日是农历六月初八。"),
    ("今天很忙。小李的手机号是多少？", "老陈的手机号是13800001111。"),
]
THEIRS = [
    ("What is Tom's phone number?", "The phone number of Tom is 555-1234."),
    ("What is Okafr's phone number?", "Okafor's phone number is 555-1234."),
    ("What is Tom's phone number?", "He has the phone number 555-1234."),
    ("What is Tom's phone number?", "The user's phone number is 555-1234."),
    ("What is Tom's phone number?", "My phone number is 555-1234."),
    ("What is Caroline's new hobby?", "I found a new hobby, pottery."),
    ("小李的手机号是多少", "我的手机号是13800001111。"),
    ("What is the job of Nadia's brother?", "The brother plays the cello, that is the job."),
    ("Which job does Nadia's brother have?", "Felix, a brother, has a job as a cellist."),
    ("I saw Tom's new bike. What is the deploy port?", "The deploy port is 9090."),
    ("Where's the deploy key? What's the deploy port?", "The deploy port is 9090."),
    ("妈妈对什么药过敏", "母亲对青霉素过敏。"),
    ("媽媽對什麼藥過敏", "妈妈对青霉素过敏。"),
    ("舅舅的生日是哪天", "他的生日是六月初八。"),
    ("姐姐的老公生日是哪天", "姐夫的生日是六月初八。"),
    ("小区的停车费多少", "B2层的停车费是400元。"),
]


@pytest.mark.parametrize(("question", "item"), ANOTHERS)
def test_what_is_anothers_answers_nothing(question: str, item: str) -> None:
    assert covered(weighed(question), passages("", item)) < floor_of(1)


@pytest.mark.parametrize(("question", "item"), THEIRS)
def test_what_is_theirs_or_may_be_answers(question: str, item: str) -> None:
    assert covered(weighed(question), passages("", item)) > floor_of(100)


@pytest.mark.parametrize("readers", ["user:tom", "user:anna project:tom", "user:Tom.Meyer"])
def test_what_somebody_said_of_themselves_needs_no_name(readers: str) -> None:
    read = {
        "own": passages("", "The phone number is 555-1234."),
        "other": passages("", "The phone number is 555-9999."),
    }
    of = {"own": readers, "other": "user:tomas"}
    matches = Matches(
        weighed("What is Tom's phone number?"), read, lambda _: None, meaning=False, readers_of=of.__getitem__
    )
    assert matches.of("own", None) > floor_of(10_000)
    assert matches.of("other", None) < floor_of(1)


@pytest.mark.parametrize(
    "question",
    [
        *("What's the deploy port?", "Let's see who's there", "today's menu", "Today's menu", "Mom's birthday"),
        *("the doctors' phone", "小时工的电话", "爸妈什么时候来", "部署端口是多少", "老师的电话", ""),
    ],
)
def test_what_is_no_name_names_nobody(question: str) -> None:
    assert whose(question, question) == ()


def test_a_long_text_is_about_whom_any_of_its_passages_names() -> None:
    text = f"Tom moved to Leeds. {'It rained there. ' * 100} The phone number is 555-1234."
    alone = covered(weighed("phone number"), passages("", text))
    assert alone == 1.0
    assert covered(weighed("Tom's phone number"), passages("", text)) > floor_of(10_000)
