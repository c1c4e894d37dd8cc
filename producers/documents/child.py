"""The child process that reads one file: `python -m producers.documents.child`, the order and the file on its stdin.

The order is one line of JSON, the rest of stdin is the file. The answer is one JSON document on stdout.
"""

from __future__ import annotations

import contextlib
import resource
import sys

import orjson

from ledger.runtime.report_stream import report_stream
from producers.documents.one_file import read_one


def main() -> None:
    """Read the order and the file, within the bounds of the order."""
    report = report_stream()
    order = orjson.loads(sys.stdin.buffer.readline())
    _bound(resource.RLIMIT_AS, order["memory"])
    _bound(resource.RLIMIT_CPU, order["seconds"])
    _bound(resource.RLIMIT_FSIZE, 0)
    try:
        said = read_one(order["content_type"], sys.stdin.buffer.read())
    except MemoryError:
        said = {"error": f"reading it takes more than {order['memory'] // 2**20} MiB of memory: split it"}
    report.write(orjson.dumps(said))
    report.close()


def _bound(kind: int, most: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # not every system has every bound
        resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
