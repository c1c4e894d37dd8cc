"""Subprocess jobs: long work of a node in a process of its own, so that it does not block the event loop.

The order is one line on the child's standard input. Progress, and then the result or the error, are lines on its
standard output, each a JSON document. What the child logs or prints is on its standard error, which is the node's.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, BinaryIO

import orjson

from kledger.contract.errors import LedgerError, ServiceFailed
from ledger.broker.access import BrokerAccess, Role
from ledger.event import JsonObject
from ledger.progress import Progress
from ledger.runtime import numpy_threads
from ledger.runtime.gc_tuning import collect_seldom
from ledger.runtime.logs import log_to_stderr
from ledger.runtime.no_room import disk_failed
from ledger.runtime.private import module_environment
from ledger.runtime.report_stream import last_word, report_stream

_LONGEST_LINE = 1 << 30  # a result is one line, of any size
_ENDS_WITHIN_S = 10.0
# The buffers of a batch are megabytes each. glibc keeps freed ones in its arenas, whose fragmentation grows with the
# log; buffers above this size are returned to the system. A rebuild of 500,000 events then takes 1.0 GB instead of 2.0,
# and no more after 200,000.
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1024 * 1024)}
# Arrow's own default keeps a quarter more memory of a rebuild; the pages of it that are touched first cost as much as
# reading does. Arrow falls back, and says so, where it was built without.
_ARROW = {"ARROW_DEFAULT_MEMORY_POOL": "jemalloc"} if sys.platform == "linux" else {}

Work = Callable[[JsonObject, Progress], Awaitable[JsonObject]]
"""What a child does with its order; returns the result."""


async def in_own_process(module: str, order: JsonObject, progress: Progress) -> JsonObject:
    """Run `python -m module` with an order and return its result. Cancelling ends the process.

    Raises the LedgerError that ended the work, with its details, and ServiceFailed when there was no answer at all.
    """
    pipe = asyncio.subprocess.PIPE
    environment = _MALLOC | _ARROW | numpy_threads.ONE | module_environment()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        stdin=pipe,
        stdout=pipe,
        limit=_LONGEST_LINE,
        env=environment,
        start_new_session=True,  # Ctrl-C reaches only the node, which ends its jobs
    )
    assert process.stdin is not None  # both are pipes
    assert process.stdout is not None
    try:
        process.stdin.write(orjson.dumps(order) + b"\n")
        process.stdin.close()
        async for line in process.stdout:
            if not line.endswith(b"\n"):  # it was killed as it wrote
                break
            report: JsonObject = orjson.loads(line)
            if "result" in report:
                result: JsonObject = report["result"]
                return result
            if "error" in report:
                error = report["error"]
                raise _error_class(error["code"])(error["message"], **error["details"])
            progress(report["done"], report["total"], report["rate"])
        raise ServiceFailed(f"{module} ended without a result; the log of the node says why")
    finally:
        await _ended(process)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End a process: with SIGKILL where it hangs, which nobody is to wait for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
    try:
        async with asyncio.timeout(_ENDS_WITHIN_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def run_child(work: Work, run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run) -> None:
    """The child's main function: do the work of the order, with stdout for the report alone. `run` runs the loop."""
    reports = report_stream()
    log_to_stderr()
    collect_seldom()
    run(carry_out(work, reports))


async def carry_out(work: Work, reports: BinaryIO) -> None:
    """Read the order from stdin, do the work, write progress and the result; end quietly where the parent is gone."""
    order, report = sys.stdin.readline(), _Report(reports)
    if not order.endswith("\n"):  # the parent was killed before all of it was here
        return
    try:
        await _carried_out(work, orjson.loads(order), report.write)
    except Exception:
        if not report.unread:
            raise
        last_word(reports, b"")


class _Report:
    """What is told to the parent, line by line."""

    def __init__(self, lines: BinaryIO) -> None:
        self._lines = lines
        self.unread = False
        """Whether the parent is gone."""

    def write(self, report: JsonObject) -> None:
        """Raises BrokenPipeError where the parent is gone: the work ends, and removes its drafts."""
        try:
            self._lines.write(orjson.dumps(report) + b"\n")
            self._lines.flush()
        except BrokenPipeError:
            self.unread = True
            raise


async def _carried_out(work: Work, order: JsonObject, write: Callable[[JsonObject], None]) -> None:
    try:
        result = await work(order, lambda done, total, rate: write({"done": done, "total": total, "rate": rate}))
    except LedgerError as error:
        write({"error": {"code": error.code, "message": error.message, "details": error.details}})
    except Exception as error:
        if (full := disk_failed(error)) is None:
            raise
        write({"error": {"code": full.code, "message": full.message, "details": full.details}})
    else:
        write({"result": result})


def access_told(access: BrokerAccess, *roles: Role) -> JsonObject:
    """Serialize access to the broker for an order, with the passwords of these roles only."""
    if access.own_user is not None:
        return {"url": access.url, "own": list(access.own_user)}
    passwords = {role: access.passwords[role] for role in roles if role in access.passwords}
    return {"url": access.url, "passwords": passwords}


def access_read(document: JsonObject) -> BrokerAccess:
    """Parse the output of access_told."""
    own = document.get("own")
    return BrokerAccess(document["url"], document.get("passwords") or {}, own_user=tuple(own) if own else None)


def _error_class(code: str) -> type[LedgerError]:
    return next((kind for kind in _errors(LedgerError) if kind.code == code), ServiceFailed)


def _errors(kind: type[LedgerError]) -> Iterator[type[LedgerError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _errors(one)
