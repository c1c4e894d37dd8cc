"""Who reads an item, and who may say that it helped, harmed, deserves a score or is so?

Its readers are its scopes, the entities of its ACL, and its owner. Where all of them are users and agents, they alone
judge it. Where others are among them, a member may: through which scope is stated by whoever judges, since the log does
not hold who is in which project. The same in SQL is in projections/fold_kit/visibility.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kledger.contract.scopes import PUBLIC, Caller, type_of

PERSONAL = ("user", "agent")
"""Kinds of entities that are one reader each; of all others somebody is a member."""


class Judge(NamedTuple):
    """Who states a verdict, and the scope or entity through which they read the item."""

    actor: str
    through: str


def readers(scopes: Sequence[str], shared_with: Sequence[str], owner: str) -> list[str]:
    """Everybody who reads an item, each once."""
    return list(dict.fromkeys([*scopes, *shared_with, owner]))


def may_judge(actor: str, through: str | None, readers: Collection[str]) -> bool:
    """Whether a verdict of the actor counts; `through` is None in an event that does not state it (version 1)."""
    if actor in readers or PUBLIC in readers:
        return True
    shared = {reader for reader in readers if type_of(reader) not in PERSONAL}
    return through in shared if through is not None else bool(shared)


def judge_of(caller: Caller, readers: Collection[str]) -> Judge | None:
    """As whom a caller judges an item, None when the caller does not read it.

    It is the caller's most specific entity where that may judge, else the one that reads the item. Whoever reads all
    judges through any group that reads the item, and what persons alone read as the first of them.
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
