"""Data keys in a backup: the vault's wrapped keys and tombstones at the time of the backup.

`keys.json` is rewritten by each run, so that a destroyed key disappears from the backup too. It opens nothing without
the master key, which is in no backup.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib

import orjson

from kledger.contract.errors import BackupDamaged
from ledger.backup.place import KEYS as FILE
from ledger.backup.place import Place, Where, place_of
from ledger.broker.access import KEY_SUBJECTS, KEYS_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.event import JsonObject
from ledger.privacy.vault_jetstream import ensure_keys_bucket, kept_subjects
from ledger.privacy.vault_records import MASTER_MARK
from ledger.wire.publication import EXPECTED, WRONG_LAST_SEQUENCE, error_code, error_of, parse_answer

_PREFIX = KEY_SUBJECTS.removesuffix(">")
_NOT_THERE = frozenset({10037, 10059})
_ONE_A_SUBJECT = 10077
_AT_ONCE = 64
Records = dict[str, bytes]


async def keep_keys(connection: BrokerConnection, where: Where) -> int:
    """Copy the vault's current records into a backup; returns their number. Needs role `node`, which reads the vault.

    Raises BrokerUnavailable, BrokerMisconfigured, ObjectStoreFailed.
    """
    records = await _records(connection)
    await asyncio.to_thread(write_keys, where, records)
    return len(records)


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
    if not records:
        return 0
    await ensure_keys_bucket(access)
    for subject, record in sorted(records.items(), key=lambda each: each[0].startswith(f"{_PREFIX}key.")):
        answer = parse_answer((await connection.request(subject, record, {EXPECTED: "0"})).data)
        code = error_code(answer)
        if code and code not in WRONG_LAST_SEQUENCE and code != _ONE_A_SUBJECT:
            raise error_of(answer, "a key of the vault")
    return len(records)


async def vault_holds(access: BrokerAccess, records: Records) -> bool:
    """Whether the vault has these records and no others. Needs role `node`.

    Raises BrokerUnavailable, BrokerMisconfigured.
    """
    connection = await BrokerConnection.open(access, "node", name="kledger-vault-look")
    try:
        return await _records(connection) == records
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
            if error_code(answer) in _NOT_THERE:
                continue  # destroyed in the meantime
            if error_code(answer):
                raise error_of(answer, "a look into the vault")
            records[subject] = base64.b64decode(answer["message"].get("data") or "")
    return records


def _digest(records: JsonObject) -> str:
    return hashlib.sha256(orjson.dumps(records, option=orjson.OPT_SORT_KEYS)).hexdigest()
