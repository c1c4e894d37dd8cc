"""What a node answers is what the OpenAPI document says: every endpoint, each field of it, and no other."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from kledger.answers.admin import ParkingDecision
from kledger.contract.knowledge import Case
from ledger.event import Fact, NewEvent
from ledger.events.evolution import EvolutionProposed, EvolutionRequested
from ledger.events.extraction import Extracted, ExtractionCompleted, ExtractionRequested
from ledger.events.knowledge import KnowledgeRated
from ledger.events.usage import Usage
from producers.operations.ports import Job
from tests.doors.documented import Documented
from tests.doors.furnished import furnished_door
from tests.doors.http_door import AGENT, ALICE
from tests.doors.test_http_repeated_later import WRITES
from tests.journeys.running_node import RunningNode
from tests.memory.source_004 import MEMORIES

ANN = {"X-Ledger-User": "ann-of-the-document"}
K, R, M, A, G = "/api/knowledge", "/api/resource", "/api/v1/memories", "/api/admin", "/api/goals/document"
SOURCE = {"name": "retro", "category": "exp", "urls": ["https://example.com/a"], "trace_id": "t", "message_id": "m"}
CASE = {"task": "t", "outcome": "o", "trace_id": "trace-of-the-document"}


class Asking:
    """A node over HTTP, each of whose answers is checked."""

    def __init__(self, node: RunningNode, documented: Documented) -> None:
        self.client = httpx.Client(base_url=node.url, timeout=60)
        self.documented = documented

    def ask(self, method: str, path: str, body: Any = None, who: dict[str, str] = ANN, **params: Any) -> Any:
        """The checked answer to a request, as JSON where it is JSON."""
        answer = self.client.request(method, path, json=body, headers=who, params=params or None)
        self.documented.check(answer)
        return answer.json() if "json" in answer.headers["content-type"] else answer.text

    def job(self, kind: str, body: Any = None) -> Any:
        """A job of the operator, once it has ended well."""
        job = self.ask("POST", f"{A}/{kind}", body, {})
        while job["state"] == "running":
            time.sleep(0.05)
            job = self.ask("GET", f"{A}/jobs/{job['id']}", who={})
        assert job["state"] == "done", job
        return job


def knowledge(ask: Callable[..., Any]) -> None:
    """Items: saved, read, judged, shared, changed, and refused."""
    scopes = {"scopes": ["user:ann-of-the-document"]}
    tags = {"domain": "documents", "deep": {"a": [1, None, 2.5]}}
    stated = {"task": "a document of ann", "content": "fits", "types": ["tool"], **scopes}
    ask("POST", R, {"id": "doc-code", "title": "code", "body": "x = 1", "secure_body": "s", "metadata": {"n": 1}})
    first = {**stated, "id": "doc-1", "tags": tags, "source": SOURCE, "resource_ids": ["doc-code", "doc-none"]}
    ask("POST", K, {**first, "trace_id": "t", "created_at": "2020-01-01T00:00:00Z"})
    ask("POST", K, {**stated, "id": "doc-2", "acl": [{"entity": "user:bo", "permission": "read_write"}]})
    ask("POST", K, {**stated, "id": "doc-2", "content": "another"})  # it is there
    ask("POST", f"{K}/batch", {"items": [{**stated, "id": "doc-3"}, {"task": "x"}, {**stated, "id": "doc-3"}]})
    ask("PUT", f"{K}/doc-1", {"add_helpful_case": CASE, "add_harmful_case": {"task": "u"}, "update_score": 5})
    ask("PUT", f"{K}/doc-1", {"content": "fits better", "tags": {"n": 1}})
    ask("PUT", f"{K}/doc-1", {"content": "x", "update_score": 4}, {"X-Ledger-User": "bo"})  # not to be seen
    ask("PUT", f"{K}/doc-1", {"evolve_feedback": "shorter"})  # no model
    verdicts = [
        {"knowledge_id": "doc-3", "is_helpful": True, "case": CASE},
        {"knowledge_id": "none", "is_helpful": True},
    ]
    ask("POST", f"{K}/batch_update", {"feedback_list": verdicts})
    ask("PUT", f"{K}/doc-1/acl", {"acl": [{"entity": "user:bo", "permission": "read"}]})
    ask("POST", f"{K}/doc-1/revert", {"to_version": 1})
    ask("DELETE", f"{K}/doc-3", reason="old")
    ask("POST", f"{K}/doc-3/restore")
    ask("DELETE", f"{K}/doc-3")
    ask("GET", f"{K}/search", q="a document of ann", route=True)
    ask("GET", f"{K}/search", q="a document of ann", paths="keyword", as_of="1")
    ask("GET", f"{K}/search", q="a document of ann", explain=True, kind="page")
    ask("GET", f"{K}/search")  # without a question
    for status in ("active", "all"):
        ask("GET", K, status=status)
    for item in ("doc-1", "doc-2", "doc-3", "doc-none"):
        ask("GET", f"{K}/{item}")
        ask("GET", f"{K}/{item}/history")
        ask("GET", f"{K}/{item}/why")
        ask("GET", f"{K}/{item}/why", who={})
    ask("GET", f"{K}/doc-1", who={"X-Ledger-User": "bo"})
    for ref in ("doc-1", "trace:t", "message:m", "none"):
        ask("GET", "/api/lineage", ref=ref)
    ask("GET", "/api/overview/facets")
    ask("GET", "/api/overview/facets", layer="nowhere")
    ask("GET", "/api/overview/changes", after=0)
    ask("GET", "/api/whoami")
    ask("GET", "/api/overview", days=7)
    ask("GET", "/api/overview", days=0)
    chosen = {"action": "retire", "ids": ["doc-1", "doc-none"]}
    ask("POST", f"{K}/bulk", chosen)
    bulk = ask("POST", f"{K}/bulk", {**chosen, "dry_run": False})
    ask("GET", f"/api/bulks/{bulk['bulk_id']}")
    ask("GET", "/api/bulks/none")
    ask("POST", f"/api/bulks/{bulk['bulk_id']}/revert", {})
    slim = ask("POST", f"{K}/slim", {"dry_run": True, "threshold": 0.9, "wait": 30})
    ask("POST", f"/api/slims/{slim['id']}/reject", reason="not now")
    ask("POST", f"/api/slims/{slim['id']}/apply")  # it is rejected
    applied = ask("POST", f"{K}/slim", {"threshold": 0.9, "wait": 30})
    ask("GET", f"/api/slims/{applied['id']}")
    ask("GET", "/api/slims")
    ask("GET", f"{K}", status="merged")
    ask("POST", f"/api/slims/{applied['id']}/revert", wait=30)
    ask("POST", f"{K}/extract", {"text": "I like tea"})  # no model


def remembered(ask: Callable[..., Any]) -> None:
    """Memories of every layer, and what becomes of them."""
    base = "/api/memory"
    mood = ask("POST", base, {"layer": "short", "kind": "mood", "content": "calm", "tags": ["day"]})
    for memory in MEMORIES:
        kept = ask("POST", base, {name: value for name, value in memory.items() if name != "id"})
        ask("GET", f"{base}/{kept['id']}")
        ask("GET", f"{K}/{kept['id']}")
        ask("GET", f"{K}/{kept['id']}/history")
    ask("POST", base, {"layer": "short", "content": "of no kind"})
    ask("GET", f"{base}/{mood['id']}")
    ask("POST", f"{base}/{mood['id']}/confirm", {"case": {"reason": "again"}})
    ask("POST", f"{base}/{mood['id']}/confirm", {})
    ask("POST", f"{base}/none/confirm", {})
    ask("GET", f"{base}/{mood['id']}")
    ask("GET", f"{base}/none")
    ask("GET", base)
    ask("GET", base, layer="episodic,short", since="2026-01-01T00:00:00Z", status="all")
    ask("GET", base, concern="promoted")
    project, shared = "/api/projects/document", {"kind": "adr", "scopes": ["project:document"]}
    ask("POST", f"{project}/coordinators", {"entity": "user:ann-of-the-document"})
    ask("POST", f"{project}/coordinators", {"entity": "user:ann-of-the-document"}, {})
    ask("POST", f"{project}/members", {"entity": "agent:a", "roles": ["tester"]})
    ask("POST", f"{project}/members", {"entity": "team:a", "roles": ["tester"]})
    ask("GET", f"{project}/members")
    ask("GET", "/api/projects/other/members")
    first, declined, later = (
        ask("POST", base, {**shared, "content": content}, {"X-Ledger-User": "bo"})
        for content in ("one", "two", "three")
    )
    ask("POST", f"{base}/{first['id']}/approve", {"expected_version": 1, "reason": "yes"})
    ask("POST", f"{base}/{first['id']}/approve", {})
    ask("POST", f"{base}/{declined['id']}/reject", {"reason": "no"})
    ask("POST", f"{base}/{later['id']}/approve", {}, {"X-Ledger-User": "bo"})
    ask("POST", f"{base}/none/reject", {})
    ask("POST", base, {**shared, "content": "in force", "supersedes": first["id"]})
    ask("POST", base, {**shared, "content": "nothing", "supersedes": "none"})
    for each in (first, declined, later):
        ask("GET", f"{base}/{each['id']}")
        ask("GET", f"{K}/{each['id']}")
        ask("GET", f"{K}/{each['id']}/history")
    for status in ("proposed", "rejected", "superseded"):
        ask("GET", base, status=status)
        ask("GET", K, status=status)
    ask("GET", base, role="developer")
    ask("GET", f"{base}/health")
    ask("POST", f"{base}/clean", {})
    ask("POST", f"{base}/clean", {"dry_run": False})


def ingested(ask: Callable[..., Any]) -> None:
    """A document: ingested, again, read, refused and removed; and one of its chunks."""
    base = "/api/documents"
    ask("POST", base, {"id": "doc-of-ann.md", "text": "# One\n\nTwo.", "url": "https://example.com"})
    ask("POST", base, {"id": "doc-of-ann.md", "text": "# One\n\nThree."})
    ask("POST", base, {"text": "x", "content_type": "pdf"})
    ask("POST", base, {"id": "doc-of-ann.md", "text": "x"}, {"X-Ledger-User": "bo"})
    document = ask("GET", f"{base}/doc-of-ann.md")
    ask("GET", f"{K}/{document['chunks'][0]['id']}")
    ask("GET", base)
    ask("GET", f"{base}/none")
    ask("DELETE", f"{base}/doc-of-ann.md", reason="r")
    ask("DELETE", f"{base}/doc-of-ann.md")
    ask("GET", base, status="all")


def beside_knowledge(ask: Callable[..., Any]) -> None:
    """Resources, memories, recall, goals, prompts, types of scopes, and the pages."""
    ask("GET", f"{R}/doc-code")
    ask("GET", f"{R}/doc-code", who={"X-Ledger-User": "bo"})
    ask("GET", R)
    ask("DELETE", f"{R}/doc-code", destroy_secret=True)
    ask("POST", f"{R}/doc-code/restore")
    ask("GET", f"{R}/doc-code/history")
    ask("GET", M)
    ask("POST", M)
    for memory, content in (("user", {"occupation": "cook"}), ("work", {"expertise": ["tests"]})):
        one = f"{M}/{memory}"
        ask("PUT", one, {"content": content})
        ask("PATCH", one, {"content": content})
        ask("PATCH", one, {"content": {"nothing like it": 1}})
        ask("GET", one)
        ask("GET", f"{one}/prompt")
        ask("DELETE", one)
        ask("GET", one)
        ask("GET", f"{one}/history")
    ask("GET", M)
    ask("GET", M, who={})
    ask("GET", "/api/recall/startup", q="a document of ann")
    ask("POST", "/api/memory/recall", {"message": "a document of ann"})
    ask("POST", "/api/memory/recall", {"message": ""})
    (last, *_) = ask("GET", "/api/recalls", limit=3)["results"]
    (served, *_) = ask("GET", f"/api/recalls/{last['recall_id']}")["results"]
    ask("GET", f"{K}/{served['id']}/recalls")
    ask("GET", f"{K}/not-there/recalls")
    ask("GET", "/api/recalls/not-there")
    ask("GET", "/api/traces", limit=3)
    ask("GET", "/api/traces", limit=0)
    ask("GET", "/api/recalls", since="yesterday")
    ask("POST", f"{G}/focus", {"description": "a document of ann"})
    ask("GET", G)
    ask("GET", "/api/goals/none")
    ask("GET", "/api/goals", limit=3)
    ask("GET", "/api/goals", limit=0)
    ask("GET", "/api/prompts")
    ask("GET", "/api/prompts/research")
    ask("GET", "/api/prompts/none")
    ask("POST", "/api/scope_types", {"type": "guild", "priority": 2.5}, {})
    ask("POST", "/api/scope_types", {"type": "guild", "priority": 2.5})
    ask("GET", "/api/scope_types")
    for page in ("/", "/health", "/health/ready", "/health/live", "/metrics"):
        ask("GET", page)


def operator(asking: Asking, folder: Path) -> None:
    """What the operator asks, and what others are refused."""
    ask = asking.ask
    for name in ("status", "attach", "refused", "models"):
        ask("GET", f"{A}/{name}", who={})
        ask("GET", f"{A}/{name}")
    ask("POST", f"{A}/models/try", who={})
    ask("POST", f"{A}/models/try")
    ask("POST", f"{A}/sql", {"query": "SELECT 1 AS n, 'x' AS t, NULL AS nothing, 0.5::DECIMAL(9, 2) AS d"}, {})
    ask("POST", f"{A}/sql", {"query": "DROP TABLE events"}, {})
    ask("POST", f"{A}/prove", {"id": "doc-1"}, {})
    ask("POST", f"{A}/prove", {"id": "none"}, {})
    for kind in ("verify", "rebuild", "snapshot", "audit"):
        asking.job(kind)
    for name in ("jobs", "certificates", "columns"):
        ask("GET", f"{A}/{name}", who={})
        ask("GET", f"{A}/{name}")
    asking.job("replay", {"to": 3, "into": str(folder / "replayed.duckdb")})
    asking.job("backup", {"into": str(folder / "backup")})
    asking.job("forget", {"subject": "user:ann-of-the-document"})
    ask("GET", f"{A}/jobs/none", who={})
    ask("POST", f"{A}/refused/1/retry", who={})
    ask("POST", f"{A}/refused/1/dismiss", who={})


class Parking:
    """Decisions about parked events, as a node keeps them."""

    async def states(self) -> dict[int, Any]:
        return {1: {"state": "parked", "tries": 2, "decided": "2026-03-05T12:00:00Z"}}

    async def dismiss(self, position: int) -> Any:
        decision: ParkingDecision = {
            "position": position,
            "fingerprint": "f",
            "state": "dismissed",
            "reason": "r",
            "tries": 2,
            "time": "2026-03-05T12:00:00Z",
        }
        return decision

    async def start_retry(self, position: int) -> Job:
        return Job(f"retry-{position}", "retry")


async def of_models(documented: Documented) -> None:
    """What takes a model, or an event that is refused: stated in a log in memory, folded and answered as ever."""
    async with furnished_door() as door:
        door.desk.parking = Parking()
        usage = Usage(model="m", prompt_version="1", cost_usd=0.5)
        alice, said = "user:alice", [{"id": "m", "content": "c"}]
        asked = ExtractionRequested(kind="statement", messages=said, owner=alice, scopes=[alice])
        evolving = EvolutionRequested(item_id="older", base_version=1, feedback="f", apply=False)
        found = ExtractionCompleted(items=[Extracted(knowledge_id="older", action="saved")], usage=usage)
        rated = KnowledgeRated(verdict="helpful", case=Case(task="t"))
        proposed = EvolutionProposed(item_id="older", content="by a model", usage=usage)
        stages: list[tuple[str, Fact]] = [("extraction-1", asked), ("extraction-1", found), ("nobody-knows", rated)]
        for name, fact in [*stages, ("evolution-3", evolving), ("evolution-3", proposed)]:
            await door.desk.ledger.append(NewEvent(fact, name, alice))
        await door.desk.view.wait_for(await door.head())

        async def ask(method: str, path: str, body: Any = None, who: dict[str, str] = ALICE) -> None:
            documented.check(await door.request(method, path, json=body, headers=who))

        for kind in ("evolution", "extraction", "conflict"):
            await ask("GET", f"/api/{kind}s")
            await ask("GET", f"/api/{kind}s/{kind}-1")
            await ask("GET", f"/api/{kind}s/none")
        await ask("POST", f"{K}/extract", {"text": "I like tea"})
        await ask("POST", "/api/evolutions/evolution-3/reject")
        await ask("POST", "/api/evolutions/evolution-3/apply")  # it is rejected
        await ask("POST", "/api/evolutions/evolution-1/apply")
        await ask("POST", "/api/evolutions/evolution-2/revert")
        await ask("GET", "/api/evolutions/evolution-2")
        await ask("POST", "/api/conflicts/conflict-1/resolve", {"winner": "newer", "reason": "r"})
        await ask("POST", "/api/conflicts/conflict-1/resolve", {"winner": "older"})
        await ask("GET", "/api/conflicts", who=AGENT)
        await ask("GET", "/api/memory/held")
        await ask("POST", "/api/memory/held/held-1/release", {"reason": "r"})
        await ask("POST", "/api/memory/held/held-1/drop", {})  # it is released
        await ask("POST", "/api/memory/held/held-2/drop", {"reason": "r"})
        await ask("POST", "/api/memory/held/none/drop", {})
        await ask("POST", "/api/slims/slim-1/apply?wait=0")
        await ask("GET", "/api/slims/slim-2")
        await ask("GET", f"{A}/refused", who={})
        await ask("POST", f"{A}/refused/1/dismiss", who={})
        await ask("POST", f"{A}/refused/1/retry", who={})


async def of_writes_with_a_key(documented: Documented) -> None:
    """Each write that takes a key; one may be refused for what another of them did."""
    async with furnished_door() as door:
        for what, (method, path, body, *_) in WRITES.items():
            who = {} if what == "type of scope" else ALICE
            documented.check(await door.request(method, path, json=body, headers=who))


def sessions(ask: Callable[..., Any]) -> None:
    """A session: appended, read in each way, noted in, closed, removed, and refused."""
    one = "/api/sessions/of-the-document"
    call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
    said = [
        {"id": "m-1", "role": "system", "content": "You are brief.", "tokens": 4},
        {"id": "m-2", "role": "user", "content": "看", "attachments": [{"type": "image"}], "created_at": "2026-03-05"},
        {"id": "m-3", "role": "assistant", "tool_calls": [call]},
        {"id": "m-4", "role": "tool", "content": "found " * 2_000, "tool_call_id": "c"},
        {"id": "m-5", "role": "user", "content": "more " * 1_000},
    ]
    ask("POST", f"{one}/messages", {"messages": said})
    ask("POST", f"{one}/messages", {"messages": []})
    ask("GET", f"{one}/messages", limit=2)
    ask("GET", "/api/sessions/none/messages")
    ask("GET", f"{one}/knowledge")
    ask("GET", "/api/sessions/none/knowledge")
    ask("GET", "/api/messages/m1")
    ask("GET", "/api/messages/none")
    ask("GET", f"{one}/context", max_tokens=100_000)
    assert ask("GET", f"{one}/context", max_tokens=1_000)["pending"] is not None
    ask("GET", f"{one}/expand/m-4")
    ask("GET", f"{one}/expand/none")
    noted = {"current_goal": "g", "sub_goals": ["s"], "decisions": [{"what": "w", "why": "y"}], "blockers": []}
    ask("PATCH", f"{one}/scratchpad", {"scratchpad": noted})
    ask("GET", f"{one}/scratchpad")
    ask("GET", f"{one}/summaries")
    ask("GET", "/api/sessions")
    ask("POST", f"{one}/close")
    ask("DELETE", one)
    ask("GET", "/api/sessions", status="all")


async def test_every_endpoint_answers_as_the_document_says(shared_node: RunningNode, tmp_path: Path) -> None:
    documented = Documented()
    await of_models(documented)
    await of_writes_with_a_key(documented)
    asking = Asking(shared_node, documented)
    with asking.client:
        knowledge(asking.ask)
        beside_knowledge(asking.ask)
        ingested(asking.ask)
        remembered(asking.ask)
        sessions(asking.ask)
        operator(asking, tmp_path)
    assert documented.faults == []
    # A model's work is asked for where there is one: tests/reactors.
    assert documented.operations() - documented.answered == {("post", f"{K}/extract")}


@pytest.mark.parametrize(
    ("status", "path", "body", "fault"),
    [
        (200, "/health/live", {"status": "live"}, ""),
        (200, "/health/live", {"status": "dead"}, "'live' was expected"),
        (200, "/health/live", {}, "'status' is a required property"),
        (200, "/health/live", {"status": "live", "more": 1}, "'more' was unexpected"),
        (418, "/health/live", {"status": "live"}, "no such status"),
        (404, f"{K}/none", {"error": {"code": "unknown_knowledge", "message": 7, "details": {}}}, "7 is not of type"),
    ],
)
def test_an_answer_that_differs_is_found(status: int, path: str, body: Any, fault: str) -> None:
    documented = Documented()
    request = httpx.Request("GET", f"http://127.0.0.1{path}")
    documented.check(httpx.Response(status, json=body, request=request))
    assert bool(documented.faults) == bool(fault)
    assert fault in "".join(documented.faults)
