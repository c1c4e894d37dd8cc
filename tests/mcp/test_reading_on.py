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
