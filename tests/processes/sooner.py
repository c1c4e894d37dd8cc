"""Intervals of the product that a test shortens, in a node that it starts, in the place of waiting them out.

A forked node and its children keep to them. A process that is started from nothing has the product's own: what a test
promises holds there too, later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pkgutil import resolve_name

SOONER = "TESTS_SOONER"
SIGNED_AND_ARCHIVED = {
    "ledger.integrity.notary:Notary.every_seconds": 0.2,
    "ledger.integrity.notary:Notary.look_seconds": 0.1,
    "producers.node.archiving:LOOK_SECONDS": 0.2,
}


def sooner(intervals: Mapping[str, float]) -> dict[str, str]:
    """The variable of a process with these intervals: constants of modules, and defaults of classes."""
    return {SOONER: json.dumps({**intervals})}


def put_intervals() -> None:
    """Put the intervals in place that the environment asks for. Raises where the product has none of that name."""
    for path, seconds in json.loads(os.environ.get(SOONER, "{}")).items():
        module, _, named = path.partition(":")
        owner, _, name = named.rpartition(".")
        found = resolve_name(f"{module}:{owner}") if owner else resolve_name(module)
        place = found.__init__.__kwdefaults__ if owner else vars(found)
        assert isinstance(place[name], float), f"{path} is no interval"
        place[name] = seconds
