"""Every answer has a bound in bytes, whatever is kept: the rest comes with the next page, or the answer says it is cut.

Each address that is read is in one of two tables: it grows with what is kept, and is read here where that is far more
than an answer may have; or it does not, and the table says why. An address that is in neither is a failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import httpx
import pytest

from ledger import one_answer
from ledger.event import NewEvent
from ledger.events.conflict import ConflictRecorded
from ledger.events.document import DocumentIngested
from ledger.events.evolution import EvolutionProposed, EvolutionRequested
from ledger.events.knowledge import KnowledgeRevised, KnowledgeSaved
from ledger.events.slim import Similar, SlimProposed, SlimReported, SlimRequested
from ledger.events.statement import StatementHeld
from ledger.events.usage import Usage
from producers.operations.ports import ParkingAdmin
from tests.doors.documented import Documented, document
from tests.doors.http_door import ALICE, Door, http_door

EACH, LETTERS, MOST = 14, 3_000, 12_000
"""Entries of each kind, characters of each, and bytes of an answer."""
ROOM = MOST + 2 * 5_000
"""The most that an answer may have: what fits, the entry that did not, and what stands around them."""


def big(number: int) -> str:
    """A long text; another one says something else."""
    return " ".join(["a lamp at the pier", *(f"w{number}x{each}" for each in range(LETTERS // 4))])[:LETTERS]


BIG = big(0)
OPERATOR: dict[str, str] = {}


@dataclass(frozen=True)
class Pages:
    """An address whose entries come page by page: `names` tells them apart, `by` is the parameter that `next` is of."""

    path: str
    entries: tuple[str, ...]
    names: str = "id"
    by: str = "before"
    params: dict[str, Any] = field(default_factory=lambda: {"limit": 100})
    who: dict[str, str] = field(default_factory=lambda: ALICE)


@dataclass(frozen=True)
class Cut:
    """An address that is asked once: what does not fit is `shortened` in its entries, or `more` says that it is cut."""

    path: str
    says: str
    params: dict[str, Any] = field(default_factory=dict)
    around: int = 0
    """Bytes of entries that are short already, so many as there are."""
    texts: tuple[str, ...] = ()
    """The same once more as a text for a prompt, of which the characters of each entry are bounded."""
    who: dict[str, str] = field(default_factory=lambda: ALICE)


_PROMPT = ("sections", "section", "prompt")
GROWS: dict[str, tuple[Pages | Cut, ...]] = {
    "/api/knowledge": (
        Pages("/api/knowledge", ("results",)),
        Pages("/api/knowledge", ("results",), by="offset", params={"limit": 100, "sort": "helpful"}),
        Pages("/api/knowledge", ("results",), params={"limit": 10}),
        Pages("/api/knowledge", ("results",), params={"limit": 100, "as_of": "{head}"}),
    ),
    "/api/knowledge/{item_id}": (Cut("/api/knowledge/i0", "more"),),
    "/api/knowledge/{item_id}/history": (
        Pages("/api/knowledge/i0/history", ("versions", "feedback"), "event_id", params={}),
        Pages("/api/knowledge/i0/history", ("versions", "feedback"), "event_id", params={"shorten": 10}),
    ),
    "/api/knowledge/{item_id}/recalls": (Pages("/api/knowledge/chunk-13/recalls", ("results",), "recall_id"),),
    "/api/knowledge/search": (Cut("/api/knowledge/search", "shortened", {"q": "a lamp", "top_k": 50}, 20_000),),
    "/api/lineage": (Cut("/api/lineage", "more", {"ref": "i0"}),),
    "/api/memory": (Pages("/api/memory", ("results",), by="offset"),),
    "/api/memory/held": (Pages("/api/memory/held", ("results",), by="offset"),),
    "/api/evolutions": (Pages("/api/evolutions", ("results",), by="offset"),),
    "/api/conflicts": (Pages("/api/conflicts", ("results",), by="offset"),),
    "/api/slims/{slim_id}": (Cut("/api/slims/slim", "shortened"),),
    "/api/v1/memories/work/history": (Pages("/api/v1/memories/work/history", ("versions",), "event_id", params={}),),
    "/api/v1/memories/user/history": (Pages("/api/v1/memories/user/history", ("versions",), "event_id", params={}),),
    "/api/resource": (Pages("/api/resource", ("results",)),),
    "/api/resource/{resource_id}/history": (Pages("/api/resource/r0/history", ("versions",), "event_id", params={}),),
    "/api/documents": (Pages("/api/documents", ("results",)),),
    "/api/documents/{document_id}": (Pages("/api/documents/d0", ("chunks",), by="offset"),),
    "/api/recall/startup": (
        Cut("/api/recall/startup", "shortened", {"q": "a lamp", "top_k": 50, "min_match": 0}, 40_000, _PROMPT),
    ),
    "/api/goals": (Pages("/api/goals", ("results",), "goal_id", by="offset"),),
    "/api/goals/{goal_id}": (Cut("/api/goals/g0", "shortened", around=10_000, texts=_PROMPT),),
    "/api/recalls": (Pages("/api/recalls", ("results",), "recall_id"),),
    "/api/recalls/{recall_id}": (Cut("/api/recalls/{recall}", "shortened"),),
    "/api/overview": (Cut("/api/overview", "shortened"),),
    "/api/overview/changes": (Pages("/api/overview/changes", ("changes",), "position", by="after"),),
    "/api/sessions/{session_id}/messages": (Pages("/api/sessions/s0/messages", ("messages",), by="after"),),
    "/api/admin/refused": (Pages("/api/admin/refused", ("refused",), "position", by="after", who=OPERATOR),),
}
ONE = "it is of one event, or of a few, none of which has more than a megabyte"
SHORT = "each of its entries is short, and they are bounded by a limit"
NODE = "it is of the node, whose parts are few"
DOES_NOT_GROW = {
    "/api/knowledge/{item_id}/why": ONE,
    "/api/memory/{item_id}": ONE,
    "/api/evolutions/{evolution_id}": ONE,
    "/api/extractions": "each of its entries names items, a thousand at most",
    "/api/extractions/{extraction_id}": ONE,
    "/api/conflicts/{conflict_id}": ONE,
    "/api/v1/memories": ONE,
    "/api/v1/memories/user": ONE,
    "/api/v1/memories/work": ONE,
    "/api/v1/memories/user/prompt": ONE,
    "/api/v1/memories/work/prompt": ONE,
    "/api/resource/{resource_id}": ONE,
    "/api/messages/{record_id}": "ten messages at most, read as a page of a session is",
    "/api/sessions/{session_id}/context": "it has as many tokens as were asked for",
    "/api/sessions/{session_id}/expand/{record_id}": "tests/sessions/test_answers_bounded.py",
    "/api/sessions/{session_id}/summaries": "tests/sessions/test_answers_bounded.py",
    "/api/sessions/{session_id}/scratchpad": "256 KiB at most",
    "/api/sessions/{session_id}/knowledge": SHORT,
    "/api/sessions": SHORT,
    "/api/slims": SHORT,
    "/api/bulks/{bulk_id}": "a thousand items at most, with the beginnings of their tasks",
    "/api/overview/facets": "fifty values of each facet, each a word",
    "/api/traces": SHORT,
    "/api/memory/health": "it is numbers",
    "/api/projects/{project_id}/members": "each of its entries is an id and its roles",
    "/api/scope_types": "each of its entries is a word and a number",
    "/api/prompts": "they come with the product",
    "/api/prompts/{name}": "they come with the product",
    **{f"/api/admin/{name}": NODE for name in ("status", "jobs", "jobs/{job_id}", "columns", "models", "attach")},
    "/api/admin/certificates": "each of its entries is an id, a moment and a digest",
    "/health": NODE,
    "/health/ready": NODE,
    "/health/live": NODE,
    "/metrics": NODE,
    "/api/whoami": NODE,
    "/": NODE,
}


def test_each_address_that_is_read_is_in_one_of_the_tables() -> None:
    read = {path for path, methods in document()["paths"].items() if "get" in methods}
    assert read == {*GROWS, *DOES_NOT_GROW}, "say why it does not grow, or have it read here with more than fits"
    assert not {*GROWS} & {*DOES_NOT_GROW}


async def test_no_answer_is_larger_than_its_bound_and_none_is_cut_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    faults: dict[str, str] = {}
    async with http_door() as door:
        recall = await _fill(door)
        asking = Asking(door, await door.head(), recall)
        for asked in (each for several in GROWS.values() for each in several):
            try:
                with monkeypatch.context() as patched:
                    if isinstance(asked, Pages):
                        await _paged(asking, asked, patched)
                    else:
                        await _cut(asking, asked, patched)
            except AssertionError as fault:
                faults[f"{asked.path} {asked.params}"] = str(fault)
    assert not faults, "\n".join(f"{name}: {fault[:600]}" for name, fault in faults.items())


@dataclass(frozen=True)
class Asking:
    """A door with all of it, and what stands for the names in an address."""

    door: Door
    head: int
    recall: str

    async def read(self, asked: Pages | Cut, more: dict[str, Any] | None = None) -> httpx.Response:
        params = {name: self.head if each == "{head}" else each for name, each in (asked.params | (more or {})).items()}
        answer = await self.door.get(asked.path.replace("{recall}", self.recall), params=params, headers=asked.who)
        assert answer.status_code == 200, answer.text[:600]
        return answer

    async def both(self, asked: Pages | Cut, patched: pytest.MonkeyPatch) -> tuple[httpx.Response, httpx.Response]:
        """The answer where all of it fits, and as it is where it does not."""
        room = ROOM + (asked.around if isinstance(asked, Cut) else 0)
        whole = await self.read(asked)
        assert _size(whole, asked) > room + LETTERS, f"there is not enough of it here: {_size(whole, asked)}"
        patched.setattr(one_answer, "MOST_BYTES", MOST)
        patched.setattr(one_answer, "BEGINNING", 50)
        patched.setattr(one_answer, "SMALL", 100)
        answer = await self.read(asked)
        documented = Documented()
        documented.check(answer)
        assert not documented.faults, documented.faults
        assert _size(answer, asked) < room, _size(answer, asked)
        return whole, answer


async def _cut(asking: Asking, asked: Cut, patched: pytest.MonkeyPatch) -> None:
    whole, answer = await asking.both(asked, patched)
    assert _says(answer.json(), asked.says), f"nothing of it is {asked.says}"
    assert not _says(whole.json(), asked.says), f"it has {asked.says} where all of it fits"


async def _paged(asking: Asking, asked: Pages, patched: pytest.MonkeyPatch) -> None:
    everything, _ = await _all_pages(asking, asked, await asking.read(asked), 10**9)
    _, answer = await asking.both(asked, patched)
    found, pages = await _all_pages(asking, asked, answer, ROOM)
    assert pages > 2, "it has no other page"
    assert len(found) == len(everything), f"{len(found)} of {len(everything)}"
    assert {*found} == {*everything}


async def _all_pages(asking: Asking, asked: Pages, answer: httpx.Response, room: int) -> tuple[list[Any], int]:
    """The names of all entries from the page of an answer on, and of how many pages they are."""
    found, pages = _names(answer.json(), asked), 1
    while (following := answer.json().get("next")) is not None and pages < 10 * EACH:
        answer = await asking.read(asked, {asked.by: following})
        assert len(answer.content) < room, len(answer.content)
        if not (more := _names(answer.json(), asked)):
            break  # what is followed has a `next` for ever
        found, pages = [*found, *more], pages + 1
    return found, pages


def _size(answer: httpx.Response, asked: Pages | Cut) -> int:
    texts = asked.texts if isinstance(asked, Cut) else ()
    return one_answer.size_of({name: each for name, each in answer.json().items() if name not in texts})


def _names(answer: Any, asked: Pages) -> list[Any]:
    return [entry[asked.names] for name in asked.entries for entry in answer[name]]


def _says(answer: Any, name: str) -> bool:
    """Whether there is something of this name anywhere in an answer."""
    if isinstance(answer, dict):
        return bool(answer.get(name)) or any(_says(each, name) for each in answer.values())
    return isinstance(answer, list) and any(_says(each, name) for each in answer)


class NothingParked:
    """Decisions about parked events: none."""

    async def states(self) -> dict[int, Any]:
        return {}


async def _fill(door: Door) -> str:
    """Keep far more of each kind than an answer of these tests may have; the id of a recall that served much of it."""
    door.desk.parking = cast(ParkingAdmin, NothingParked())

    async def kept(method: str, path: str, body: Any) -> Any:
        answer = await door.request(method, path, json=body, headers=ALICE)
        assert answer.is_success, answer.text[:2_000]
        return answer.json()

    plain = {"task": BIG, "types": ["tool"], "scopes": ["user:alice"]}
    profile = {"types": ["user_profile"], "scopes": ["user:alice"], "eval": {"score": 5}}
    for n in range(EACH):
        await kept("POST", "/api/knowledge", {"id": f"i{n}", **plain, "content": big(100 + n)})
        await kept("POST", "/api/knowledge", {"id": f"p{n}", "task": "p", **profile, "content": big(200 + n)})
        await kept("POST", "/api/knowledge", {"id": f"n{n}", **plain, "task": "y" * LETTERS, "content": f"never {n}"})
        await kept("POST", "/api/memory", {"id": f"m{n}", "layer": "episodic", "content": big(300 + n)})
        await kept("POST", "/api/resource", {"id": f"r{n}", "title": "r", "body": BIG, "scopes": ["user:alice"]})
        await kept("PUT", "/api/knowledge/i0", {"content": f"{BIG} again {n}"})
        await kept("PUT", "/api/knowledge/i0", {"add_helpful_case": {"task": f"t{n}", "reason": BIG}})
        await kept("POST", "/api/resource", {"id": "r0", "title": "r", "body": f"{BIG} {n}", "scopes": ["user:alice"]})
        for memory in ("work", "user"):
            await kept("PUT", f"/api/v1/memories/{memory}", {"content": {"occupation": f"{BIG} {n}"}})
        said = {"id": f"w{n}", "role": "user", "content": f"{BIG} {n}"}
        await kept("POST", "/api/sessions/s0/messages", {"messages": [said]})
    await _published(door)
    for n in range(EACH):
        await kept(
            "POST", f"/api/goals/g{n}/focus", {"description": BIG[: LETTERS - n] if n else "a lamp", "top_k": 20}
        )
    found = await door.get("/api/knowledge/search", params={"q": "a lamp", "top_k": 50}, headers=ALICE)
    await door.desk.view.wait_for(await door.head())
    recall: str = found.json()["recall_id"]
    return recall


async def _published(door: Door) -> None:
    """What no endpoint makes at once: processes, documents, and events that are refused."""
    usage = Usage(model="m", prompt_version="1")
    facts: list[tuple[str, Any]] = []
    saved = KnowledgeSaved(types=["tool"], task="t", content=BIG, scopes=["user:alice"], owner="user:alice")
    document: dict[str, Any] = {
        "title": "d", "content_type": "text/plain", "characters": 1, "scopes": ["user:alice"], "owner": "user:alice",
        "url": BIG[:2_000], "summary": BIG[:1_000], "headings": [""], "levels": [1], "starts": [0],
        "summaries": [""], "digests": "0",
    }  # fmt: skip
    for n in range(EACH):
        facts += [
            (f"held-{n}", StatementHeld.of([saved], f"h{n}", "i1", 9)),
            (f"evolution-{n}", EvolutionRequested(item_id=f"i{n}", base_version=1, feedback="f", apply=False)),
            (f"evolution-{n}", EvolutionProposed(item_id=f"i{n}", content=BIG, usage=usage)),
            (
                f"conflict-{n}",
                ConflictRecorded(first=f"i{n}", first_version=1, second=f"p{n}", second_version=1, reason=BIG),
            ),
            (f"chunk-{n}", saved),
            (f"unknown-{n}", KnowledgeRevised(content=BIG)),
        ]
        if n:
            facts.append((f"d{n}", DocumentIngested(**document, chunks=[f"chunk-{n}"])))
    facts.append(("d0", DocumentIngested(**document, chunks=[f"chunk-{n}" for n in range(EACH)])))
    facts.append(("slim", SlimRequested(owner="user:alice", threshold=0.9, apply=False)))
    for n, (first, second) in enumerate(pairwise(range(EACH))):
        merged = [Similar(id=f"i{second}", version=1, similarity=0.9)]
        group = SlimProposed(group=n, survivor=f"i{first}", survivor_version=1, merged=merged, content=BIG, usage=usage)
        facts.append(("slim", group))
    facts.append(("slim", SlimReported(candidates=0, groups=EACH - 1, items=EACH, seconds=0.1)))
    for name, fact in facts:
        await door.desk.ledger.append(NewEvent(fact, name, "user:alice"))
    await door.desk.view.wait_for(await door.head())
