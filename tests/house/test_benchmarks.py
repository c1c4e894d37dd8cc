"""`make bench` runs every benchmark that it names."""

from __future__ import annotations

from importlib import import_module

import pytest

from bench.__main__ import BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_that_is_named_can_be_run(name: str) -> None:
    assert callable(import_module(f"bench.{name}").run)
