"""The official client lists and calls each tool, over stdio and HTTP, at a real node."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import MCPError

from tests.journeys.running_node import RunningNode, until
from tests.knowhub.source import NAMED_ONLY, NEEDED, OF_ITEMS, OF_MEMORIES, OF_PROFILES, OF_SESSIONS, RESOURCES, TOOLS
from tests.mcp.connecting import WAYS, Way, connected, refused, told

every_way = pytest.mark.parametrize("way", WAYS)
one_way_each = pytest.mark.parametrize("way", ["http", "http of 2025", "stdio"])
TRACEPARENT = "00-{}-00f067aa0ba902b7-01"


@every_way
async def test_a_client_lists_every_tool_of_the_source_with_its_arguments_and_what_it_changes(
    shared_node: RunningNode, way: Way
) -> None:
    async with connected(shared_node.url, way) as client:
        assert client.protocol_version == ("2025-11-25" if way.endswith("2025") else "2026-07-28")
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.title) == ("kledger", "Knowledge Ledger")
        assert client.instructions is not None
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {*TOOLS, *NAMED_ONLY, *OF_ITEMS, *OF_PROFILES, *OF_SESSIONS, *OF_MEMORIES}
    for name, arguments in TOOLS.items():
        schema = tools[name].input_schema
        stated = {
            field: NEEDED if field in schema.get("required", ()) else within.get("default")
            for field, within in schema["properties"].items()
        }
        assert list(stated.items())[: len(arguments)] == list(arguments.items()), name
    for tool in tools.values():
        assert tool.title
        assert tool.description
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"
        assert all(within.get("description") for within in tool.input_schema["properties"].values()), tool.name
        assert tool.annotations is not None
        assert tool.annotations.open_world_hint is False
    reading = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
    hiding = {name for name, tool in tools.items() if tool.annotations and tool.annotations.destructive_hint}
    assert (reading, hiding) == (
        {"knowledge_search", "knowledge_list", "resource_get", "knowledge_startup", "session_context", "memory_health"}
        | {"memory_list", "memory_recall", "memory_held", "knowledge_read", "knowledge_lineage", "profile_read"}
        | {"session_expand"},
        {"knowledge_slim", "knowledge_retire"},
    )


@one_way_each
async def test_an_agent_saves_finds_judges_and_lists_with_the_tools(shared_node: RunningNode, way: Way) -> None:
    name = f"mcp-{way.replace(' ', '-')}"
    word = f"seal{WAYS.index(way)}q"
    async with connected(shared_node.url, way, agent=name) as client:
        saved = await told(
            client,
            "knowledge_save",
            {"task": f"泵漏水时换 {word}", "content": "Replace the seal first.", "types": ["tool"], "score": 4},
        )
        found = await told(client, "knowledge_search", {"query": word, "types": ["tool"]})
        (item,) = (one for one in found["results"] if one["id"] == saved["id"])
        assert (item["owner"], item["source"]["agent_id"], item["eval"]["score"]) == (f"agent:{name}", name, 4)
        case = {"task": "pump 7", "outcome": "dry"}
        changed = await told(
            client,
            "knowledge_update",
            {"knowledge_id": saved["id"], "add_helpful_case": case, "add_harmful_case": {}, "update_score": 5},
        )
        assert [event["type"] for event in changed["events"]] == [
            "knowledge.scored",
            "knowledge.rated",
            "knowledge.rated",
        ]
        many = {
            "feedback_list": [
                {"knowledge_id": saved["id"], "is_helpful": True, "case": case},
                {"knowledge_id": "never-saved", "is_helpful": True},
                {"knowledge_id": saved["id"], "is_helpful": "perhaps"},
            ]
        }
        rated = await told(client, "knowledge_batch_update", many)
        assert rated["updated"] == 1
        assert [(one["index"], one["error"]["code"]) for one in rated["refused"]] == [
            (1, "unknown_knowledge"),
            (2, "invalid_payload"),
        ]
        (listed,) = (await told(client, "knowledge_list", {"limit": 5, "scopes": [f"agent:{name}"]}))["results"]
        assert listed["eval"] == {"score": 5, "helpful": 3, "harmful": 1, "confidence": listed["eval"]["confidence"]}


@one_way_each
async def test_what_does_not_fit_and_what_is_not_to_be_seen_is_told_so_that_a_model_can_do_better(
    shared_node: RunningNode, way: Way
) -> None:
    with shared_node.client() as ledger:
        hidden = ledger.acting_as(user="ada").save("Find the spare key", "Under the mat.", ["tool"])
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("knowledge_search", {}, "invalid_payload"),
        ("knowledge_search", {"query": "key", "topk": 3}, "invalid_payload"),
        ("knowledge_search", {"query": "key", "top_k": 1_000}, "invalid_payload"),
        ("knowledge_search", {"query": "key", "types": "tool"}, "invalid_payload"),
        ("knowledge_save", {"task": "t", "content": "c", "types": []}, "invalid_payload"),
        ("knowledge_save", {"task": "t", "content": "c", "types": ["tool"], "owner": "user:ada"}, "not_owner"),
        ("knowledge_save", {"task": "t", "content": "c", "types": ["tool"], "scopes": ["ada"]}, "illegal_scope"),
        ("knowledge_update", {"knowledge_id": hidden["id"], "add_helpful_case": {}}, "unknown_knowledge"),
        ("knowledge_update", {"knowledge_id": hidden["id"]}, "invalid_payload"),
        ("knowledge_batch_update", {"feedback_list": []}, "invalid_payload"),
    ]
    async with connected(shared_node.url, way, agent="reader") as client:
        own = await told(client, "knowledge_save", {"task": "t", "content": "c", "types": ["tool"]})
        needs_a_model = {"knowledge_id": own["id"], "evolve_feedback": "Say it shorter."}
        for tool, arguments, code in [*wrong, ("knowledge_update", needs_a_model, "not_available")]:
            assert await refused(client, tool, arguments) == code, (tool, arguments)
        found = await told(client, "knowledge_search", {"query": "Find the spare key"})
        assert hidden["id"] not in [item["id"] for item in found["results"]]
        with pytest.raises(MCPError, match="tools/list"):
            await client.call_tool("drop_table", {})


@one_way_each
async def test_resources_and_their_secrets_are_saved_and_read_with_the_tools(
    shared_node: RunningNode, way: Way
) -> None:
    prefix = way.replace(" ", "-")
    async with connected(shared_node.url, way, agent="keeper") as keeper:
        for resource in RESOURCES.values():
            resource_id = f"{prefix}/{resource['id']}"
            stated = {name: value for name, value in resource.items() if name != "id"}
            await told(keeper, "resource_save", {"resource_id": resource_id, **stated, "scopes": ["public"]})
            if "expires_at" not in resource["metadata"]:  # an expired secret is never served as valid (X4)
                read = await told(keeper, "resource_get", {"resource_id": resource_id})
                assert read.items() >= {**stated, "id": resource_id}.items()
        assert await refused(keeper, "resource_get", {"resource_id": "never/saved"}) == "unknown_resource"
    async with connected(shared_node.url, way, agent="other") as other:
        read = await told(other, "resource_get", {"resource_id": f"{prefix}/credentials/website_a"})
        assert (read["secure_body"], read["body"]) == (None, RESOURCES["credentials/website_a"]["body"])


@one_way_each
async def test_a_goal_is_focused_with_what_was_saved_a_moment_ago(shared_node: RunningNode, way: Way) -> None:
    name = f"planner-{WAYS.index(way)}"
    async with connected(shared_node.url, way, agent=name) as client:
        saved = await told(
            client, "knowledge_save", {"task": f"水泵漏水 {name}", "content": "先换密封圈", "types": ["plan"]}
        )
        goal = {"goal_id": "goal-123", "description": f"让水泵不再漏水 {name}"}
        focused = await told(client, "goal_focus", goal)
        assert saved["id"] in [item["id"] for item in focused["metadata"]["items"]]
        assert "先换密封圈" in focused["output"]
        assert "Related knowledge" in focused["output"]
        assert "相关知识" in (await told(client, "goal_focus", {**goal, "language": "zh"}))["output"]
        assert await refused(client, "goal_focus", {**goal, "description": ""}) == "invalid_payload"


@one_way_each
async def test_the_prompts_of_the_source_are_handed_out(shared_node: RunningNode, way: Way) -> None:
    async with connected(shared_node.url, way) as client:
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert "knowledge_management" in prompts
        for prompt in prompts.values():
            assert prompt.description
            assert prompt.description != prompt.title
            assert all(argument.description for argument in prompt.arguments or [])
        (message,) = (await client.get_prompt("knowledge_management", {"language": "zh"})).messages
        assert message.content.type == "text"
        assert "知识充足" in message.content.text
        (message,) = (await client.get_prompt("knowledge_management")).messages
        assert message.content.type == "text"
        assert "knowledge_save" in message.content.text
        assert "知识充足" not in message.content.text
        with pytest.raises(MCPError):
            await client.get_prompt("no_such_prompt")


@pytest.mark.parametrize("way", ["http", "stdio"])
async def test_the_trace_that_a_call_names_is_the_lineage_of_what_it_writes(shared_node: RunningNode, way: Way) -> None:
    trace = f"{WAYS.index(way):032x}".replace("0", "a")
    item = {"task": "t", "content": "c", "types": ["tool"], "message_id": "msg-9"}
    async with connected(shared_node.url, way, agent="tracer") as client:
        by_parent = await told(client, "knowledge_save", item, traceparent=TRACEPARENT.format(trace))
        by_name = await told(client, "knowledge_save", item, **{"kledger/trace_id": f"run-{trace}"})
    with shared_node.client() as ledger:
        seeing = ledger.acting_as(agent="tracer").seeing(by_name["position"])
        for name, saved in ((trace, by_parent), (f"run-{trace}", by_name)):
            refs = {edge["ref"] for edge in seeing.lineage(saved["id"])["edges"]}
            assert {f"trace:{name}", "message:msg-9"} <= refs


@one_way_each
async def test_a_slim_is_a_plan_until_it_is_applied_by_its_id(shared_node: RunningNode, way: Way) -> None:
    name = f"slimmer-{WAYS.index(way)}"
    async with connected(shared_node.url, way, agent=name) as client:
        ids = [
            (
                await told(
                    client, "knowledge_save", {"task": "t", "content": f"{said}oil the {name}", "types": ["tool"]}
                )
            )["id"]
            for said in ("", "Please ")
        ]
        plan = await told(client, "knowledge_slim", {})
        assert plan["dry_run"] is True
        with shared_node.client() as ledger:
            owner = ledger.acting_as(agent=name)
            until(lambda: owner.slim_get(plan["id"])["done"], "the plan is made")
            (group,) = owner.slim_get(plan["id"])["groups"]
            assert [owner.get(item)["status"] for item in ids] == ["active", "active"]
            done = await told(client, "knowledge_slim", {"apply": plan["id"]})
            assert done["id"] == plan["id"]
            until(lambda: owner.slim_get(plan["id"])["status"] == "applied", "the plan is applied")
            merged = {item: owner.get(item)["status"] for item in ids}
        assert merged == {item: "active" if item == group["survivor"] else "merged" for item in ids}
        assert await refused(client, "knowledge_slim", {"apply": "slim-never"}) == "unknown_process"
