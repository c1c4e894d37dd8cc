"""Many items at once: a preview changes nothing, the change is undone by one click, and rights hold for each item."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from producers.web.pages import bulk
from producers.web.words import chinese
from tests.journeys.running_node import RunningNode, caught_up
from tests.web.visitor import Visitor, undone, visitor, words

HOSTILE = 'bk-"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def node(shared_node: RunningNode) -> RunningNode:
    with shared_node.client() as ledger:
        ann = ledger.acting_as(user="bk-ann")
        for name in ("bk-one", "bk-two", HOSTILE):
            ann.save(name, "c " + name, ["tool"], id=name, scopes=["public"])
        ledger.acting_as(user="bk-ben").save("of ben", "his", ["tool"], id="bk-bens", scopes=["public"])
        ledger.acting_as(user="bk-ben").save("private", "his", ["tool"], id="bk-hidden")
        caught_up(ledger)
    return shared_node


def state(node: RunningNode, *ids: str) -> list[Any]:
    """What is known of some items."""
    with node.client() as ledger:
        caught_up(ledger)
        items = [ledger.get(each) for each in ids]
        return [{name: item.get(name) for name in ("task", "content", "status", "scopes", "acl")} for item in items]


def preview(person: Visitor, action: str, *ids: str, **more: str) -> str:
    return person.get("/ui/knowledge/bulk", action=action, id=list(ids), back="/ui/knowledge", **more).text


def carried(page: str) -> dict[str, str | list[str]]:
    """The fields of the form that does what the page shows."""
    form = re.search(r'<form method="post" action="/ui/knowledge/bulk".*?</form>', page, re.DOTALL)
    assert form is not None
    fields: dict[str, Any] = {}
    for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', form[0]):
        fields.setdefault(unescape(name), []).append(unescape(value))
    return fields


def test_a_preview_says_what_would_be_done_and_what_is_refused_and_changes_nothing(node: RunningNode) -> None:
    with visitor(node.url, user="bk-ann") as ann, node.client() as ledger:
        head = caught_up(ledger)["stream"]["head"]
        page = words(preview(ann, "retire", "bk-one", "bk-bens", "bk-hidden", "bk-nowhere"))
        assert "1 would change." in page
        assert "3 are refused." in page
        assert "user:bk-ben" in page  # whose item it is
        assert caught_up(ledger)["stream"]["head"] == head
        # What is not hers to see is as unknown as what is nowhere.
        told = [re.search(rf"{name} refused (.*?) {name}", page) for name in ("bk-hidden", "bk-nowhere")]
        assert {found[1] if found else None for found in told} <= {told[0][1] if told[0] else None}


@pytest.mark.parametrize("action", ["retire", "share"])
def test_an_undo_restores_exactly_what_was(node: RunningNode, action: str) -> None:
    ids = ("bk-one", "bk-two", HOSTILE)
    before = state(node, *ids)
    more = {"who": "team:bk-web, user:bk-eve", "permission": "read_write"} if action == "share" else {}
    with visitor(node.url, user="bk-ann") as ann:
        page = preview(ann, action, *ids, **more)
        done = ann.post("/ui/knowledge/bulk", carried(page))
        assert done.status_code == 200
        assert "3 items are" in words(done.text)
        changed = state(node, *ids)
        if action == "retire":
            assert {each["status"] for each in changed} == {"retired"}
        else:
            assert all({"entity": "team:bk-web", "permission": "read_write"} in each["acl"] for each in changed)
        assert "3 items are as they were before." in words(undone(ann, done.text))
    assert [{**each, "acl": each["acl"] or None} for each in state(node, *ids)] == before


def test_what_was_retired_is_restored_at_once_and_twice_the_same_form_counts_once(node: RunningNode) -> None:
    with visitor(node.url, user="bk-ann") as ann:
        ann.post("/ui/knowledge/bulk", carried(preview(ann, "retire", "bk-one")))
        fields = carried(preview(ann, "restore", "bk-one"))
        for _ in range(2):
            assert "1 item is restored." in words(ann.post("/ui/knowledge/bulk", fields).text)
        assert state(node, "bk-one")[0]["status"] == "active"


def test_all_of_a_list_is_what_its_filters_have(node: RunningNode) -> None:
    with visitor(node.url, user="bk-ann") as ann:
        answer = ann.get("/ui/knowledge/bulk", action="retire", all="1", owner="user:bk-ann", types="tool")
        assert carried(answer.text)["id"] == [HOSTILE, "bk-two", "bk-one"]


def test_who_has_no_right_changes_nothing_also_without_the_preview(node: RunningNode) -> None:
    before = state(node, "bk-one", "bk-two")
    with visitor(node.url, user="bk-eve") as eve:
        page = preview(eve, "retire", "bk-one", "bk-two")
        assert "2 are refused." in words(page)
        assert "<button" not in page.partition('action="/ui/knowledge/bulk"')[2]
        done = eve.post("/ui/knowledge/bulk", {"action": "retire", "id": ["bk-one", "bk-two"]})
        assert "2 were refused." in words(done.text)
        assert "/bulk/revert" not in done.text
    assert state(node, "bk-one", "bk-two") == before


def test_somebody_elses_bulk_is_not_reverted(node: RunningNode) -> None:
    with visitor(node.url, user="bk-ann") as ann, visitor(node.url, user="bk-eve") as eve:
        done = ann.post("/ui/knowledge/bulk", carried(preview(ann, "retire", "bk-two"))).text
        named = re.search(r'name="bulk" value="([^"]+)"', done)
        assert named is not None
        eve.get("/ui")
        assert eve.post("/ui/knowledge/bulk/revert", bulk=named[1]).status_code == 404
        assert state(node, "bk-two")[0]["status"] == "retired"
        undone(ann, done)
    assert state(node, "bk-two")[0]["status"] == "active"


def test_an_undo_that_is_refused_says_why(node: RunningNode) -> None:
    with visitor(node.url, user="bk-ann") as ann, node.client() as ledger:
        owner = ledger.acting_as(user="bk-ann")
        owner.save("bk-given", "content", ["tool"], id="bk-given")
        done = ann.post("/ui/knowledge/bulk", carried(preview(ann, "retire", "bk-given"))).text
        owner.revise("bk-given", owner="user:bk-ben", scopes=["user:bk-ben"])
        caught_up(ledger)
        said = words(undone(ann, done))
        assert "1 stay as they are: " in said
        assert "changed since" not in said


def test_ids_and_entities_are_shown_as_text(node: RunningNode) -> None:
    with visitor(node.url, user="bk-ann") as ann:
        page = preview(ann, "share", HOSTILE, who="<script>alert(2)</script>")
        assert "<script>alert" not in page
        assert "<script>alert(1)" in unescape(page)
        assert "<script>alert(2)" in unescape(page)


def test_a_change_that_is_none_and_a_choice_of_nothing_are_told(node: RunningNode) -> None:
    with visitor(node.url, user="bk-ann") as ann:
        assert "Nothing is chosen." in words(preview(ann, "retire"))
        assert ann.post("/ui/knowledge/bulk", {"action": "drop", "id": "bk-one"}).status_code == 422
        assert ann.post("/ui/knowledge/bulk", {"action": "retire"}).status_code == 422


def test_without_scripts_a_page_of_the_list_is_chosen_by_a_link(node: RunningNode) -> None:
    with visitor(node.url, user="bk-ann") as ann:
        page = ann.get("/ui/knowledge", owner="user:bk-ann").text
        assert "checked" not in page
        link = re.search(r'<a href="([^"]+)">Choose all on this page</a>', page)
        assert link is not None
        chosen = ann.get(unescape(link[1])).text
        assert chosen.count(" checked>") == 3
        assert chosen.count('form="choice"') == 3


def test_every_text_about_one_item_and_about_several_has_a_chinese_form() -> None:
    for forms in (*bulk.HEADINGS.values(), *bulk.BUTTONS.values(), *bulk.DONE.values()):
        assert set(forms) <= set(chinese())


def test_the_button_says_what_is_done_to_how_many(node: RunningNode) -> None:
    with visitor(node.url, user="bk-ann") as ann:
        assert re.search(r'<button class="main">Retire 2 items</button>', preview(ann, "retire", "bk-one", "bk-two"))
        page = preview(ann, "share", "bk-one", who="team:bk-web")
        assert re.search(r'<button class="main">Share 1 item</button>', page)


def test_a_reason_is_kept_with_each_item_and_holds_what_is_said_again(node: RunningNode) -> None:
    with visitor(node.url, user="bk-ann") as ann, node.client() as ledger:
        page = preview(ann, "retire", "bk-one", "bk-two")
        assert "With a reason, what you retire is held" in words(page)
        done = ann.post("/ui/knowledge/bulk", carried(page), reason="the pier is gone").text
        caught_up(ledger)
        anns = ledger.acting_as(user="bk-ann")
        for item_id in ("bk-one", "bk-two"):
            assert anns.history(item_id)["versions"][-1]["reason"] == "the pier is gone"
        undone(ann, done)
    with visitor(node.url, agent="bk-bot") as bot, node.client() as ledger:
        ledger.acting_as(agent="bk-bot").save("of the bot", "its", ["tool"], id="bk-bots")
        assert "With a reason, what you retire is held" not in words(preview(bot, "retire", "bk-bots"))


def test_a_share_names_the_chosen_items_before_it_asks_with_whom(node: RunningNode) -> None:
    with visitor(node.url, user="bk-ann") as ann, node.client() as ledger:
        head = caught_up(ledger)["stream"]["head"]
        page = preview(ann, "share", "bk-two", "bk-bens")
        assert 'href="/ui/items/bk-two"' in page
        assert len(re.findall(r"<td>\s*<span class=.bad-text.>refused", page)) == 1
        assert "Nothing has changed yet." not in words(page)
        assert '<form method="post" action="/ui/knowledge/bulk"' not in page
        assert caught_up(ledger)["stream"]["head"] == head


def test_the_operator_is_told_as_whose_a_change_is_recorded(node: RunningNode) -> None:
    told = "Each change is recorded as its owner's, and names the operator"
    with visitor(node.url) as operator, visitor(node.url, user="bk-ann") as ann, node.client() as ledger:
        assert told not in words(preview(ann, "retire", "bk-one"))
        page = preview(operator, "retire", "bk-one")
        assert told in words(page)
        done = operator.post("/ui/knowledge/bulk", carried(page)).text
        named = re.search(r'name="bulk" value="([^"]+)"', done)
        assert named is not None
        assert ledger.bulk_get(unescape(named[1]))["by"] == "user:local"
        undone(operator, done)
