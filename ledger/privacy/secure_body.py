"""Secret of a resource: how it is sealed, and who may open it.

It is sealed with the resource's own key and with the keys of the persons it belongs to: forgetting one of them, or
destroying the resource's key, makes it unreadable for good. Views keep it sealed with the resource's key; only
`open_secure` decrypts it, for an authorized caller.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag
from pydantic_core import to_json

from kledger.contract.errors import Erased, KeyMissing, NotOwner, SealBroken
from kledger.contract.scopes import Caller
from kledger.contract.seal_mark import MARK
from ledger.privacy.sealed import RESOURCE, bound_to, name_in
from ledger.privacy.vault import DataKey, Tombstone, Vault


def key_name(resource_id: str) -> str:
    """The name of a resource's key."""
    return f"{RESOURCE}{resource_id}"


async def seal_secure(
    vault: Vault,
    value: Any,
    resource_id: str,
    *,
    org: str,
    persons: Sequence[str],
    event_id: str,
    by: str = "",
) -> str:
    """Seal a secret for the event `event_id` by tenant and actor `by`.

    The inner seal is bound to tenant and resource only, because views keep it. The outer ones, of `persons`, are bound
    to the event like every text of a person. Raises SubjectForgotten, BrokerUnavailable.
    """
    outer = [(await vault.obtain(person), bound_to(event_id, "/data/secure_body", by)) for person in persons]
    keys = [(await vault.obtain(key_name(resource_id)), _about(org, resource_id)), *outer]
    inner: bytes = to_json(value)
    for key, about in keys:
        inner = key.seal(inner, about)
    return inner.decode()


def may_open(caller: Caller, owner: str, shared_with: Sequence[str]) -> bool:
    """True for the owner and for each entity that the resource is shared with; `public` shares no secret.

    A caller without an identity may open the secrets that callers without an identity saved, and no others.
    """
    entities = caller.reading_as()
    return owner in entities or any(entity in shared_with for entity in entities)


async def open_secure(
    vault: Vault,
    sealed: str,
    resource_id: str,
    *,
    org: str,
    caller: Caller,
    owner: str,
    shared_with: Sequence[str] = (),
) -> Any:
    """The secret in clear, from the sealed value in a view.

    Raises NotOwner, Erased (a key is destroyed), KeyMissing, SealBroken; none of them discloses any of the secret.
    """
    if not may_open(caller, owner, shared_with):
        raise NotOwner(
            f"the secret of {resource_id} is its owner's and of those it is shared with: ask {owner}", id=resource_id
        )
    return await unsealed(vault, sealed, resource_id, org=org)


async def unsealed(vault: Vault, sealed: str, resource_id: str, *, org: str) -> Any:
    """The secret in clear; the caller has checked `may_open` before. Raises Erased, KeyMissing, SealBroken."""
    if not sealed.startswith(MARK):  # the fallback that a view has for a secret that was erased with its owner
        raise _erased(resource_id)
    name = name_in(sealed)
    if name != key_name(resource_id):
        raise SealBroken(f"the secret of {resource_id} is not sealed with its key: it was moved", id=resource_id)
    held = (await vault.look([name])).get(name)
    if isinstance(held, Tombstone):
        raise _erased(resource_id)
    if not isinstance(held, DataKey):
        raise KeyMissing(f"the vault has no key for {resource_id}: is it the vault of this ledger?", key=name)
    try:
        return orjson.loads(
            held.decrypt(base64.b64decode(sealed[len(MARK) + len(name) + 1 :]), _about(org, resource_id))
        )
    except (InvalidTag, ValueError) as error:
        raise SealBroken(f"the secret of {resource_id} does not verify: it was changed", id=resource_id) from error


def _about(org: str, resource_id: str) -> bytes:
    return f"secure body\n{org}\n{resource_id}".encode()


def _erased(resource_id: str) -> Erased:
    return Erased(f"the secret of {resource_id} was erased", id=resource_id)
