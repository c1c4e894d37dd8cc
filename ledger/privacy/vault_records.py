"""Records of a vault, read: keys and tombstones from wherever the records are, in the broker or in a backup.

A record has a name: `key.<name>` is a wrapped key, `earlier.1.<name>` and so on are those that it had before the vault
lost them and a backup brought them back, `gone.<name>` the tombstone of a destroyed one, `seals.<name>` the position up
to which seals count for a tombstone without a witness, `part.<digest>` a part of a tombstone that is too large for one
record, `master` the fingerprint of the master key.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

import orjson

from kledger.contract.errors import VaultDamaged, WrongMasterKey
from ledger.event import JsonObject
from ledger.privacy.vault import DataKey, Held, Tombstone, joined, unwrap
from ledger.wire.seal_mac import Unsworn
from ledger.wire.subjects import encode_token

MASTER_MARK = "master"
PART = "part."
EARLIER = "earlier."
LEFT = ("key.", EARLIER)
"""What the names of records begin with that have to be gone where there is a tombstone."""
Get = Callable[[str], Awaitable[bytes | None]]
"""Reads one record by its name; None where there is none."""


def record_of(kind: str, name: str) -> str:
    """The name of the record of a key (`key`), of a tombstone (`gone`), or of what counts for one (`seals`)."""
    return f"{kind}.{encode_token(name)}"


def earlier(number: int, name: str) -> str:
    """The name of the record of a key that another one has followed; they are numbered from 1."""
    return record_of(f"{EARLIER}{number}", name)


def token_of(record: str) -> str:
    """Whose record it is, as its name has it."""
    return record.rpartition(".")[2]


def counted(records: Iterable[str]) -> int:
    """How many there are of these names, where the keys and the tombstone of one person count once.

    So a key that is destroyed, or was left beside its tombstone and is erased later, makes it no fewer.
    """
    return len({token_of(one) if one.startswith((*LEFT, "gone.")) else ("beside", one) for one in records})


def left_beside(records: Iterable[str]) -> list[str]:
    """The names of keys whose tombstone stands beside them, in order."""
    names = set(records)
    return sorted(one for one in names if one.startswith(LEFT) and f"gone.{token_of(one)}" in names)


def mark_of(master: bytes) -> bytes:
    """The fingerprint of a master key."""
    return hashlib.sha256(b"kledger master key\n" + master).hexdigest().encode()


def check_mark(kept: bytes | None, master: bytes) -> None:
    """Raise WrongMasterKey unless the records were made under this master key."""
    if kept != mark_of(master):
        raise WrongMasterKey(
            "the keys of this ledger were made under another master key: start the node with that one, in "
            "KLEDGER_MASTER_KEY, in the file that KLEDGER_MASTER_KEY_FILE names, or, where neither is set, in "
            "keys/master.key of the data directory"
        )


async def looked_up(find: Callable[[str], Awaitable[Held | None]], names: Iterable[str]) -> dict[str, Held]:
    """See `vault.Vault.look`; `find` finds one name, as `held` does. Raises what it raises."""
    wanted = list(dict.fromkeys(names))
    records = await asyncio.gather(*map(find, wanted))
    return {name: found for name, found in zip(wanted, records, strict=True) if found is not None}


async def held(get: Get, master: bytes, name: str) -> Held | None:
    """The key or the tombstone of a name. Raises WrongMasterKey, VaultDamaged, and what `get` raises."""
    gone, kept = await asyncio.gather(get(record_of("gone", name)), get(record_of("key", name)))
    if gone is not None:
        return await _tombstone(get, master, name, gone)
    if kept is None:
        return None
    secrets = [_secret(master, name, kept)]
    while (before := await get(earlier(len(secrets), name))) is not None:
        secrets.append(_secret(master, name, before))
    return DataKey(name, *secrets)


def _secret(master: bytes, name: str, record: bytes) -> bytes:
    try:
        wrapped = base64.b64decode(orjson.loads(record)["key"], validate=True)
    except (ValueError, KeyError, TypeError) as error:
        raise VaultDamaged(f"the record of the key of {name} cannot be read ({error}): restore it") from error
    return unwrap(master, name, wrapped)


async def _tombstone(get: Get, master: bytes, name: str, record: bytes) -> Tombstone:
    stone = Tombstone.read(record)
    seals: JsonObject | None = parsed(record, name).get("seals")
    try:
        if seals is None:
            bound = await get(record_of("seals", name))
            until = None if bound is None else parsed(bound, name).get("until")
            return stone if until is None else replace(stone, unsworn=Unsworn(int(until)))
        pieces = list(await asyncio.gather(*(_piece(get, piece) for piece in seals["broken"])))
        macs = [base64.b64decode(each, validate=True) for each in (seals["mac"], *seals.get("earlier", ()))]
        witness = joined([unwrap(master, f"seals\n{name}", each) for each in macs])
        return replace(stone, witness=witness, unsworn=Unsworn.read(int(seals["until"]), pieces))
    except (ValueError, KeyError, TypeError, StopIteration, zlib.error) as error:
        raise VaultDamaged(f"what the tombstone of {name} says of seals cannot be read: restore the bucket") from error


async def _piece(get: Get, piece: str) -> str:
    """A piece of `Unsworn`, which is in the tombstone itself or in a record of its own."""
    if not piece.startswith(PART):
        return piece
    kept = await get(piece)
    if kept is None:
        raise ValueError(f"{piece} is not there")
    return kept.decode("ascii")


def parsed(record: bytes, what: str) -> JsonObject:
    """Parse a record. Raises VaultDamaged."""
    try:
        document: JsonObject = orjson.loads(record)
    except orjson.JSONDecodeError as error:
        raise VaultDamaged(f"the record of {what} cannot be read ({error}): restore it") from error
    return document


class KeptRecords:
    """The records of a vault at one time, such as those in a backup; nothing is written there."""

    def __init__(self, records: Mapping[str, bytes], master: bytes) -> None:
        self._records, self._master = records, master

    @classmethod
    def opened(cls, records: Mapping[str, bytes], master: bytes) -> KeptRecords:
        """Check the master key against the fingerprint in the records. Raises WrongMasterKey."""
        check_mark(records.get(MASTER_MARK), master)
        return cls(records, master)

    async def look(self, names: Iterable[str]) -> dict[str, Held]:
        """See `vault.Vault.look`."""
        return await looked_up(partial(held, self._get, self._master), names)

    async def _get(self, name: str) -> bytes | None:
        return self._records.get(name)
