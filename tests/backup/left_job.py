"""A job that goes on once it is told that its parent is gone, and ends as its order says."""

from __future__ import annotations

import sys

from kledger.contract.errors import ServiceFailed
from ledger.broker.subprocess_job import run_child
from ledger.event import JsonObject
from ledger.progress import Progress


async def _ends(order: JsonObject, progress: Progress) -> JsonObject:
    progress(1, 2, 3.0)
    sys.stdin.readline()
    match order["ends_by"]:
        case "progress":
            progress(2, 2, 3.0)
        case "progress that counts as a full disk":
            try:
                progress(2, 2, 3.0)
            except OSError as error:
                raise ServiceFailed("it cannot be written on") from error
        case "an error":
            raise ServiceFailed("it cannot be done")
        case "a fault":
            raise ValueError("a fault of ours")
        case "a pipe of its own":
            raise BrokenPipeError("another pipe")
    return {"long": "x" * 100_000}


if __name__ == "__main__":
    run_child(_ends)
