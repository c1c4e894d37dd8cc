"""Usage and cost of a model, part of every event with a model's answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kledger.contract.bounds import UNSIGNED_ZERO
from kledger.contract.part import Part

MOST_TOKENS, MOST_COST, MOST_CALLS = 1_000_000_000_000, 1_000_000_000.0, 1_000_000

Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


class Usage(Part):
    """Which model answered which version of a prompt; `cost_usd` is None where no price is known."""

    model: Annotated[str, Field(min_length=1, max_length=200)]
    prompt_version: Annotated[str, Field(min_length=1, max_length=80)]
    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cost_usd: Annotated[float, Field(ge=0.0, le=MOST_COST, allow_inf_nan=False), UNSIGNED_ZERO] | None = None
    calls: Annotated[int, Field(ge=0, le=MOST_CALLS)] = 1


EXAMPLE_USAGE = Usage(
    model="small-model", prompt_version="2026-03", input_tokens=812, output_tokens=64, cost_usd=0.0011
)
"""Of the examples of events."""


def together(first: Usage, second: Usage) -> Usage:
    """The sum of two usages; the model is the first one's. A sum beyond a bound is capped at the bound."""
    costs = [usage.cost_usd for usage in (first, second) if usage.cost_usd is not None]
    versions = dict.fromkeys([first.prompt_version, second.prompt_version])
    return Usage(
        model=first.model,
        prompt_version="+".join(versions)[:80],
        input_tokens=min(MOST_TOKENS, first.input_tokens + second.input_tokens),
        output_tokens=min(MOST_TOKENS, first.output_tokens + second.output_tokens),
        cost_usd=min(MOST_COST, round(sum(costs), 9)) if costs else None,
        calls=min(MOST_CALLS, first.calls + second.calls),
    )
