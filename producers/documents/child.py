"""The child process that reads one file: `python -m producers.documents.child`, the order and the file on its stdin.

The order is one line of JSON, the rest of stdin is the file. The answer is one JSON document on stdout.
"""

from __future__ import annotations

import contextlib
import resource
import sys

import orjson

from ledger.runtime.report_stream import last_word, report_stream
from producers.documents.one_file import read_one


def main() -> None:
    """Read the order and the file, within the bounds of the order; end quietly where the parent is gone."""
    report, line = report_stream(), sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):  # the parent was killed before all of it was here
        return
    order = orjson.loads(line)
    _bound(resource.RLIMIT_AS, order["memory"])
    _bound(resource.RLIMIT_CPU, order["seconds"])
    _bound(resource.RLIMIT_FSIZE, 0)
    try:
        said = read_one(order["content_type"], sys.stdin.buffer.read())
    except MemoryError:
        said = {"error": f"reading it takes more than {order['memory'] // 2**20} MiB of memory: split it"}
    last_word(report, orjson.dumps(said))


def _bound(kind: int, most: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # not every system has every bound
        resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
