"""Synthetic corpus for the benchmarks: items that are saved, rated and revised, 1 KB for each event.

Half of a history saves items, 30 % rates and 20 % revises one of those saved before, chosen uniformly. The texts mix
English and Chinese; the same seed gives the same history, except for event ids and times.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from kledger.contract.knowledge import Case, Source
from ledger.event import Fact, JsonObject, Lineage, NewEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeRevised, KnowledgeSaved
from ledger.wire.envelope import encode

EVENT_BYTES = 1_000
SAVED, RATED = 0.5, 0.3  # the rest revises
HELPFUL = 0.8
OWNER = "org:bench"
AGENTS = 50
EVENTS_A_TRACE = 20
TYPES = ("tool", "strategy", "usecase", "definition", "plan")

_ENGLISH = (
    "look at the slowest consumer before adding another one,",
    "a retry without a limit turns a short outage into a long one;",
    "keep the raw answer beside the parsed one",
    "and measure on the machine that will run it.",
    "Write down what was tried and why it was given up,",
    "because nobody remembers it after a month.",
    "A cache needs an owner and a date of expiry;",
)
_CHINESE = (
    "先看最慢的消费者，再考虑增加新的。",
    "没有上限的重试会把短暂的故障变成长久的故障。",
    "把原始答案和解析结果一起保存下来，",
    "在真正运行的机器上测量，",
    "写下试过什么、为什么放弃。",
)
_PROSE_PHRASES = 5_000


def history(count: int, seed: int = 1) -> Iterator[NewEvent]:
    """`count` events about items of one owner, each of about EVENT_BYTES; every one is accepted by the views."""
    random = Random(seed)
    prose = _prose(random)
    lengths = {kind: _length(kind, prose) for kind in ("saved", "rated", "revised")}
    items = 0
    for number in range(count):
        chance = random.random()
        kind = "saved" if chance < SAVED or not items else "rated" if chance < SAVED + RATED else "revised"
        at = random.randrange(len(prose) - lengths[kind])
        about = items if kind == "saved" else random.randrange(items)
        items += kind == "saved"
        yield _event(kind, f"item-{seed}-{about}", number, prose[at : at + lengths[kind]], random)


def payloads(count: int, seed: int = 1) -> Iterator[JsonObject]:
    """`count` different save payloads, in the form of POST /api/knowledge and of an import file."""
    random = Random(seed)
    prose = _prose(random)
    length = _length("saved", prose)
    for number in range(count):
        at = random.randrange(len(prose) - length)
        text = prose[at : at + length]
        yield {
            "id": f"payload-{seed}-{number}",
            "types": [TYPES[number % len(TYPES)]],
            "task": f"{text[:40]} {number}",
            "content": text,
            "tags": {"lang": "mixed", "n": number},
            "scopes": ["public"],
            "owner": OWNER,
            "source": {"name": "bench", "urls": ["https://example.org/bench"], "agent_id": "importer"},
        }


def _prose(random: Random) -> str:
    """A long text to cut pieces out of: one phrase in four is Chinese."""
    phrases = (random.choice(_CHINESE if random.random() < 1 / 4 else _ENGLISH) for _ in range(_PROSE_PHRASES))
    return " ".join(phrases)


def _length(kind: str, prose: str) -> int:
    """How many characters of prose fill an event of this kind."""
    empty = len(encode(_event(kind, "item-1-100000", 100_000, "", Random(0))))
    return int((EVENT_BYTES - empty) * len(prose) / len(prose.encode()))


def _event(kind: str, item: str, number: int, text: str, random: Random) -> NewEvent:
    agent = random.randrange(AGENTS)
    trace = f"trace-{number // EVENTS_A_TRACE}"
    fact: Fact
    actor = OWNER
    if kind == "saved":
        source = Source(name="bench", urls=["https://example.org/bench"], agent_id=f"a{agent}", message_id=f"m{number}")
        fact = KnowledgeSaved(
            types=[TYPES[number % len(TYPES)]],
            task=f"task {number}",
            content=text or "-",
            tags={"lang": "mixed", "n": number},
            scopes=["public"],
            owner=OWNER,
            source=source,
        )
    elif kind == "rated":
        actor = f"agent:a{agent}"
        case = Case(task=text, outcome="it worked", trace_id=trace)
        fact = KnowledgeRated(verdict="helpful" if random.random() < HELPFUL else "harmful", case=case)
    else:
        fact = KnowledgeRevised(content=text or "-", reason=f"revision {number}")
    return NewEvent(fact, item, actor, lineage=Lineage(trace_id=trace))
