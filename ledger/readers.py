"""Readers of an item, and which of them may judge it (that it helped, harmed, deserves a score, or is true).

The readers of an item are its scopes, the entities of its ACL, and its owner. Where all of them are users and agents,
only they may judge it. Where a group (project, team, organization ...) is among them, a member of the group may. The
actor names the scope through which they read the item, since the log has no memberships. The same rule in SQL is in
projections/fold_kit/visibility.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kledger.contract.scopes import PERSONAL, PUBLIC, Caller, type_of


class Judge(NamedTuple):
    """The actor of a verdict, and the scope or entity through which they read the item."""

    actor: str
    through: str


def readers(scopes: Sequence[str], shared_with: Sequence[str], owner: str) -> list[str]:
    """All readers of an item, without duplicates."""
    return list(dict.fromkeys([*scopes, *shared_with, owner]))


def may_judge(actor: str, through: str | None, readers: Collection[str]) -> bool:
    """Whether a verdict of the actor counts; `through` is None in an event of version 1, which has no such field."""
    if actor in readers or PUBLIC in readers:
        return True
    shared = {reader for reader in readers if type_of(reader) not in PERSONAL}
    return through in shared if through is not None else bool(shared)


def judge_of(caller: Caller, readers: Collection[str]) -> Judge | None:
    """The entity as which a caller judges an item; None when the caller does not read it.

    It is the caller's most specific entity if that one may judge, else the one that reads the item. A caller who reads
    everything judges through any group that reads the item, or, where there is none, as its first reader.
    """
    entities = caller.reading_as()
    first = entities[0]
    for through in (first, PUBLIC, *(each for each in entities if type_of(each) not in PERSONAL)):
        if through in readers:
            return Judge(first, through)
    judge = next((Judge(each, each) for each in entities if each in readers), None)
    if judge is None and caller.reads_all:
        shared = next((each for each in readers if type_of(each) not in PERSONAL), None)
        judge = next((Judge(each, each) for each in readers), None) if shared is None else Judge(first, shared)
    return judge
