"""A person sees what is remembered of them, as agents are handed it, and puts it right."""

from __future__ import annotations

import re
from html import unescape

import orjson
import pytest

from producers.web.pages.profiles import difference
from projections.views.profiles.merge_patch import merge_patch
from tests.journeys.running_node import RunningNode, caught_up
from tests.web.visitor import Visitor, undone, visitor, words

PAGE = "/ui/profiles"


def form_of(page: str, kind: str) -> tuple[str, str]:
    """What the form of a memory has: the text to change, and what it was."""
    form = page.partition(f'action="/ui/profiles/{kind}" ')[2]
    before = re.search(r'name="before" value="([^"]*)"', form)
    text = re.search(r'<textarea name="content"[^>]*>([^<]*)</textarea>', form)
    assert before is not None
    assert text is not None
    return unescape(text[1]), unescape(before[1])


def changed(person: Visitor, kind: str, **fields: object) -> dict[str, str]:
    text, before = form_of(person.get(PAGE).text, kind)
    return {"content": orjson.dumps({**orjson.loads(text), **fields}).decode(), "before": before}


def test_a_person_corrects_a_memory_and_what_an_agent_said_beside_it_meanwhile_stays(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger, visitor(shared_node.url, user="pf-ann") as ann:
        agent = ledger.acting_as(user="pf-ann", agent="scribe").within(trace_id="pf-trace")
        assert "Nothing is remembered yet." in words(ann.get(PAGE).text)
        agent.profiles.patch("work", {"occupation": "a <b>pilot", "expertise": ["sql"]})
        page = ann.get(PAGE).text
        assert "occupation: a &lt;b&gt;pilot" in page
        assert 'href="/ui/traces/pf-trace"' in page
        sent = changed(ann, "work", occupation="captain")
        agent.profiles.patch("work", {"work_rules": ["no Fridays"]})
        answer = ann.post(f"{PAGE}/work", sent)
        assert "Revised." in words(answer.text)
        now = agent.profiles.get("work")
        assert now is not None
        assert (now["occupation"], now["expertise"], now["work_rules"]) == ("captain", ["sql"], ["no Fridays"])
        undone(ann, answer.text)
        now = agent.profiles.get("work")
        assert now is not None
        assert (now["occupation"], now["work_rules"]) == ("a <b>pilot", ["no Fridays"])


def test_what_is_refused_says_which_field_and_keeps_what_was_written(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger, visitor(shared_node.url, user="pf-ben") as ben:
        head = caught_up(ledger)["stream"]["head"]
        wrong = changed(ben, "user", no_such_field=1)
        for content, told in ((wrong["content"], "no_such_field"), ("{", "JSON"), ("[]", "JSON object")):
            answer = ben.post(f"{PAGE}/user", {**wrong, "content": content})
            assert answer.status_code == 422
            assert told in words(answer.text)
            assert form_of(answer.text, "user") == (content, wrong["before"])
        same = changed(ben, "user")
        assert "nothing was changed" in words(ben.post(f"{PAGE}/user", same).text)
        assert ben.post(f"{PAGE}/nothing", same).status_code == 404
        assert caught_up(ledger)["stream"]["head"] == head


def test_a_memory_is_not_used_any_more_and_used_again(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger, visitor(shared_node.url, user="pf-cid") as cid:
        profiles = ledger.acting_as(user="pf-cid").profiles
        profiles.patch("user", {"interests": ["chess"]})
        cid.get(PAGE)
        answer = cid.post(f"{PAGE}/user/disable")
        assert "agents are not handed it" in words(answer.text)
        assert profiles.get("user") is None
        undone(cid, answer.text)
        now = profiles.get("user")
        assert now is not None
        assert now["interests"] == ["chess"]


def test_who_is_no_person_is_told_so_and_sees_nobodys(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger, visitor(shared_node.url, agent="pf-scribe") as scribe:
        ledger.acting_as(user="pf-dan").profiles.patch("user", {"interests": ["zqchess"]})
        page = scribe.get(PAGE)
        assert page.status_code == 200
        assert "Memories are of persons" in words(page.text)
        assert "zqchess" not in page.text
    with visitor(shared_node.url) as operator:
        assert "memories of your own" in words(operator.get(PAGE).text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": 1, "b": {"c": [1], "d": None}}, {"a": 1, "b": {"c": [2], "d": "x"}}),
        ({"a": {"b": 1}, "c": 2}, {"a": {}, "d": {"e": 1}}),
        ({"a": {"b": 1}}, {"a": 3}),
        ({}, {}),
    ],
)
def test_a_difference_makes_one_document_the_other(before: dict[str, object], after: dict[str, object]) -> None:
    assert merge_patch(before, difference(before, after)) == after
