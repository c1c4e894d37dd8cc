"""What do the items that a search found say now? Remembered, so that a search asks the view only what has changed.

A version never changes, and what its item came to changes only when an event about an item is folded. Measured at
9,000 items: asking the view takes 2 ms a search, remembering 0.1 ms.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import duckdb

from ledger.event import JsonObject
from projections.fold_kit.sql_text import among
from projections.live.view import View
from projections.search.ranking import Standing
from projections.views.feedback.evidence import confidence
from projections.views.knowledge.ask import VERSION_COLUMNS, item_of, rfc3339, scopes_of

MOST = 20_000
"""Versions that are remembered."""


class State(NamedTuple):
    """What an item has come to, out of its row of `knowledge_state`."""

    org: str
    id: str
    at: int
    """The position that made the version that holds."""
    status: str
    helpful: int
    harmful: int
    position: int
    updated_us: int
    supporting: int
    opposing: int


_STATE = "org, id, version_position, status, helpful, harmful, position, epoch_us(updated_at), supporting, opposing"
Said = tuple[JsonObject, Sequence[str]]
"""What a version says, as the doors show an item, and through what it is read beside its owner."""


@dataclass(frozen=True, slots=True)
class Known:
    """An active item: what the version that holds says, its scopes and ACL, and what it has come to."""

    said: JsonObject
    scopes: Sequence[str]
    state: State

    @property
    def at(self) -> int:
        """The position that made the version."""
        return self.state.at

    def standing(self) -> Standing:
        """What ranking needs of it."""
        state = self.state
        changed = datetime.fromtimestamp(state.updated_us / 1e6, UTC)
        counted = (self.said["eval"]["score"], state.helpful, state.harmful)
        return Standing(state.id, *counted, self.scopes, changed, self.said["owner"])

    def shown(self) -> JsonObject:
        """The item as the doors show it."""
        state, told = self.state, self.said["eval"]
        counted = {
            **told,
            "helpful": state.helpful,
            "harmful": state.harmful,
            "confidence": confidence(told["confidence"], state.supporting, state.opposing),
        }
        return {
            **self.said,
            "eval": counted,
            "position": state.position,
            "updated_at": rfc3339(state.updated_us),
        }


class RememberedItems:
    """The items of one view file. Its methods belong to one event loop; the file is read on a reader thread."""

    def __init__(self, view: View, most: int = MOST) -> None:
        self._view = view
        self._most = most
        self._turn = asyncio.Lock()
        self.instance = view.instance
        """The file; once it has given way to another one, nothing of this is to be asked again."""
        self._upto = view.instance.position
        self._said: OrderedDict[int, Said] = OrderedDict()
        self._states: OrderedDict[int, State] = OrderedDict()
        self._holds: dict[tuple[str, str], int] = {}

    async def active(self, org: str, positions: Sequence[int]) -> list[Known]:
        """Those of the versions made at these positions that hold, are active, and are this tenant's."""
        states = self._remembered(positions)
        if len(states) < len(positions):
            async with self._turn:
                states = await self._looked_up(positions)
        held = [state for state in states if state.status == "active" and state.org == org]
        said = {state.at: words for state in held if (words := self._said.get(state.at)) is not None}
        if missing := [state.at for state in held if state.at not in said]:
            said |= await self._read_said(f"valid_from IN ({among(missing)})")
        return [Known(*said[state.at], state) for state in held if state.at in said]

    async def learn(self, after: int, upto: int) -> None:
        """Read what was said between two positions before somebody asks for it; no more than is remembered."""
        await self._read_said(
            f"valid_from > {int(after)} AND valid_from <= {int(upto)} AND valid_to IS NULL "
            f"ORDER BY valid_from DESC LIMIT {self._most}"
        )

    def _remembered(self, positions: Sequence[int]) -> list[State]:
        """The states of these versions, where they are remembered and nothing has happened to any item since."""
        if self.instance.items_position > self._upto:
            return []
        return [state for at in positions if (state := self._states.get(at)) is not None]

    async def _looked_up(self, positions: Sequence[int]) -> list[State]:
        """The present states of these versions, those left out that no longer hold; all that changed is remembered."""
        folded = self.instance.items_position
        if folded > self._upto:
            changed = await self._view.ask(
                _states, f"position > {self._upto} ORDER BY position DESC LIMIT {self._most}"
            )
            if len(changed) == self._most:  # perhaps not all that changed
                self._states.clear()
                self._holds.clear()
            self._keep(changed)
            self._upto = folded
        known = {at: state for at in positions if (state := self._states.get(at)) is not None}
        if missing := [at for at in positions if at not in known]:
            found = await self._view.ask(_states, f"version_position IN ({among(missing)})")
            self._keep(found)
            known |= {state.at: state for state in found}
        return [known[at] for at in positions if at in known]

    def _keep(self, states: Sequence[State]) -> None:
        """Remember states as they are now; the versions that they end are remembered no longer."""
        for state in states:
            item = (state.org, state.id)
            before = self._holds.get(item, state.at)
            if before != state.at:
                del self._states[before]
                self._said.pop(before, None)
            self._states[state.at], self._holds[item] = state, state.at
        while len(self._states) > self._most:
            _, oldest = self._states.popitem(last=False)
            del self._holds[oldest.org, oldest.id]

    async def _read_said(self, where: str) -> dict[int, Said]:
        found = await self._view.ask(_said, where)
        self._said.update(found)
        while len(self._said) > self._most:
            self._said.popitem(last=False)
        return found


def _states(cursor: duckdb.DuckDBPyConnection, where: str) -> list[State]:
    return list(map(State._make, cursor.execute(f"SELECT {_STATE} FROM knowledge_state WHERE {where}").fetchall()))


def _said(cursor: duckdb.DuckDBPyConnection, where: str) -> dict[int, Said]:
    rows = cursor.execute(f"SELECT {VERSION_COLUMNS}, valid_from FROM knowledge_versions WHERE {where}").fetchall()
    items = [(row[-1], item_of(row)) for row in rows]
    return {at: (item, scopes_of(item)) for at, item in items}
