"""Fork server: imports the product once, and forks a child for each command that a test starts.

`python -m tests.processes.fork_server SOCKET` prints one line when it has imported everything, and ends with its
standard input. A client sends one line of JSON (`words`, `environment`, `cwd`, `umask`; a `module` in the place of
words where it is to be run as a program) with three descriptors: what is to be standard input, output and error. It is
sent a pidfd with the child's process id, and at the child's end its exit code. A client that hangs up before that has
its child killed.

There is one thread and no event loop, no connection and no database at the time of a fork; where a library has started
a thread the server says so instead, and forks nothing. A child runs what is to run at a program's exit, and leaves its
memory to the system: to free all that was imported takes seven times as long as a small command.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.processes import nursery
from tests.processes.request import ENDED, STARTED, request_of
from tests.processes.sooner import put_intervals

READY = "ready"
PROGRAM = "producers.cli.main"
LATE = ("anyio._backends._asyncio", "anyio.streams.tls", "uvicorn.lifespan.on", "producers.mcp.stdio")
"""What is imported when a node, or `kledger mcp`, runs already."""
FAULTS = "FAULT_ROOT"
"""The variable that has faults put in place (tests/faults/inject)."""


STANDARD_INPUT = 0


@dataclass(frozen=True)
class Child:
    """A child that runs, and who asked for it."""

    pid: int
    client: socket.socket


class Children:
    """The children that run. `ready` watches the end of each, and the socket of who asked for it."""

    def __init__(self, ready: selectors.BaseSelector) -> None:
        self._ready = ready
        self._by_pidfd: dict[int, Child] = {}

    def begin(self, request: dict[str, Any], client: socket.socket) -> bool:
        """Fork. Whether this is the child: it has none of the server's descriptors then."""
        if (pid := os.fork()) == 0:
            for pidfd, child in self._by_pidfd.items():
                os.close(pidfd)
                child.client.close()
            client.close()
            return True
        for descriptor in request["descriptors"]:
            os.close(descriptor)
        pidfd = os.pidfd_open(pid)
        self._by_pidfd[pidfd] = Child(pid, client)
        socket.send_fds(client, [STARTED.pack(pid)], [pidfd])
        self._ready.register(pidfd, selectors.EVENT_READ)
        self._ready.register(client, selectors.EVENT_READ, pidfd)
        return False

    def ended(self, pidfd: int) -> None:
        """Tell who asked for the child how it ended."""
        if (child := self._by_pidfd.pop(pidfd, None)) is None:
            return
        _, status = os.waitpid(child.pid, 0)
        with contextlib.suppress(OSError):
            child.client.sendall(ENDED.pack(os.waitstatus_to_exitcode(status)))
        self._ready.unregister(pidfd)
        os.close(pidfd)
        with contextlib.suppress(KeyError):
            self._ready.unregister(child.client)
        child.client.close()

    def hung_up(self, pidfd: int) -> None:
        """Who asked for the child is gone: end it."""
        if pidfd in self._by_pidfd:
            self._ready.unregister(self._by_pidfd[pidfd].client)
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    def kill(self) -> None:
        for child in self._by_pidfd.values():
            os.kill(child.pid, signal.SIGKILL)


def serve(listening: socket.socket) -> dict[str, Any] | None:
    """Fork for whoever asks. Returns the request in a child, and None in the server once its standard input ends."""
    with selectors.DefaultSelector() as ready:
        children = Children(ready)
        ready.register(STANDARD_INPUT, selectors.EVENT_READ)
        ready.register(listening, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fd == STANDARD_INPUT:
                    children.kill()
                    return None
                if key.fileobj is listening:
                    client, _address = listening.accept()
                    request = _asked(client)
                    if request is None:
                        client.close()
                    elif children.begin(request, client):
                        listening.close()
                        return request
                elif key.data is None:
                    children.ended(key.fd)
                else:
                    children.hung_up(key.data)


def _asked(client: socket.socket) -> dict[str, Any] | None:
    client.settimeout(60)
    request = request_of(client)
    client.settimeout(None)
    return request


def become(request: dict[str, Any]) -> None:
    """Make this process what the request describes."""
    for number, descriptor in enumerate(request["descriptors"]):
        os.dup2(descriptor, number)
    for descriptor in request["descriptors"]:
        os.close(descriptor)
    for number, name in enumerate(("stdin", "stdout", "stderr")):  # anew: they know whether they can be sought
        before = getattr(sys, name)
        by_line = number == 2 or os.isatty(number)
        how: dict[str, Any] = {"mode": "w", "newline": "\n"} if number else {"mode": "r"}
        how |= {
            "encoding": before.encoding,
            "errors": before.errors,
            "closefd": False,
            "buffering": 1 if by_line else -1,
        }
        stream = os.fdopen(number, **how)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    module, words = request.get("module", PROGRAM), request.get("words", [])
    sys.argv = [sys.modules[module].__file__ or module, *words]
    sys.orig_argv = [sys.executable, "-m", module, *words]


def put_faults() -> None:
    """Put the faults in place that the environment asks for."""
    if FAULTS in os.environ:  # Python runs it at its start, from the folder that stands on PYTHONPATH
        runpy.run_path(str(Path(__file__).parents[1] / "faults" / "inject" / "sitecustomize.py"))


def run(command: Callable[[], object]) -> int:
    """Run a command to its end and do what Python does at an exit; the exit code."""
    code: object = 0
    try:
        command()
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as at every exit
    atexit._run_exitfuncs()
    if not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def started(module: str) -> None:
    """Do what `python -m module` does."""
    del sys.modules[module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def imported(directory: Path) -> Callable[[], None]:
    """Import what commands and nodes need; the command's main function. A file that nodes copy is kept in a directory.

    All commands and the routes of a node's app are built too, which takes a node longer than all else.
    """
    gc.disable()
    import duckdb
    import typer.main

    import producers.cli.main
    import producers.node.compose
    import producers.node.otel
    import producers.node.start.assembly
    import projections.engine.duckdb
    from projections.analysts.quack import load_extensions
    from tests.doors import one_app
    from tests.empty_views import copied_from

    for module in (*nursery.MODULES, *LATE):
        importlib.import_module(module)
    typer.main.get_command = cache(typer.main.get_command)
    commands: Any = typer.main.get_command(producers.cli.main.app)
    assert all(commands.commands.values())  # each file of commands is loaded
    one_app.routes()
    producers.node.start.assembly.create_app = one_app.app_of  # type: ignore[attr-defined]  # what it imports is not exported
    projections.engine.duckdb.create_tables = copied_from(directory)  # type: ignore[assignment]  # a function still
    with contextlib.closing(duckdb.connect()) as con:  # signatures are checked here, and no more in each node
        load_extensions(con)
        projections.engine.duckdb.create_tables(con, None)  # makes the empty view that nodes copy
    duckdb.default_connection().close()  # it has a thread, and nobody uses it
    gc.collect()
    gc.freeze()
    gc.enable()
    return producers.cli.main.main


def main() -> None:
    """Import, then serve; in a child, run the command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a suite under nohup ignores it, and its nodes would too
    command = imported(Path(sys.argv[1]).parent)
    if (threads := len(list(Path("/proc/self/task").iterdir()))) > 1:
        os.write(1, f"{threads} threads after the imports\n".encode())
        return
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen()
        os.write(1, f"{READY}\n".encode())
        request = serve(listening)
    if request is None:
        shutil.rmtree(Path(sys.argv[1]).parent)
        return
    become(request)
    child = request if "module" in request else None
    if child is None and request["words"][:1] == ["up"] and (child := nursery.opened()) is not None:
        become(child)
    if child is not None:
        nursery.grown(child)
        command = partial(started, child["module"])
    put_intervals()
    put_faults()
    os._exit(run(command) & 0xFF)


if __name__ == "__main__":
    main()
