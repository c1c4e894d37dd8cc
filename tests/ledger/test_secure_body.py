"""The secret of a resource: its owner and those it is shared with read it, nobody else, and no log line has it."""

from __future__ import annotations

import io

import orjson
import pytest
import structlog

from kledger.contract.errors import Erased, NotOwner, SealBroken, SubjectForgotten
from kledger.contract.scopes import Caller
from ledger.privacy.keyring import Keyring
from ledger.privacy.personal import persons
from ledger.privacy.sealed import open_document
from ledger.privacy.secure_body import key_name, open_secure, seal_secure
from ledger.privacy.vault import MemoryVault
from ledger.runtime.redaction import Redactor

SECRET = "pässwort-秘密-7f3a"
OWNER = "user:ada"


@pytest.fixture
def vault() -> MemoryVault:
    return MemoryVault()


async def in_view(vault: MemoryVault, resource_id: str = "db", owner: str = OWNER) -> str:
    """What a view holds of a secret that was kept."""
    sealed = await seal_secure(vault, SECRET, resource_id, org="o", persons=persons(owner, []), event_id="e1")
    assert SECRET not in sealed
    document = open_document({"secure_body": sealed}, Keyring(vault.held).look, "e1")
    shown: str = orjson.loads(orjson.dumps(document))["secure_body"]
    return shown


@pytest.mark.parametrize("owner", [OWNER, "agent:deployer"])
async def test_the_owner_and_those_it_is_shared_with_read_it(vault: MemoryVault, owner: str) -> None:
    kept = await in_view(vault, owner=owner)
    kind, _, name = owner.partition(":")
    for caller in (Caller.of({kind: name}), Caller(agent="a", team="ops")):
        found = await open_secure(vault, kept, "db", org="o", caller=caller, owner=owner, shared_with=["team:ops"])
        assert found == SECRET


@pytest.mark.parametrize("caller", [Caller(), Caller(user="bob"), Caller(agent="ada"), Caller(team="ops2")])
async def test_nobody_else_reads_it_not_even_the_operator(vault: MemoryVault, caller: Caller) -> None:
    kept = await in_view(vault)
    with pytest.raises(NotOwner) as told:
        await open_secure(vault, kept, "db", org="o", caller=caller, owner=OWNER, shared_with=["team:ops", "public"])
    assert SECRET not in f"{told.value} {told.value.details}"


async def test_a_view_holds_it_sealed_with_the_key_of_the_resource(vault: MemoryVault) -> None:
    assert (await in_view(vault)).startswith("sealed:v1:resource:db:")


async def test_forgetting_the_owner_erases_it(vault: MemoryVault) -> None:
    sealed = await seal_secure(vault, SECRET, "db", org="o", persons=[OWNER], event_id="e1")
    await vault.destroy(OWNER, by="user:local", at="2026-03-05T12:00:00Z", receipt="r")
    document = open_document({"secure_body": sealed}, Keyring(vault.held).look, "e1")
    with pytest.raises(Erased):
        await open_secure(vault, document["secure_body"], "db", org="o", caller=Caller(user="ada"), owner=OWNER)
    with pytest.raises(SubjectForgotten):
        await seal_secure(vault, SECRET, "db2", org="o", persons=[OWNER], event_id="e2")


async def test_destroying_the_key_of_the_resource_erases_it_alone(vault: MemoryVault) -> None:
    kept, other = await in_view(vault), await in_view(vault, "other")
    await vault.destroy(key_name("db"), by="user:local", at="2026-03-05T12:00:00Z", receipt="r")
    with pytest.raises(Erased):
        await open_secure(vault, kept, "db", org="o", caller=Caller(user="ada"), owner=OWNER)
    assert await open_secure(vault, other, "other", org="o", caller=Caller(user="ada"), owner=OWNER) == SECRET


async def test_a_secret_that_was_put_into_another_resource_does_not_open(vault: MemoryVault) -> None:
    kept = await in_view(vault)
    await in_view(vault, "mine")
    for moved in (kept, kept.replace("resource:db", "resource:mine")):
        with pytest.raises(SealBroken):
            await open_secure(vault, moved, "mine", org="o", caller=Caller(user="ada"), owner=OWNER)


async def test_a_secret_of_another_tenant_does_not_open(vault: MemoryVault) -> None:
    kept = await in_view(vault)
    with pytest.raises(SealBroken):
        await open_secure(vault, kept, "db", org="another", caller=Caller(user="ada"), owner=OWNER)


def test_a_log_line_shows_no_value_whose_name_is_secret() -> None:
    written = io.StringIO()
    log = structlog.wrap_logger(
        structlog.PrintLogger(written), processors=[Redactor(()), structlog.processors.JSONRenderer()]
    )
    log.error(
        "refused",
        secure_body=SECRET,
        request={
            "headers": {"Authorization": SECRET, "X-Api-Key": "k", "Set-Cookie": SECRET},
            "parts": [{"token": SECRET}],
        },
        tokens_used=3,
    )
    told = orjson.loads(written.getvalue())
    assert SECRET not in written.getvalue()
    assert told["tokens_used"] == 3
    assert told["request"]["parts"] == [{"token": "[secret]"}]
