"""Store of embeddings in JetStream, beside the log, so that a new node needs no call either.

One stream, one message for each embedding: the subject is `embedding.<model>.<dimensions>.<sha256 of the text>`, the
body the float32 numbers, little endian, with their SHA-256 in a header; a damaged one is computed again. A subject
keeps one message, so storing an embedding twice is idempotent.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping

import numpy as np
import orjson
import structlog

from kledger.contract.errors import LedgerError
from ledger.broker.access import EMBEDDING_SUBJECTS, EMBEDDINGS_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.stream_setup import ensure
from ledger.event import JsonObject
from projections.vectors.embedding.answered import points_somewhere
from projections.vectors.embedding.kept import EmbeddingKey, Vector

log = structlog.get_logger(__name__)

DIGEST = "Kledger-Sha256"
"""The header with the SHA-256 of the numbers."""
_CONCURRENCY = 64
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


class EmbeddingNotKept(LedgerError):
    """The stream did not take an embedding; it was paid for, and is lost unless it is put again."""


def stream_settings(replicas: int = 1) -> JsonObject:
    """The stream's configuration for the broker's API."""
    return {
        "name": EMBEDDINGS_STREAM,
        "description": "Every embedding that was ever paid for",
        "subjects": [EMBEDDING_SUBJECTS],
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "max_msgs_per_subject": 1,
        "discard": "old",
        "allow_direct": True,
    }


async def ensure_embeddings_stream(access: BrokerAccess, *, replicas: int = 1) -> None:
    """Create the stream when it is not there; connects as `admin`.

    Raises BrokerUnavailable, and BrokerMisconfigured when the broker refuses.
    """
    await ensure(access, EMBEDDINGS_STREAM, stream_settings(replicas), "keeps every embedding")


def digest_of(body: bytes) -> str:
    """SHA-256 of the numbers, to detect damage: 64 hexadecimal digits."""
    return hashlib.sha256(body).hexdigest()


def subject_of(key: EmbeddingKey) -> str:
    """The subject of one embedding; characters that are unsafe in a subject are escaped as `=` and hex digits."""
    model = "".join(c if c in _SAFE else "=" + c.encode().hex() + "=" for c in key.model)
    return f"embedding.{model}.{key.dimensions}.{key.text_hash}"


class JetStreamEmbeddings:
    """See `kept.EmbeddingStore`. The connection's role must read and publish `embedding.>`."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        self._places = asyncio.Semaphore(_CONCURRENCY)

    async def get_many(self, keys: Iterable[EmbeddingKey]) -> dict[EmbeddingKey, Vector]:
        """See `EmbeddingStore.get_many`. Raises BrokerUnavailable, so that an outage causes no paid calls."""
        wanted = list(dict.fromkeys(keys))
        bodies = await asyncio.gather(*map(self._get, wanted))
        return {key: body for key, body in zip(wanted, bodies, strict=True) if body is not None}

    async def put_many(self, embeddings: Mapping[EmbeddingKey, Vector]) -> None:
        """See `EmbeddingStore.put_many`. Raises BrokerUnavailable, EmbeddingNotKept."""
        await asyncio.gather(*(self._put(key, vector) for key, vector in embeddings.items()))

    async def _get(self, key: EmbeddingKey) -> Vector | None:
        async with self._places:
            reply = await self._connection.request(f"$JS.API.DIRECT.GET.{EMBEDDINGS_STREAM}.{subject_of(key)}")
        headers = reply.headers or {}
        if not reply.data and headers.get("Status"):
            return None  # there is none
        vector = np.frombuffer(reply.data, "<f4").astype(np.float32) if len(reply.data) == 4 * key.dimensions else None
        # Those stored by an earlier version have no digest, and were not looked at before they were kept.
        whole = headers.get(DIGEST, digest := digest_of(reply.data)) == digest
        if vector is None or not whole or not points_somewhere(vector):
            log.error("a kept embedding is damaged and is asked for again", subject=subject_of(key))
            return None
        return vector

    async def _put(self, key: EmbeddingKey, vector: Vector) -> None:
        subject = subject_of(key)
        async with self._places:
            body = vector.astype("<f4").tobytes()
            reply = await self._connection.request(subject, body, {DIGEST: digest_of(body)})
        answer = orjson.loads(reply.data)
        if "error" in answer or answer.get("stream") != EMBEDDINGS_STREAM:
            raise EmbeddingNotKept(f"the broker did not keep {subject}: {answer.get('error', answer)}")
