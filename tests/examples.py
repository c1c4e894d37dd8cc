"""On how many examples is a property tried?

`make test` draws the same ones each time, and of those a third, the first: where a property is broken, few show it.
`make properties` draws others each time, as many as the property names.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

EXPLORES = bool(os.environ.get("KLEDGER_EXPLORE"))


def tries(count: int) -> int:
    """So many where examples are drawn by chance, else a third."""
    return count if EXPLORES else -(-count // 3)


def law(count: int) -> settings:
    """The settings of a law of random histories: an example that fails is shown as it was drawn."""
    return settings(
        max_examples=tries(count),
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
