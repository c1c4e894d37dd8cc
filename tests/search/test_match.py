"""`match`: what an answer covers of the question, the same in every store."""

from __future__ import annotations

import pytest

from bench.background import merged
from kledger.contract.recall import FLOOR_OF_ONE, MOST_FLOOR, floor_of
from projections.english import BASES
from projections.search.match import UNRELATED, Passages, covered, joined, passages, weighed
from projections.search.ranking import LENT, Candidate, fuse, lend

ROLLBACK = passages(
    "Roll back a release", "Run `deploy --rollback`, then tell the on-call channel which version is live."
)
REFUND = passages("退款流程", "先核对订单号，再在后台提交退款申请，三天内到账。")


@pytest.mark.parametrize(
    ("query", "item"),
    [
        ("how do I roll back a release", ROLLBACK),
        ("which version is live after a rollback", ROLLBACK),
        ("退款多久到账", REFUND),
        ("怎么提交退款申请", REFUND),
    ],
)
def test_an_item_that_answers_matches_more_than_the_floor(query: str, item: Passages) -> None:
    assert covered(weighed(query), item) >= MOST_FLOOR


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("What's the capital of France?", "The team's standup is on Mondays."),
        ("Why doesn't it rain?", "I can't stand meetings."),
        ("我的副业是什么", "我的生日是五月。"),
        ("你喜欢什么", "你是谁，为什么来？"),
        ("Who is she?", "She said that she is late."),
        ("How old am I?", "I am a vegetarian."),
        ("How much does it cost?", "Much of it is about him."),
        ("How many children have I?", "Many of them had been ours."),
    ],
)
def test_words_that_ask_and_point_cover_nothing(query: str, content: str) -> None:
    assert covered(weighed(query), passages("", content)) == 0.0


def test_a_word_is_covered_in_full_by_whatever_form_of_it_that_is_irregular_or_spelled_otherwise() -> None:
    asked, written = ([weighed(f"the {word}") for word in words] for words in (BASES.values(), BASES))
    for form, base, of_base, of_form in zip(BASES, BASES.values(), asked, written, strict=True):
        assert covered(of_base, passages("", f"Somebody {form} it.")) == pytest.approx(1.0), (base, form)
        assert covered(of_form, passages("", f"Somebody {base} it.")) == pytest.approx(1.0), (form, base)
        assert covered(of_form, passages("", f"Somebody {form} it.")) == pytest.approx(1.0), form


@pytest.mark.parametrize(("typo", "form"), [("understod", "understood"), ("forgoten", "forgotten")])
def test_a_typo_is_found_by_the_fragments_of_the_form_that_was_written(typo: str, form: str) -> None:
    assert covered(weighed(typo), passages("", f"Somebody {form} it.")) > MOST_FLOOR


@pytest.mark.parametrize("query", ["how to bake sourdough bread", "when should I prune old roses", "月季什么时候修剪"])
def test_a_question_that_nothing_answers_stays_below_the_floor(query: str) -> None:
    assert covered(weighed(query), ROLLBACK) < MOST_FLOOR
    assert covered(weighed(query), REFUND) < MOST_FLOOR


@pytest.mark.parametrize(
    ("word", "another"),
    [("tea", "team"), ("cat", "category"), ("art", "start"), ("run", "rung"), ("bob", "bobby"), ("pay", "paypal")],
)
def test_a_short_word_is_not_one_that_begins_or_ends_like_it(word: str, another: str) -> None:
    assert covered(weighed(word), passages("", f"A {another} is here.")) < FLOOR_OF_ONE
    assert covered(weighed(f"{word} {another}"), passages("", f"A {another} is here.")) < 0.7


@pytest.mark.parametrize(
    ("word", "meant"), [("passwrd", "password"), ("vegeterian", "vegetarian"), ("teh kubernets", "kubernetes")]
)
def test_a_misspelt_word_is_known_by_its_fragments(word: str, meant: str) -> None:
    assert covered(weighed(word), passages("", f"The {meant} is here.")) > 0.1


def test_a_usual_word_is_usual_whatever_rare_word_has_its_hash() -> None:
    assert merged({1: 0.03, 2: 0.1}, {1: 2e-6, 3: 0.2}) == {1: 0.03, 2: 0.1, 3: 0.2}


@pytest.mark.parametrize("word", ["called", "house", "style", "people", "work", "pc", "visa", "water", "cd"])
def test_a_usual_word_says_less_than_one_that_nobody_knows(word: str) -> None:
    """Its hash may be that of a rare Chinese word, which made `call` as rare as a name."""
    item = passages("", f"The {word} is here.")
    assert covered(weighed(f"{word} zorquilax"), item) < 0.4
    assert covered(weighed(f"{word} zorquilax"), passages("", "A zorquilax is here.")) > 0.6


def test_an_answer_deep_in_a_long_text_matches_as_it_does_alone() -> None:
    filling = "The quick brown fox jumps over the lazy dog and nobody knows why. " * 200
    alone = "Run deploy --rollback, then tell the on-call channel which version is live."
    query = weighed("which version is live after a rollback")
    long = passages("Notes", filling + alone + filling)
    assert len(long) > 10
    assert covered(query, long) == pytest.approx(covered(query, passages("Notes", alone)), abs=0.1)


def test_a_query_without_letters_matches_nothing() -> None:
    assert covered(weighed("?!"), ROLLBACK) == 0.0
    assert covered(weighed("release"), passages("", "")) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "Roll back a release",
        "She told him much about her team",
        "E-mail: 58,400 at 9am, 16GB",
        "我的猫叫年糕，茶",
        "Zoë bought 1,2 mice",
        "A team has tea, a tea has a team",
    ],
)
def test_a_text_matches_itself_wholly(text: str) -> None:
    assert covered(weighed(text), passages("", text)) == pytest.approx(1.0)


def test_a_cosine_joins_where_a_sentence_model_made_it() -> None:
    assert joined(0.1, 0.9, meaning=True) > 0.8
    assert joined(0.1, 0.9, meaning=False) == 0.1
    assert joined(0.4, -0.5, meaning=True) == 0.4
    assert joined(0.4, None, meaning=True) == 0.4


@pytest.mark.parametrize("words", [0.0, 0.2, 0.5, 1.0])
def test_a_cosine_adds_to_the_words_what_they_do_not_cover_and_takes_nothing(words: float) -> None:
    matches = [joined(words, cosine, meaning=True) for cosine in (-1.0, 0.0, UNRELATED, 0.5, 0.7, 0.9, 1.0, 1.0001)]
    assert matches[:3] == [words] * 3, "texts that have nothing to do with each other"
    assert matches == sorted(matches)
    assert matches[-2:] == [1.0, 1.0]


def test_the_same_in_other_words_is_known_and_what_is_only_near_is_not() -> None:
    assert joined(0.0, 0.65, meaning=True) >= MOST_FLOOR
    assert joined(0.0, 0.55, meaning=True) < MOST_FLOOR
    assert joined(0.2, 0.55, meaning=True) >= MOST_FLOOR, "with a few words in common it is"


def test_what_stands_beside_a_hit_gets_a_share_of_its_relevance_once() -> None:
    found = fuse([Candidate("lead", 1, keyword=8.0), Candidate("other", 2, keyword=3.0), Candidate("answer", 3)])
    lent = lend(found, {"answer": [("lead", True), ("other", True)], "other": [("answer", False)]})
    assert [each.candidate.item_id for each in lent] == ["lead", "answer", "other"]
    assert lent[1].beside == "lead"
    assert lent[1].relevance == pytest.approx(LENT * found[0].relevance)
    assert lent[2].beside is None
    assert lend(found, {}) == found


def test_the_floor_rises_with_what_the_caller_sees_and_no_further_than_the_most() -> None:
    floors = [floor_of(visible) for visible in (0, 1, 10, 100, 1_000, 10_000, 10_000_000)]
    assert floors == sorted(floors)
    assert floors[0] == floors[1] == FLOOR_OF_ONE
    assert floors[-1] == floors[-2] == MOST_FLOOR


@pytest.mark.parametrize(
    ("question", "content"),
    [
        ("发票什么时候交", "报销单每月5号前交给财务小周，超过一个月的发票不能报。"),
        ("發票什麼時候交", "报销单每月5号前交给财务小周，超过一个月的发票不能报。"),
        ("餐补多少钱一天", "餐补每天30元，加班到晚上九点以后可以打车报销。"),
        ("陈工在哪个组", "陈工去年从测试组调到了架构组。"),
        ("妈妈能不能吃虾吗", "妈妈对虾过敏，不能吃。"),
    ],
)
def test_a_chinese_word_that_asks_and_its_pairs_take_little_from_an_answer(question: str, content: str) -> None:
    assert covered(weighed(question), passages("", content)) > MOST_FLOOR


@pytest.mark.parametrize("text", ["几乎没有库存", "怎么办", "如何部署：运行 make deploy", "有没有吗"])
def test_a_text_with_words_that_ask_matches_itself_wholly(text: str) -> None:
    assert covered(weighed(text), passages("", text)) == pytest.approx(1.0)


@pytest.mark.parametrize("question", ["我家猫几岁了", "我家貓幾歲了", "你家猫几岁了？"])
def test_whose_home_it_is_says_less_than_what_is_asked_about(question: str) -> None:
    asked = weighed(question)
    cat, address, password = (
        covered(asked, passages("", text))
        for text in ("猫今年3岁，绝育了。", "我家地址是杭州市文三路48号。", "我们家wifi密码写在冰箱上。")
    )
    assert cat > address
    assert cat > password
