"""What several answers of models cost together is a cost again, whatever each of them states."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.events.usage import MOST_CALLS, MOST_COST, MOST_TOKENS, Usage, together

USAGES = st.builds(
    Usage,
    model=st.text(min_size=1, max_size=200),
    prompt_version=st.text(min_size=1, max_size=80),
    input_tokens=st.integers(0, MOST_TOKENS),
    output_tokens=st.integers(0, MOST_TOKENS),
    cost_usd=st.none() | st.floats(0, MOST_COST),
    calls=st.integers(0, MOST_CALLS),
)


@settings(deadline=None)
@given(USAGES, USAGES)
def test_the_cost_of_two_answers_is_a_cost_that_can_be_answered_and_kept(first: Usage, second: Usage) -> None:
    both = together(first, second)
    assert Usage.model_validate_json(both.model_dump_json()) == both
    assert both.calls == min(MOST_CALLS, first.calls + second.calls)
