"""Hash chain and Merkle tree: no event of the log can be changed, removed or moved without detection.

Three hashes for each event, all SHA-256, each with a first byte of its own so that none can replace another:

- the leaf `00`: the content of the event, without its position, so that a moved event is recognised;
- the chain `02`: the head before and this leaf, so that a range can be checked from the head before it;
- the Merkle tree `01` over the leaves (RFC 6962, section 2.1; RFC 9162), so that one event can be proved with
  a few hashes. It is kept as the roots of its complete subtrees: one for each bit of the position.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from ledger.event import JsonObject, StoredEvent

HASH_BYTES = 32
NO_HEAD = bytes(HASH_BYTES)
_HEADER = struct.Struct(">BqIII")  # 00, stored time in ns, lengths of subject, message id and body
_NODE, _LINK = b"\x01", b"\x02"


def leaf_hash(event: StoredEvent) -> bytes:
    """The leaf of one event: a hash of its stored time, subject, message id and body, never of its position."""
    subject, message_id = event.subject.encode(), event.message_id.encode("utf-8", "surrogateescape")
    header = _HEADER.pack(0, event.stored_ns, len(subject), len(message_id), len(event.body))
    return sha256(b"".join((header, subject, message_id, event.body))).digest()


def leaf_hashes(events: Iterable[StoredEvent]) -> list[bytes]:
    """The leaves of many events, in their order."""
    pack, leaves = _HEADER.pack, []
    for _, stored_ns, subject, body, message_id in events:
        subject_bytes, id_bytes = subject.encode(), message_id.encode("utf-8", "surrogateescape")
        header = pack(0, stored_ns, len(subject_bytes), len(id_bytes), len(body))
        leaves.append(sha256(b"".join((header, subject_bytes, id_bytes, body))).digest())
    return leaves


def chain_head(head: bytes, leaves: Iterable[bytes]) -> bytes:
    """The head of a chain with head `head` after more leaves."""
    for leaf in leaves:
        head = sha256(_LINK + head + leaf).digest()
    return head


@dataclass(frozen=True, slots=True)
class Chain:
    """The state of the chain after the first `position` leaves: enough to extend it and to compute head and root.

    `frontier` holds the roots of the complete subtrees from left to right: as many as `position` has bits set,
    the largest subtree first.
    """

    position: int
    head: bytes
    frontier: tuple[bytes, ...]

    @classmethod
    def empty(cls) -> Chain:
        """The chain before the first event."""
        return cls(0, NO_HEAD, ())

    def extended(self, leaves: Iterable[bytes]) -> Chain:
        """The chain after more leaves."""
        position, head, frontier = self.position, self.head, list(self.frontier)
        for leaf in leaves:
            head = sha256(_LINK + head + leaf).digest()
            complete, node = position, leaf
            while complete & 1:  # merge two subtrees of the same size
                node = sha256(_NODE + frontier.pop() + node).digest()
                complete >>= 1
            frontier.append(node)
            position += 1
        return Chain(position, head, tuple(frontier))

    def root(self) -> bytes:
        """The Merkle tree hash of all leaves (RFC 6962, 2.1)."""
        if not self.frontier:
            return sha256(b"").digest()
        node = self.frontier[-1]
        for left in reversed(self.frontier[:-1]):
            node = sha256(_NODE + left + node).digest()
        return node

    def to_json(self) -> JsonObject:
        """The chain as JSON, hashes in hexadecimal."""
        return {"position": self.position, "head": self.head.hex(), "frontier": [one.hex() for one in self.frontier]}

    @classmethod
    def from_json(cls, document: JsonObject) -> Chain:
        """Parse the output of `to_json`. Raises ValueError when it is not a chain."""
        try:
            position, head = document["position"], bytes.fromhex(document["head"])
            frontier = tuple(bytes.fromhex(one) for one in document["frontier"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a chain: {error}") from error
        if not isinstance(position, int) or position < 0 or position.bit_count() != len(frontier):
            raise ValueError(f"not a chain: position {position!r} with {len(frontier)} subtrees")
        if any(len(one) != HASH_BYTES for one in (head, *frontier)):
            raise ValueError("not a chain: a hash does not have 32 bytes")
        return cls(position, head, frontier)


def inclusion_paths(leaves: Sequence[bytes], indices: Sequence[int]) -> list[list[bytes]]:
    """The audit path of each of these leaves, counted from 0, in the tree of all (RFC 6962, 2.1.1), nearest hash first.

    From one pass over the tree. Raises IndexError.
    """
    if any(not 0 <= index < len(leaves) for index in indices):
        raise IndexError(f"the log has {len(leaves)} leaves, and one of {list(indices)[:5]} was asked for")
    paths: list[list[bytes]] = [[] for _ in indices]
    at = list(indices)
    level: Sequence[bytes] = leaves
    while len(level) > 1:
        for path, index in zip(paths, at, strict=True):
            if index ^ 1 < len(level):  # the last of an odd number has no sibling and moves up unchanged
                path.append(level[index ^ 1])
        pairs = [sha256(_NODE + level[left] + level[left + 1]).digest() for left in range(0, len(level) - 1, 2)]
        level = [*pairs, level[-1]] if len(level) % 2 else pairs
        at = [index >> 1 for index in at]
    return paths


def verify_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether `leaf` is number `index` (from 0) of the `size` leaves under `root` (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    first, second, node = index, size - 1, leaf
    for neighbour in path:
        if second == 0:
            return False
        if first & 1 or first == second:
            node = sha256(_NODE + neighbour + node).digest()
            while not first & 1 and first:
                first, second = first >> 1, second >> 1
        else:
            node = sha256(_NODE + node + neighbour).digest()
        first, second = first >> 1, second >> 1
    return second == 0 and node == root
