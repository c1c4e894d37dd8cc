"""Attacks with a key that was used: other words under it are refused, before a restart and after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.journeys.running_node import RunningNode, caught_up, head, running

ADA, BOB = {"X-Ledger-User": "ada"}, {"X-Ledger-User": "bob"}
KEY = {"Idempotency-Key": "invoice-7"}
ITEM = {"task": "Pay", "content": "Pay invoice 7 on Monday.", "types": ["plan"], "scopes": ["user:ada"]}
RESOURCE = {"id": "bank/login", "title": "The bank", "secure_body": "hush"}
SAVE, CHANGE, KEEP, FOCUS = (
    "POST /api/knowledge",
    "PUT /api/knowledge/old",
    "POST /api/resource",
    "POST /api/goals/g/focus",
)
MANY, WORK = "POST /api/knowledge/batch_update", "PUT /api/v1/memories/work"
VERDICTS = {"feedback_list": [{"knowledge_id": "old", "is_helpful": True}]}

FIRST: dict[str, dict[str, Any]] = {
    SAVE: ITEM,
    CHANGE: {"update_score": 5, "add_helpful_case": {"reason": "paid"}},
    KEEP: RESOURCE,
    FOCUS: {"description": "pay"},
    MANY: VERDICTS,
    WORK: {"content": {"occupation": "cook"}},
}
"""What Ada sends with the key; each endpoint has keys of its own."""

# What is sent with her key afterwards, as her.
ATTACKS: dict[str, tuple[str, dict[str, Any]]] = {
    "other words": (SAVE, {**ITEM, "content": "Pay invoice 7 to Mallory."}),
    "another task": (SAVE, {**ITEM, "task": "Do not pay"}),
    "other readers": (SAVE, {**ITEM, "scopes": ["public"]}),
    "readers beside": (SAVE, {**ITEM, "acl": [{"entity": "user:mallory"}]}),
    "an id beside": (SAVE, {**ITEM, "id": "another"}),
    "another kind": (SAVE, {**ITEM, "types": ["tool"]}),
    "tags beside": (SAVE, {**ITEM, "tags": {"to": "mallory"}}),
    "another source": (SAVE, {**ITEM, "source": {"name": "mallory"}}),
    "another score": (SAVE, {**ITEM, "score": 1}),
    "another score of an item": (CHANGE, {"update_score": 1, "add_helpful_case": {"reason": "paid"}}),
    "another verdict": (CHANGE, {"update_score": 5, "add_harmful_case": {"reason": "paid"}}),
    "a verdict less": (CHANGE, {"update_score": 5}),
    "words instead of a score": (CHANGE, {"content": "mine"}),
    "another reason of a verdict": (CHANGE, {"update_score": 5, "add_helpful_case": {"reason": "robbed"}}),
    "another secret": (KEEP, {**RESOURCE, "secure_body": "known"}),
    "a secret for others": (KEEP, {**RESOURCE, "shared_with": ["user:mallory"]}),
    "another resource": (KEEP, {**RESOURCE, "id": "bank/other"}),
    "another goal's words": (FOCUS, {"description": "rob"}),
    "another verdict of many": (MANY, {"feedback_list": [{"knowledge_id": "old", "is_helpful": False}]}),
    "another memory": (WORK, {"content": {"occupation": "thief"}}),
}


def ask(node: RunningNode, line: str, who: dict[str, str], body: Any) -> httpx.Response:
    method, _, path = line.partition(" ")
    return httpx.request(method, node.url + path, json=body, headers=who | KEY, timeout=30)


@pytest.fixture(scope="module", params=["the node that took it", "the node after a restart"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    data: Path = tmp_path_factory.mktemp("keys") / "data"
    with running(data, "--quack", "off") as first:
        with first.client() as operator:
            operator.acting_as(user="ada").save("old", "old", ["tool"], id="old")
            caught_up(operator)
        for line, body in FIRST.items():
            assert ask(first, line, ADA, body).is_success, line
        if request.param == "the node that took it":
            yield first
            return
        assert first.stop() == 0
    with running(data, "--quack", "off") as again:
        yield again


@pytest.mark.parametrize("name", ATTACKS)
def test_a_key_with_other_words_is_refused_and_changes_nothing(node: RunningNode, name: str) -> None:
    line, body = ATTACKS[name]
    with node.client() as operator:
        before = caught_up(operator)["stream"]["head"]
        answer = ask(node, line, ADA, body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "idempotency_mismatch"), answer.text
        assert ask(node, line, ADA, FIRST[line]).is_success, "what was sent first is answered as before"
        assert head(operator) == before


def test_anothers_key_is_a_key_like_any_other(node: RunningNode) -> None:
    """Bob learns nothing of what Ada sent with it, and hinders her in nothing."""
    hers, his = ask(node, SAVE, ADA, ITEM), ask(node, SAVE, BOB, {**ITEM, "scopes": ["user:bob"]})
    assert his.status_code == 201
    assert his.json()["id"] != hers.json()["id"]
    assert ask(node, SAVE, ADA, ITEM).json()["id"] == hers.json()["id"]
