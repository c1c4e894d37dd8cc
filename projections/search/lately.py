"""What each recall asks of the view, and what seldom changes: where the last days begin, which memory ends next."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import UTC, datetime, timedelta

from projections.engine.view import View
from projections.views.knowledge.lives import next_end
from projections.views.lineage.ask import position_at


class Lately:
    """The latest answers of one view. Its methods belong to one event loop."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._since: tuple[Hashable, int] | None = None
        self._end: tuple[Hashable, datetime | None] | None = None

    async def since(self, age: timedelta) -> int:
        """The log position so long ago, to the minute: what is stored by then stays where it is."""
        moment = (datetime.now(UTC) - age).replace(second=0, microsecond=0)
        asked = (self._view.instance, moment)
        if self._since is not None and self._since[0] == asked:
            return self._since[1]
        position, _ = await self._view.ask(position_at, moment)
        self._since = (asked, position)
        return position

    async def next_end(self, org: str, state: Hashable) -> datetime | None:
        """When the next short memory is over, by this state of the items; None where none is alive."""
        now = datetime.now(UTC)
        if self._end is not None and self._end[0] == (org, state) and (self._end[1] is None or now < self._end[1]):
            return self._end[1]
        ends = await self._view.ask(next_end, org, now)
        self._end = ((org, state), ends)
        return ends
