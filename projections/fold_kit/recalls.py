"""Which recalls count: those that served an agent, or a person at work. Who looks at a page only looks.

A look gives no verdict credit, renews and promotes no memory, and makes nothing recalled.
"""

from __future__ import annotations

from kledger.contract.recall import LOOK
from projections.fold_kit.sql_text import text


def counts(table: str = "") -> str:
    """The predicate of rows with the `kind` of a recall that counts."""
    return f"{table}kind <> {text(LOOK)}"
