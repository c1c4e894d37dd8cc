"""Rows of new items that were made before their fold, kept until then: the next list has most of them too."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from ledger.event import JsonObject, StoredEvent
from ledger.privacy.keyring import Keyring
from ledger.privacy.sealed import may_be_sealed
from projections.engine.ahead.just_saved import row_of

MOST_MADE = 32
"""So many rows are made for one read, in the event loop; a fold of more takes as long, and all reads then have it."""


class MadeRows:
    """The rows by the position of their saves. Belongs to one event loop.

    A row follows from its event alone. What was sealed is opened anew each time: its key may be gone by then.
    """

    def __init__(self) -> None:
        self._rows: dict[int, JsonObject] = {}

    def rows_of(
        self, con: duckdb.DuckDBPyConnection, keyring: Keyring, saves: Sequence[StoredEvent], folded: int
    ) -> list[JsonObject] | None:
        """The rows of these saves, while the view is at `folded`.

        None where the view has to say one of them, or too many have to be made.
        """
        self._rows = {position: row for position, row in self._rows.items() if position > folded}
        if sum(save.position not in self._rows for save in saves) > MOST_MADE:
            return None
        rows = []
        for save in saves:
            row = self._rows.get(save.position)
            if row is None:
                row = row_of(con, keyring, save)
                if row is None:
                    return None
                if not may_be_sealed(save.body):
                    self._rows[save.position] = row
            rows.append(row)
        return rows
