"""Feedback benchmark: 5,000 verdicts of one request until durable and visible, beside a bare append_many.

A real node holds items of a corpus; one POST rates them, and a read waits until the view has the last verdict. The
bare side appends as many verdicts of the same size through the library to the same broker, without HTTP, validation and
view.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import uvloop

from bench.corpus import OWNER, payloads
from bench.visible import HttpClient, running_node, seen
from kledger.contract.knowledge import Case
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.knowledge import KnowledgeRated
from ledger.store.jetstream import JetStreamLedger

ITEMS = 1_000
VERDICTS = 5_000
ROUNDS = 5

Row = dict[str, Any]


def verdicts(items: Sequence[str], count: int, turn: int) -> list[JsonObject]:
    """`count` cases, in the form of POST /api/knowledge/batch_update."""
    return [
        {
            "knowledge_id": items[number % len(items)],
            "is_helpful": number % 5 > 0,
            "case": {
                "task": f"roll back release {turn}.{number}",
                "outcome": "成功" if number % 5 else "it made no difference",
                "timestamp": "2026-03-05T12:00:00Z",
                "trace_id": f"trace-{turn}-{number // 20}",
            },
        }
        for number in range(count)
    ]


def events_of(feedback: Sequence[JsonObject]) -> list[NewEvent]:
    """The same verdicts as events."""
    return [
        NewEvent(
            KnowledgeRated(verdict="helpful" if entry["is_helpful"] else "harmful", case=Case(**entry["case"])),
            entry["knowledge_id"],
            OWNER,
            lineage=Lineage(trace_id=entry["case"]["trace_id"]),
        )
        for entry in feedback
    ]


async def measure(count: int = VERDICTS) -> list[Row]:
    """Both ways in turns. Returns the rows."""
    with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
        async with running_node(Path(directory)) as node:
            http = HttpClient(node.http)
            ledger = await JetStreamLedger.connect(node.broker, role="node", name="kledger-bench")
            try:
                return await _rounds(http, ledger, count)
            finally:
                await ledger.close()
                http.close()


async def _rounds(http: HttpClient, ledger: JetStreamLedger, count: int) -> list[Row]:
    items = list(payloads(ITEMS))
    saved = await http.ask("POST", "/api/knowledge/batch", orjson.dumps({"items": items}))
    names = [str(item["id"]) for item in items]
    await seen(http, names[0], saved["position"])
    visible_rates, durable_rates, bare_rates = [], [], []
    for turn in range(ROUNDS + 1):
        body = orjson.dumps({"feedback_list": verdicts(names, count, 2 * turn)})
        began = time.perf_counter()
        answer = await http.ask("POST", "/api/knowledge/batch_update", body)
        durable = time.perf_counter() - began
        await seen(http, names[0], answer["position"])
        visible = time.perf_counter() - began
        if answer["updated"] != count:
            raise RuntimeError(f"{answer['updated']} of {count} verdicts were kept: {answer['refused'][:3]}")
        ready = events_of(verdicts(names, count, 2 * turn + 1))
        began = time.perf_counter()
        last = (await ledger.append_many(ready))[-1].position
        took = time.perf_counter() - began
        await seen(http, names[0], last)  # the next turn begins with nothing left to fold
        if turn:  # the first one warms up
            visible_rates.append(count / visible)
            durable_rates.append(count / durable)
            bare_rates.append(count / took)
    return [
        _row(f"{count:,} verdicts in one request, durable and visible", visible_rates, bare_rates, ">= 0.5"),
        _row(f"{count:,} verdicts in one request, durable", durable_rates, bare_rates, None),
    ]


def _row(row: str, ours: Sequence[float], bare: Sequence[float], target: str | None) -> Row:
    return {
        "row": row,
        "ours": statistics.median(ours),
        "raw": statistics.median(bare),
        "unit": "verdicts/s",
        "ratio": statistics.median(mine / theirs for mine, theirs in zip(ours, bare, strict=True)),
        "target": target,
        "note": f"bare: append_many alone, of verdicts that lie ready; median of {ROUNDS} pairs. That a case counts "
        "once costs a tenth: an id made of its words, and a look for it in the view",
    }


def run() -> list[Row]:
    """The rows of this benchmark."""
    return uvloop.run(measure())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.feedback", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--verdicts", type=int, default=VERDICTS, help="how many in one request, 5,000 at most")
    for line in uvloop.run(measure(parser.parse_args().verdicts)):
        print(line)
