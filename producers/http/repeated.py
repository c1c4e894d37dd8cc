"""Repeated requests: what each Idempotency-Key was sent with, for as long as it is known.

A retry repeats its request; a key that comes with another one was reused by mistake, and what the request says would
be lost if it were answered as a retry. A request that was refused has changed nothing and frees its key. The memory
is the process' own and bounded; what the log itself tells of a key is compared by the operations.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from hashlib import blake2b
from urllib.parse import parse_qsl

import orjson

from producers.operations.publish import mismatch

MOST = 50_000
_NOT_CONTENT = {"wait", "min_position"}
"""What says how long to wait for the answer, and nothing of what is to be kept."""


class Repeated:
    """The requests of one node that had a key."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._sent: OrderedDict[uuid.UUID, bytes] = OrderedDict()

    def check(self, key: uuid.UUID, query: str, document: object) -> bool:
        """Note what a key is sent with; whether it is sent for the first time. Raises IdempotencyMismatch."""
        stated = sorted(pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] not in _NOT_CONTENT)
        said = orjson.dumps([stated, document], option=orjson.OPT_SORT_KEYS)
        print_of = blake2b(said, digest_size=16).digest()
        before = self._sent.get(key)
        if before is None:
            self._sent[key] = print_of
            if len(self._sent) > self._most:
                self._sent.popitem(last=False)
        elif before != print_of:
            raise mismatch()
        return before is None

    def free(self, key: uuid.UUID) -> None:
        """The request that the key was sent with was refused: the key may be used again."""
        self._sent.pop(key, None)
