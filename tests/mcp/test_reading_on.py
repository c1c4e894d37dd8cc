"""What a tool answers a page of is read to its end with the tool alone."""

from __future__ import annotations

import pytest

from kledger.contract.errors import InvalidPayload
from producers.mcp.catalogue import BY_NAME
from tests.mcp.mcp_door import McpDoor, mcp_door

SCRIBE = {"X-Ledger-Agent": "scribe"}
PAGED = sorted(
    name for name, tool in BY_NAME.items() if "next" in ((tool.described.output_schema or {}).get("properties") or {})
)


def test_every_tool_that_answers_where_the_next_page_begins_takes_it() -> None:
    assert {"knowledge_list", "memory_list", "memory_held"} <= set(PAGED)
    assert [name for name in PAGED if "next" not in BY_NAME[name].described.input_schema["properties"]] == []


async def read_on(door: McpDoor, tool: str) -> list[str]:
    """The contents of all pages, two items each."""
    page = await door.call(tool, SCRIBE, limit=2)
    found = [item["content"] for item in page["results"]]
    while page["next"] is not None:
        page = await door.call(tool, SCRIBE, limit=2, next=page["next"])
        found += [item["content"] for item in page["results"]]
    return found


@pytest.mark.parametrize("tool", ["knowledge_list", "memory_list"])
async def test_a_model_reads_each_item_of_a_list_once(tool: str) -> None:
    said = [f"fact {number}" for number in range(5)]
    async with mcp_door() as door:
        for content in said:
            await door.call("memory_save", SCRIBE, content=content)
        assert sorted(await read_on(door, tool)) == said
        assert await door.refused(tool, SCRIBE, next=0) == InvalidPayload.code


async def test_a_model_reads_what_happened_in_a_span_of_time_and_by_tag() -> None:
    days = {
        "the quay was flooded": "2026-02-17",
        "the crane stood still": "2026-03-05",
        "the tide was low": "2026-04-01",
    }
    async with mcp_door() as door:
        for event, day in days.items():
            at = f"{day}T12:00:00Z"
            await door.call("memory_save", SCRIBE, layer="episodic", event=event, happened_at=at, tags=[day[:7]])

        async def told(**arguments: str | list[str]) -> list[str]:
            listed = await door.call("memory_list", SCRIBE, layer="episodic", **arguments)
            return [item["event"] for item in listed["results"]]

        flooded, stood_still, low = days
        assert await told(since="2026-03-01T00:00:00Z") == [low, stood_still]
        assert await told(until="2026-03-01T00:00:00Z") == [flooded]
        assert await told(since="2026-03-01T00:00:00Z", until="2026-04-01T00:00:00Z") == [stood_still]
        assert await told(tags=["2026-02", "2026-04"]) == [low, flooded]
        assert await door.refused("memory_list", SCRIBE, since="last week") == InvalidPayload.code
