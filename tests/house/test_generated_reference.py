"""Does docs/reference say what the code says now?"""

from __future__ import annotations

import pytest

from docs.generate import REFERENCE, pages

MADE = pages()


@pytest.mark.parametrize("name", MADE)
def test_the_page_is_what_its_generator_gives(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == MADE[name], "stale: run `make docs`"


def test_no_schema_is_left_of_an_event_that_is_no_more() -> None:
    there = {path.relative_to(REFERENCE).as_posix() for path in (REFERENCE / "schemas").iterdir()}
    assert there == {name for name in MADE if name.startswith("schemas/")}
