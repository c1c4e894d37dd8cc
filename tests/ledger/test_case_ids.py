"""The id that a case counts once by stays what it was, or each case sent again after an upgrade would count twice."""

from __future__ import annotations

import uuid

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.knowledge import Case
from ledger.event import Lineage
from ledger.events.knowledge import KnowledgeRated
from producers.operations.publish import NAMESPACE
from producers.operations.same_case import case_event_id

_ODD = 'a "quoted"\tline\n\u0001\u2028\U0001f600\x7f\\ /'


@pytest.mark.parametrize(
    ("case", "trace", "expected"),
    [
        (
            Case(task="roll back", outcome="成功", timestamp="2026-03-05T12:00:00Z"),
            None,
            "3dd4690a-dade-5bc2-b7d5-0658c9384f1f",
        ),
        (Case(query=_ODD, trace_id="trace-1"), None, "5ecd06eb-bc9e-5447-81d9-18b2062d0fe9"),
        (Case(reason="no time of its own"), "t", "f42bc4f6-e36c-5e2a-a15f-aad9e545307b"),
        (Case(reason="no time of its own"), None, None),
    ],
)
def test_the_id_of_a_case_is_the_one_of_earlier_versions(case: Case, trace: str | None, expected: str | None) -> None:
    verdict = KnowledgeRated(verdict="helpful", case=case, through="project:ledger")
    assert case_event_id("default", "k-1", "user:ada", verdict, Lineage(trace_id=trace)) == expected


@given(st.builds(Case, **{name: st.none() | st.text() for name in Case.model_fields}))
def test_an_id_follows_from_the_values_of_the_case_and_from_nothing_else(case: Case) -> None:
    stated = {name: value for name in Case.model_fields if (value := getattr(case, name)) is not None}
    stated["timestamp"] = "2026"
    said = orjson.dumps(["default", "k-1", "user:ada", "harmful", _in_order(stated), None])
    verdict = KnowledgeRated(verdict="harmful", case=case.model_copy(update={"timestamp": "2026"}))
    own_id = case_event_id("default", "k-1", "user:ada", verdict, Lineage())
    assert own_id == str(uuid.uuid5(NAMESPACE, said.decode()))


def _in_order(stated: dict[str, str]) -> dict[str, str]:
    return {name: stated[name] for name in Case.model_fields if name in stated}
