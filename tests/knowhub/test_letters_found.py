"""What an answer of a search states of itself and how it is narrowed, through every interface: sources 000 to 002."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Literal
from uuid import uuid4

import pytest

from kledger.contract.errors import LedgerError
from ledger.event import JsonObject
from tests.journeys.running_node import RunningNode
from tests.knowhub.doors import DOORS, NAMES, Command, Door, Http, Mcp, Name, Refused, Sdk

K = "/api/knowledge"
Asked = Literal["search", "list"]


class Asker:
    """One caller through one interface, with a word that no other item has."""

    def __init__(self, url: str, name: Name, stack: ExitStack) -> None:
        self.word = f"w{uuid4().hex[:12]}"
        self.user = f"ann-{self.word}"
        self.door: Door = DOORS[name](url, {"user": self.user, "org": f"lantern-{self.word}"})
        self.writer = Http(url, self.door.who)
        if isinstance(self.door, Sdk):
            stack.callback(self.door.ledger.close)

    def saved(self, **item: Any) -> str:
        """The id of an item that has the word."""
        return self.writer.save(**{"content": f"c {self.word}", **item})

    def asked(self, asked: Asked, **only: Any) -> list[JsonObject]:
        """What is found or listed, newer than all that was saved."""
        lists: dict[str, Any] = {
            name: [value] if name in ("types", "visibility") else value for name, value in only.items()
        }
        match self.door:
            case Http():
                self.door.after = self.writer.after
                params = {"q": self.word, "top_k": 50} if asked == "search" else {"limit": 1000}
                path = f"{K}/search" if asked == "search" else K
                told = self.door.ask("GET", path, **params, **only)
            case Sdk():
                ledger = self.door.ledger.seeing(self.writer.after)
                told = (
                    ledger.search(self.word, top_k=50, **lists)
                    if asked == "search"
                    else ledger.list(limit=1000, **lists)
                )
            case Command():
                words = [word for name, value in only.items() for word in (f"--{name}", value)]
                first = ("search", self.word, "--top-k", "50") if asked == "search" else ("list", "--limit", "1000")
                told = self.door.ask(*first, *words)
            case Mcp():
                tool, given = (
                    ("knowledge_search", {"query": self.word}) if asked == "search" else ("knowledge_list", {})
                )
                told = self.door.ask(tool, **given, **lists)
        return list(told["results"])

    def ids(self, asked: Asked, **only: Any) -> set[str]:
        return {item["id"] for item in self.asked(asked, **only) if self.word in item["content"]}


@pytest.fixture
def asker(request: pytest.FixtureRequest, shared_node: RunningNode) -> Iterator[Asker]:
    with ExitStack() as stack:
        yield Asker(shared_node.url, request.param, stack)


@pytest.mark.parametrize("asker", NAMES, indirect=True)
@pytest.mark.parametrize("asked", ["search", "list"])
def test_items_are_found_by_type_by_owner_and_by_visibility(asker: Asker, asked: Asked) -> None:
    org = f"org:lantern-{asker.word}"
    private = asker.saved(types=["tool"])
    shared = asker.saved(types=["plan"], scopes=[f"user:{asker.user}", "agent:x"])
    inside = asker.saved(types=["plan"], scopes=[org], owner=org)
    public = asker.saved(types=["tool"], scopes=["public"])
    every = {private, shared, inside, public}
    assert asker.ids(asked) == every
    assert asker.ids(asked, types="tool") == {private, public}
    assert asker.ids(asked, owner=org) == {inside}
    assert asker.ids(asked, owner=f"user:{asker.user}") == every - {inside}
    for label, item in (("private", private), ("shared", shared), ("org", inside), ("public", public)):
        assert asker.ids(asked, visibility=label) == {item}, label
    assert asker.ids(asked, visibility="public", types="plan") == set()
    with pytest.raises((Refused, LedgerError)):
        asker.asked(asked, visibility="secret")


@pytest.mark.parametrize("path", [f"{K}/search", K])
def test_the_filter_by_kind_is_called_type_as_well(shared_node: RunningNode, path: str) -> None:
    door = Http(shared_node.url, {"user": f"ann-{uuid4().hex[:12]}"})
    tool, plan, both = (
        door.save(content="lamp oil", types=types) for types in (["tool"], ["plan"], ["tool", "usecase"])
    )
    query = {"q": "lamp oil", "top_k": 50} if path.endswith("search") else {"limit": 1000}

    def ids(**only: str) -> set[str]:
        return {item["id"] for item in door.ask("GET", path, **query, **only)["results"]} & {tool, plan, both}

    assert ids() == {tool, plan, both}
    assert ids(type="tool") == {tool, both}
    assert ids(type="plan", types="usecase") == {plan, both}
    assert ids(type="definition") == set()
    with pytest.raises(Refused, match="invalid_payload"):
        ids(type="no kind")


def test_filters_by_owner_and_visibility_are_of_the_search_and_not_of_its_cut(shared_node: RunningNode) -> None:
    door = Http(shared_node.url, {"user": f"ann-{uuid4().hex[:12]}", "team": "web"})
    word = f"w{uuid4().hex[:12]}"
    for number in range(60):  # more than any number of candidates that a search of one result looks at
        door.save(task=word, content=f"{word} {word} {number}", scopes=["public"])
    rare = door.save(content=f"a long text that has the word {word} once among many others", owner="team:web")
    for only in ({"owner": "team:web"}, {"visibility": "private"}):
        for paths in ("fused", "keyword", "vector", "recency"):
            found = door.ask("GET", f"{K}/search", q=word, top_k=1, paths=paths, **only)["results"]
            assert [item["id"] for item in found] == [rare], (only, paths)
            then = door.ask("GET", f"{K}/search", q=word, top_k=1, paths=paths, as_of=door.after, **only)["results"]
            assert [item["id"] for item in then] == [rare], (only, paths)


def test_a_search_knows_every_item_up_to_the_position_that_it_names(shared_node: RunningNode) -> None:
    writer = Http(shared_node.url, {"user": f"ann-{uuid4().hex[:12]}"})
    other = Http(
        shared_node.url, {"user": f"bob-{uuid4().hex[:12]}"}
    )  # whose searches wait for nothing of the writer's
    for _ in range(20):
        word = f"w{uuid4().hex[:12]}"
        writer.after = 0
        item_id = writer.save(content=word, scopes=["public"])
        for path in (f"{K}/search", "/api/recall/startup"):
            other.after = 0
            told = other.ask("GET", path, q=word, top_k=50)
            if told["position"] >= writer.after:
                assert item_id in [item["id"] for item in told["results"]], (path, told["position"], writer.after)


@pytest.mark.parametrize("asker", NAMES, indirect=True)
def test_a_result_that_its_scope_puts_before_a_far_more_relevant_one_says_so(asker: Asker) -> None:
    near = asker.saved(task=f"{asker.word} {asker.word}", content=f"{asker.word} {asker.word}", scopes=["public"])
    far = asker.saved(task="the lamp", content=" ".join([asker.word, *(f"other{n}" for n in range(400))]))
    first, second = (item for item in asker.asked("search") if item["id"] in (near, far))
    assert (first["id"], second["id"]) == (far, near), "the order by scope is strict"
    assert f"user:{asker.user}" in first["why"]
    assert near in first["why"]
    assert "why" not in second
