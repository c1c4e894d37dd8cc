"""Principal: the holder of a token, and the identities that the token is bound to.

The X-Ledger headers choose among the identities of a token. They never add one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kledger.contract.errors import Forbidden
from kledger.contract.scopes import ENTITY_TYPES, PUBLIC, Caller, check_entity, check_name, check_seen
from kledger.contract.words import TokenRole

ADMIN = "/api/admin"
# What an analyst may request: SQL, what it can name, how to attach, and the status with the position of the view.
ANALYSTS_PATHS = frozenset({f"{ADMIN}/sql", f"{ADMIN}/columns", f"{ADMIN}/attach", f"{ADMIN}/status"})

SCOPE_KEY = "kledger.principal"
"""Key of a request's principal in its ASGI scope."""
ADMITTED_KEY = "kledger.admitted"
"""Key in the ASGI scope of an internal request, made for one that was already authenticated and counted."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The holder of a token. `id` is the token's id, which is not secret; `bound` are ids by kind of entity."""

    id: str
    role: TokenRole
    bound: Mapping[str, tuple[str, ...]]

    def entities(self) -> frozenset[str]:
        """All entities that the token is bound to, as `kind:id`."""
        return frozenset(f"{kind}:{name}" for kind, names in self.bound.items() for name in names)

    def require_path(self, path: str) -> None:
        """Raise Forbidden when the path needs another role."""
        if not path.startswith(ADMIN) or self.role == "operator":
            return
        if self.role != "analyst" or path not in ANALYSTS_PATHS:
            needed = "analyst" if path in ANALYSTS_PATHS else "operator"
            raise Forbidden(
                f"{path} is not for the role {self.role} of token {self.id}: use a token of the role {needed}",
                role=self.role,
            )

    def caller(self, named: Mapping[str, str], path: str, further: Sequence[str] = ()) -> Caller:
        """The caller of a request that names `named` (kind to id) and further entities in its headers.

        Named identities have to be bound to the token, and are then the only ones of the caller; without any, each
        kind with a single bound id counts. Only the operator may have no identity, and an operator token that is
        bound to nothing may name any. Raises Forbidden, IllegalScope.
        """
        operator = self.role == "operator"
        own = self.entities()
        for entity in (*(f"{kind}:{name}" for kind, name in named.items()), *further):
            if entity not in own and not (operator and not self.bound):
                raise Forbidden(
                    f"token {self.id} is not bound to {entity}: leave it out, or use a token of {entity}",
                    entity=entity,
                )
        if operator:
            return Caller.of(named, further=further)
        addresses = own | {PUBLIC}
        if named or further:
            return Caller.of(named, addresses, further)
        if self.role == "analyst" and path in ANALYSTS_PATHS:
            return Caller()
        alone = {kind: names[0] for kind, names in self.bound.items() if len(names) == 1}
        if not alone:
            known = ", ".join(sorted(own)) or "nobody: it is for SQL alone"
            raise Forbidden(f"the request does not say who asks; token {self.id} is bound to {known}")
        return Caller.of(alone, addresses)


def require_addressable(caller: Caller, scopes: Iterable[str], what: str, before: Collection[str] = ()) -> None:
    """Raise Forbidden when a caller with a token names a scope or owner that its token is not bound to.

    `before` are those that are named already: only who is added is asked whether they want it.
    """
    if caller.addresses is None:
        return
    for scope in scopes:
        if scope not in caller.addresses and scope not in before:
            raise Forbidden(
                f"your token is not bound to {scope}, so {what} may not name it: use one of "
                f"{', '.join(sorted(caller.addresses))}",
                scope=scope,
            )


def bindings(named: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Ids by kind, deduplicated, without empty kinds. Raises IllegalScope for an id that no entity can have."""
    bound: dict[str, tuple[str, ...]] = {}
    for kind in dict.fromkeys([*ENTITY_TYPES, *named]):
        names = tuple(dict.fromkeys(named.get(kind, ())))
        for name in names:
            check_entity(f"{kind}:{check_name(kind, name) if kind in ENTITY_TYPES else check_seen(kind, name)}")
        if names:
            bound[kind] = names
    return bound
