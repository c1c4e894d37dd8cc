"""Who may see what: the grammar of scopes and owners, and the scopes that a caller sees.

Mission S1-S3 (source 002). An entity is `{entity_type}:{entity_id}`; a scope is an entity or `public`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import AfterValidator, StringConstraints

from ledger.errors import IllegalScope

PUBLIC = "public"
# Highest first: the order of source 002, user > project > agent > team > org > public.
PRIORITY: dict[str, int] = {"user": 6, "project": 5, "agent": 4, "team": 3, "org": 2, PUBLIC: 1}
ENTITY_TYPES = tuple(kind for kind in PRIORITY if kind != PUBLIC)
ENTITY_PATTERN = r"^(user|project|agent|team|org):[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$"
ENTITY_MAX_LENGTH = 200
# ASCII: `\s` then means the same here as in the SQL that checks whole batches.
_ENTITY = re.compile(ENTITY_PATTERN, re.ASCII)

Visibility = Literal["private", "shared", "org", "public"]


def check_entity(value: str) -> str:
    """Return `value` when it is a legal entity, raise IllegalScope otherwise."""
    if len(value) <= ENTITY_MAX_LENGTH and _ENTITY.fullmatch(value):
        return value
    raise IllegalScope(
        f"{value!r} is not an entity: write {{type}}:{{id}} with a type out of "
        f"{', '.join(ENTITY_TYPES)} and an id of up to {ENTITY_MAX_LENGTH} printable characters"
    )


def check_scope(value: str) -> str:
    """Return `value` when it is `public` or a legal entity, raise IllegalScope otherwise."""
    return value if value == PUBLIC else check_entity(value)


def entity_or_value_error(value: str) -> str:
    """check_entity for pydantic, which collects ValueErrors with their field."""
    try:
        return check_entity(value)
    except IllegalScope as error:
        raise ValueError(error.message) from error


def scope_or_value_error(value: str) -> str:
    """check_scope for pydantic."""
    return value if value == PUBLIC else entity_or_value_error(value)


Entity = Annotated[str, StringConstraints(max_length=ENTITY_MAX_LENGTH), AfterValidator(entity_or_value_error)]
Scope = Annotated[str, StringConstraints(max_length=ENTITY_MAX_LENGTH), AfterValidator(scope_or_value_error)]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: any of the five identities. With none of them it is the operator of the node.

    The operator may write for any owner (an import does), and sees what is public. `addresses` are the scopes that
    a caller with a token may write for; None where callers are trusted to say who they are.
    """

    user: str | None = None
    agent: str | None = None
    project: str | None = None
    team: str | None = None
    org: str | None = None
    addresses: frozenset[str] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for entity in self.entities():
            check_entity(entity)

    @classmethod
    def of(cls, named: Mapping[str, str], addresses: frozenset[str] | None = None) -> Caller:
        """Who is named by kind: `{"user": "ada"}`. Raises IllegalScope."""
        user, agent, project = named.get("user"), named.get("agent"), named.get("project")
        return cls(user, agent, project, named.get("team"), named.get("org"), addresses)

    def entities(self) -> list[str]:
        """The caller as entities, most specific first: user, agent, project, team, org."""
        named = (
            ("user", self.user),
            ("agent", self.agent),
            ("project", self.project),
            ("team", self.team),
            ("org", self.org),
        )
        return [f"{kind}:{name}" for kind, name in named if name]

    @property
    def is_operator(self) -> bool:
        return not self.entities()

    def visible_scopes(self) -> list[str]:
        """All scopes the caller may read (source 002, build_visible_scopes)."""
        return [*self.entities(), PUBLIC]

    def may_act_for(self, owner: str) -> bool:
        """True when the caller is the owner, or is the operator."""
        return self.is_operator or owner in self.entities()


def visibility_of(scopes: Sequence[str], owner: str) -> Visibility:
    """The label derived from scopes (S3): public, org, private (one person or the owner), shared."""
    if PUBLIC in scopes:
        return "public"
    if any(scope.startswith("org:") for scope in scopes):
        return "org"
    if len(scopes) == 1 and (scopes[0] == owner or scopes[0].startswith("user:")):
        return "private"
    return "shared"
