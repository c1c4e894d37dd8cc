"""Data keys in a backup: the vault's wrapped keys and tombstones at the time of the backup.

`keys.json` is rewritten by each run, so that a destroyed key disappears from the backup too. A key that is gone without
a tombstone was not destroyed: the vault has lost it, and the backup may have the only one. It opens nothing without the
master key, which is in no backup.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import orjson

from kledger.contract.errors import BackupDamaged, RestoreRefused, VaultDamaged
from ledger.backup.manifest import check_is_of, named_after
from ledger.backup.place import KEYS as FILE
from ledger.backup.place import Place, Where, place_of
from ledger.broker.access import KEY_SUBJECTS, KEYS_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NO_STREAM, NOTHING_STORED, STORE_FAILED
from ledger.event import JsonObject
from ledger.privacy.vault_jetstream import ensure_keys_bucket, kept_subjects
from ledger.privacy.vault_records import EARLIER, MASTER_MARK
from ledger.wire.publication import EXPECTED, WRONG_LAST_SEQUENCE, error_code, error_of, parse_answer
from ledger.wire.subjects import decode_token

_PREFIX = KEY_SUBJECTS.removesuffix(">")
_KEY, _GONE, _EARLIER, _MASTER = f"{_PREFIX}key.", f"{_PREFIX}gone.", f"{_PREFIX}{EARLIER}", f"{_PREFIX}{MASTER_MARK}"
_DELETE_TIMEOUT = 30.0
_AT_ONCE = 64
_MOST_NAMED = 3
Records = dict[str, bytes]


async def keep_keys(connection: BrokerConnection, where: Where) -> int:
    """Copy the vault's current records into a backup; returns their number. Needs role `node`, which reads the vault.

    Raises VaultDamaged (it has lost what the backup has: nothing is written), BrokerUnavailable, BrokerMisconfigured,
    ObjectStoreFailed.
    """
    records = _without_destroyed(await _records(connection))
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
            "changed. Stop the node, and bring them back from it with kledger repair",
            keys=len(lost),
        )
    write_keys(place, records)


def lost_from(there: Records, before: Records) -> set[str]:
    """The subjects whose record a vault has no more; a destroyed key is not lost, nor is one beside a later one."""
    kept = _keys_by_token(there)
    lost = set[str]()
    for one, record in before.items():
        if one.startswith((_KEY, _EARLIER)):
            if _GONE + _token(one) not in there and record not in kept.get(_token(one), ()):
                lost.add(one)
        elif one not in there or (one == _MASTER and there[one] != record):
            lost.add(one)
    return lost


def _keys_by_token(records: Records) -> dict[str, set[bytes]]:
    kept: dict[str, set[bytes]] = {}
    for one, record in records.items():
        if one.startswith((_KEY, _EARLIER)):
            kept.setdefault(_token(one), set()).add(record)
    return kept


def _token(subject: str) -> str:
    return subject.rpartition(".")[2]


def _without_destroyed(records: Records) -> Records:
    """But for keys beside which their tombstone stands: nothing needs them, and they open what was forgotten."""
    return {
        subject: record
        for subject, record in records.items()
        if not (subject.startswith((_KEY, _EARLIER)) and _GONE + _token(subject) in records)
    }


def brought_beside(there: Records, before: Records) -> Records:
    """What a vault has lost, at the subjects where it has room for it: a key stands beside one that is there since."""
    added: Records = {}
    for one in sorted(lost_from(there, before), reverse=True):  # `key` before `earlier`
        subject, number = one, 0
        while subject in there or subject in added:
            number += 1
            subject = f"{_EARLIER}{number}.{_token(one)}"
        added[subject] = before[one]
    return added


def whose(subjects: Sequence[str]) -> str:
    """The names of records as text, the first of them."""
    names = [decode_token(one.rpartition(".")[2]) for one in subjects[:_MOST_NAMED]]
    more = len(subjects) - len(names)
    return ", ".join([*names, *([f"and {more:,} more"] if more else [])])


def write_keys(where: Where, records: Records) -> None:
    """Write vault records into a backup, in place of those that it has. Raises OSError, ObjectStoreFailed."""
    kept = {name: base64.b64encode(record).decode() for name, record in by_name(records).items()}
    place = place_of(where)
    document = named_after(place, {"format": 1, "records": kept, "sha256": _digest(kept)})
    place.write(FILE, orjson.dumps(document, option=orjson.OPT_SORT_KEYS))


def kept_keys(where: Where) -> Records:
    """The vault records in a backup, by subject, but for destroyed keys; none where it has no vault.

    Raises BackupDamaged.
    """
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
        check_is_of(place, document)
        return _without_destroyed(
            {_PREFIX + name: base64.b64decode(record, validate=True) for name, record in kept.items()}
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(place, error) from error


def _damaged(place: Place, error: Exception) -> BackupDamaged:
    return BackupDamaged(
        f"{FILE} of the backup in {place} is damaged ({error}): what persons said cannot be read without it; run "
        "kledger backup again",
        problems=[f"{FILE} is damaged"],
    )


async def refuse_other_vault(connection: BrokerConnection, where: Where) -> None:
    """Raise RestoreRefused where the broker's vault is under another master key than the backup's: it would stay."""
    ours = kept_keys(where).get(_MASTER)
    there = (await _records(connection, [_MASTER])).get(_MASTER) if ours is not None else None
    if there not in (None, ours):
        raise RestoreRefused(
            "the vault of the broker is that of another ledger, under another master key, as an interrupted restore of "
            "another backup leaves it: nothing of this backup could be opened there. Choose a new data directory or "
            "another broker"
        )


async def restore_keys(access: BrokerAccess, connection: BrokerConnection, where: Where) -> int:
    """Copy a backup's keys and tombstones into the vault, keys last; returns their number. Needs role `admin`.

    An existing record stays, but for the key of whom the backup knows as forgotten: an interrupted restore of an
    earlier backup has brought it back. No key comes back of whom the vault knows as forgotten. Raises BackupDamaged,
    BrokerUnavailable, BrokerMisconfigured.
    """
    records = kept_keys(where)
    if records:
        await ensure_keys_bucket(access)
        there = await _records(connection)
        wanted = _without_destroyed(there | records)
        await _put(connection, {one: record for one, record in records.items() if one in wanted})
        await _erase(connection, there.keys() - wanted.keys())
    return len(records)


@dataclass(frozen=True, slots=True)
class BroughtBack:
    """How many records came back into a vault, of which persons a key stands beside a later one since, and whether the
    vault is under another master key, where nothing came back.
    """

    records: int = 0
    beside: str = ""
    other_master: bool = False


async def bring_back_keys(access: BrokerAccess, where: Where) -> BroughtBack:
    """Copy what the vault has lost of a backup's records back into it.

    A record that the broker cannot read can be neither written nor removed there: then the bucket is made anew, once
    all of its records are in the backup. Raises as `restore_keys` does, and VaultDamaged where one is still missing.
    """
    before = kept_keys(where)
    if not before:
        return BroughtBack()
    await ensure_keys_bucket(access)
    admin = await BrokerConnection.open(access, "admin", name="kledger-vault-repair")
    try:
        there = await _records(admin)
        if _MASTER in before and there.get(_MASTER, before[_MASTER]) != before[_MASTER]:
            return BroughtBack(other_master=True)
        added = brought_beside(there, before)
        await _put(admin, added)
        wanted = _without_destroyed(there | added)
        await _erase(admin, there.keys() - wanted.keys())
        if not added.items() <= (await _records(admin)).items():
            await asyncio.to_thread(write_keys, where, wanted)
            await _made_anew(access, admin, wanted)
    finally:
        await admin.close()
    return BroughtBack(len(added), whose(sorted(one for one in added if one.startswith(_EARLIER))))


async def _made_anew(access: BrokerAccess, admin: BrokerConnection, records: Records) -> None:
    info = await admin.api(f"STREAM.INFO.{KEYS_STREAM}")
    removed = await admin.api(f"STREAM.DELETE.{KEYS_STREAM}", timeout=_DELETE_TIMEOUT)
    for answer in (info, removed):
        if error_code(answer):
            raise error_of(answer, "the vault, which is made anew")
    await ensure_keys_bucket(access, replicas=int(info["config"].get("num_replicas", 1)))
    await _put(admin, records)
    if await _records(admin) != records:
        raise VaultDamaged("the vault was made anew and does not have all of its records: run kledger repair again")


async def _put(connection: BrokerConnection, records: Records) -> None:
    """Store records that the vault does not have, keys last."""
    for subject, record in sorted(records.items(), key=lambda each: each[0].startswith(f"{_PREFIX}key.")):
        answer = parse_answer((await connection.request(subject, record, {EXPECTED: "0"})).data)
        code = error_code(answer)
        there = code in WRONG_LAST_SEQUENCE or (code == STORE_FAILED and await kept_subjects(connection, subject))
        if code and not there:  # as of a full disk
            raise error_of(answer, "a key of the vault")


async def _erase(connection: BrokerConnection, subjects: Iterable[str]) -> None:
    """Delete records and overwrite their bytes."""
    for subject in sorted(subjects):
        answer = await connection.api(f"STREAM.MSG.GET.{KEYS_STREAM}", {"last_by_subj": subject})
        if not error_code(answer):
            order = {"seq": answer["message"]["seq"], "no_erase": False}
            answer = await connection.api(f"STREAM.MSG.DELETE.{KEYS_STREAM}", order)
        if error_code(answer) not in (0, *NOTHING_STORED):
            raise error_of(answer, "the erasure of a key")


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


async def _records(connection: BrokerConnection, subjects: Sequence[str] | None = None) -> Records:
    """The vault's records at these subjects, or all."""
    records: Records = {}
    subjects = await kept_subjects(connection) if subjects is None else subjects
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
