"""Who may see what: the grammar of scopes and owners, and the scopes that a caller sees.

An entity is `{entity_type}:{entity_id}`; a scope is an entity or `public`. The log takes any word as a type;
the interfaces take the built-in ones and those that the operator registered (scope_type.registered).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kledger.contract.entities import ENTITY_MAX_LENGTH, is_entity
from kledger.contract.errors import IllegalScope
from kledger.contract.words import EVERYTHING

PUBLIC = "public"
OPERATOR = "user:local"
"""As whom the operator of a node acts who names no identity."""
# Highest first: user > project > agent > team > org > public.
PRIORITY: dict[str, int] = {"user": 6, "project": 5, "agent": 4, "team": 3, "org": 2, PUBLIC: 1}
PERSONAL = ("user", "agent")
"""Kinds of entities that are somebody, a single reader each; all other kinds are groups with members."""
ENTITY_TYPES = tuple(kind for kind in PRIORITY if kind != PUBLIC)
_FORM = (
    f"{{type}}:{{id}} with a type out of {', '.join(ENTITY_TYPES)} or one that the operator registered, "
    f"{ENTITY_MAX_LENGTH} printable characters at most"
)
MOST_ENTITIES = 256
"""So many entities may ask at once: what was served to whom names them all."""

# What Unicode calls ignorable by default (selectors of variants, tags, marks of direction, fillers),
# the Braille pattern without a dot, marks of annotations, controls, and blanks that look like the blank, or stand at
# an end. The joiners U+200C and U+200D, which names of several scripts are written with, join nothing behind ASCII.
_UNSEEN = re.compile(
    "[\u0080-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200b\u200e\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    "|(?<![^\\x00-\\x7f])[\u200c\u200d]|(?:^|(?<=:))\u3000|\u3000$"
)

Visibility = Literal["private", "shared", "org", "public"]


def check_entity(value: str) -> str:
    """Return `value` when it is a legal entity, raise IllegalScope otherwise."""
    if is_entity(value):
        return value
    raise IllegalScope(f"{value!r} is not an entity: write {_FORM}")


def require_somebody(what: str, name: str) -> str:
    """Return `name` when it names anybody; raise IllegalScope for an empty or blank one.

    Taken for nobody, it would make whoever meant to name somebody the operator of the node.
    """
    if not name.strip():
        raise IllegalScope(f"{what} is empty: name somebody, or leave it out", errors=[])
    return name


def check_name(kind: str, name: str) -> str:
    """Return `name` when it is the id of one `kind` who asks, alone; raise IllegalScope otherwise.

    For interfaces: an identity is stated there as its kind and its id, and `user:mei` as a user would be
    `user:user:mei`, another person than meant, for good. The log takes such an entity, and so does whoever names it
    whole.
    """
    if not isinstance(name, str):
        raise IllegalScope(f"the {kind} is {name!r}, and a text is meant: write {str(name)!r}", errors=[])
    require_somebody(f"the {kind}", name)
    stated, colon, rest = name.partition(":")
    other = stated.strip().lower()
    if colon and other in PRIORITY:
        meant = f"give the name alone: {rest.strip()}" if other == kind else f"give the name of one {kind} alone"
        raise IllegalScope(f"the {kind} {name!r} states a type before the name: {meant}", errors=[])
    if "," in name:
        raise IllegalScope(
            f"the {kind} {name!r} is more than one name: name one {kind}; whose name has a comma in it is named whole, "
            "as an entity, in X-Ledger-Scope",
            errors=[],
        )
    return check_seen(kind, name)


def check_seen(what: str, name: str) -> str:
    """Return `name` unless it looks like another one: they would be two persons, of whom one is forgotten and the other
    is not. Raises IllegalScope."""
    if name.isascii():
        return name
    from unicodedata import is_normalized, normalize

    unseen = _UNSEEN.search(name)
    if unseen is not None:
        raise IllegalScope(
            f"the {what} {name!r} holds U+{ord(unseen[0]):04X}, which nobody sees, and would be another one than "
            "the name that it looks like: write it without",
            errors=[],
        )
    if not is_normalized("NFC", name):
        raise IllegalScope(
            f"the {what} {name!r} has letters in parts, and would be another one than the name that it looks like: "
            f"write {normalize('NFC', name)!r}, as Unicode's form NFC has it",
            errors=[],
        )
    return name


def check_scope(value: str) -> str:
    """Return `value` when it is `public` or a legal entity, raise IllegalScope otherwise."""
    if value == PUBLIC or is_entity(value):
        return value
    raise IllegalScope(f"{value!r} is not a scope: write {PUBLIC}, or an entity as {_FORM}")


def type_of(scope: str) -> str:
    """`team` of `team:frontend`; `public` of `public`."""
    return scope.partition(":")[0]


def further_types(scopes: Iterable[str]) -> set[str]:
    """The types among these that are not built in: somebody has to have registered them."""
    return {kind for scope in scopes if (kind := type_of(scope)) not in PRIORITY or (kind == PUBLIC and scope != kind)}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: any of the five identities, and `further` entities. With none of them it is the operator of the node.

    The operator may write for any owner (an import does), and sees what is public or its own, or, with `reads_all`,
    everything: so it is who says nothing to a node on loopback that asks for no token. `addresses` are the scopes that
    a caller with a token may write for; None where callers are trusted to say who they are.
    """

    user: str | None = None
    agent: str | None = None
    project: str | None = None
    team: str | None = None
    org: str | None = None
    addresses: frozenset[str] | None = field(default=None, compare=False, repr=False)
    further: tuple[str, ...] = ()
    reads_all: bool = False

    def __post_init__(self) -> None:
        if self.reads_all and self.entities():
            raise ValueError("whoever is named reads what is theirs")
        for entity in self.entities():
            check_entity(entity)

    @classmethod
    def of(
        cls, named: Mapping[str, str], addresses: frozenset[str] | None = None, further: Iterable[str] = ()
    ) -> Caller:
        """Who is named by kind, `{"user": "ada"}`, and further entities. Raises IllegalScope."""
        others = (f"{kind}:{name}" for kind, name in named.items() if kind not in ENTITY_TYPES)
        user, project, agent, team, org = (named.get(kind) for kind in ENTITY_TYPES)
        return cls(user, agent, project, team, org, addresses, tuple(dict.fromkeys([*others, *further])))

    @classmethod
    def seeing(cls, visible: Collection[str]) -> Caller:
        """Somebody who sees just these scopes."""
        if EVERYTHING in visible:
            return cls(reads_all=True)
        return cls(further=tuple(scope for scope in visible if scope != PUBLIC))

    def entities(self) -> list[str]:
        """The caller as entities, most specific first: user, agent, project, team, org; then the further ones."""
        named = (
            ("user", self.user),
            ("agent", self.agent),
            ("project", self.project),
            ("team", self.team),
            ("org", self.org),
        )
        entities = [f"{kind}:{name}" for kind, name in named if name is not None]
        return list(dict.fromkeys([*entities, *self.further])) if self.further else entities

    @property
    def is_operator(self) -> bool:
        return not self.entities()

    def reading_as(self) -> list[str]:
        """The entities that the caller reads and acts as: its own; the operator's is `user:local`."""
        return self.entities() or [OPERATOR]

    def visible_scopes(self) -> list[str]:
        """All scopes the caller may read, and sees the owned items of."""
        return [*self.reading_as(), PUBLIC]

    def searched_scopes(self) -> list[str]:
        """The same as searches take it: with EVERYTHING for whoever reads all."""
        return [*self.visible_scopes(), EVERYTHING] if self.reads_all else self.visible_scopes()

    def person(self) -> str | None:
        """Whose memories and profile the caller asks for: the user's; who says nothing and reads all is OPERATOR."""
        if self.user is not None:
            return f"user:{self.user}"
        return OPERATOR if self.reads_all else None

    def may_act_for(self, owner: str) -> bool:
        """True when the caller is the owner, or is the operator."""
        return self.is_operator or owner in self.entities()


def visibility_of(scopes: Sequence[str], owner: str, shared_with: Sequence[str] = ()) -> Visibility:
    """The label derived from who may read: public, org, private (one person or the owner), shared.

    `shared_with` are the entities of the ACL: they read like those in `scopes`.
    """
    readers = sorted({*scopes, *shared_with}) if shared_with else scopes
    if PUBLIC in readers:
        return "public"
    if any(scope.startswith("org:") for scope in readers):
        return "org"
    if len(readers) == 1 and (readers[0] == owner or readers[0].startswith("user:")):
        return "private"
    return "shared"
