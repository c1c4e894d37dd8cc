"""How often does a long-running process look for garbage? Seldom: each batch makes many objects and no cycles.

As often as usual, it took a third of the time of a batch of verdicts, and a seventh of that of a rebuild.
"""

from __future__ import annotations

import gc

_OBJECTS = 100_000
"""More containers made than let go before the young ones are looked through; Python 3.11's own number is 700."""


def collect_seldom() -> None:
    """Look for garbage seldom, and never again among what is there already: modules, classes, routes."""
    gc.freeze()
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])  # older ones as ever: what a node holds for days is let go
