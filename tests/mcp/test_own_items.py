"""An agent over MCP puts right what is its own, sees where it came from, and keeps what its user says of themselves."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from kledger.client.tools.arguments import ProfileChanges
from kledger.contract.words import ProfileType
from producers.mcp.catalogue import BY_NAME
from projections.views.profiles.content import CONTENTS
from tests.mcp.mcp_door import McpDoor, mcp_door

ITEM: dict[str, Any] = {"task": "Mend a pump", "content": "Replace the seal first.", "types": ["tool"]}
SCRIBE = {"X-Ledger-Agent": "scribe"}
OTHER = {"X-Ledger-Agent": "other"}
ANN = {"X-Ledger-User": "ann", "X-Ledger-Agent": "scribe"}


async def contents(door: McpDoor) -> list[str]:
    return [item["content"] for item in (await door.call("knowledge_list", SCRIBE))["results"]]


async def test_an_agent_corrects_what_it_owns_and_the_rest_of_the_item_stays() -> None:
    async with mcp_door() as door:
        item_id = (await door.call("knowledge_save", SCRIBE, **ITEM, tags={"domain": "pumps"}))["id"]
        said = {"knowledge_id": item_id, "content": "Check the valve first.", "reason": "it was dry"}
        await door.call("knowledge_revise", SCRIBE, **said, expected_version=1)
        item = await door.call("knowledge_read", SCRIBE, knowledge_id=item_id)
        assert (item["content"], item["task"], item["tags"]) == (
            "Check the valve first.",
            "Mend a pump",
            {"domain": "pumps"},
        )
        assert await door.refused("knowledge_revise", SCRIBE, **said, expected_version=1) == "version_conflict"
        assert await door.refused("knowledge_revise", SCRIBE, knowledge_id=item_id) == "invalid_payload"


async def test_an_agent_finds_what_it_tagged_by_a_word_or_by_a_name_with_its_value() -> None:
    async with mcp_door() as door:
        tags: tuple[dict[str, Any], ...] = (
            {"category": "booking", "rank": 5},
            {"category": "dinner", "labels": ["订位, 晚餐"]},
            {},
        )
        ids = [(await door.call("knowledge_save", SCRIBE, **ITEM, tags=each))["id"] for each in tags]
        wanted: tuple[tuple[list[str], list[str]], ...] = (
            (["category=booking"], ids[:1]),
            (["rank=5", "订位, 晚餐"], ids[:2]),
            (["booking=5"], []),
        )
        for words, found in wanted:
            results = (await door.call("knowledge_list", SCRIBE, tags=words))["results"]
            assert sorted(each["id"] for each in results) == sorted(found), words


async def test_an_agent_retires_what_it_owns_and_reads_it_still() -> None:
    async with mcp_door() as door:
        item_id = (await door.call("knowledge_save", SCRIBE, **ITEM))["id"]
        late = {"knowledge_id": item_id, "expected_version": 2}
        assert await door.refused("knowledge_retire", SCRIBE, **late) == "version_conflict"
        await door.call("knowledge_retire", SCRIBE, knowledge_id=item_id, reason="the pump is gone", expected_version=1)
        assert await contents(door) == []
        assert (await door.call("knowledge_read", SCRIBE, knowledge_id=item_id))["status"] == "retired"


async def test_what_is_anothers_is_neither_corrected_nor_retired_and_what_is_hidden_is_unknown() -> None:
    async with mcp_door() as door:
        shared = (await door.call("knowledge_save", SCRIBE, **ITEM, scopes=["public"]))["id"]
        hidden = (await door.call("knowledge_save", SCRIBE, **ITEM))["id"]
        for item_id, code in (
            (shared, "not_owner"),
            (hidden, "unknown_knowledge"),
            ("never-saved", "unknown_knowledge"),
        ):
            assert await door.refused("knowledge_revise", OTHER, knowledge_id=item_id, content="x") == code
            assert await door.refused("knowledge_retire", OTHER, knowledge_id=item_id) == code
        assert await contents(door) == [ITEM["content"]] * 2


async def test_the_lineage_of_an_item_names_its_message_and_its_events() -> None:
    async with mcp_door() as door:
        item_id = (await door.call("knowledge_save", SCRIBE, **ITEM, message_id="m-7"))["id"]
        await door.call("knowledge_revise", SCRIBE, knowledge_id=item_id, content="x")
        told = await door.call("knowledge_lineage", SCRIBE, ref=item_id)
        assert [event["event_type"] for event in told["events"]] == ["knowledge.saved", "knowledge.revised"]
        caused = await door.call("knowledge_lineage", SCRIBE, ref="message:m-7")
        assert item_id in {edge["entity_id"] for edge in caused["edges"]}


async def test_what_a_user_says_of_themselves_is_kept_in_their_memories() -> None:
    async with mcp_door() as door:
        told = await door.call("profile_update", ANN, profile="work", changes={"expertise": ["sql"], "occupation": "x"})
        assert (told["expertise"], told["team_members"]) == (["sql"], [])
        await door.call("profile_update", ANN, profile="work", changes={"occupation": None})
        both = await door.call("profile_read", ANN)
        assert (both["work_memory"]["expertise"], both["work_memory"]["occupation"]) == (["sql"], None)
        assert both["user_memory"]["people"] == []
        assert "sql" in (await door.call("knowledge_startup", ANN))["prompt"]
        wrong = {"profile": "work", "changes": {"no_such_field": 1}}
        assert await door.refused("profile_update", ANN, **wrong) == "invalid_payload"


async def test_an_agent_that_speaks_for_no_user_has_no_memories_to_change() -> None:
    async with mcp_door() as door:
        assert (
            await door.refused("profile_update", SCRIBE, profile="user", changes={"occupation": "x"})
            == "invalid_payload"
        )


async def test_without_a_model_nothing_is_extracted_and_the_error_says_so() -> None:
    async with mcp_door() as door:
        assert await door.refused("knowledge_extract", SCRIBE, text="I like tea.") == "not_available"
        assert await door.refused("knowledge_extract", SCRIBE) == "invalid_payload"


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("knowledge_search", {"query": ""}, "query is empty"),
        ("memory_recall", {"message": "x" * 1_048_577}, "message is too long: 1048576 characters at most"),
        ("memory_recall", {"message": "m", "session_id": "s" * 201}, "session_id is too long: 200 characters at most"),
        ("memory_recall", {"query": "q"}, "query is not a field here: here it is message"),
        ("memory_recall", {"message": "m", "k": 2}, "k is not a field here: here it is top_k"),
        (
            "memory_recall",
            {"message": "m", "sesion": "s"},
            "sesion is not a field here: there are message, session_id, ",
        ),
        ("knowledge_search", {"query": "q", "limit": 2}, "limit is not a field here: here it is top_k"),
        ("knowledge_search", {"q": "q"}, "q is not a field here: here it is query"),
        ("knowledge_read", {"id": "k-1"}, "id is not a field here: here it is knowledge_id"),
        ("knowledge_retire", {"item_id": "k-1"}, "item_id is not a field here: here it is knowledge_id"),
        ("knowledge_lineage", {"id": "k-1"}, "id is not a field here: here it is ref"),
        ("knowledge_update", {"knowledge_id": "k-1", "helpful": True}, "helpful is not a field here: here it is add_h"),
        ("memory_save", {"text": "I like tea"}, "text is not a field here: here it is content"),
        ("memory_save", {"content": "c", "tags": [""]}, "does not fit: tags.0 is empty"),
    ],
)
async def test_an_argument_that_does_not_fit_is_named_as_the_tool_calls_it(
    tool: str, arguments: dict[str, Any], said: str
) -> None:
    async with mcp_door() as door:
        answer = (await door.post("tools/call", SCRIBE, name=tool, arguments=arguments)).json()
        assert said in json.loads(answer["result"]["content"][0]["text"])["error"]["message"]


def test_where_null_removes_a_field_the_schema_takes_null() -> None:
    fields = BY_NAME["session_scratchpad"].described.input_schema["properties"]["patch"]["properties"]
    assert all({"type": "null"} in field["anyOf"] and "default" not in field for field in fields.values())


@pytest.mark.parametrize("profile", get_args(ProfileType))
def test_the_tool_names_every_field_of_a_memory(profile: ProfileType) -> None:
    (_, field) = get_args(ProfileChanges)
    fields = field.description.partition(f"Of {profile}: ")[2].partition(".")[0]
    assert fields.split(", ") == [*CONTENTS[profile].model_fields]
