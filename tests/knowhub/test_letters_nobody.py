"""The requests of the sources, sent as they are written, in their order and without a header, to a fresh node.

The sources' service knows no identity: whoever says nothing to a node on its own machine finds what it saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from producers.mcp.server import NOBODY_NAMED
from tests.doors.http_door import PROFILE_EXAMPLE
from tests.doors.test_http_memory_content import USER, WORK
from tests.doors.test_http_sharing import ACL, EXAMPLES
from tests.journeys.running_node import RunningNode, running
from tests.knowhub import source
from tests.knowhub.doors import DOORS, Http, Name, Refused, Sdk

K, M = "/api/knowledge", "/api/v1/memories"
GOAL = source.ITEM["task"]
FOUND_BY = {name: item["content"] for name, item in (("profile", PROFILE_EXAMPLE), ("item", source.ITEM))}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running(tmp_path_factory.mktemp("nobody") / "data") as fresh:
        yield fresh


class Nobody(Http):
    """Who sends requests as the sources have them: no header, no parameter but theirs."""

    def ask(self, method: str, path: str, body: object = None, **params: Any) -> Any:
        self.after = 0  # nothing waits for a position: own writes are in reads by themselves
        return super().ask(method, path, body, **params)


def test_the_sources_requests_work_one_after_the_other_without_a_header(node: RunningNode) -> None:
    nobody = Nobody(node.url)

    def found(query: str, **params: Any) -> list[str]:
        told = nobody.ask("GET", f"{K}/search", q=query, top_k=50, **params)
        assert told["degraded"] == []
        return [item["id"] for item in told["results"]]

    def listed(**params: Any) -> list[str]:
        return [item["id"] for item in nobody.ask("GET", K, **params)["results"]]

    # 000: the profile, found by its words and loaded at an agent's start
    assert nobody.ask("POST", K, PROFILE_EXAMPLE)["id"] == "profile_001"
    assert found(FOUND_BY["profile"])[0] == "profile_001"
    assert listed() == ["profile_001"]
    assert [item["id"] for item in nobody.ask("GET", "/api/recall/startup")["profile"]] == ["profile_001"]

    # 001: an item saved, searched, judged, rewritten, listed; resources and what refers to them; a goal; slimming
    item_id = nobody.ask("POST", K, source.ITEM)["id"]
    asked = {"q": source.ITEM["task"], "top_k": 5, "min_score": 3, "types": "strategy,tool"}
    assert [one["id"] for one in nobody.ask("GET", f"{K}/search", **asked)["results"]] == [item_id]
    told = nobody.ask("PUT", f"{K}/{item_id}", source.UPDATE)
    assert [event["type"] for event in told["events"]] == ["knowledge.scored", *["knowledge.rated"] * 2]
    assert nobody.ask("POST", f"{K}/batch_update", source.verdicts(item_id))["updated"] == 1
    judged = nobody.ask("GET", f"{K}/{item_id}")["eval"]
    assert (judged["score"], judged["helpful"], judged["harmful"]) == (4, 2, 1)
    for resource in source.RESOURCES.values():
        nobody.ask("POST", "/api/resource", resource)
        assert nobody.ask("GET", f"/api/resource/{resource['id']}")["title"] == resource["title"]
    credential = nobody.ask("GET", "/api/resource/credentials/website_a")
    assert credential["secure_body"] == source.RESOURCES["credentials/website_a"]["secure_body"]
    for item in source.REFERRING:
        saved = nobody.ask("POST", K, item)["id"]
        assert all(each["readable"] for each in nobody.ask("GET", f"{K}/{saved}")["resources"])
        assert saved in found(item["task"])
    assert listed(limit=10, types="tool,strategy", scopes="org:cybertogether") == [item_id]
    focused = nobody.ask("POST", "/api/goals/goal-123/focus", {"description": GOAL})
    assert item_id in [one["id"] for one in focused["metadata"]["items"]]
    assert nobody.ask("GET", "/api/goals/goal-123")["description"] == GOAL
    assert nobody.ask("POST", f"{K}/slim", source.SLIM)["id"]

    # 002: an example of each kind of scope, whoever owns it, and the ACL
    for example in [*EXAMPLES, {**ACL, "content": "爬虫反爬策略"}]:  # the source leaves the content of its ACL out
        saved = nobody.ask("POST", K, example)["id"]
        assert saved in found(example["content"])
        assert saved in listed(limit=1000)
        nobody.ask("PUT", f"{K}/{saved}", {"add_helpful_case": source.HELPFUL})
        assert nobody.ask("GET", f"{K}/{saved}")["eval"]["helpful"] == 2

    # 003: the memories
    nobody.ask("POST", M)
    assert set(nobody.ask("GET", M)) == {"user_memory", "work_memory"}
    for name, content in (("user", USER), ("work", WORK)):
        nobody.ask("PUT", f"{M}/{name}", {"content": content})
        assert nobody.ask("GET", f"{M}/{name}")["occupation"] == content["occupation"]
        nobody.ask("PATCH", f"{M}/{name}", {"content": {"occupation": "诗人"}})
        assert nobody.ask("GET", f"{M}/{name}")["occupation"] == "诗人"
    assert "诗人" in nobody.ask("GET", "/api/recall/startup")["sections"]["user_memory"]


@pytest.mark.parametrize("name", ["http", "sdk", "command"])
def test_who_says_nothing_on_loopback_saves_as_the_operator_and_finds_what_anybody_saved(
    node: RunningNode, name: Name
) -> None:
    word = f"wanted{name}"
    theirs = Http(node.url, {"user": f"ann-{name}"}).save(content=f"hers {word}")
    with ExitStack() as stack:
        nobody = DOORS[name](node.url)
        if isinstance(nobody, Sdk):
            stack.callback(nobody.ledger.close)
        own = nobody.save(content=f"mine {word}")
        assert Http(node.url).one(own)["owner"] == "user:local"
        found = [item["id"] for item in nobody.search(word, top_k=50) if word in item["content"]]
        assert found == [own, theirs], "the operator's own scope comes first"
        assert {own, theirs} <= {item["id"] for item in nobody.list()}
        nobody.score(theirs, 5)
        nobody.judge(theirs, "helpful", task="told by nobody")
    judged = Http(node.url).one(theirs)["eval"]
    assert (judged["score"], judged["helpful"]) == (5, 2)


def test_through_mcp_who_says_nothing_is_an_agent_that_finds_what_it_saved(node: RunningNode) -> None:
    nobody = DOORS["mcp"](node.url)
    own = nobody.save(content="mine wantedmcp")
    theirs = Http(node.url, {"user": "ann-mcp"}).save(content="hers wantedmcp")
    found = [item["id"] for item in [*nobody.search("wantedmcp", top_k=50), *nobody.list()]]
    assert own in found
    assert theirs not in found
    assert Http(node.url).one(own)["owner"] == NOBODY_NAMED.entities()[0]
    with pytest.raises(Refused, match="unknown_knowledge"):
        nobody.judge(theirs, "helpful", task="told by a model")


def test_whoever_is_named_on_loopback_sees_no_more_than_their_own(node: RunningNode) -> None:
    hidden = Http(node.url, {"user": "zoe"}).save(content="hers alone wantednamed")
    for kind in ("user", "agent", "project", "team", "org"):
        named = Http(node.url, {kind: "somebody"})
        assert hidden not in [item["id"] for item in [*named.search("wantednamed"), *named.list()]]
        with pytest.raises(Refused, match="unknown_knowledge"):
            named.score(hidden, 5)
