"""On how many examples is a property tried?

`make test` draws the same ones each time, and of those a third, the first: where a property is broken, few show it. Of
those that take seconds each it draws a sixth. `make properties` draws others each time, as many as the property names.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

EXPLORES = bool(os.environ.get("KLEDGER_EXPLORE"))


def tries(count: int, *, dear: bool = False) -> int:
    """So many where examples are drawn by chance, else a third, or a sixth of `dear` ones."""
    return count if EXPLORES else -(-count // (6 if dear else 3))


def law(count: int, *, dear: bool = False) -> settings:
    """The settings of a law of random histories: an example that fails is shown as it was drawn."""
    return settings(
        max_examples=tries(count, dear=dear),
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
