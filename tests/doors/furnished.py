"""A door behind which there is something for each write that takes a key, and a node that remembers no request."""

from __future__ import annotations

from typing import Any

import httpx

from ledger.event import NewEvent
from ledger.events.conflict import ConflictRecorded
from ledger.events.document import DocumentIngested
from ledger.events.evolution import EvolutionProposed, EvolutionRequested
from ledger.events.knowledge import KnowledgeSaved
from ledger.events.slim import SlimApplied, SlimReported, SlimRequested
from ledger.events.statement import StatementHeld
from ledger.events.usage import Usage
from tests.doors.http_door import ALICE, BOB, Door, furnished
from tests.doors.one_app import app_of

K, M, R = "/api/knowledge", "/api/v1/memories", "/api/resource"
KEY = {"Idempotency-Key": "one"}


async def _furnish(opened: Door) -> None:
    for name in ("older", "newer", "revised", "retired"):
        await opened.saved(ALICE, id=name, task=f"a lamp, {name}")
    for content in ("second", "third"):
        assert (await opened.put(f"{K}/revised", json={"content": content}, headers=ALICE)).is_success
    assert (await opened.delete(f"{K}/retired", headers=ALICE)).is_success
    for name in ("kept", "gone"):
        assert (await opened.post(R, json={"id": name, "title": name}, headers=ALICE)).is_success
    assert (await opened.delete(f"{R}/gone", headers=ALICE)).is_success
    assert (await opened.post(M, headers=ALICE)).is_success
    mood = {"id": "mood", "layer": "short", "kind": "mood", "content": "calm"}
    assert (await opened.post("/api/memory", json=mood, headers=ALICE)).is_success
    lead = {"entity": "user:alice", "roles": ["coordinator"]}
    assert (await opened.post("/api/projects/light/members", json=lead)).is_success
    proposal = {"id": "proposal", "kind": "adr", "content": "one lamp", "scopes": ["project:light"]}
    assert (await opened.post("/api/memory", json=proposal, headers=BOB)).is_success
    usage = Usage(model="m", prompt_version="1")
    asked = EvolutionRequested(item_id="older", base_version=1, feedback="f", apply=False)
    proposed = EvolutionProposed(item_id="older", content="by a model", usage=usage)
    slim = SlimRequested(owner="user:alice", threshold=0.9, apply=False)
    report = SlimReported(candidates=0, groups=0, items=2, seconds=0.1)
    conflict = ConflictRecorded(first="older", first_version=1, second="newer", second_version=1, reason="r")
    saved = KnowledgeSaved(types=["tool"], task="t", content="c", scopes=["user:alice"], owner="user:alice")
    held = StatementHeld.of([saved], "said-again", "retired", 9)
    stages = [
        ("held-1", held), ("held-2", held),
        ("evolution-1", asked), ("evolution-1", proposed), ("conflict-1", conflict),
        ("evolution-2", asked.model_copy(update={"item_id": "newer"})),
        ("evolution-2", proposed.model_copy(update={"item_id": "newer"})),
        ("slim-1", slim), ("slim-1", report),
        ("slim-2", slim), ("slim-2", report), ("slim-2", SlimApplied(groups=0)),
    ]  # fmt: skip
    document = DocumentIngested(
        title="kept", content_type="text/plain", characters=1, scopes=["user:alice"], owner="user:alice",
        headings=[""], levels=[1], starts=[0], summaries=[""], chunks=["chunk-of-kept"], digests="0",
    )  # fmt: skip
    await opened.desk.ledger.append(NewEvent(document, "kept", "user:alice"))
    for name, fact in stages:
        await opened.desk.ledger.append(NewEvent(fact, name, "user:alice"))
    await opened.desk.view.wait_for(await opened.head())
    assert (await opened.post("/api/evolutions/evolution-2/apply", headers=ALICE)).is_success


furnished_door = furnished(_furnish)
"""A door behind which there is something for each write to be about."""


async def asked_later(door: Door, method: str, path: str, body: Any, who: dict[str, str]) -> httpx.Response:
    """The answer of a node that remembers no request, as one that was started again."""
    await door.desk.view.wait_for(await door.head())
    transport = httpx.ASGITransport(app_of(door.desk))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420") as later:
        return await later.request(method, path, json=body, headers=who | KEY)


_OTHERWISE = {"duplicate", "metadata"}
"""Whether it was asked before, and the items of a goal, which are told as they are by now."""


def told(answer: httpx.Response) -> tuple[int, Any]:
    """What an answer says, but for what may differ when it is asked for again."""
    assert answer.is_success, answer.text
    return answer.status_code, {name: each for name, each in answer.json().items() if name not in _OTHERWISE}
