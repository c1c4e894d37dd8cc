"""Asks a fork server for a child. Imports little: a shell's `kledger` (launch.py) is this and nothing else."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

STARTED = struct.Struct("!q")
"""The child's process id; a pidfd of it comes with it."""
ENDED = struct.Struct("!i")
"""The child's exit code."""
_LONGEST = 1 << 20


def ask(
    at: str, words: Sequence[str], environment: Mapping[str, str], umask: int, cwd: str, streams: Sequence[int]
) -> tuple[socket.socket, int, int]:
    """Have the server at this path start `kledger` with these words; the connection, the process id and a pidfd.

    `streams` are descriptors for standard input, output and error. The child is killed where the connection is closed.
    """
    request = {"words": [*words], "environment": {**environment}, "umask": umask, "cwd": cwd}
    return asked(at, request, streams)


def asked(at: str, request: Mapping[str, object], streams: Sequence[int]) -> tuple[socket.socket, int, int]:
    """Have the server at this path do what the request says; returns the same."""
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(at)
        return server, *sent(server, request, streams)
    except BaseException:
        server.close()
        raise


def sent(server: socket.socket, request: Mapping[str, object], streams: Sequence[int]) -> tuple[int, int]:
    """Send a request with its three descriptors; the child's process id and a pidfd of it."""
    text = json.dumps(request).encode() + b"\n"
    first = socket.send_fds(server, [text], streams)
    server.sendall(text[first:])
    answer, (pidfd, *_), _flags, _address = socket.recv_fds(server, STARTED.size, 1)
    return STARTED.unpack(answer)[0], pidfd


def request_of(client: socket.socket) -> dict[str, Any] | None:
    """What was sent, with its `descriptors`; None where the client has hung up."""
    text, descriptors, _flags, _address = socket.recv_fds(client, _LONGEST, 3)
    while text and not text.endswith(b"\n"):
        text += client.recv(_LONGEST)
    if len(descriptors) != 3:
        return None
    return {**json.loads(text), "descriptors": descriptors}


def exit_code(server: socket.socket) -> int:
    """The exit code of the child, once it has ended."""
    answer = server.recv(ENDED.size, socket.MSG_WAITALL)
    if not answer:
        raise RuntimeError("the fork server is gone")
    return int(ENDED.unpack(answer)[0])


def umask_of_this_process() -> int:
    """Read, for setting it would change it for other threads."""
    with open("/proc/self/status") as status:  # noqa: PTH123  # pathlib takes longer to import than all the rest
        (line,) = [line for line in status if line.startswith("Umask:")]
    return int(line.split()[1], 8)


def here() -> str:
    """The current directory."""
    return os.getcwd()  # noqa: PTH109  # as above
