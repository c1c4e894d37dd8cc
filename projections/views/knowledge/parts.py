"""Part of a history: the latest so many entries before a position, with texts of so many characters at most."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.event import JsonObject


@dataclass(frozen=True, slots=True)
class Part:
    """Which entries, and how much of each text; None where there is no bound."""

    limit: int | None = None
    before: int | None = None
    shorten: int | None = None

    def narrowed(self, position: str) -> str:
        """The end of a query whose WHERE has begun, the latest entries first; `position` is a column."""
        before = "" if self.before is None else f"AND {position} < {int(self.before)} "
        limit = "" if self.limit is None else f" LIMIT {int(self.limit)}"
        return f"{before}ORDER BY {position} DESC{limit}"

    def shortened(self, content: str) -> JsonObject:
        """The beginning of a content, with its `length`, where it is longer than is wanted; else nothing."""
        if self.shorten is None or len(content) <= self.shorten:
            return {}
        return {"content": content[: self.shorten], "length": len(content)}


WHOLE = Part()
