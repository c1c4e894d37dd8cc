"""Erasure of stored embeddings: deletes a text's embeddings of every model, with their bytes."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.broker.access import EMBEDDINGS_STREAM
from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NO_MESSAGE, NO_STREAM
from ledger.wire.publication import error_code, error_of


async def forget_embeddings(connection: BrokerConnection, text_hashes: Iterable[str]) -> int:
    """Erase every stored embedding of these texts (SHA-256, hexadecimal); returns how many there were.

    Another owner's embedding of an equal text is erased too, and paid for again when it is needed. Raises
    BrokerUnavailable, BrokerMisconfigured.
    """
    count = 0
    for text_hash in text_hashes:
        request = {"subjects_filter": f"embedding.*.*.{text_hash}"}
        info = await connection.api(f"STREAM.INFO.{EMBEDDINGS_STREAM}", request)
        if error_code(info) == NO_STREAM:
            return 0
        if error_code(info):
            raise error_of(info, "a look at the kept embeddings")
        for subject in info["state"].get("subjects") or {}:
            count += await _erase(connection, subject)
    return count


async def _erase(connection: BrokerConnection, subject: str) -> int:
    stored = await connection.api(f"STREAM.MSG.GET.{EMBEDDINGS_STREAM}", {"last_by_subj": subject})
    if error_code(stored):
        return 0
    request = {"seq": stored["message"]["seq"], "no_erase": False}
    answer = await connection.api(f"STREAM.MSG.DELETE.{EMBEDDINGS_STREAM}", request)
    if error_code(answer) not in (0, NO_MESSAGE):
        raise error_of(answer, "the erasure of a kept embedding")
    return 1
