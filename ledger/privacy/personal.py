"""Persons: who can be forgotten, and to which persons an item belongs.

A person is a `user:`, except `user:local`, the name of an operator without an identity.
"""

from __future__ import annotations

from collections.abc import Iterable

from kledger.contract.errors import InvalidPayload
from kledger.contract.scopes import OPERATOR
from ledger.privacy.sealed import USER

NOBODY = OPERATOR


def is_person(entity: str) -> bool:
    """Whether this entity is a person, who can be forgotten."""
    return entity.startswith(USER) and entity != NOBODY


def require_person(subject: str) -> None:
    """Raise InvalidPayload when this is not a person, who can be forgotten."""
    if not is_person(subject) or subject == USER:
        raise InvalidPayload(
            f"{subject!r} is not a person: write user:ID of somebody whom the ledger knows",
            errors=[{"field": "subject", "reason": "is not a person"}],
        )


def persons(owner: str | None, scopes: Iterable[str]) -> list[str]:
    """The persons an item belongs to: its owner or, when that is not a person, all persons among its scopes.

    An ACL grants reading, not ownership: forgetting one of its readers must not erase the item for the others.
    """
    if owner is not None and is_person(owner):
        return [owner]
    return sorted(scope for scope in set(scopes) if is_person(scope))
