"""What every vault does, in memory and on the broker; and what the bucket alone can lose or betray."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import AsyncMock

import orjson
import pytest
from cryptography.exceptions import InvalidTag

from kledger.contract.errors import BrokerMisconfigured, LedgerError, SubjectForgotten, VaultDamaged, WrongMasterKey
from ledger.backup.keys import BroughtBack, bring_back_keys, by_name, keep_keys, kept_keys, restore_keys, write_keys
from ledger.broker.access import KEY_SUBJECTS, KEYS_STREAM, BrokerAccess, Role
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.privacy.vault import DataKey, MemoryVault, Tombstone, Vault, new_secret
from ledger.privacy.vault_jetstream import JetStreamVault, ensure_keys_bucket, kept_subjects, subject_of
from ledger.privacy.vault_records import MASTER_MARK, KeptRecords
from ledger.wire.publication import error_code
from ledger.wire.seal_mac import UNFIT, Unsworn
from tests.conftest import remove_streams
from tests.files import contents
from tests.patience import PATIENCE

MASTER = bytes(range(32))
MASTER_SUBJECT = KEY_SUBJECTS.removesuffix(">") + MASTER_MARK
AT = "2026-03-05T12:00:00Z"
NAMES = ["user:ada", "user:李雷 a.b*>", "resource:code/db/password"]


@pytest.fixture
async def bucket(access: BrokerAccess) -> BrokerAccess:
    """The shared broker with an empty bucket."""
    await ensure_keys_bucket(access)
    return access


@pytest.fixture
async def on_broker(bucket: BrokerAccess) -> AsyncIterator[JetStreamVault]:
    vault = await JetStreamVault.open(bucket, MASTER)
    yield vault
    await vault.close()


@pytest.fixture(params=["memory", "jetstream"])
async def vault(request: pytest.FixtureRequest) -> AsyncIterator[Vault]:
    """An empty vault of each kind."""
    if request.param == "memory":
        yield MemoryVault()
        return
    server: EmbeddedServer = request.getfixturevalue("embedded_server")
    await remove_streams(server.access)
    await ensure_keys_bucket(server.access)
    on_broker = await JetStreamVault.open(server.access, MASTER)
    yield on_broker
    await on_broker.close()


async def destroyed(vault: Vault, name: str, receipt: str = "r-1") -> Tombstone:
    return await vault.destroy(name, by="user:local", at="2026-03-05T12:00:00Z", receipt=receipt)


@pytest.mark.parametrize("name", NAMES)
async def test_a_key_is_made_once_and_opens_what_it_sealed(vault: Vault, name: str) -> None:
    assert await vault.look([name]) == {}
    sealed = (await vault.obtain(name)).encrypt("秘密".encode(), b"here")
    for key in (await vault.obtain(name), (await vault.look([name]))[name]):
        assert isinstance(key, DataKey)
        assert key.decrypt(sealed, b"here").decode() == "秘密"


async def test_a_key_opens_nothing_of_another_name_or_another_place(vault: Vault) -> None:
    sealed = (await vault.obtain("user:ada")).encrypt(b"hers", b"here")
    with pytest.raises(InvalidTag):
        (await vault.obtain("user:bob")).decrypt(sealed, b"here")
    with pytest.raises(InvalidTag):
        (await vault.obtain("user:ada")).decrypt(sealed, b"there")


async def test_several_who_ask_at_once_get_the_same_key(vault: Vault) -> None:
    keys = await asyncio.gather(*(vault.obtain("user:ada") for _ in range(8)))
    sealed = keys[0].encrypt(b"x", b"")
    assert {key.decrypt(sealed, b"") for key in keys} == {b"x"}


async def test_a_destroyed_key_leaves_a_tombstone_that_says_who_when_and_why(vault: Vault) -> None:
    await vault.obtain("user:ada")
    told = await destroyed(vault, "user:ada")
    assert told == Tombstone("user:ada", "user:local", "2026-03-05T12:00:00Z", "r-1")
    assert await vault.look(["user:ada", "user:bob"]) == {"user:ada": told}


async def test_a_destroyed_name_never_gets_a_key_again(vault: Vault) -> None:
    await destroyed(vault, "user:ada")
    with pytest.raises(SubjectForgotten, match="r-1"):
        await vault.obtain("user:ada")


async def test_destroying_again_keeps_the_first_tombstone(vault: Vault) -> None:
    await vault.obtain("user:ada")
    first = await destroyed(vault, "user:ada")
    assert await destroyed(vault, "user:ada", "r-2") == first


async def test_a_tombstone_tells_the_keys_seals_from_others(vault: Vault) -> None:
    witness = (await vault.obtain("user:ada")).witness
    unsworn = Unsworn(70, {3: 0, 40: 2, 41: UNFIT})
    told = await vault.destroy("user:ada", by="user:local", at=AT, receipt="r-1", unsworn=unsworn)
    assert (told.witness, told.unsworn) == (witness, unsworn)
    assert await vault.look(["user:ada"]) == {"user:ada": told}
    assert await vault.destroy("user:ada", by="user:local", at=AT, receipt="r-2", unsworn=Unsworn(1)) == told


async def test_who_never_had_a_key_has_a_witness_too_when_forgotten(vault: Vault) -> None:
    told = await vault.destroy("user:ada", by="user:local", at=AT, receipt="r-1", unsworn=Unsworn())
    assert told.witness is not None
    with pytest.raises(SubjectForgotten):
        await vault.obtain("user:ada")


def test_a_key_does_not_show_itself() -> None:
    secret = new_secret()
    shown = repr(DataKey("user:ada", secret))
    assert shown == "DataKey('user:ada')"
    assert repr(DataKey("user:ada", secret).witness) == "Witness()"


async def test_a_tombstone_has_room_for_however_much_was_forged(on_broker: JetStreamVault) -> None:
    chance = random.Random(7)
    broken = {position: chance.randrange(200) for position in range(1, 1_500_000, 3)}
    unsworn = Unsworn(2_000_000, broken)
    assert len("".join(unsworn.pieces())) > 512 * 1024, "more than one part"
    told = await on_broker.destroy("user:ada", by="user:local", at=AT, receipt="r-1", unsworn=unsworn)
    assert told.unsworn == unsworn
    assert (await on_broker.look(["user:ada"]))["user:ada"] == told


async def test_a_tombstone_of_an_earlier_version_speaks_up_to_where_it_is_bound_once(
    on_broker: JetStreamVault, tmp_path: Path
) -> None:
    await destroyed(on_broker, "user:ada")
    await destroyed(on_broker, "resource:db")
    new = await on_broker.destroy("user:bob", by="user:local", at=AT, receipt="r-2", unsworn=Unsworn(7))
    assert await on_broker.bound(40) == 2
    assert await on_broker.bound(50) == 0
    held = await on_broker.look(["user:ada", "user:bob", "resource:db"])
    assert held["user:ada"] == replace(await destroyed(on_broker, "user:ada"), unsworn=Unsworn(40))
    assert held["user:bob"] == new
    assert held["resource:db"] == Tombstone("resource:db", "user:local", AT, "r-1")


async def test_what_was_left_of_a_destroyed_key_is_found_and_erased_and_makes_the_vault_no_smaller(
    on_broker: JetStreamVault, bucket: BrokerAccess, admin: BrokerConnection
) -> None:
    """As restores by earlier versions left it; a later key of two that was erased as far as its first."""
    for name in ("user:ada", "user:bob"):
        await on_broker.obtain(name)
    before = await on_broker.count()
    await destroyed(on_broker, "user:ada")
    assert (await on_broker.count()).by_persons == before.by_persons
    left = [subject_of("key", "user:ada"), subject_of("earlier.2", "user:ada")]
    for subject in (*left, subject_of("earlier.1", "user:bob")):
        await admin.request(subject, b"{}")
    opened = await JetStreamVault.open(bucket, MASTER)
    assert await opened.left_keys() == ["user:ada"]
    assert (await opened.count()).by_persons == before.by_persons
    await destroyed(opened, "user:ada")
    assert await opened.left_keys() == []
    assert not {*left} & {*await kept_subjects(admin)}
    assert (await opened.count()).by_persons == before.by_persons
    await opened.close()


async def test_a_backup_brings_back_what_a_tombstone_tells_of_seals(
    on_broker: JetStreamVault, bucket: BrokerAccess, admin: BrokerConnection, tmp_path: Path
) -> None:
    chance = random.Random(7)
    unsworn = Unsworn(400_000, {position: chance.randrange(200) for position in range(1, 300_000, 2)})
    told = await on_broker.destroy("user:ada", by="user:local", at=AT, receipt="r-1", unsworn=unsworn)
    await destroyed(on_broker, "user:bob")
    await on_broker.bound(40)
    before = await on_broker.look(["user:ada", "user:bob"])
    assert before["user:ada"] == told
    await keep_keys(on_broker.connection, tmp_path)
    await admin.api(f"STREAM.DELETE.{KEYS_STREAM}")
    assert await restore_keys(bucket, admin, tmp_path) == len(kept_keys(tmp_path))
    assert await on_broker.look(["user:ada", "user:bob"]) == before


async def test_a_backup_keeps_what_the_vault_has_lost_and_no_key_that_was_destroyed(
    on_broker: JetStreamVault, bucket: BrokerAccess, admin: BrokerConnection, tmp_path: Path
) -> None:
    for name in ("user:ada", "user:bob", "user:cy"):
        await on_broker.obtain(name)
    await keep_keys(on_broker.connection, tmp_path)
    await destroyed(on_broker, "user:bob")
    await keep_keys(on_broker.connection, tmp_path)
    before = kept_keys(tmp_path)
    assert not [name for name in before if name.endswith("key.user=3Abob")]
    await admin.api(f"STREAM.DELETE.{KEYS_STREAM}")
    await ensure_keys_bucket(bucket)
    for again in ((), ("user:cy",)):
        for name in again:
            await on_broker.obtain(name)
        with pytest.raises(VaultDamaged, match=r"lost keys that the backup in .* has: user:bob, user:ada, user:cy"):
            await keep_keys(on_broker.connection, tmp_path)
        assert kept_keys(tmp_path) == before
    assert await bring_back_keys(bucket, tmp_path) == BroughtBack(len(before), "user:cy")
    held = await on_broker.look(["user:ada", "user:bob"])
    assert [type(held[name]) for name in ("user:ada", "user:bob")] == [DataKey, Tombstone]
    (tmp_path / "keys.json").write_bytes(b"damaged")
    await keep_keys(on_broker.connection, tmp_path)
    assert await bring_back_keys(bucket, tmp_path) == BroughtBack()
    write_keys(tmp_path, {**kept_keys(tmp_path), subject_of("key", "user:di"): b"{}", MASTER_SUBJECT: b"another"})
    assert await bring_back_keys(bucket, tmp_path) == BroughtBack(other_master=True)


async def test_a_key_that_was_lost_and_one_that_came_since_open_what_each_has_sealed(
    on_broker: JetStreamVault, bucket: BrokerAccess, admin: BrokerConnection, tmp_path: Path
) -> None:
    backups = []
    sealed = []
    for number in range(3):  # lost twice
        key = await on_broker.obtain("user:ada")
        sealed.append((key.encrypt(b"said %d" % number, b"about"), key.witness.mac("s", "e", {})))
        backups.append(tmp_path / str(number))
        backups[-1].mkdir()
        await keep_keys(on_broker.connection, backups[-1])
        if number < 2:
            await admin.api(f"STREAM.DELETE.{KEYS_STREAM}")
            await ensure_keys_bucket(bucket)
    for backup in (backups[0], backups[1], backups[0]):
        await bring_back_keys(bucket, backup)
    vault = await JetStreamVault.open(bucket, MASTER)
    try:
        ada = await vault.obtain("user:ada")
        assert [ada.decrypt(text, b"about") for text, _ in sealed] == [b"said 0", b"said 1", b"said 2"]
        assert all(ada.witness.vouches(mac, "s", "e", {}) for _, mac in sealed)
        assert not ada.witness.vouches(sealed[0][1], "s", "another", {})
        assert ada.witness.mac("s", "e", {}) == sealed[2][1], "what is sealed from now on has the key that is there"
        for backup in backups:
            await keep_keys(vault.connection, backup)  # it has lost nothing of any of them
        kept = KeptRecords.opened(by_name(kept_keys(backups[0])), MASTER)
        (again,) = (await kept.look(["user:ada"])).values()
        assert isinstance(again, DataKey)
        assert again.decrypt(sealed[0][0], b"about") == b"said 0"
        await vault.destroy("user:ada", by="user:local", at=AT, receipt="r-1", unsworn=Unsworn())
        assert not [one for one in await kept_subjects(vault.connection) if "earlier" in one or ".key." in one]
        (gone,) = (await vault.look(["user:ada"])).values()
        assert isinstance(gone, Tombstone)
        assert gone.witness is not None
        assert all(gone.witness.vouches(mac, "s", "e", {}) for _, mac in sealed), "erased, and not forged"
        assert await bring_back_keys(bucket, backups[1]) == BroughtBack(), "who was forgotten does not come back"
    finally:
        await vault.close()


@pytest.mark.parametrize("damaged", ["key.user=3Aada", "gone.user=3Abob", "master"])
async def test_a_record_that_the_broker_cannot_read_is_told_and_brought_back(
    damaged: str, broker_directory: Path, tmp_path: Path
) -> None:
    server = EmbeddedServer(broker_directory)
    access = await server.start()
    await ensure_keys_bucket(access)
    vault = await JetStreamVault.open(access, MASTER)
    ada = await vault.obtain("user:ada")
    await destroyed(vault, "user:bob")
    await keep_keys(vault.connection, tmp_path)
    cy = await vault.obtain("user:cy")
    await vault.close()
    await server.stop()
    (block,) = broker_directory.glob("**/KV_KLEDGER_KEYS/msgs/*.blk")
    content = bytearray(block.read_bytes())
    begins = content.index(f"$KV.KLEDGER_KEYS.{damaged}".encode())
    content[content.index(b"Nats-Expected", begins) + 80] ^= 1
    block.write_bytes(content)
    server = EmbeddedServer(broker_directory)
    access = await server.start()
    try:
        if damaged == "master":
            with pytest.raises(VaultDamaged, match="record master of the vault"):
                await JetStreamVault.open(access, MASTER)
        else:
            vault = await JetStreamVault.open(access, MASTER)
            name = "user:ada" if damaged.startswith("key") else "user:bob"
            with pytest.raises(VaultDamaged, match=f"record {damaged} of the vault"):
                await vault.obtain(name)
            with pytest.raises(VaultDamaged, match="kledger repair"):
                await vault.look([name])
            await vault.close()
        assert await bring_back_keys(access, tmp_path) == BroughtBack(1)
        vault = await JetStreamVault.open(access, MASTER)
        assert (await vault.obtain("user:ada")).witness == ada.witness
        assert (await vault.obtain("user:cy")).witness == cy.witness, "what came after the backup stays"
        with pytest.raises(SubjectForgotten):
            await vault.obtain("user:bob")
        await vault.close()
    finally:
        await server.stop()


async def test_the_bucket_holds_no_byte_of_a_destroyed_key(broker_directory: Path) -> None:
    server = EmbeddedServer(broker_directory)
    access = await server.start()
    await ensure_keys_bucket(access)
    admin = await BrokerConnection.open(access, "admin", name="test")
    vault = await JetStreamVault.open(access, MASTER)
    try:
        for name in ("user:ada", "user:bob", "user:cy"):
            await vault.obtain(name)
        wrapped = {name: await _wrapped(admin, name) for name in ("user:ada", "user:bob", "user:cy")}
        assert all(each in _bytes_in(broker_directory) for each in wrapped.values())
        await destroyed(vault, "user:bob")
        await destroyed(vault, "user:ada")
        left = _bytes_in(broker_directory)
        assert wrapped["user:cy"] in left
        assert wrapped["user:ada"] not in left
        assert wrapped["user:bob"] not in left
    finally:
        await vault.close()
        await admin.close()
        await server.stop()
    assert wrapped["user:bob"] not in _bytes_in(broker_directory)


async def _wrapped(admin: BrokerConnection, name: str) -> bytes:
    """The wrapped key as it stands in the bucket's file, without what is around it."""
    answer = await admin.api(f"STREAM.MSG.GET.{KEYS_STREAM}", {"last_by_subj": subject_of("key", name)})
    record: str = orjson.loads(base64.b64decode(answer["message"]["data"]))["key"]
    return record.encode()


def _bytes_in(directory: Path) -> bytes:
    return b"".join(content for _, content in contents(directory))


async def test_a_crash_between_tombstone_and_erasure_leaves_the_key_useless_and_the_rest_is_done_later(
    on_broker: JetStreamVault, admin: BrokerConnection
) -> None:
    await on_broker.obtain("user:ada")
    stone = Tombstone("user:ada", "user:local", "2026-03-05T12:00:00Z", "r-1")
    await on_broker.connection.request(subject_of("gone", "user:ada"), stone.record())
    assert await on_broker.look(["user:ada"]) == {"user:ada": stone}
    with pytest.raises(SubjectForgotten):
        await on_broker.obtain("user:ada")
    assert await destroyed(on_broker, "user:ada", "r-2") == stone
    asked = {"last_by_subj": subject_of("key", "user:ada")}
    assert error_code(await admin.api(f"STREAM.MSG.GET.{KEYS_STREAM}", asked)) == 10037


async def test_another_vault_on_the_bucket_sees_the_same_keys(on_broker: JetStreamVault, bucket: BrokerAccess) -> None:
    sealed = (await on_broker.obtain("user:ada")).encrypt(b"x", b"")
    other = await JetStreamVault.open(bucket, MASTER)
    try:
        assert (await other.obtain("user:ada")).decrypt(sealed, b"") == b"x"
    finally:
        await other.close()


async def test_another_master_key_is_refused_at_once(on_broker: JetStreamVault, bucket: BrokerAccess) -> None:
    with pytest.raises(WrongMasterKey, match=r"another master key.*keys/master\.key of the data directory"):
        await JetStreamVault.open(bucket, new_secret())


async def test_a_key_is_never_written_over(on_broker: JetStreamVault) -> None:
    sealed = (await on_broker.obtain("user:ada")).encrypt(b"x", b"")
    await on_broker.connection.request(subject_of("key", "user:ada"), b"{}")
    assert (await on_broker.obtain("user:ada")).decrypt(sealed, b"") == b"x"


@pytest.mark.parametrize("role", ["writer", "reader"])
async def test_no_other_user_may_read_write_or_delete_a_key(
    on_broker: JetStreamVault, bucket: BrokerAccess, role: Role
) -> None:
    await on_broker.obtain("user:ada")
    attacker = await BrokerConnection.open(bucket, role, name="attacker")
    name = subject_of("key", "user:ada")
    attempts = {
        f"$JS.API.STREAM.MSG.GET.{KEYS_STREAM}": orjson.dumps({"last_by_subj": name}),
        f"$JS.API.DIRECT.GET.{KEYS_STREAM}.{name}": b"",
        f"$JS.API.CONSUMER.CREATE.{KEYS_STREAM}.x": b"{}",
        f"$JS.API.STREAM.MSG.DELETE.{KEYS_STREAM}": orjson.dumps({"seq": 2}),
        name: b"mine",
    }
    try:
        for subject, body in attempts.items():
            with pytest.raises(BrokerMisconfigured, match="may not do this"):
                await attacker.request(subject, body, timeout=PATIENCE)
    finally:
        await attacker.close()


async def test_a_key_for_which_a_broker_has_no_room_is_told_and_the_others_stay(
    on_broker: JetStreamVault,
    bucket: BrokerAccess,
    admin: BrokerConnection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The limit is in the settings of the bucket, which are refused before, in place of those of an account, a disk.
    monkeypatch.setattr("ledger.privacy.vault_jetstream.ensure", AsyncMock())
    await on_broker.obtain("user:ada")
    await keep_keys(on_broker.connection, tmp_path)
    before = kept_keys(tmp_path)
    write_keys(tmp_path, {**before, subject_of("key", "user:bob"): before[subject_of("key", "user:ada")]})
    info = await admin.api(f"STREAM.INFO.{KEYS_STREAM}")
    no_more = {**info["config"], "max_bytes": info["state"]["bytes"]}
    assert not error_code(await admin.api(f"STREAM.UPDATE.{KEYS_STREAM}", no_more))
    with pytest.raises(LedgerError, match="a key of the vault"):
        await bring_back_keys(bucket, tmp_path)
    assert set(await kept_subjects(admin)) == set(before), "nothing was made anew"
