"""Parsers of a test's own process have the connections of those that were closed: to open one takes ten milliseconds.

A parser keeps no state between its queries. Properties open some an example, and each desk of a test has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from projections.fold_kit.parser import Parser

USERS = (
    "projections.archive.writing.Parser",
    "projections.fold_kit.workbench.Parser",
    "projections.live.decoded_ahead.Parser",
    "projections.live.projector.Parser",
)
_idle: list[dict[str, Any]] = []


class ParserAgain(Parser):
    """A parser that leaves its connection to the next one."""

    def __init__(self) -> None:
        if _idle:
            vars(self).update(_idle.pop())
        else:
            super().__init__()

    def close(self) -> None:
        if kept := {**vars(self)}:  # who is closed twice had it once
            vars(self).clear()
            _idle.append(kept)


@contextmanager
def connections_again() -> Iterator[None]:
    """Within the block, whoever makes a parser has such a one."""
    with pytest.MonkeyPatch.context() as parsers:
        for user in USERS:
            parsers.setattr(user, ParserAgain)
        yield
