"""How does a node do long work without giving it its own time? In a process of its own, by one order and its answers.

The order is the first line on the child's standard input; progress, and then the result or the error, are lines on its
standard output, each a JSON document.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator

import orjson

from kledger.contract.errors import LedgerError, ServiceFailed
from ledger.broker.access import BrokerAccess, Role
from ledger.event import JsonObject
from ledger.runtime.gc_tuning import collect_seldom
from ledger.runtime.private import child_environment

_LONGEST_LINE = 1 << 30  # a result is one line, however much it is
# The buffers of a batch are megabytes each. glibc keeps them in its arenas, whose holes grow with the log; from this
# size on it gives them back. A rebuild of 500,000 events takes 1.0 GB instead of 2.0, and no more after 200,000.
_GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": str(1024 * 1024)}

Progress = Callable[[int, int, float], None]
"""Gets what is done, what is to be done, and how many a second."""


async def in_own_process(module: str, order: JsonObject, progress: Progress) -> JsonObject:
    """Run `python -m module` on an order; what it answers. Cancelling ends the process.

    Raises the LedgerError that ended the work, with its details, and ServiceFailed when there was no answer at all.
    """
    pipe = asyncio.subprocess.PIPE
    environment = _GIVES_BACK | child_environment()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        stdin=pipe,
        stdout=pipe,
        limit=_LONGEST_LINE,
        env=environment,
        start_new_session=True,  # Ctrl-C is for the node, which ends its jobs
    )
    assert process.stdin is not None  # both are pipes
    assert process.stdout is not None
    try:
        process.stdin.write(orjson.dumps(order) + b"\n")
        process.stdin.close()
        async for line in process.stdout:
            told: JsonObject = orjson.loads(line)
            if "result" in told:
                result: JsonObject = told["result"]
                return result
            if "error" in told:
                error = told["error"]
                raise _error_named(error["code"])(error["message"], **error["details"])
            progress(told["done"], told["total"], told["rate"])
        raise ServiceFailed(f"{module} ended without a result; the log of the node says why")
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        await process.wait()


async def carry_out(work: Callable[[JsonObject, Progress], Awaitable[JsonObject]]) -> None:
    """The child's part: read the order, do the work, answer."""
    collect_seldom()
    order: JsonObject = orjson.loads(sys.stdin.readline())

    def tell(told: JsonObject) -> None:
        sys.stdout.write(orjson.dumps(told).decode() + "\n")
        sys.stdout.flush()

    try:
        result = await work(order, lambda done, total, rate: tell({"done": done, "total": total, "rate": rate}))
    except LedgerError as error:
        tell({"error": {"code": error.code, "message": error.message, "details": error.details}})
    else:
        tell({"result": result})


def access_told(access: BrokerAccess, *roles: Role) -> JsonObject:
    """How to reach the broker, as part of an order: with the passwords of these roles alone."""
    if access.own_user is not None:
        return {"url": access.url, "own": list(access.own_user)}
    passwords = {role: access.passwords[role] for role in roles if role in access.passwords}
    return {"url": access.url, "passwords": passwords}


def access_read(told: JsonObject) -> BrokerAccess:
    """What access_told said."""
    own = told.get("own")
    return BrokerAccess(told["url"], told.get("passwords") or {}, own_user=tuple(own) if own else None)


def _error_named(code: str) -> type[LedgerError]:
    return next((kind for kind in _errors(LedgerError) if kind.code == code), ServiceFailed)


def _errors(kind: type[LedgerError]) -> Iterator[type[LedgerError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _errors(one)
