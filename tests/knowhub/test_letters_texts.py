"""Texts and names that have to be the source's own: tools, endpoints, prompts, examples."""

from __future__ import annotations

import inspect
from uuid import uuid4

import pytest

from kledger import LedgerClient
from kledger.client.tools import functions as tools
from tests.journeys.running_node import RunningNode
from tests.knowhub import source
from tests.knowhub.doors import Http, Mcp, Refused

MANAGING = (  # source 001, "System Prompt 引导", line by line
    "## 知识管理",
    '当你使用 `goal(action="focus")` 聚焦到某个 goal 时,'
    "系统会自动检索相关知识并显示在 GoalTree 的「📚 相关知识」部分。",
    "根据知识充足性判断:",
    "**知识充足**:",
    "- 如果相关知识足以完成任务,直接制定计划",
    "- 使用 `goal` 工具创建执行计划的子 goal",
    "**知识不足**:",
    "- 如果相关知识不足,需要进行调研",
    "- 调用 `agent` 工具启动调研子任务",
    "- 调研完成后,使用 `knowledge_save` 保存结果",
    "调研完成后,再次 focus 该 goal,新保存的知识会被自动注入。",
)
ENDPOINTS = (
    "GET /api/knowledge/search",
    "POST /api/knowledge",
    "PUT /api/knowledge/{item_id}",
    "POST /api/knowledge/batch_update",
    "GET /api/knowledge",
    "POST /api/knowledge/slim",
    "GET /api/resource/{resource_id}",
    "GET /api/v1/memories",
    "GET /api/v1/memories/user",
    "GET /api/v1/memories/work",
    "PUT /api/v1/memories/user",
    "PUT /api/v1/memories/work",
    "PATCH /api/v1/memories/user",
    "PATCH /api/v1/memories/work",
)
PARAMETERS = [(tool, name) for tool, parameters in source.TOOLS.items() for name in parameters]


@pytest.fixture(scope="module")
def door(shared_node: RunningNode) -> Http:
    return Http(shared_node.url, {"agent": "research_agent"})


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_an_endpoint_is_served_where_the_source_has_it(door: Http, endpoint: str) -> None:
    method, _, path = endpoint.partition(" ")
    paths = door.ask("GET", "/openapi.json")["paths"]
    either = [path, path.replace("/user", "/{memory_type}").replace("/work", "/{memory_type}")]
    assert any(method.lower() in paths.get(one, {}) for one in either), sorted(paths)


@pytest.mark.parametrize(("tool", "name"), PARAMETERS, ids=[" ".join(pair) for pair in PARAMETERS])
def test_a_tool_of_the_client_has_the_parameter_with_the_default_of_the_source(tool: str, name: str) -> None:
    parameters = inspect.signature(getattr(tools, tool)).parameters
    stated = parameters[name].default
    assert (source.NEEDED if stated is inspect.Parameter.empty else stated) == source.TOOLS[tool][name]
    _, *names = parameters  # the first is how the node is reached
    assert names.index(name) == list(source.TOOLS[tool]).index(name), "it is given by its place as well"


@pytest.mark.parametrize("tool", [*source.TOOLS, *source.NAMED_ONLY])
def test_a_tool_is_there_under_its_name_for_agents(shared_node: RunningNode, tool: str) -> None:
    with LedgerClient(shared_node.url) as ledger:
        assert callable(getattr(ledger.tools, tool))
    with pytest.raises(Refused, match="invalid_payload"):
        Mcp(shared_node.url).ask(tool, there_is_no_such_argument=True)


@pytest.mark.parametrize("line", MANAGING, ids=range(1, len(MANAGING) + 1))
def test_the_prompt_on_knowledge_has_the_line_of_the_source(door: Http, line: str) -> None:
    text = door.ask("GET", "/api/prompts/knowledge_management", language="zh")["text"]
    assert line in text.splitlines()


@pytest.mark.parametrize("name", ["knowledge_extraction", "knowledge_management", "research"])
def test_a_text_that_the_source_names_is_handed_out(door: Http, name: str) -> None:
    assert len(door.ask("GET", f"/api/prompts/{name}", language="zh")["text"]) > 200


@pytest.mark.parametrize("number", range(len(source.REFERRING)), ids=["code", "account", "cookie", "several"])
def test_an_item_of_a_scene_refers_to_its_resources(door: Http, number: int) -> None:
    item = source.REFERRING[number]
    told = door.ask("POST", "/api/knowledge", item)
    assert door.one(told["id"]).items() >= item.items()


@pytest.mark.parametrize("name", source.RESOURCES)
@pytest.mark.parametrize("field", ["title", "body", "secure_body", "content_type", "metadata"])
def test_a_field_of_a_resource_is_answered_as_it_was_stated(door: Http, name: str, field: str) -> None:
    resource = {**source.RESOURCES[name], "id": f"{uuid4().hex[:8]}/{name}"}
    resource["metadata"] = {key: value for key, value in resource["metadata"].items() if key != "expires_at"}
    door.ask("POST", "/api/resource", resource)
    assert door.ask("GET", f"/api/resource/{resource['id']}")[field] == resource.get(field)


def test_the_expiry_of_a_resource_is_kept_and_shown(door: Http) -> None:
    resource = {**source.RESOURCES["cookies/website_a"], "id": f"{uuid4().hex[:8]}/cookie"}
    door.ask("POST", "/api/resource", resource)
    told = door.ask("GET", f"/api/resource/{resource['id']}")
    assert (told["metadata"], told["expired"]) == (resource["metadata"], True)


@pytest.mark.parametrize(
    ("name", "ours"), [("get_knowledge", "knowledge_search"), ("save_knowledge", "knowledge_save")]
)
def test_a_tool_has_the_name_of_source_000_as_well(shared_node: RunningNode, name: str, ours: str) -> None:
    with LedgerClient(shared_node.url) as ledger:
        named, known = getattr(ledger.tools, name), getattr(ledger.tools, ours)
        assert inspect.signature(named) == inspect.signature(known)
        use = ledger.acting_as(user=f"ann-{uuid4().hex[:8]}").tools
        saved = use.save_knowledge("迁移数据库", "先建影子表", ["plan"])
        assert saved["id"] in [item["id"] for item in use.get_knowledge("迁移数据库")["results"]]


@pytest.mark.parametrize("tool", ["knowledge_search", "knowledge_list", "goal_focus"])
def test_an_answer_of_a_tool_has_its_items_in_its_metadata(shared_node: RunningNode, tool: str) -> None:
    with LedgerClient(shared_node.url) as ledger:
        use = ledger.acting_as(user=f"ann-{uuid4().hex[:8]}").tools
        saved = use.knowledge_save("迁移数据库", "先建影子表", ["plan"])
        asked = {"knowledge_search": ("迁移数据库",), "knowledge_list": (), "goal_focus": ("goal-1", "迁移数据库")}[
            tool
        ]
        told = getattr(use, tool)(*asked)
        assert saved["id"] in [item["id"] for item in told["metadata"]["items"]]
        assert told.get("results", told["metadata"]["items"]) == told["metadata"]["items"]
