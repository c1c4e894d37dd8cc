"""A refusal is short, however much of a request is wrong: it tells of some faults, and of how many more there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import Mock

import orjson
import pytest

from kledger.contract.errors import InvalidPayload, PayloadTooLarge
from kledger.requests.knowledge import SaveRequest
from producers.http import errors
from producers.mcp.catalogue import CATALOGUE
from producers.requests import reading
from producers.requests.reading import (
    LONGEST,
    MOST_LOOKED_AT,
    MOST_TOLD,
    parse,
    read_json,
    refusal,
    without_most_unknown,
)
from tests.doors.http_door import ALICE, http_door

MANY = 20_000
UNKNOWN = {f"no_such_field_{n}": 1 for n in range(MANY)}
ITEM = {"task": "t", "content": "c", "types": ["tool"]}
FAULTS: dict[str, tuple[str, str, Any, int]] = {
    "unknown fields of an item": ("POST", "/api/knowledge", ITEM | UNKNOWN, MANY),
    "unknown fields of a revision": ("PUT", "/api/knowledge/k", UNKNOWN, MANY),
    "unknown fields of a memory": ("POST", "/api/memory", {"layer": "episodic", "content": "c"} | UNKNOWN, MANY),
    "unknown fields of a profile": ("PATCH", "/api/v1/memories/work", {"content": UNKNOWN}, MANY),
    "unknown fields of a whole profile": ("PUT", "/api/v1/memories/work", {"content": UNKNOWN}, MANY),
    "unknown fields of an item of a batch": ("POST", "/api/knowledge/batch", {"items": [ITEM | UNKNOWN]}, MANY),
    "ids that are no texts": ("POST", "/api/knowledge", ITEM | {"resource_ids": [1] * 500}, 500),
    "unknown types of scopes": ("POST", "/api/knowledge", ITEM | {"scopes": [f"t{n}:x" for n in range(50)]}, 50),
    "unknown fields of a message": (
        "POST",
        "/api/sessions/s/messages",
        {"messages": [{"id": "m", "role": "user", "content": "c"} | UNKNOWN]},
        MANY,
    ),
    "unknown fields of several messages": (
        "POST",
        "/api/sessions/s/messages",
        {"messages": [{"id": f"m{n}", "role": "user", "content": "c"} | dict.fromkeys("abcd", 1) for n in range(500)]},
        2_000,
    ),
    "unknown fields of a resource with an item": (
        "POST",
        "/api/knowledge",
        ITEM | {"resources": [{"id": "r", "title": "t"} | UNKNOWN]},
        MANY,
    ),
    "unknown fields that say nothing": ("POST", "/api/knowledge", ITEM | dict.fromkeys(UNKNOWN), MANY),
    "unknown fields of a recall": ("POST", "/api/memory/recall", {"message": "m"} | UNKNOWN, MANY),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_refusal_tells_of_some_faults_and_of_how_many_more_there_are(fault: str) -> None:
    method, path, body, many = FAULTS[fault]
    async with http_door() as door:
        answer = await door.request(method, path, json=body, headers=ALICE)
        assert len(answer.content) < 16_000, len(answer.content)
        told = answer.json()
        error = told["errors"][0]["error"] if "batch" in path and "errors" in told else told.get("error")
        if error is None:
            error = next(each["error"] for each in told["results"] if each.get("error"))
        details = error["details"]
        assert len(details["errors"]) == MOST_TOLD
        assert details["more"] == many - MOST_TOLD
        assert "more" in error["message"]


async def test_a_refusal_tells_the_beginning_of_a_long_name() -> None:
    async with http_door() as door:
        for path in ("/api/knowledge", "/api/memory"):
            answer = await door.post(path, json=ITEM | {"x" * 1_000_000: 1}, headers=ALICE)
            assert answer.status_code == 422
            assert len(answer.content) < 16_000, len(answer.content)
            names = [error["field"] for error in answer.json()["error"]["details"]["errors"]]
            assert "x" * LONGEST in names


async def test_a_refusal_with_few_faults_says_of_no_more() -> None:
    async with http_door() as door:
        answer = await door.post("/api/knowledge", json=ITEM | {"one": 1, "two": 2}, headers=ALICE)
        assert {error["field"] for error in answer.json()["error"]["details"]["errors"]} == {"one", "two"}
        assert "more" not in answer.json()["error"]["details"]


@pytest.mark.parametrize("unknown", [1_001, 3_000])
def test_of_very_many_unknown_fields_most_are_counted_alone_and_what_is_right_stays(unknown: int) -> None:
    wrong = {f"k{n}": 1 for n in range(unknown)}
    read, dropped = without_most_unknown(SaveRequest, wrong | ITEM)
    assert isinstance(read, dict)
    assert dropped == unknown - 1_000
    assert ITEM.items() <= read.items()
    with pytest.raises(InvalidPayload) as refused:
        parse(SaveRequest, wrong | ITEM)
    assert refused.value.details["more"] == unknown - MOST_TOLD
    assert f"and {unknown - 5} more" in refused.value.message


@pytest.mark.parametrize("fault", FAULTS)
async def test_no_more_faults_are_gathered_than_are_looked_at(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each took ten microseconds in which the node did nothing else: a body of two megabytes two seconds."""
    gathered: list[int] = []

    def counted(faults: Sequence[Any], *more: Any) -> Any:
        gathered.append(len(faults))
        return refusal(faults, *more)

    monkeypatch.setattr(reading, "refusal", counted)
    monkeypatch.setattr(errors, "refusal", counted)
    method, path, body, _many = FAULTS[fault]
    async with http_door() as door:
        await door.request(method, path, json=body, headers=ALICE)
    assert all(number <= max(2 * MOST_LOOKED_AT, 500) for number in gathered), gathered


async def test_fields_that_say_nothing_are_read_over_in_a_message_however_many() -> None:
    """As clients of a model's API state them; with too many of others beside them it is refused all the same."""
    nothing = dict.fromkeys((f"n{n}" for n in range(5_000)), None)
    message = {"id": "m", "role": "user", "content": "c"}
    async with http_door() as door:
        kept = await door.post("/api/sessions/s/messages", json={"messages": [message | nothing]}, headers=ALICE)
        assert kept.status_code == 200, kept.text
        wrong = [message | {"id": "m2"} | nothing | {"last": 1}]
        refused = await door.post("/api/sessions/s/messages", json={"messages": wrong}, headers=ALICE)
        assert [each["field"] for each in refused.json()["error"]["details"]["errors"]] == ["messages.0.last"]


@pytest.mark.parametrize(
    "within",
    [
        lambda many: many,
        lambda many: {"items": [ITEM | {"source": many}]},
        lambda many: {"feedback_list": [{name: 1} for name in many]},
        lambda many: [[[{"tags": many}]]],
    ],
    ids=["the body", "a field of an item", "many payloads", "lists"],
)
def test_a_body_with_too_many_fields_is_refused_wherever_they_are(
    within: Callable[[dict[str, int]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_FIELDS", 1_000)
    few, many = within({f"k{n}": 1 for n in range(900)}), within({f"k{n}": 1 for n in range(1_001)})
    assert read_json(orjson.dumps(few)) == few
    with pytest.raises(PayloadTooLarge, match="1,000 are the limit"):
        read_json(orjson.dumps(many))
    colons = {"content": ":" * 2_000}
    assert read_json(orjson.dumps(colons)) == colons


async def test_a_tool_refuses_too_many_fields_before_each_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_FIELDS", 1_000)
    for tool in CATALOGUE:
        with pytest.raises(PayloadTooLarge, match=f"the call of {tool.name} has 20,000 fields"):
            await tool.call(Mock(), UNKNOWN)
