"""Children of a forked node are forked too, from its nursery: a process that the node forks before it has any thread.

A node starts `python -m MODULE` for its vectors and for long work, and such a process spends most of its time on
importing what the fork server has imported already. The nursery forks twice for each. The process in between ends at
once, so that the child becomes one of the node itself, which has made itself the subreaper of what descends from it. So
the child has the parent, the words in the process table, the streams and the end of a process that the node started.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.processes.request import STARTED, request_of, sent, umask_of_this_process

MODULES = (
    "ledger.backup.process",
    "projections.archive.process",
    "projections.live.rebuild",
    "projections.similar.process",
    "projections.vectors.process",
)
_PID = struct.Struct("!q")
_PR_SET_CHILD_SUBREAPER = 36
_M_MMAP_THRESHOLD = -3
_MMAP_THRESHOLD = "MALLOC_MMAP_THRESHOLD_"  # which glibc reads as a process starts
_TURNS = 100
"""Of the loop, in which a pipe whose writer has ended is read to its end."""
REAL = asyncio.create_subprocess_exec


def opened() -> dict[str, Any] | None:
    """Fork the nursery. Returns the request in a child of the node, and None in the node, which asks from then on."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        return _serve(theirs)
    theirs.close()
    begin = partial(_of_the_node, ours)
    asyncio.create_subprocess_exec = Asking(begin, lambda: True)  # type: ignore[assignment]  # what the product uses of it
    return None


def _of_the_node(nursery: socket.socket, request: dict[str, Any], streams: list[int]) -> Begun:
    pid, pidfd = sent(nursery, request, streams)

    def code() -> int:
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)

    return Begun(pid, pidfd, pidfd, code)


def _serve(asked: socket.socket) -> dict[str, Any]:
    """Fork for the node until it ends, and this process with it. Returns the request in a child."""
    with Path(os.devnull).open("r+b", buffering=0) as nothing:  # the node's own streams are its own
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    while (request := request_of(asked)) is not None:
        reading, writing = os.pipe()
        if (between := os.fork()) == 0:
            if child := os.fork():
                os.write(writing, _PID.pack(child))
                os._exit(0)
            for descriptor in (reading, writing):
                os.close(descriptor)
            asked.close()
            return request
        os.waitpid(between, 0)
        (child,) = _PID.unpack(os.read(reading, _PID.size))
        pidfd = os.pidfd_open(child)  # it is the node's by now, which does not know of it yet: nobody has waited for it
        socket.send_fds(asked, [STARTED.pack(child)], [pidfd])
        for descriptor in (reading, writing, pidfd, *request["descriptors"]):
            os.close(descriptor)
    os._exit(0)


class Begun(NamedTuple):
    """A child as it has begun: `ends` is a descriptor that can be read at its end, when `code` says how it ended."""

    pid: int
    pidfd: int
    ends: int
    code: Callable[[], int]


class Asking:
    """`asyncio.create_subprocess_exec` where `begin` forks children of these modules, as long as `may` says so."""

    def __init__(self, begin: Callable[[dict[str, Any], list[int]], Begun], may: Callable[[], bool]) -> None:
        self._begin = begin
        self._may = may

    async def __call__(self, *words: str, **options: Any) -> Any:
        if words[:2] == (sys.executable, "-m") and words[2] in MODULES and self._may():
            return await self._forked(words[2], **options)
        return await REAL(*words, **options)

    async def _forked(
        self,
        module: str,
        *,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        limit: int = 1 << 16,
        env: Mapping[str, str] | None = None,
        start_new_session: bool = False,
    ) -> Child:
        request = {
            "module": module,
            "session": start_new_session,
            "environment": {**(os.environ if env is None else env)},
            "umask": umask_of_this_process(),
            "cwd": str(Path.cwd()),
        }
        with contextlib.ExitStack() as open_until_sent:
            theirs: list[int] = []
            ours: list[IO[bytes] | None] = []
            for number, wanted in enumerate((stdin, stdout, stderr)):
                if wanted is None:
                    theirs.append(number)
                    ours.append(None)
                    continue
                assert wanted == asyncio.subprocess.PIPE
                reading, writing = os.pipe()
                if number == 0:
                    theirs.append(reading)
                    ours.append(os.fdopen(writing, "wb", buffering=0))
                else:
                    theirs.append(writing)
                    ours.append(os.fdopen(reading, "rb", buffering=0))
                open_until_sent.callback(os.close, theirs[-1])
            begun = self._begin(request, theirs)
        return await Child(begun).speaking(ours, limit)


class Child:
    """A child that was forked: the part of `asyncio.subprocess.Process` that the product uses."""

    def __init__(self, begun: Begun) -> None:
        self.pid = begun.pid
        self.returncode: int | None = None
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._begun = begun
        self._written: asyncio.WriteTransport | None = None
        self._read: list[asyncio.ReadTransport] = []
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(begun.ends, self._end)

    async def speaking(self, pipes: list[IO[bytes] | None], limit: int) -> Child:
        """It, with the streams that are pipes."""
        loop = asyncio.get_running_loop()
        stdin, *others = pipes
        if stdin is not None:
            self._written, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, stdin)
            self.stdin = asyncio.StreamWriter(self._written, protocol, None, loop)
        readers: list[asyncio.StreamReader | None] = []
        for pipe in others:
            reader = None if pipe is None else asyncio.StreamReader(limit=limit)
            if reader is not None:
                self._read.append((await loop.connect_read_pipe(_protocol_of(reader), pipe))[0])
            readers.append(reader)
        self.stdout, self.stderr = readers
        return self

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._begun.ends)
        self.returncode = self._begun.code()
        os.close(self._begun.pidfd)
        if self._written is not None and not self._written.is_closing():
            self._written.abort()  # nobody reads it any more
        self._ended.set()

    async def wait(self) -> int:
        """The exit code, once it has ended, and the pipes that it wrote to are at their ends where they are read."""
        await self._ended.wait()
        for _ in range(_TURNS):
            await asyncio.sleep(0)
            if not any(_is_read(pipe) and not pipe.is_closing() for pipe in self._read):
                break
        await asyncio.sleep(0)  # what is closing is closed in the next turn
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is not None:
            raise ProcessLookupError
        with contextlib.suppress(ProcessLookupError):  # it has ended, and nobody has heard of it yet
            signal.pidfd_send_signal(self._begun.pidfd, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _protocol_of(reader: asyncio.StreamReader) -> Callable[[], asyncio.StreamReaderProtocol]:
    return lambda: asyncio.StreamReaderProtocol(reader)


def _is_read(pipe: asyncio.ReadTransport) -> bool:
    try:
        return pipe.is_reading()
    except RuntimeError:  # that a pipe of an early Python 3.11 does not know
        return True


def grown(request: Mapping[str, Any]) -> None:
    """Make this process, a child that was asked for, one of its own: its session, its memory, its words."""
    if request["session"]:
        os.setsid()
    if threshold := request["environment"].get(_MMAP_THRESHOLD):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, int(threshold))
    shown(sys.orig_argv)


def shown(words: list[str]) -> None:
    """Have the process table show these words for this process, in the place of those that it was started with."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # where the words stand in the memory of this process
    said = b"".join(word.encode() + b"\0" for word in words)
    assert len(said) <= end - start, f"no place for {words}"
    ctypes.memmove(start, said.ljust(end - start, b"\0"), end - start)
