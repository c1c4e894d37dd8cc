"""What have models cost today? As the log has it, on any node, after any restart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ledger.event import NewEvent
from ledger.events.evolution import EvolutionFailed, EvolutionProposed, EvolutionRequested
from ledger.events.usage import Usage
from projections.processes.ask import spent_since
from tests.projections.histories import START_NS, saved, stored, view_of

PAID = Usage(model="big", prompt_version="1", input_tokens=10, output_tokens=5, cost_usd=0.25)
FREE = Usage(model="own", prompt_version="1", input_tokens=10, output_tokens=5)


def test_the_days_cost_is_the_sum_of_what_every_answer_and_failure_says() -> None:
    log = [saved()]
    for number, end in enumerate(
        (
            EvolutionProposed(item_id="k1", content="c", usage=PAID),
            EvolutionFailed(item_id="k1", code="model_refused", reason="no", usage=PAID),
            EvolutionFailed(item_id="k1", code="model_failed", reason="no"),
            EvolutionProposed(item_id="k1", content="c", usage=FREE),
        )
    ):
        asked = EvolutionRequested(item_id="k1", base_version=1, feedback="f")
        log += [NewEvent(fact, f"evolution-{number}", "agent:a") for fact in (asked, end)]
    view = view_of(stored(log)).con
    start = datetime.fromtimestamp(START_NS / 1e9, UTC)
    assert spent_since(view, start) == 0.5
    assert spent_since(view, start + timedelta(days=1)) == 0.0
