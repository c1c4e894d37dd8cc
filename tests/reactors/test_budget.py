"""What have models cost today? As nodes say it in the log: on any node, after any restart, whatever others claim."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import duckdb

from ledger.event import Fact, NewEvent
from ledger.events import FACTS
from ledger.events.evolution import EvolutionFailed, EvolutionProposed, EvolutionRequested
from ledger.events.extraction import ExtractionCompleted, ExtractionFailed, ExtractionRequested
from ledger.events.model import ModelUsed
from ledger.events.session import SessionOpened, SessionSummarised
from ledger.events.slim import Similar, SlimFailed, SlimProposed, SlimRequested
from ledger.events.summary import (
    AbstractCompleted,
    AbstractFailed,
    AbstractRequested,
    SummaryCompleted,
    SummaryFailed,
    SummaryRequested,
)
from ledger.events.usage import MOST_CALLS, MOST_COST, MOST_TOKENS, Usage
from ledger.privacy.personal import NOBODY
from projections.views.processes.ask import spent_since
from tests.projections.histories import START_NS, rows, saved, stored, view_of

PAID = Usage(model="big", prompt_version="1", input_tokens=10, output_tokens=5, cost_usd=0.25)
FREE = Usage(model="own", prompt_version="1", input_tokens=10, output_tokens=5)
RUINOUS = Usage(
    model="big",
    prompt_version="1",
    input_tokens=MOST_TOKENS,
    output_tokens=MOST_TOKENS,
    cost_usd=MOST_COST,
    calls=MOST_CALLS,
)
START = datetime.fromtimestamp(START_NS / 1e9, UTC)
MALLORY = "agent:mallory"


def used(number: int, usage: Usage, actor: str = NOBODY) -> NewEvent:
    fact = ModelUsed(kind="evolution", process=f"evolution-{number}", asked_by="agent:a", usage=usage)
    return NewEvent(fact, f"evolution-{number}:evolve", actor)


def claims(usage: Usage) -> list[NewEvent]:
    """Every event in which somebody can state a usage in their own name, of processes of their own."""
    merged = [Similar(id="k2", version=1, similarity=1.0)]
    ways: list[tuple[Fact, tuple[Fact, ...]]] = [
        (
            EvolutionRequested(item_id="k1", base_version=1, feedback="f"),
            (
                EvolutionProposed(item_id="k1", content="c", usage=usage),
                EvolutionFailed(item_id="k1", code="model_failed", reason="r", usage=usage),
            ),
        ),
        (
            ExtractionRequested(kind="statement", messages=[{"id": "m"}], owner=MALLORY, scopes=[MALLORY]),
            (ExtractionCompleted(items=[], usage=usage), ExtractionFailed(code="x", reason="r", usage=usage)),
        ),
        (
            SlimRequested(owner=MALLORY, threshold=0.9),
            (
                SlimProposed(group=0, survivor="k1", survivor_version=1, merged=merged, usage=usage),
                SlimFailed(code="x", reason="r", usage=usage),
            ),
        ),
        (
            SummaryRequested(session_id="s", owner=MALLORY, level=2, first=1, last=10),
            (
                SummaryCompleted(summary="summary-2-1-10", usage=usage),
                SummaryFailed(code="x", reason="r", usage=usage),
            ),
        ),
        (
            AbstractRequested(document="rules.md"),
            (
                AbstractCompleted(
                    summary="s", summaries=[], digests="9f86d081884c7d65", scopes=[MALLORY], owner=MALLORY, usage=usage
                ),
                AbstractFailed(code="x", reason="r", usage=usage),
            ),
        ),
        (
            SessionOpened(session_id=f"s-{usage.calls}", owner=MALLORY),
            (
                SessionSummarised(
                    session_id=f"s-{usage.calls}", owner=MALLORY, level=2, summary="s", first="a", last="b",
                    messages=10, usage=usage,
                ),
            ),
        ),
    ]  # fmt: skip
    return [
        NewEvent(fact, fact.stated_id() or f"{usage.calls}-{end.name}", MALLORY)
        for asked, ends in ways
        for end in ends
        for fact in (asked, end)
    ]


def test_every_event_that_can_state_a_usage_is_tried_as_a_claim() -> None:
    stating = {fact for fact in FACTS.values() if "usage" in fact.model_fields}
    assert {type(event.fact) for event in claims(PAID)} >= stating - {ModelUsed}


def test_the_days_cost_is_the_sum_of_what_nodes_say_of_every_answer_and_failure() -> None:
    view = view_of(stored([saved(), used(0, PAID), used(1, PAID), used(2, FREE)])).con
    assert spent(view) == 0.5
    assert spent(view, timedelta(days=1)) == 0.0


def test_what_others_claim_that_their_models_cost_spends_nobodys_budget() -> None:
    view = view_of(stored([saved(), *claims(RUINOUS), used(0, PAID), *claims(RUINOUS)])).con
    assert spent(view) == 0.25


def test_analysts_are_told_who_states_a_usage_and_nothing_claimed_beside_what_nodes_say() -> None:
    before = view_of(stored([saved(), *claims(PAID)])).con
    assert rows(before, "SELECT DISTINCT actor, stated_by FROM model_usage") == [(MALLORY, "actor")]
    after = view_of(stored([saved(), used(0, PAID), *claims(RUINOUS)])).con
    assert rows(after, "SELECT kind, id, actor, stated_by, cost_usd FROM model_usage") == [
        ("evolution", "evolution-0", "agent:a", "node", 0.25)
    ]


def test_nobody_but_a_node_says_what_its_model_cost() -> None:
    view = view_of(stored([used(0, RUINOUS, MALLORY), used(1, PAID)])).con
    assert rows(view, "SELECT position, code FROM refused_events") == [(1, "not_owner")]
    assert spent(view) == 0.25


def test_what_a_clock_a_year_ahead_dated_is_not_every_days_until_then() -> None:
    """The day of its date has it, and so has a node whose clock is a day behind the broker's."""
    kept = stored([used(0, PAID), used(1, PAID)])
    year = timedelta(days=365)
    ahead = kept[1]._replace(stored_ns=kept[1].stored_ns + int(year.total_seconds() * 1e9))
    view = view_of([kept[0], ahead]).con
    assert spent(view) == 0.25
    assert spent(view, timedelta(days=1)) == 0
    assert spent(view, year - timedelta(days=1)) == spent(view, year) == 0.25


def spent(view: duckdb.DuckDBPyConnection, after: timedelta = timedelta(0)) -> float:
    return spent_since(view, START + after)
