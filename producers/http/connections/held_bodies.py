"""Held bodies: how many bytes the bodies have together whose requests are not answered yet.

Each body alone has its bound, and each connection may send one: five hundred of the largest would be 32 GB.
"""

from __future__ import annotations


class HeldBodies:
    """The bodies of all connections of a node, of which it holds `most` bytes."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        """Bytes."""

    @property
    def are_too_many(self) -> bool:
        """Whether one of them has to give way."""
        return self.held > self.most


class HeldBody:
    """The body of one request, until the request is answered; who hung up may leave one that is still worked on."""

    def __init__(self, together: HeldBodies) -> None:
        self._together = together
        self._is_answered = False
        self.size = 0
        """Bytes that have come."""

    def grow(self, size: int) -> None:
        """So many bytes more have come. What comes behind its answer is not kept."""
        if not self._is_answered:
            self.size += size
            self._together.held += size

    def answered(self) -> None:
        """Nothing needs it any more."""
        self._is_answered = True
        self._together.held -= self.size
        self.size = 0
