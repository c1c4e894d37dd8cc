"""A server of raw bytes: it reads a request on each connection, and answers what a test has it answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class RawServer:
    """Answers each connection with the next of its answers, whatever they are, and closes it."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.connections = 0
        self.closed = threading.Semaphore(0)
        """Counts the connections that were closed here."""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                taken, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            with taken:
                if taken.recv(65_536):  # nothing from who only listens whether it is greeted
                    taken.sendall(self._answers.pop(0))
            self.closed.release()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@contextmanager
def raw_server(*answers: bytes) -> Iterator[RawServer]:
    """A server on a free port, for one test."""
    server = RawServer(*answers)
    try:
        yield server
    finally:
        server.close()
