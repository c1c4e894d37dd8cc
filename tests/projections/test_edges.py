"""Values at the edges of what a part can hold come to the same view on both roads, and can be read back."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.event import NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeRevised
from ledger.events.recall import RecallServed, ServedItem
from ledger.events.resource import ResourceSaved
from ledger.events.scope_type import ScopeTypeRegistered
from projections.engine import batch
from projections.engine.digest import RELATIONS
from projections.engine.parking import fold_strictly
from tests.projections.edges import MOMENTS, NUMBERS, TOKENS, with_moment, with_number, with_token
from tests.projections.histories import new_view, rows, saved, state, stored


def base(first: int = 1, tenant: str = "") -> list[StoredEvent]:
    """Facts with a number of every kind, at positions from `first` on, of a tenant."""
    served = RecallServed(
        query="q", visible_scopes=[], items=[ServedItem(id="k1", version=1, relevance=0.5)], view_position=1
    )
    resource = ResourceSaved(title="t", scopes=["public"], owner="agent:a", expected_version=1, metadata={"n": 1})
    log = stored(
        [
            saved("k1", tags={"a": 1, "b": {"c": [0.5]}}, confidence=0.5),
            NewEvent(KnowledgeRevised(content="c", expected_version=1), "k1", "agent:a"),
            NewEvent(served, "r1", "agent:a"),
            NewEvent(ScopeTypeRegistered(type="department", priority=2.5), "department", "user:local"),
            NewEvent(resource, "res", "agent:a"),
        ],
        first,
    )
    return [with_token(event, 1, tenant) for event in log] if tenant else log


def folded_alike(log: list[StoredEvent], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A view of the log, which is the same on both roads, and every row of which Python can read."""
    states = []
    for small in (256, 0):
        monkeypatch.setattr(batch, "SMALL", small)
        bench = new_view()
        fold_strictly(bench, log)  # raises what would be parked
        assert bench.position() == len(log)
        for relation in RELATIONS:
            rows(bench.con, f"SELECT * FROM {relation}")
        states.append(state(bench))
    assert states[0] == states[1]
    return bench.con


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_however_it_is_spelt_comes_to_the_same_view(number: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of each number, in a tenant of its own."""
    log: list[StoredEvent] = []
    once = base()
    for which in range(10):
        if which and [with_number(event, which, number) for event in once] == [
            with_number(event, which - 1, number) for event in once
        ]:
            break
        log += [with_number(event, which, number) for event in base(len(log) + 1, f"number-{which}")]
    folded_alike(log, monkeypatch)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_moment_however_far_comes_to_the_same_view(moment: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    folded_alike([with_moment(event, moment) for event in base()], monkeypatch)


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_of_a_subject_however_odd_comes_to_the_same_view(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of each token, in a tenant of its own."""
    log: list[StoredEvent] = []
    for which in range(1, 7):
        log += [with_token(event, which, token) for event in base(len(log) + 1, f"token-{which}")]
    folded_alike(log, monkeypatch)


def test_minus_zero_is_zero_in_every_view(monkeypatch: pytest.MonkeyPatch) -> None:
    log = [event._replace(body=event.body.replace(b'"confidence":0.5', b'"confidence":-0.0')) for event in base()]
    con = folded_alike(log, monkeypatch)
    assert [str(value) for (value,) in rows(con, "SELECT confidence FROM knowledge_versions LIMIT 1")] == ["0.0"]


def test_a_tenant_without_a_name_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    con = folded_alike([with_token(event, 1, "=") for event in base()], monkeypatch)
    assert rows(con, "SELECT DISTINCT org FROM events") == [("",)]


@pytest.mark.parametrize("place", ["id", "content", "tags", "key", "scope"])
def test_nul_is_refused_wherever_it_stands(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (event,) = stored([saved("k1", content="CONTENT", tags={"KEY": "TAG"}, scopes=["public", "team:SCOPE"])])
    what = {"id": b'"id":"', "content": b"CONTENT", "tags": b"TAG", "key": b"KEY", "scope": b"SCOPE"}[place]
    con = folded_alike([event._replace(body=event.body.replace(what, what + b"\\u0000"))], monkeypatch)
    assert rows(con, "SELECT code FROM refused_events") == [("invalid_payload",)]


@pytest.mark.parametrize("item_id", ["a" * 201, "王" * 201, "a\nb", " a", "a\u2028"])
def test_an_id_that_no_request_may_name_is_refused(item_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    con = folded_alike(stored([saved(item_id), saved("a" * 200), saved("王" * 200)]), monkeypatch)
    assert rows(con, "SELECT position, code FROM refused_events") == [(1, "invalid_payload")]
