"""A property draws the same examples in every worker, whatever ran there before."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.every_module import PRODUCT

ROOT = Path(__file__).parents[2]


@given(st.none())
def test_whatever_hypothesis_draws_constants_of_is_loaded_before_the_first_property(nothing: None) -> None:
    files = [file.relative_to(ROOT).with_suffix("") for package in PRODUCT for file in (ROOT / package).rglob("*.py")]
    names = {".".join(file.parts).removesuffix(".__init__") for file in files if file.name != "__main__"}
    assert nothing is None
    assert len(names) > 500
    assert not names - set(sys.modules)
