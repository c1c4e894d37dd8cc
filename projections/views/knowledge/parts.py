"""Part of a history: the latest so many entries before a position, with texts of so many characters at most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """Which entries, and how much of each text; None where there is no bound. `since` is the first position."""

    limit: int | None = None
    before: int | None = None
    shorten: int | None = None
    since: int | None = None

    def narrowed(self, position: str) -> str:
        """The end of a query whose WHERE has begun, the latest entries first; `position` is a column."""
        before = "" if self.before is None else f"AND {position} < {int(self.before)} "
        since = "" if self.since is None else f"AND {position} >= {int(self.since)} "
        limit = "" if self.limit is None else f" LIMIT {int(self.limit)}"
        return f"{before}{since}ORDER BY {position} DESC{limit}"

    def shown(self) -> str:
        """What is shown of the column `content` (SQL)."""
        return "content" if self.shorten is None else f"left(content, {int(self.shorten)})"

    def content(self) -> str:
        """The column `content`, with the `length` of all of it where it is shortened (SQL)."""
        return "content" if self.shorten is None else f"{self.shown()} AS content, length(content) AS length"


WHOLE = Part()
