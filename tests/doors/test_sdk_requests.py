"""What does the SDK send, on either face?"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kledger import AsyncLedgerClient, LedgerClient
from kledger.client.documents import DocumentEndpoints
from kledger.client.profiles import ProfileEndpoints
from kledger.client.recall import RecordedRecallEndpoints
from kledger.client.resources import ResourceEndpoints
from kledger.client.sessions import SessionEndpoints
from kledger.client.tools.endpoints import ToolEndpoints
from kledger.contract.errors import IllegalScope, InvalidPayload
from producers.http.known_parameters import known_of
from tests.doors.one_app import app_of
from tests.doors.scripted_node import ScriptedNode, scripted_node
from tests.doors.test_http_parameters import routes

SAVED = {"id": "k-1", "position": 7, "version": 1, "event_id": "e-1", "duplicate": False}
CHANGED = {"id": "k-1", "position": 8, "events": [{"type": "knowledge.rated", "event_id": "e", "position": 8}]}
FOUND = {"results": [], "count": 0, "position": 7, "recall_id": None}
FOUND_BY_TOOL = {**FOUND, "metadata": {"items": FOUND["results"]}}
SLIM = {"id": "slim-1", "status": "reported", "done": True, "position": 9}
BATCH = {"results": [], "saved": 0, "unchanged": 0, "refused": 0, "held": 0, "position": 9}
JOB = {"id": "j/1", "kind": "verify", "state": "running", "done": 0, "total": 5, "rate": None, "result": None}

# Every endpoint: how it is called, and the line that must arrive.
CALLS: list[tuple[str, Callable[[Any], Any], Any]] = [
    ("GET /api/knowledge/search", lambda c: c.search("回滚", types=["tool", "plan"], as_of=4), FOUND),
    ("POST /api/knowledge", lambda c: c.save("t", "c", ["tool"], scopes=["public"]), SAVED),
    ("POST /api/knowledge/batch", lambda c: c.save_many([{"task": "t"}]), BATCH),
    ("PUT /api/knowledge/k-1", lambda c: c.revise("k-1", content="new", expected_version=1), CHANGED),
    ("PUT /api/knowledge/k-1", lambda c: c.revise("k-1", tags=["drink", "tea"]), CHANGED),
    ("PUT /api/knowledge/k-1", lambda c: c.rate("k-1", "harmful", reason="wrong", trace_id="t"), CHANGED),
    ("PUT /api/knowledge/k-1", lambda c: c.score("k-1", 5), CHANGED),
    (
        "POST /api/knowledge/batch_update",
        lambda c: c.rate_many([{"knowledge_id": "k-1", "is_helpful": True, "case": {}}]),
        {"updated": 1, "refused": [], "position": 9},
    ),
    ("DELETE /api/knowledge/k-1", lambda c: c.retire("k-1", reason="old", expected_version=2), SAVED),
    ("POST /api/knowledge/k-1/restore", lambda c: c.restore("k-1", expected_version=3), SAVED),
    ("GET /api/knowledge/a%2Fb%20%3F", lambda c: c.get("a/b ?", as_of="2026-03-05T12:00:00Z"), {"id": "a/b ?"}),
    ("GET /api/knowledge", lambda c: c.list(limit=3, scopes=["user:ann"], status="all"), FOUND),
    ("GET /api/knowledge", lambda c: c.list(tags=["db"], layers=["plain"], since=None, sort="helpful"), FOUND),
    ("GET /api/overview/facets", lambda c: c.facets(tags=["db"], min_score=2), {"total": 0}),
    ("GET /api/overview", lambda c: c.overview(days=7), {"total": 0}),
    ("GET /api/whoami", lambda c: c.whoami(), {"entities": ["user:ann"], "operator": False}),
    ("GET /api/overview/changes", lambda c: c.changes(after=7, limit=2), {"changes": [], "next": 7, "position": 7}),
    (
        "GET /api/overview/changes",
        lambda c: c.changes(change=["rated"], ids=["a,b"], types=["tool"], scopes=["public"], owner="user:ann"),
        {"changes": [], "next": 7, "position": 7},
    ),
    ("POST /api/knowledge/bulk", lambda c: c.bulk("retire", ["k-1"], reason="old"), {"bulk_id": None, "position": 7}),
    ("GET /api/bulks/bulk-1", lambda c: c.bulk_get("bulk-1"), {"bulk_id": "bulk-1", "items": []}),
    ("POST /api/bulks/bulk-1/revert", lambda c: c.revert_bulk("bulk-1", reason="no"), {"position": 8}),
    ("GET /api/knowledge/k-1/history", lambda c: c.history("k-1"), {"id": "k-1"}),
    (
        "PUT /api/knowledge/k-1/acl",
        lambda c: c.share("k-1", [{"entity": "team:t", "permission": "read"}], expected_version=2),
        {"id": "k-1"},
    ),
    ("GET /api/knowledge/%2E%2E", lambda c: c.get(".."), {"id": ".."}),
    ("GET /api/knowledge/k%2F1/why", lambda c: c.why_visible("k/1"), {"id": "k/1", "because": []}),
    ("GET /api/scope_types", lambda c: c.scope_types(), {"scope_types": []}),
    ("POST /api/scope_types", lambda c: c.register_scope_type("guild", 2.5), {"type": "guild", "position": 1}),
    ("GET /api/knowledge/search", lambda c: c.wait_searchable(9), True),
    (
        "GET /api/lineage",
        lambda c: c.lineage("trace:t/1"),
        {"ref": "trace:t/1", "events": [], "edges": [], "position": 1},
    ),
    ("POST /api/knowledge/slim", lambda c: c.slim("m", scopes=["user:a"], wait=0), SLIM),
    ("GET /api/slims", lambda c: c.slims(status="reported"), FOUND),
    ("GET /api/slims/slim-1", lambda c: c.slim_get("slim-1"), SLIM),
    ("POST /api/slims/slim-1/apply", lambda c: c.slim_apply("slim-1"), SLIM),
    ("POST /api/slims/slim-1/reject", lambda c: c.slim_reject("slim-1", reason="no"), SLIM),
    ("POST /api/slims/slim-1/revert", lambda c: c.slim_revert("slim-1"), SLIM),
    ("PUT /api/knowledge/k-1", lambda c: c.evolve("k-1", "shorter", dry_run=True, model="m", wait=1), CHANGED),
    ("POST /api/knowledge/k-1/revert", lambda c: c.revert("k-1", 1, expected_version=2), SAVED),
    ("GET /api/evolutions/evolution-1", lambda c: c.evolution("evolution-1"), {"id": "evolution-1"}),
    ("GET /api/evolutions", lambda c: c.evolutions(item_id="k/1", status="proposed"), FOUND),
    ("POST /api/evolutions/evolution-1/apply", lambda c: c.apply_evolution("evolution-1"), SAVED),
    ("POST /api/evolutions/evolution-1/reject", lambda c: c.reject_evolution("evolution-1", reason="no"), SAVED),
    ("POST /api/evolutions/evolution-1/revert", lambda c: c.revert_evolution("evolution-1"), SAVED),
    ("POST /api/knowledge/extract", lambda c: c.extract("I like tea", kind="statement", scopes=["user:a"]), SAVED),
    ("GET /api/extractions/extraction-1", lambda c: c.extraction("extraction-1"), {"id": "extraction-1"}),
    ("GET /api/conflicts", lambda c: c.conflicts(item_id="k/1"), FOUND),
    ("GET /api/goals", lambda c: c.goals(owner="agent:a", limit=3), FOUND),
    ("GET /api/extractions", lambda c: c.extractions(status="failed", limit=3), FOUND),
    ("GET /api/conflicts/conflict-1", lambda c: c.conflict("conflict-1"), {"id": "conflict-1"}),
    ("POST /api/conflicts/conflict-1/resolve", lambda c: c.resolve_conflict("conflict-1", "k-1"), SAVED),
    ("GET /api/v1/memories", lambda c: c.profiles.both(), {"user_memory": None, "work_memory": None}),
    ("POST /api/v1/memories", lambda c: c.profiles.register(), {"user_memory": {}, "work_memory": {}}),
    ("GET /api/v1/memories/user", lambda c: c.profiles.get("user"), None),
    ("PUT /api/v1/memories/work", lambda c: c.profiles.put("work", {"expertise": ["x"]}), {}),
    ("PATCH /api/v1/memories/user", lambda c: c.profiles.patch("user", {"timezone": None}), {}),
    ("DELETE /api/v1/memories/user", lambda c: c.profiles.disable("user"), None),
    ("POST /api/resource", lambda c: c.resources.save("a/b", "t", secure_body="s", shared_with=["team:web"]), SAVED),
    ("GET /api/resource/a%2Fb", lambda c: c.resources.get("a/b", as_of=4, include_expired=True), {"id": "a/b"}),
    ("GET /api/resource", lambda c: c.resources.list(content_type="code", status="all"), FOUND),
    ("GET /api/resource/a%2Fb/history", lambda c: c.resources.history("a/b"), {"id": "a/b"}),
    ("DELETE /api/resource/a%2Fb", lambda c: c.resources.retire("a/b", destroy_secret=True), SAVED),
    ("POST /api/documents", lambda c: c.documents.ingest("a/b", content=b"x", name="b.md", scopes=["public"]), SAVED),
    ("GET /api/documents", lambda c: c.documents.list(limit=3, status="all"), FOUND),
    ("GET /api/documents/a%2Fb", lambda c: c.documents.get("a/b", limit=5), {"id": "a/b"}),
    ("DELETE /api/documents/a%2Fb", lambda c: c.documents.delete("a/b", reason="r"), SAVED),
    ("POST /api/resource/a%2Fb/restore", lambda c: c.resources.restore("a/b", reason="r"), SAVED),
    ("POST /api/memory", lambda c: c.remember("c", "short", kind="mood", happened_at=None), SAVED),
    ("GET /api/memory/k%2F1", lambda c: c.memory("k/1", as_of=4), {"id": "k/1"}),
    ("GET /api/memory", lambda c: c.memories(layers=["episodic"], since="2026-03-05T12:00:00Z", tags=["a=b"]), FOUND),
    ("GET /api/memory/held", lambda c: c.held_statements(status="dropped", limit=3), FOUND),
    ("GET /api/memory/held", lambda c: c.tools.memory_held(), FOUND),
    ("POST /api/memory/held/h%2F1/release", lambda c: c.release_statement("h/1", reason="r"), SAVED),
    ("POST /api/memory/held/h%2F1/drop", lambda c: c.drop_statement("h/1"), SAVED),
    ("POST /api/memory/held/h%2F1/drop", lambda c: c.tools.memory_held_decide("h/1", "drop"), SAVED),
    ("GET /api/memory/health", lambda c: c.memory_health(), {"total": 0}),
    ("GET /api/memory/health", lambda c: c.tools.memory_health(), {"total": 0}),
    ("POST /api/memory/clean", lambda c: c.clean_memories(dry_run=False), {"count": 0, "position": 1}),
    ("POST /api/memory/k%2F1/confirm", lambda c: c.confirm("k/1", case={"reason": "r"}), SAVED),
    ("POST /api/memory/k%2F1/confirm", lambda c: c.tools.memory_confirm("k/1"), SAVED),
    ("POST /api/memory/k%2F1/approve", lambda c: c.approve("k/1", expected_version=1), SAVED),
    ("POST /api/memory/k%2F1/reject", lambda c: c.reject("k/1", reason="r"), SAVED),
    ("POST /api/memory/k%2F1/approve", lambda c: c.tools.memory_review("k/1", "approve"), SAVED),
    ("GET /api/memory", lambda c: c.tools.memory_list(status="proposed"), FOUND),
    ("GET /api/projects/a%2Fb/members", lambda c: c.project_members("a/b"), {"members": []}),
    ("POST /api/projects/a%2Fb/members", lambda c: c.assign_roles("a/b", "agent:a", ["tester"]), SAVED),
    ("POST /api/projects/a%2Fb/coordinators", lambda c: c.appoint_coordinator("a/b", "agent:a"), SAVED),
    ("POST /api/memory", lambda c: c.tools.memory_save("semantic", "c", tags=["a"]), SAVED),
    (
        "GET /api/knowledge/search",
        lambda c: c.tools.knowledge_search("回滚", 3, 2, ["tool"], tags=["a=b"]),
        FOUND_BY_TOOL,
    ),
    ("GET /api/knowledge/search", lambda c: c.tools.get_knowledge("回滚"), FOUND_BY_TOOL),
    ("POST /api/knowledge", lambda c: c.tools.save_knowledge("t", "c", ["tool"]), SAVED),
    ("POST /api/knowledge", lambda c: c.tools.knowledge_save("t", "c", ["tool"], {"a": "b"}, score=4), SAVED),
    ("PUT /api/knowledge/k%2F1", lambda c: c.tools.knowledge_update("k/1", {"task": "t"}, None, 4), CHANGED),
    (
        "POST /api/knowledge/batch_update",
        lambda c: c.tools.knowledge_batch_update([{"knowledge_id": "k-1", "is_helpful": True}]),
        {"updated": 1, "refused": [], "position": 9},
    ),
    ("GET /api/knowledge/k%2F1", lambda c: c.tools.knowledge_read("k/1"), {"id": "k/1"}),
    ("PUT /api/knowledge/k%2F1", lambda c: c.tools.knowledge_revise("k/1", content="c", reason="r"), CHANGED),
    ("DELETE /api/knowledge/k%2F1", lambda c: c.tools.knowledge_retire("k/1", "r"), SAVED),
    ("GET /api/lineage", lambda c: c.tools.knowledge_lineage("trace:t"), {"events": []}),
    ("POST /api/knowledge/extract", lambda c: c.tools.knowledge_extract("I like tea."), {"id": "extraction-1"}),
    ("GET /api/v1/memories", lambda c: c.tools.profile_read(), {"user_memory": None, "work_memory": None}),
    ("PATCH /api/v1/memories/work", lambda c: c.tools.profile_update("work", {"occupation": "x"}), {}),
    ("GET /api/knowledge", lambda c: c.tools.knowledge_list(3, ["tool"], ["public"], tags=["a=b"]), FOUND_BY_TOOL),
    ("POST /api/knowledge/slim", lambda c: c.tools.knowledge_slim("a/model"), {"id": "slim-1"}),
    ("POST /api/resource", lambda c: c.tools.resource_save("code/a", "A", "x = 1", "code"), SAVED),
    ("GET /api/resource/code%2Fa", lambda c: c.tools.resource_get("code/a"), {"id": "code/a"}),
    ("POST /api/memory/recall", lambda c: c.tools.memory_recall("回滚", "s-1"), {"text": "", "position": 9}),
    ("POST /api/memory/recall", lambda c: c.recall("回滚", layers=["semantic"]), {"text": "", "position": 9}),
    ("GET /api/recalls", lambda c: c.recalls.list(kind="page", item="k/1", since=4), FOUND),
    ("GET /api/recalls/r%2F1", lambda c: c.recalls.get("r/1"), {"recall_id": "r/1", "results": []}),
    ("GET /api/knowledge/k%2F1/recalls", lambda c: c.recalls.of("k/1", limit=3), FOUND),
    ("GET /api/recall/startup", lambda c: c.tools.knowledge_startup("回滚", 3), {"prompt": "", "position": 9}),
    ("POST /api/goals/g%2F1/focus", lambda c: c.tools.goal_focus("g/1", "回滚"), {"goal_id": "g/1", "position": 9}),
    ("GET /api/v1/memories/user/prompt", lambda c: c.profiles.prompt("user"), {"prompt": "<!-- … -->"}),
    ("GET /api/v1/memories/work/history", lambda c: c.profiles.history("work"), {"versions": []}),
    ("GET /api/recall/startup", lambda c: c.startup("tests", types=["tool"]), {"profile": [], "results": []}),
    ("POST /api/goals/g%2F1/focus", lambda c: c.focus("g/1", "tests", idempotency_key="k"), {"output": "当前 Goal"}),
    ("GET /api/goals/g%2F1", lambda c: c.goal("g/1", owner="agent:a"), {"knowledge": []}),
    (
        "POST /api/sessions/s%2F1/messages",
        lambda c: c.session("s/1").append([{"id": "m-1", "role": "user", "content": "回滚"}]),
        {"session_id": "s/1", "appended": 1, "duplicates": 0, "count": 1, "position": 7},
    ),
    (
        "POST /api/sessions/s-1/messages",
        lambda c: c.tools.session_append("s-1", [{"id": "m-1", "role": "user"}]),
        {"session_id": "s-1", "appended": 1, "duplicates": 0, "count": 1, "position": 7},
    ),
    ("GET /api/sessions/s-1/messages", lambda c: c.session("s-1").messages(after="m-1", limit=5), {"messages": []}),
    ("GET /api/sessions/s-1/context", lambda c: c.session("s-1").context(8_000, model="m"), {"messages": []}),
    ("GET /api/sessions/s-1/context", lambda c: c.tools.session_context("s-1", 8_000), {"messages": []}),
    ("GET /api/sessions/s-1/expand/m%2F1", lambda c: c.tools.session_expand("s-1", "m/1"), {"messages": []}),
    ("GET /api/sessions/s-1/expand/m%2F1", lambda c: c.session("s-1").expand("m/1"), {"messages": []}),
    ("GET /api/sessions/s-1/knowledge", lambda c: c.session("s-1").knowledge(after="m-1"), {"results": []}),
    ("GET /api/messages/m%2F1", lambda c: c.said("m/1"), {"id": "m/1", "results": []}),
    ("GET /api/traces", lambda c: c.traces(limit=5), {"results": [], "count": 0}),
    ("GET /api/sessions/s-1/summaries", lambda c: c.session("s-1").summaries(), {"summaries": [], "overview": None}),
    ("GET /api/sessions/s-1/scratchpad", lambda c: c.session("s-1").scratchpad(), {"scratchpad": {}}),
    (
        "PATCH /api/sessions/s-1/scratchpad",
        lambda c: c.tools.session_scratchpad("s-1", {"current_step": "x"}),
        {"session_id": "s-1", "scratchpad": {"current_step": "x"}},
    ),
    ("POST /api/sessions/s-1/close", lambda c: c.session("s-1").close(), {"session_id": "s-1", "position": 9}),
    ("DELETE /api/sessions/s-1", lambda c: c.session("s-1").remove(), {"session_id": "s-1", "position": 9}),
    ("GET /api/sessions", lambda c: c.sessions(status="all"), FOUND),
    ("GET /api/prompts", lambda c: c.prompts(), {"prompts": []}),
    ("GET /api/prompts/research", lambda c: c.prompt("research", language="en"), {"text": "# Research"}),
    ("GET /api/admin/status", lambda c: c.status(), {"healthy": True}),
    ("GET /health", lambda c: c.health(), {"healthy": True}),
    ("POST /api/admin/sql", lambda c: c.sql("SELECT 1"), {"columns": [], "rows": []}),
    ("GET /api/admin/models", lambda c: c.models(), {"models": []}),
    ("POST /api/admin/models/try", lambda c: c.try_models(), {"models": []}),
    ("GET /api/admin/attach", lambda c: c.attach(), {"statement": "ATTACH"}),
    ("POST /api/admin/replay", lambda c: c.start_job("replay", to=4, into=Path("/tmp/a.duckdb")), JOB),
    ("POST /api/admin/prove", lambda c: c.prove("k/1"), {"kind": "kledger proof"}),
    ("GET /api/admin/refused", lambda c: c.refused(after=3, limit=5, code="unfoldable"), {"refused": []}),
    ("POST /api/admin/refused/7/retry", lambda c: c.retry_parked(7), JOB),
    ("POST /api/admin/refused/7/dismiss", lambda c: c.dismiss_parked(7), {"position": 7}),
    ("GET /api/admin/jobs", lambda c: c.jobs(), {"jobs": []}),
    ("GET /api/admin/certificates", lambda c: c.certificates(), {"checkpoints": [], "certificates": []}),
    ("GET /api/admin/columns", lambda c: c.columns(), {"relations": []}),
    ("GET /api/admin/jobs/j%2F1", lambda c: c.job("j/1"), JOB),
    ("GET /api/admin/jobs/j-2", lambda c: c.wait_job("j-2"), {**JOB, "state": "done", "result": {}}),
]


ROUTES: list[Any] = list(routes(app_of(None)))  # type: ignore[arg-type]


def fits(route: Any, method: str, path: str) -> bool:
    """Whether a request goes to a route, or to one that is more general."""
    pattern = re.sub(r"\\{[^}]*:path\\}|\\{[^}]*\\}", "[^/]+", re.escape(route.path))
    return method in (getattr(route, "methods", None) or ()) and re.fullmatch(pattern, path) is not None


@pytest.fixture
def node() -> Iterator[ScriptedNode]:
    with scripted_node() as running:
        yield running


@pytest.mark.parametrize(("line", "call", "answer"), CALLS)
async def test_both_faces_ask_the_same_and_return_the_answer(
    node: ScriptedNode, line: str, call: Callable[[Any], Any], answer: Any
) -> None:
    node.says(line, answer)
    async with AsyncLedgerClient(node.url) as ledger:
        from_async = await call(ledger)
    with LedgerClient(node.url) as ledger_in_sync:
        from_sync = call(ledger_in_sync)

    first, second = node.asked
    assert first.line == second.line == line
    assert (first.query, first.body) == (second.query, second.body)
    assert from_async == from_sync
    unwraps = line.endswith(("memories/user", "user/prompt", "/api/prompts"))
    if not unwraps or first.method == "PATCH":
        assert from_async == answer


@pytest.mark.parametrize(("line", "call", "answer"), CALLS)
def test_a_client_names_no_parameter_that_the_endpoint_does_not_have(
    node: ScriptedNode, line: str, call: Callable[[Any], Any], answer: Any
) -> None:
    node.says(line, answer)
    with LedgerClient(node.url) as ledger:
        call(ledger.seeing(40, wait=2.5))
    (asked,) = node.asked
    method, path = line.split()
    fitting = [route for route in ROUTES if fits(route, method, path)]
    assert any(set(asked.query) <= known_of(route) for route in fitting), asked.query


def test_every_endpoint_of_the_clients_is_called_above() -> None:
    code = " ".join(inspect.getsource(call) for _, call, _ in CALLS)
    public = [name for name in dir(LedgerClient) if not name.startswith("_")]
    parts = {
        "profiles": ProfileEndpoints,
        "tools": ToolEndpoints,
        "resources": ResourceEndpoints,
        "documents": DocumentEndpoints,
        "recalls": RecordedRecallEndpoints,
    }
    for part, endpoints in parts.items():
        public += [f"{part}.{name}" for name in vars(endpoints) if not name.startswith("_")]
    public += [f'session("s-1").{name}' for name in vars(SessionEndpoints) if not name.startswith("_")]
    others = {
        "acting_as",
        "session",
        'session("s-1").append',
        "within",
        "seeing",
        "in_language",
        "iterate",
        "written",
        "wire",
        "profiles",
        "resources",
        "documents",
        "recalls",
        "tools",
        "close",
    }
    assert [name for name in public if f"c.{name}(" not in code and name not in others] == []


async def test_a_search_states_what_is_asked_in_the_query_string(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/search", FOUND)
    moment = datetime(2026, 3, 5, 12, tzinfo=UTC)
    async with AsyncLedgerClient(node.url) as ledger:
        await ledger.search("a&b=c 知识", top_k=3, types=["tool", "plan"], as_of=moment, path="keyword", record=False)
    assert node.asked[0].query == {
        "q": "a&b=c 知识",
        "top_k": "3",
        "min_score": "3",
        "types": "tool,plan",
        "as_of": "2026-03-05T12:00:00+00:00",
        "paths": "keyword",
        "record": "false",
    }


async def test_a_list_in_the_usual_order_names_none_so_that_a_node_from_before_orders_answers_it(
    node: ScriptedNode,
) -> None:
    node.says("GET /api/knowledge", {**FOUND, "next": None})
    with LedgerClient(node.url) as ledger:
        ledger.list()
        list(ledger.iterate(types=["tool"]))
        ledger.list(sort="helpful")
    plain, walked, ordered = (asked.query for asked in node.asked)
    assert (set(plain), set(walked)) == ({"limit", "offset", "status"}, {"limit", "offset", "status", "types"})
    assert ordered["sort"] == "helpful"


async def test_a_save_states_only_what_was_given(node: ScriptedNode) -> None:
    node.says("POST /api/knowledge", SAVED, 201)
    async with AsyncLedgerClient(node.url) as ledger:
        await ledger.save("Undo", "git revert", ["tool"], tags={"lang": "en"}, score=4)
    assert node.asked[0].body == {
        "task": "Undo",
        "content": "git revert",
        "types": ["tool"],
        "tags": {"lang": "en"},
        "score": 4,
    }


async def test_who_asks_and_in_which_trace_travels_in_headers_for_any_id(node: ScriptedNode) -> None:
    node.says("POST /api/knowledge", SAVED)
    async with AsyncLedgerClient(node.url) as ledger:
        speaking = ledger.acting_as(user="李 雷", agent="a/b").within(trace_id="t-1", message_id="消息")
        await speaking.save("t", "c", ["tool"])
        await ledger.save("t", "c", ["tool"])
    named, unnamed = (asked.headers for asked in node.asked)
    assert named["x-ledger-user"] == "%E6%9D%8E%20%E9%9B%B7"
    assert named["x-ledger-agent"] == "a%2Fb"
    assert named["x-ledger-trace-id"] == "t-1"
    assert named["x-ledger-message-id"] == "%E6%B6%88%E6%81%AF"
    assert [name for name in unnamed if name.startswith("x-ledger")] == []


def test_an_id_that_no_entity_can_have_is_refused_before_anything_is_sent(node: ScriptedNode) -> None:
    with LedgerClient(node.url) as ledger, pytest.raises(IllegalScope):
        ledger.acting_as(user="two\nlines")


async def test_each_write_has_a_key_of_its_own_unless_the_caller_brings_one(node: ScriptedNode) -> None:
    node.says("POST /api/knowledge", SAVED)
    async with AsyncLedgerClient(node.url) as ledger:
        await ledger.save("t", "c", ["tool"])
        await ledger.save("t", "c", ["tool"])
        await ledger.save("t", "c", ["tool"], idempotency_key="mine")
        await ledger.save("t", "c", ["tool"], idempotency_key="订单/1\n")
    keys = [asked.headers["idempotency-key"] for asked in node.asked]
    assert len(set(keys)) == 4
    assert keys[2:] == ["mine", "%E8%AE%A2%E5%8D%95/1%0A"]


async def test_a_read_waits_for_what_this_client_wrote(node: ScriptedNode) -> None:
    node.says("POST /api/knowledge", SAVED)
    node.says("PUT /api/v1/memories/user", {}, X_Ledger_Position="12")
    node.says("GET /api/knowledge/search", FOUND)
    async with AsyncLedgerClient(node.url) as ledger:
        await ledger.search("q")
        await ledger.acting_as(user="ann").save("t", "c", ["tool"])
        await ledger.search("q")
        await ledger.acting_as(user="ann").profiles.put("user", {})
        await ledger.search("q")
        assert ledger.written == 12
    seen = [asked.headers.get("x-ledger-position") for asked in node.asked if asked.method == "GET"]
    assert seen == [None, "7", "12"]


async def test_a_client_that_need_not_read_its_writes_does_not_wait(node: ScriptedNode) -> None:
    node.says("POST /api/knowledge", SAVED)
    node.says("GET /api/knowledge/search", FOUND)
    async with AsyncLedgerClient(node.url, read_your_writes=False) as ledger:
        await ledger.save("t", "c", ["tool"])
        await ledger.search("q")
    assert "x-ledger-position" not in node.asked[1].headers


async def test_a_reader_can_wait_for_what_another_wrote(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/search", FOUND)
    async with AsyncLedgerClient(node.url) as ledger:
        await ledger.seeing(40, wait=2.5).search("q")
    assert (node.asked[0].query["min_position"], node.asked[0].query["wait"]) == ("40", "2.5")


async def test_many_items_travel_a_thousand_a_request_and_keep_their_index(node: ScriptedNode) -> None:
    def told(count: int, position: int) -> dict[str, Any]:
        rows = [{"index": i, "id": "k", "outcome": "saved", "position": 1, "error": None} for i in range(count)]
        return {"results": rows, "saved": count, "unchanged": 0, "refused": 0, "position": position}

    node.says("POST /api/knowledge/batch", told(1000, 1000))
    node.says("POST /api/knowledge/batch", told(500, 1500))
    async with AsyncLedgerClient(node.url) as ledger:
        saved = await ledger.save_many({"task": str(number)} for number in range(1500))
    assert [len(asked.body["items"]) for asked in node.asked] == [1000, 500]
    assert [one["index"] for one in saved["results"]] == list(range(1500))
    assert (saved["saved"], saved["position"]) == (1500, 1500)


async def test_verdicts_on_many_keep_the_index_of_what_was_refused(node: ScriptedNode) -> None:
    refused = {"index": 1, "knowledge_id": "k", "error": {"code": "unknown_knowledge", "message": "no"}}
    node.says("POST /api/knowledge/batch_update", {"updated": 5000, "refused": [], "position": 1})
    node.says("POST /api/knowledge/batch_update", {"updated": 1, "refused": [refused], "position": 2})
    verdict = {"knowledge_id": "k", "is_helpful": True, "case": {}}
    async with AsyncLedgerClient(node.url) as ledger:
        told = await ledger.rate_many([verdict] * 5002)
    assert (told["updated"], told["refused"][0]["index"]) == (5001, 5001)


async def test_the_sync_face_works_inside_a_running_loop(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/search", FOUND)
    with LedgerClient(node.url) as ledger:
        assert ledger.search("q")["count"] == 0


def test_an_endpoint_shows_its_own_signature_and_text_on_both_faces() -> None:
    for client in (LedgerClient(), AsyncLedgerClient()):
        assert list(inspect.signature(client.search).parameters)[:2] == ["query", "top_k"]
        assert "best first" in (inspect.getdoc(client.search) or "")


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.save("t", "c", ["tool"], tags={"x": object()}),
        lambda c: c.search("q", as_of=datetime(2026, 3, 5)),
        lambda c: c.get(""),
        lambda c: c.revise("k-1", reason="nothing stated"),
    ],
)
def test_what_cannot_be_said_is_refused_before_anything_is_sent(
    node: ScriptedNode, call: Callable[[LedgerClient], Any]
) -> None:
    with LedgerClient(node.url) as ledger, pytest.raises(InvalidPayload):
        call(ledger)
    assert node.asked == []


async def test_a_client_asks_for_its_language_with_every_request_and_a_call_may_name_another(
    node: ScriptedNode,
) -> None:
    node.says("GET /api/recall/startup", {"prompt": "", "count": 0})
    async with AsyncLedgerClient(node.url) as ledger:
        await ledger.startup()
        await ledger.in_language("zh").acting_as(user="ann").startup(language="en")
    silent, asked = node.asked
    assert ("accept-language" in silent.headers, "language" in silent.query) == (False, False)
    assert (asked.headers["accept-language"], asked.query["language"]) == ("zh", "en")
