"""JetStream vault: data keys in a key-value bucket of the broker, one message each, wrapped by the master key.

The records (ledger/privacy/vault_records.py) stand at `$KV.KLEDGER_KEYS.` and their names. A subject takes one message
and no second one, so a key is never overwritten. A destroyed key is deleted with the server's secure erase, which
writes random bytes over it in the bucket's file. Reads go to the stream's leader: on a replica that lags behind a key
would seem missing.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterable

import orjson

from kledger.contract.errors import (
    BrokerUnavailable,
    SubjectForgotten,
    VaultDamaged,
)
from ledger.broker.access import KEY_SUBJECTS, KEYS_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NO_STREAM, NOTHING_STORED, STORE_FAILED
from ledger.broker.stream_setup import ensure
from ledger.event import JsonObject
from ledger.privacy.known_records import Count
from ledger.privacy.sealed import USER
from ledger.privacy.vault import DataKey, Held, Tombstone, forgotten, new_secret, secrets_of, wrap
from ledger.privacy.vault_records import (
    EARLIER,
    MASTER_MARK,
    PART,
    check_mark,
    counted,
    held,
    left_beside,
    looked_up,
    mark_of,
    parsed,
    record_of,
    token_of,
)
from ledger.wire.publication import EXPECTED, PASSING, WRONG_LAST_SEQUENCE, error_code, error_of, parse_answer
from ledger.wire.seal_mac import Unsworn
from ledger.wire.subjects import decode_token, encode_token

WHAT = "keeps and erases keys"
_PREFIX = KEY_SUBJECTS.removesuffix(">")
_ROOM = 64 * 1024
_CONCURRENCY = 64
_PATIENCE = 10.0


def bucket_settings(replicas: int = 1) -> JsonObject:
    """The configuration of the bucket's stream: history 1, and no second value on a subject."""
    return {
        "name": KEYS_STREAM,
        "description": "The data keys of the knowledge ledger, wrapped by its master key",
        "subjects": [KEY_SUBJECTS],
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "max_msgs_per_subject": 1,
        "discard": "new",
        "discard_new_per_subject": True,
        "deny_delete": False,  # a forgetting deletes
        "deny_purge": True,
    }


async def ensure_keys_bucket(access: BrokerAccess, *, replicas: int = 1) -> None:
    """Create the bucket if it does not exist, add replicas where it has too few; connects as `admin`.

    Raises BrokerUnavailable, BrokerMisconfigured.
    """
    await ensure(access, KEYS_STREAM, bucket_settings(replicas), WHAT)


def subject_of(kind: str, name: str) -> str:
    """The bucket's subject of a key (`key`) or tombstone (`gone`)."""
    return _PREFIX + record_of(kind, name)


async def kept_subjects(connection: BrokerConnection, like: str = KEY_SUBJECTS) -> list[str]:
    """The subjects of the bucket that have a record, of those that are `like` this; none where there is no bucket.

    Raises BrokerUnavailable, BrokerMisconfigured.
    """
    subjects = list[str]()
    more = True
    while more:
        query: JsonObject = {"subjects_filter": like, "offset": len(subjects)}
        info = await connection.api(f"STREAM.INFO.{KEYS_STREAM}", query)
        if error_code(info) in (*NOTHING_STORED, NO_STREAM):
            return subjects
        if error_code(info):
            raise error_of(info, "a look into the vault")
        page = list(info["state"].get("subjects") or {})
        subjects += page
        more = bool(page) and len(subjects) < int(info.get("total", 0))
    return subjects


class JetStreamVault:
    """See `vault.Vault`. The connection's role must read, publish and delete in the bucket: `node`."""

    def __init__(self, connection: BrokerConnection, master: bytes) -> None:
        self._connection = connection
        self._master = master
        self._limit = asyncio.Semaphore(_CONCURRENCY)
        self._earlier = frozenset[str]()

    @classmethod
    async def open(cls, access: BrokerAccess, master: bytes, *, name: str = "kledger-vault") -> JetStreamVault:
        """Connect, and check the master key against the fingerprint in the bucket.

        Raises WrongMasterKey, BrokerUnavailable, BrokerMisconfigured.
        """
        connection = await BrokerConnection.open(access, "node", name=name)
        vault = cls(connection, master)
        try:
            await vault._check_master()
            vault._earlier = frozenset(await kept_subjects(connection, f"{_PREFIX}{EARLIER}>"))
        except BaseException:
            await connection.close()
            raise
        return vault

    @staticmethod
    async def is_begun(access: BrokerAccess) -> bool:
        """Whether the bucket has a master key's fingerprint. Raises BrokerUnavailable, BrokerMisconfigured."""
        connection = await BrokerConnection.open(access, "node", name="kledger-vault-look")
        try:
            return await JetStreamVault(connection, b"")._record(MASTER_MARK) is not None
        finally:
            await connection.close()

    @property
    def connection(self) -> BrokerConnection:
        """The connection to the broker, for the other steps of an erasure."""
        return self._connection

    async def look(self, names: Iterable[str]) -> dict[str, Held]:
        return await looked_up(self._held, names)

    async def obtain(self, name: str) -> DataKey:
        found = await self._held(name)
        if found is None:
            record = orjson.dumps({"v": 1, "key": _text(wrap(self._master, name, new_secret()))})
            await self._put_once(subject_of("key", name), record)
            found = await self._held(name)  # another writer's, if two created it at once
        if isinstance(found, Tombstone):
            await self._erase_keys(name)
            raise forgotten(found)
        if found is None:
            raise BrokerUnavailable(f"the key of {name} was kept and cannot be read back: retry")
        return found

    async def destroy(self, name: str, *, by: str, at: str, receipt: str, unsworn: Unsworn | None = None) -> Tombstone:
        """See `Vault.destroy`. The tombstone is durable before the key is erased, in case of a crash in between."""
        stone = Tombstone(name, by, at, receipt)
        seals = None if unsworn is None else await self._seals_record(name, unsworn)
        await self._put_once(subject_of("gone", name), stone.record(seals))
        found = await self._held(name)
        await self._erase_keys(name)
        if not isinstance(found, Tombstone):
            raise BrokerUnavailable(f"the tombstone of {name} was kept and cannot be read back: retry")
        return found

    async def bound(self, position: int) -> int:
        """Make the tombstones of persons without a witness count for the log up to `position` only; returns how many.

        Such tombstones are of an earlier version. Each is bound once: a later event cannot hold that person's seals.
        """
        kept = set(await kept_subjects(self._connection))
        gone, bounds = subject_of("gone", USER), subject_of("seals", USER)
        unbound = [subject for subject in sorted(kept) if subject.startswith(gone)]
        unbound = [subject for subject in unbound if subject.replace(gone, bounds, 1) not in kept]
        for subject in unbound:
            message = await self._get(subject)
            has_seals = message is None or "seals" in parsed(message[1], subject)
            bound = {"v": 1} if has_seals else {"v": 1, "until": position}
            await self._put_once(subject.replace(gone, bounds, 1), orjson.dumps(bound))
        return len(unbound)

    async def left_keys(self) -> list[str]:
        """The names beside whose tombstone a key still stands, as a restore by an earlier version left it.

        Raises BrokerUnavailable, BrokerMisconfigured.
        """
        names = (one.removeprefix(_PREFIX) for one in await kept_subjects(self._connection))
        return sorted({decode_token(token_of(one)) for one in left_beside(names)})

    async def gone(self) -> list[str]:
        """The names whose keys were destroyed. Raises BrokerUnavailable, BrokerMisconfigured."""
        return sorted(
            {decode_token(token_of(one)) for one in await kept_subjects(self._connection, f"{_PREFIX}gone.>")}
        )

    async def count(self) -> Count:
        """How many records there are: by persons, never fewer than before.

        Raises BrokerUnavailable, BrokerMisconfigured.
        """
        info = await self._connection.api(f"STREAM.INFO.{KEYS_STREAM}")
        if error_code(info):
            raise error_of(info, "a look into the vault")
        subjects = await kept_subjects(self._connection)
        return Count(int(info["state"]["messages"]), counted(one.removeprefix(_PREFIX) for one in subjects))

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _held(self, name: str) -> Held | None:
        """The record of a name. Raises VaultDamaged where there is one that the broker cannot read.

        It says of such a one that it is not there: then who was forgotten could come back, and whoever has a key would
        get another one.
        """
        found = await held(self._record, self._master, name)
        if found is None and (listed := await kept_subjects(self._connection, subject_of("*", name))):
            found = await held(self._record, self._master, name)  # it may have come, or been destroyed, in between
            if found is None:
                raise _unreadable(listed[0])
        return found

    async def _record(self, name: str) -> bytes | None:
        if name.startswith(EARLIER) and _PREFIX + name not in self._earlier:
            return None
        kept = await self._get(_PREFIX + name)
        return None if kept is None else kept[1]

    async def _seals_record(self, name: str, unsworn: Unsworn) -> JsonObject | None:
        """The `seals` of a tombstone's record; None where the key is destroyed already."""
        try:
            key = await self.obtain(name)
        except SubjectForgotten:
            return None
        pieces = unsworn.pieces()
        if len(pieces) > 1 or len("".join(pieces)) > _ROOM:
            for number, piece in enumerate(pieces):
                part = PART + hashlib.sha256(piece.encode()).hexdigest()
                await self._put_once(_PREFIX + part, piece.encode())
                pieces[number] = part
        macs = [_text(wrap(self._master, f"seals\n{name}", each)) for each in secrets_of(key.witness)]
        more = {"earlier": macs[1:]} if len(macs) > 1 else {}
        return {"mac": macs[0], **more, "until": unsworn.until, "broken": pieces}

    async def _check_master(self) -> None:
        await self._put_once(_PREFIX + MASTER_MARK, mark_of(self._master))
        check_mark(await self._record(MASTER_MARK), self._master)

    async def _get(self, subject: str) -> tuple[int, bytes] | None:
        """Sequence and content of the subject's message, from the leader."""
        async with self._limit:
            answer = await self._connection.api(f"STREAM.MSG.GET.{KEYS_STREAM}", {"last_by_subj": subject})
        code = error_code(answer)
        if code in NOTHING_STORED:
            return None
        if code:
            raise error_of(answer, "a look into the vault")
        message = answer["message"]
        return int(message["seq"]), base64.b64decode(message.get("data") or "")

    async def _put_once(self, subject: str, record: bytes) -> None:
        """Store a record unless its subject has one. Raises BrokerUnavailable, BrokerMisconfigured."""
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            async with self._limit:
                reply = await self._connection.request(subject, record, {EXPECTED: "0"})
            answer = parse_answer(reply.data)
            code = error_code(answer)
            if not code or code in WRONG_LAST_SEQUENCE or (code == STORE_FAILED and await self._get(subject)):
                return
            if code == STORE_FAILED and await kept_subjects(self._connection, subject):
                raise _unreadable(subject)
            if code not in PASSING or asyncio.get_running_loop().time() > deadline:
                self._connection.require_storing()
                raise error_of(answer, "a record of the vault")
            await asyncio.sleep(0.05)

    async def _erase_keys(self, name: str) -> None:
        await self._erase(subject_of("key", name))
        for subject in sorted(one for one in self._earlier if token_of(one) == encode_token(name)):
            await self._erase(subject)

    async def _erase(self, subject: str) -> None:
        """Delete the subject's message and overwrite its bytes."""
        kept = await self._get(subject)
        if kept is None:
            return
        request: JsonObject = {"seq": kept[0], "no_erase": False}
        with self._connection.storing():
            answer = await self._connection.api(f"STREAM.MSG.DELETE.{KEYS_STREAM}", request)
            if error_code(answer) and await self._get(subject) is not None:
                raise error_of(answer, "the erasure of a key")


def _unreadable(subject: str) -> VaultDamaged:
    return VaultDamaged(
        f"the broker has the record {subject.removeprefix(_PREFIX)} of the vault and cannot read it: its disk changed "
        "it. Stop the node, and bring it back from a backup with kledger repair"
    )


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")
