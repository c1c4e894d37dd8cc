"""Data keys in a backup: the vault's wrapped keys and tombstones at the time of the backup.

`keys.json` is rewritten by each run, so that a destroyed key disappears from the backup too. A key that is gone without
a tombstone was not destroyed: the vault has lost it, and the backup may have the only one. It opens nothing without the
master key, which is in no backup.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Sequence

import orjson

from kledger.contract.errors import BackupDamaged, VaultDamaged
from ledger.backup.place import KEYS as FILE
from ledger.backup.place import Place, Where, place_of
from ledger.broker.access import KEY_SUBJECTS, KEYS_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NO_STREAM, NOTHING_STORED, STORE_FAILED
from ledger.event import JsonObject
from ledger.privacy.vault_jetstream import ensure_keys_bucket, kept_subjects
from ledger.privacy.vault_records import MASTER_MARK
from ledger.wire.publication import EXPECTED, WRONG_LAST_SEQUENCE, error_code, error_of, parse_answer
from ledger.wire.subjects import decode_token

_PREFIX = KEY_SUBJECTS.removesuffix(">")
_AT_ONCE = 64
_MOST_NAMED = 3
Records = dict[str, bytes]


async def keep_keys(connection: BrokerConnection, where: Where) -> int:
    """Copy the vault's current records into a backup; returns their number. Needs role `node`, which reads the vault.

    Raises VaultDamaged (it has lost what the backup has: nothing is written), BrokerUnavailable, BrokerMisconfigured,
    ObjectStoreFailed.
    """
    records = await _records(connection)
    await asyncio.to_thread(_write_anew, place_of(where), records)
    return len(records)


def _write_anew(place: Place, records: Records) -> None:
    try:
        before = kept_keys(place)
    except BackupDamaged:
        before = {}  # what it had is gone
    if lost := sorted(lost_from(records, before)):
        raise VaultDamaged(
            f"the vault has lost keys that the backup in {place} has: {whose(lost)}. Nothing of the backup was "
            "changed. Stop the node, and bring them back from it with kledger repair. Where that finds another key in "
            "the vault, made since, keep this backup and back up into a new directory",
            keys=len(lost),
        )
    write_keys(place, records)


def lost_from(there: Records, before: Records) -> set[str]:
    """The subjects whose record a vault has no more, or of which it has another key; destroyed keys are not lost."""
    keys, gone = f"{_PREFIX}key.", f"{_PREFIX}gone."
    fixed = {one for one in before if one.startswith(keys) or one == _PREFIX + MASTER_MARK}
    lost = (before.keys() - there.keys()) | {one for one in fixed & there.keys() if there[one] != before[one]}
    return {one for one in lost if not (one.startswith(keys) and one.replace(keys, gone, 1) in there)}


def whose(subjects: Sequence[str]) -> str:
    """The names of records as text, the first of them."""
    names = [decode_token(one.rpartition(".")[2]) for one in subjects[:_MOST_NAMED]]
    more = len(subjects) - len(names)
    return ", ".join([*names, *([f"and {more:,} more"] if more else [])])


def write_keys(where: Where, records: Records) -> None:
    """Write vault records into a backup, in place of those that it has. Raises OSError, ObjectStoreFailed."""
    kept = {name: base64.b64encode(record).decode() for name, record in by_name(records).items()}
    body = orjson.dumps({"format": 1, "records": kept, "sha256": _digest(kept)}, option=orjson.OPT_SORT_KEYS)
    place_of(where).write(FILE, body)


def kept_keys(where: Where) -> Records:
    """The vault records in a backup, by subject; none where it has no vault. Raises BackupDamaged."""
    place = place_of(where)
    try:
        raw = place.read(FILE)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _damaged(place, error) from error
    try:
        document = orjson.loads(raw)
        kept: JsonObject = document["records"]
        canonical = orjson.dumps(document, option=orjson.OPT_SORT_KEYS) == raw
        if document["sha256"] != _digest(kept) or document["format"] != 1 or not canonical:
            raise ValueError("its digest is another one")
        return {_PREFIX + name: base64.b64decode(record, validate=True) for name, record in kept.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(place, error) from error


def _damaged(place: Place, error: Exception) -> BackupDamaged:
    return BackupDamaged(
        f"{FILE} of the backup in {place} is damaged ({error}): what persons said cannot be read without it; run "
        "kledger backup again",
        problems=[f"{FILE} is damaged"],
    )


async def restore_keys(access: BrokerAccess, connection: BrokerConnection, where: Where) -> int:
    """Copy a backup's keys and tombstones into the vault, keys last; returns their number. Needs role `admin`.

    An existing record stays. Raises BackupDamaged, BrokerUnavailable, BrokerMisconfigured.
    """
    records = kept_keys(where)
    if records:
        await ensure_keys_bucket(access)
        await _put(connection, records)
    return len(records)


async def bring_back_keys(access: BrokerAccess, where: Where) -> tuple[int, list[str]]:
    """Copy what the vault has lost of a backup's records back into it; how many, and the subjects of other keys there.

    These stay, and where the master key is another one, all does. Raises as `restore_keys` does.
    """
    before = kept_keys(where)
    if not before:
        return 0, []
    await ensure_keys_bucket(access)
    there = await _records_at(access)
    lost = lost_from(there, before)
    others = sorted(lost & there.keys())
    if _PREFIX + MASTER_MARK in others:
        return 0, others
    missing = {subject: before[subject] for subject in lost - there.keys()}
    admin = await BrokerConnection.open(access, "admin", name="kledger-vault-repair")
    try:
        await _put(admin, missing)
    finally:
        await admin.close()
    return len(missing), others


async def _put(connection: BrokerConnection, records: Records) -> None:
    """Store records that the vault does not have, keys last."""
    for subject, record in sorted(records.items(), key=lambda each: each[0].startswith(f"{_PREFIX}key.")):
        answer = parse_answer((await connection.request(subject, record, {EXPECTED: "0"})).data)
        code = error_code(answer)
        if code and code not in WRONG_LAST_SEQUENCE and code != STORE_FAILED:
            raise error_of(answer, "a key of the vault")


async def vault_holds(access: BrokerAccess, records: Records) -> bool:
    """Whether the vault has these records and no others. Needs role `node`.

    Raises BrokerUnavailable, BrokerMisconfigured.
    """
    return await _records_at(access) == records


async def _records_at(access: BrokerAccess) -> Records:
    connection = await BrokerConnection.open(access, "node", name="kledger-vault-look")
    try:
        return await _records(connection)
    finally:
        await connection.close()


def by_name(records: Records) -> dict[str, bytes]:
    """Vault records by their names, as ledger/privacy/vault_records.py reads them."""
    return {subject.removeprefix(_PREFIX): record for subject, record in records.items()}


def names_nobody(records: Records) -> bool:
    """Whether a vault has no key and no tombstone: what is left is the fingerprint of the master key."""
    return by_name(records).keys() <= {MASTER_MARK}


async def _records(connection: BrokerConnection) -> Records:
    records: Records = {}
    subjects = await kept_subjects(connection)
    for at in range(0, len(subjects), _AT_ONCE):
        some = subjects[at : at + _AT_ONCE]
        queries = (connection.api(f"STREAM.MSG.GET.{KEYS_STREAM}", {"last_by_subj": subject}) for subject in some)
        for subject, answer in zip(some, await asyncio.gather(*queries), strict=True):
            if error_code(answer) in (*NOTHING_STORED, NO_STREAM):
                continue  # destroyed in the meantime
            if error_code(answer):
                raise error_of(answer, "a look into the vault")
            records[subject] = base64.b64decode(answer["message"].get("data") or "")
    return records


def _digest(records: JsonObject) -> str:
    return hashlib.sha256(orjson.dumps(records, option=orjson.OPT_SORT_KEYS)).hexdigest()
