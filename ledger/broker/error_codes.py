"""Error codes of JetStream's API, of streams and their messages; those of publications: ledger/wire/publication.py.

https://github.com/nats-io/nats-server/blob/main/server/errors.json
"""

from __future__ import annotations

NO_MESSAGE = 10037
STREAM_EXISTS = 10058
NO_STREAM = 10059
STORE_FAILED = 10077
"""The stream did not store a message: its disk is full, or it keeps one of a subject and has it."""
NOTHING_STORED = frozenset({NO_MESSAGE, 404})
"""The stream has no such message; servers say it with either code."""
