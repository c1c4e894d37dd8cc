"""Answers in one piece: the head of a response goes with the beginning of its body."""

from __future__ import annotations

import asyncio

_STATES_LENGTH = b"\r\ncontent-length: "
_MOST_JOINED = 64 * 1024  # of a longer body, a copy takes longer than a write


class Joined:
    """The transport of one response: its head goes with the beginning of its body, in one piece.

    uvicorn writes each on its own, which is twice the work for the kernel and for the client. A head that does not
    state the length of its body goes at once: of a stream, the client may wait for it.
    """

    __slots__ = ("_held", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._held: bytes | None = b""  # nothing yet; None once the head is gone

    def write(self, data: bytes) -> None:
        """The head, then what follows it."""
        held = self._held
        if held is None:
            self._transport.write(data)
        elif not held and _STATES_LENGTH in data:
            self._held = data
        else:
            self._held = None
            if held and len(data) > _MOST_JOINED:
                self._transport.write(held)
                held = b""
            self._transport.write(held + data)

    def send_held(self) -> None:
        """Send a head that nothing has followed."""
        if self._held:
            self.write(b"")

    def close(self) -> None:
        """Close the connection once all is sent."""
        self.send_held()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether it is closed, or is about to be."""
        return self._transport.is_closing()
