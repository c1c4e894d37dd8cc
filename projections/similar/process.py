"""Comparison of thousands of items in a subprocess, apart from the node's interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from ledger.broker.subprocess_job import in_own_process, run_child
from ledger.event import JsonObject
from ledger.progress import Progress, silent
from projections.similar.groups import Found, Group, Item, Member, similar


def grouped(bodies: Sequence[Sequence[Item]], threshold: float) -> Found:
    """The groups within each body of items, which have one owner and the same readers."""
    parts = [similar(body, threshold=threshold) for body in bodies]
    return Found(sum(part.candidates for part in parts), tuple(group for part in parts for group in part.groups))


async def grouped_in_own_process(bodies: Sequence[Sequence[Item]], threshold: float) -> Found:
    """The groups within each body of items, found in a subprocess. Cancelling ends it."""
    order = {"bodies": [[asdict(item) for item in body] for body in bodies], "threshold": threshold}
    result = await in_own_process("projections.similar.process", order, silent)
    groups = (Group(group["survivor"], tuple(Member(**each) for each in group["merged"])) for group in result["groups"])
    return Found(result["candidates"], tuple(groups))


async def _group(order: JsonObject, _progress: Progress) -> JsonObject:
    bodies = [[Item(**{**item, "types": tuple(item["types"])}) for item in body] for body in order["bodies"]]
    return asdict(grouped(bodies, order["threshold"]))


if __name__ == "__main__":
    run_child(_group)
