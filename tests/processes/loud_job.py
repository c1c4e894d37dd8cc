"""A job that logs and prints in every way there is, between its order and its result."""

from __future__ import annotations

from ledger.broker.subprocess_job import run_child
from ledger.event import JsonObject
from ledger.progress import Progress
from tests.processes.noise import make_noise


async def _shout(order: JsonObject, progress: Progress) -> JsonObject:
    make_noise()
    progress(1, 2, 3.0)
    make_noise()
    return {"heard": order["said"]}


if __name__ == "__main__":
    run_child(_shout)
