"""Scopes, owners, labels and priorities: what sources 000 and 002 say of each, asked of one node."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from uuid import uuid4

import pytest

from kledger.contract.scopes import OPERATOR, Caller
from ledger.event import JsonObject
from tests.doors.test_http_sharing import ACL, CONTEXT, EXAMPLES
from tests.journeys.running_node import RunningNode
from tests.knowhub.doors import Http, Refused

KINDS = ("user", "agent", "project", "team", "org")
BY_PRIORITY = ("user", "project", "agent", "team", "org", "public")
PAIRS = list(pairwise(BY_PRIORITY))
LABELS = ("private", "shared by a project", "shared by projects", "shared by agents", "org", "public")


class Someone:
    """Whom no other test knows, of every kind at once."""

    def __init__(self, node: RunningNode) -> None:
        self.word = f"w{uuid4().hex[:12]}"
        self.url = node.url
        self.all = Http(node.url, {kind: self.name(kind) for kind in KINDS})

    def name(self, kind: str) -> str:
        return f"{kind}-{self.word}"

    def scope(self, kind: str) -> str:
        return kind if kind == "public" else f"{kind}:{self.name(kind)}"

    def only(self, kind: str) -> Http:
        """The same caller, who speaks for one entity alone."""
        return Http(self.url, {kind: self.name(kind)}, after=self.all.after)


@pytest.fixture
def someone(shared_node: RunningNode) -> Someone:
    return Someone(shared_node)


@pytest.fixture
def stranger(shared_node: RunningNode) -> Http:
    return Http(shared_node.url, {"user": f"stranger-{uuid4().hex[:8]}"})


def seen(door: Http, item_id: str, word: str) -> set[bool]:
    """Whether an item is there, by each way to read it."""
    by_id = False
    with suppress(Refused):
        by_id = door.one(item_id)["id"] == item_id
    found = [item["id"] for item in door.search(word, top_k=50, min_score=1)]
    return {by_id, item_id in found, item_id in [item["id"] for item in door.list()]}


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_in_a_scope_is_for_whom_the_scope_names_alone(someone: Someone, stranger: Http, kind: str) -> None:
    item_id = someone.all.save(
        content=f"c {someone.word}", owner="user:" + someone.name("user"), scopes=[f"{kind}:x-{someone.word}"]
    )
    named = Http(someone.url, {kind: f"x-{someone.word}"}, after=someone.all.after)
    stranger.after = someone.all.after
    assert seen(named, item_id, someone.word) == {True}
    assert seen(stranger, item_id, someone.word) == {False}


def test_what_is_public_is_for_everybody(someone: Someone, stranger: Http) -> None:
    item_id = someone.all.save(content=f"c {someone.word}", scopes=["public"])
    stranger.after = someone.all.after
    assert seen(stranger, item_id, someone.word) == {True}


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_of_several_scopes_is_for_each_of_them(someone: Someone, kind: str) -> None:
    item_id = someone.all.save(content=f"c {someone.word}", scopes=[someone.scope(each) for each in KINDS])
    assert seen(someone.only(kind), item_id, someone.word) == {True}


@pytest.mark.parametrize("scope", ["user", "user:", "department:finance", "public:x", "123"])
def test_what_is_no_scope_is_refused(someone: Someone, scope: str) -> None:
    with pytest.raises(Refused, match="illegal_scope"):
        someone.all.save(scopes=[scope])


def test_type_and_scopes_are_independent(someone: Someone) -> None:
    for type_ in ("user_profile", "tool"):
        for kind in ("user", "org"):
            item = someone.all.one(someone.all.save(types=[type_], scopes=[someone.scope(kind)]))
            assert (item["types"], item["scopes"]) == ([type_], [someone.scope(kind)])


@pytest.mark.parametrize("kind", [*KINDS, "public"])
def test_the_context_makes_the_visible_scopes(kind: str) -> None:
    named = {} if kind == "public" else {kind: CONTEXT[f"{kind}_id"]}
    scope = OPERATOR if kind == "public" else f"{kind}:{CONTEXT[f'{kind}_id']}"  # nobody named is the operator
    assert set(Caller.of(named).visible_scopes()) == {scope, "public"}


def test_the_whole_context_makes_six_visible_scopes() -> None:
    caller = Caller.of({name.removesuffix("_id"): value for name, value in CONTEXT.items()})
    assert len(caller.visible_scopes()) == 6


@pytest.mark.parametrize(("stronger", "weaker"), PAIRS, ids=[" before ".join(pair) for pair in PAIRS])
def test_the_stronger_scope_comes_first(someone: Someone, stronger: str, weaker: str) -> None:
    said = {"task": f"t {someone.word}", "content": f"c {someone.word}", "owner": someone.scope("user")}
    weak = someone.all.save(**said, scopes=[someone.scope(weaker)], score=5)
    strong = someone.all.save(**said, scopes=[someone.scope(stronger)], score=4)
    both = someone.all.save(**said, scopes=[someone.scope(weaker), someone.scope(stronger)])
    ours = (strong, weak, both)
    found = [item["id"] for item in someone.all.search(someone.word, top_k=50) if item["id"] in ours]
    assert (set(found[:2]), found[2]) == ({strong, both}, weak), "the strongest of an item's scopes counts"


@pytest.mark.parametrize("number", range(len(LABELS)), ids=LABELS)
def test_an_example_is_taken_with_the_label_that_it_has(shared_node: RunningNode, number: int) -> None:
    example: JsonObject = EXAMPLES[number]
    kind, _, name = example["owner"].partition(":")
    door = Http(shared_node.url, {kind: name})
    item = door.one(door.save(**{**example, "types": [example["type"]], "type": None}))
    stated = ("scopes", "owner", "visibility", "content")
    assert {each: item[each] for each in stated} == {each: example[each] for each in stated}
    assert item["types"] == [example["type"]]


def test_a_label_that_the_scopes_do_not_have_is_refused(someone: Someone) -> None:
    with pytest.raises(Refused, match="invalid_payload"):
        someone.all.save(scopes=["public"], visibility="private")


def change(door: Http, item_id: str, how: str) -> None:
    """Change an item as its owner may."""
    path = f"/api/knowledge/{item_id}"
    door.ask("DELETE", path) if how == "delete" else door.ask("PUT", path, {"content": "changed"})


@pytest.mark.parametrize("how", ["modify", "delete"])
def test_the_owner_may(someone: Someone, how: str) -> None:
    item_id = someone.all.save(owner=someone.scope("user"), scopes=["public"])
    change(someone.all, item_id, how)
    item = someone.all.one(item_id)
    assert (item["status"] == "retired") if how == "delete" else (item["content"] == "changed")


@pytest.mark.parametrize("how", ["modify", "delete"])
def test_a_reader_who_is_not_the_owner_may_not(someone: Someone, stranger: Http, how: str) -> None:
    item_id = someone.all.save(scopes=["public"])
    stranger.after = someone.all.after
    assert stranger.one(item_id)
    with pytest.raises(Refused, match="not_owner"):
        change(stranger, item_id, how)


def test_the_acl_is_answered_as_it_was_stated(shared_node: RunningNode) -> None:
    door = Http(shared_node.url, {"user": "123"})
    item_id = door.save(**{**ACL, "id": f"knowledge_{uuid4().hex[:8]}", "types": [ACL["type"]], "type": None})
    assert door.one(item_id)["acl"] == ACL["acl"]


@pytest.mark.parametrize(
    ("number", "may_write"), [(0, True), (1, False), (2, False)], ids=["read_write", "project read", "agent read"]
)
def test_an_entry_of_the_acl_lets_its_entity(someone: Someone, number: int, may_write: bool) -> None:
    permission = ACL["acl"][number]["permission"]
    kind = ACL["acl"][number]["entity"].partition(":")[0]
    named = f"{kind}:other-{someone.word}"
    item_id = someone.all.save(content=f"c {someone.word}", acl=[{"entity": named, "permission": permission}])
    other = Http(someone.url, {kind: f"other-{someone.word}"}, after=someone.all.after)
    assert seen(other, item_id, someone.word) == {True}
    if may_write:
        change(other, item_id, "modify")
        return
    with pytest.raises(Refused, match="not_owner"):
        change(other, item_id, "modify")
