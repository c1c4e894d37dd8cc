"""Words of a session: messages and other documents as bodies of records, sealed where the owner is a person.

A body is one line of JSON about the record, and then the words: JSON, or the sealed form of it. The seal is bound to
the session and to the record's id, so words cannot be moved to another session.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from kledger.contract.errors import KeyMissing, PayloadTooLarge
from kledger.contract.sessions import MOST_WORDS
from ledger.event import JsonObject
from ledger.privacy.personal import is_person
from ledger.privacy.sealed import OBJECT, opened, seal
from ledger.privacy.vault import DataKey, Held, Vault, forgotten
from ledger.sessions.subjects import SessionKey

PART_BYTES = 768 * 1024
"""Longer words are stored in parts: a record has to fit the broker's limit with its headers."""
_PLACE = "/words"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a session. `number` counts from 1; `said` is as it was sent, without its id.

    `erased`: its words were erased with the person whom they belonged to, and `said` is empty.
    """

    id: str
    number: int
    at_us: int
    said: JsonObject
    erased: bool = False
    position: int = 0
    size: int = 0
    """Bytes of it as stored."""
    trace_id: str | None = None
    """The trace in which it was appended."""

    @property
    def role(self) -> str:
        """Who says it; empty where it is erased."""
        return str(self.said.get("role", ""))

    @property
    def content(self) -> str:
        """What is said."""
        return str(self.said.get("content", ""))

    def shown(self) -> JsonObject:
        """The message as it was sent, with its number."""
        said = self.said or {"role": "user", "content": ""}
        return {"id": self.id, "number": self.number, **said}


class Sealer:
    """Seals and opens the words of one node's sessions; keeps the keys of persons until `drop`."""

    def __init__(self, vault: Vault | None) -> None:
        self._vault = vault
        self._held: dict[str, Held] = {}

    def drop(self) -> None:
        """Forget all keys, so that the vault is asked again."""
        self._held = {}  # a new one: what is being looked up now goes with the old one

    async def key_to_seal(self, owner: str) -> DataKey | None:
        """The key of an owner who is a person, created with their first words. Raises SubjectForgotten."""
        if self._vault is None or not is_person(owner):
            return None
        held = await self.key_to_open(owner)
        if held is None:
            known = self._held
            held = known[owner] = await self._vault.obtain(owner)
        if not isinstance(held, DataKey):
            raise forgotten(held)
        return held

    async def key_to_open(self, owner: str) -> Held | None:
        """The key of an owner or its tombstone; None where nothing was sealed for them."""
        if self._vault is None or not is_person(owner):
            return None
        known = self._held
        if owner not in known and (held := (await self._vault.look([owner])).get(owner)) is not None:
            known[owner] = held
        return known.get(owner)


def written(about: JsonObject, document: JsonObject, key: SessionKey, data_key: DataKey | None) -> list[bytes]:
    """The bodies of a record and its further parts. `about` has its `id`. Raises PayloadTooLarge."""
    words = orjson.dumps(document)
    if len(words) > MOST_WORDS:
        raise PayloadTooLarge(
            f"the message {about['id'][:80]!r} has {len(words):,} bytes, {MOST_WORDS:,} are allowed: keep long text as "
            "a resource and refer to it"
        )
    if data_key is not None:
        words = seal(document, [data_key], about["id"], _PLACE, key.name)[OBJECT].encode()
    parts = [words[at : at + PART_BYTES] for at in range(0, len(words), PART_BYTES)]
    head = orjson.dumps({"v": 1, **about, "parts": len(parts), "sealed": data_key is not None})
    return [head + b"\n" + parts[0], *parts[1:]]


def about_of(body: bytes) -> JsonObject:
    """What a body says about its record."""
    about: JsonObject = orjson.loads(body[: body.index(b"\n")])
    return about


def words_of(body: bytes) -> bytes:
    """The words in a body, or the first part of them."""
    return body[body.index(b"\n") + 1 :]


def document_of(about: JsonObject, words: bytes, key: SessionKey, held: Held | None) -> JsonObject | None:
    """The document of a record's words; None when it was erased. Raises KeyMissing, SealBroken."""
    if about["sealed"]:
        if held is None:
            raise KeyMissing(f"the vault has no key of {key.owner}: is it the vault of this ledger?", key=key.owner)
        found = opened(words.decode(), lambda _name: held, about["id"], _PLACE, key.name)
        if found is None:
            return None
        words = found
    document: JsonObject = orjson.loads(words)
    return document
