"""The three laws: any split folds alike, replay equals live, delivering again changes nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.event import StoredEvent
from ledger.store.parked import NONE_PARKED
from projections.engine import batch, gate
from projections.engine.batch import fold_batch
from projections.engine.predecode import decode_ahead, fold_ahead, together
from projections.fold_kit import inserting
from tests.examples import law as law_of
from tests.projections.histories import histories, new_view, parts, rows, saved, state, stored, view_of

cuts = st.lists(st.integers(0, 100), max_size=5)
law = law_of(30)


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each example sets how large a batch counts as small; all others are judged as sets. Then it is as before."""
    monkeypatch.setattr(batch, "SMALL", batch.SMALL)
    monkeypatch.setattr(inserting, "MOST_LITERALS", inserting.MOST_LITERALS)
    monkeypatch.setattr(gate, "LEAST", 0)


@law
@given(log=histories(), one=cuts, other=cuts)
def test_any_split_of_the_log_into_batches_gives_the_same_view(
    log: list[StoredEvent], one: list[int], other: list[int]
) -> None:
    assert state(view_of(log, one)) == state(view_of(log, other))


@law
@given(log=histories(), split=cuts, most_literals=st.sampled_from((0, 40, 1_000_000)))
def test_a_large_batch_that_sql_parses_gives_the_same_view_as_small_ones_that_the_models_judge(
    log: list[StoredEvent], split: list[int], most_literals: int
) -> None:
    batch.SMALL, inserting.MOST_LITERALS = 256, most_literals
    judged = state(view_of(log, split))
    batch.SMALL = 0
    assert state(view_of(log, split)) == judged


@law
@given(log=histories(), one=cuts, other=cuts)
def test_pieces_that_are_decoded_ahead_and_folded_as_one_give_the_same_view(
    log: list[StoredEvent], one: list[int], other: list[int]
) -> None:
    bench = new_view()
    for part in parts(log, one):
        pieces = [decode_ahead(bench.parser, bench.keyring, piece, NONE_PARKED) for piece in parts(part, other)]
        fold_ahead(bench, together(pieces), NONE_PARKED)
    assert state(bench) == state(view_of(log))


@law
@given(log=histories())
def test_live_state_equals_replayed_state_at_every_step(log: list[StoredEvent]) -> None:
    batch.SMALL = 256
    live = new_view()
    for event in log:
        fold_batch(live, [event])
    batch.SMALL = 0
    assert state(view_of(log)) == state(live)


@law
@given(log=histories(), again=cuts)
def test_delivering_events_again_changes_nothing(log: list[StoredEvent], again: list[int]) -> None:
    bench = view_of(log)
    before = state(bench)
    for start in again:
        fold_batch(bench, log[start % len(log) :])
    assert state(bench) == before


@law
@given(log=histories())
def test_every_event_is_either_in_the_views_or_refused_with_a_reason(log: list[StoredEvent]) -> None:
    con = view_of(log).con
    counted = {position for (position,) in rows(con, "SELECT position FROM events")}
    refused = dict(rows(con, "SELECT position, reason FROM refused_events"))
    assert counted | set(refused) == {event.position for event in log}
    assert not counted & set(refused)
    assert all(refused.values())


@law
@given(log=histories(), at=st.integers(0, 14))
def test_the_state_as_of_a_position_is_what_a_replay_to_that_position_shows(log: list[StoredEvent], at: int) -> None:
    position = min(at, len(log))
    told = "id, org, version, types, task, content, tags, scopes, owner, visibility, resource_ids, source, score, "
    told += "helpful, harmful, confidence, status, created_at, updated_at, created_position, position, "
    told += "shared_with, writers"
    then = view_of(log[:position]).con
    now = view_of(log).con
    assert sorted(map(str, rows(now, f"SELECT {told} FROM knowledge_as_of({position})"))) == sorted(
        map(str, rows(then, f"SELECT {told} FROM knowledge"))
    )
    resource = "org, id, version, title, body, has_secure, content_type, metadata, scopes, owner, shared_with, status, "
    resource += "visibility, created_at, updated_at, created_position, position"
    assert sorted(map(str, rows(now, f"SELECT {resource} FROM resources_as_of({position})"))) == sorted(
        map(str, rows(then, f"SELECT {resource} FROM resources"))
    )
    goals = "org, owner, goal_id, description, items, recall_id, focuses, created_at, updated_at, position"
    assert sorted(map(str, rows(now, f"SELECT {goals} FROM goals_as_of({position})"))) == sorted(
        map(str, rows(then, f"SELECT {goals} FROM goals"))
    )
    profile = "org, owner, memory_type, content, status, version, created_at, updated_at, position"
    assert sorted(map(str, rows(now, f"SELECT {profile} FROM profiles_as_of({position})"))) == sorted(
        map(str, rows(then, f"SELECT {profile} FROM profiles"))
    )


ODD_TAGS = {
    "a key twice": b'{"a":1,"a":2}',
    "a key twice inside": b'{"a":{"b":1,"b":2}}',
    "deep": b'{"a":' * 300 + b"1" + b"}" * 300,
    "nested": b'{"a":[1,{"b":2}]}',
    "a large number": b'{"a":1e22}',
    "no double": b'{"a":1e400}',
    "digits without end": b'{"a":' + b"9" * 400 + b"}",
    "a zero too many": b'{"a":1.50}',
    "minus nothing": b'{"a":-0}',
    "seventeen digits": b'{"a":12345678901234567}',
}


@pytest.mark.parametrize("tags", ODD_TAGS.values(), ids=ODD_TAGS.keys())
def test_tags_that_parsers_read_differently_come_to_the_same_view_on_both_roads(tags: bytes) -> None:
    (event,) = stored([saved("k1")])
    log = [event._replace(body=event.body.replace(b'"tags":{}', b'"tags":' + tags))]
    assert log[0].body != event.body
    batch.SMALL = 256
    judged = state(view_of(log))
    batch.SMALL = 0
    assert state(view_of(log)) == judged


@pytest.mark.parametrize("time", [b"2026-03-05T24:00:00Z", b"2026-03-05T23:59:60Z", b"2026-02-30T00:00:00Z"])
def test_a_moment_that_only_some_know_comes_to_the_same_view_on_both_roads(time: bytes) -> None:
    (event,) = stored([saved("k1")])
    log = [event._replace(body=re.sub(rb'"time":"[^"]*"', b'"time":"' + time + b'"', event.body))]
    assert log[0].body != event.body
    batch.SMALL = 256
    judged = state(view_of(log))
    batch.SMALL = 0
    assert state(view_of(log)) == judged


def test_text_that_holds_quotes_and_signs_comes_to_the_same_view_on_both_roads() -> None:
    log = stored(
        [saved("k'1", content="a\x01b''\x7f", task="\\u0000", tags={"\u2028": "'\\"}), saved("k2", task="';--")]
    )
    batch.SMALL = 256
    judged = view_of(log)
    said = rows(judged.con, "SELECT id, content, task FROM knowledge ORDER BY id")
    assert said == [("k'1", "a\x01b''\x7f", "\\u0000"), ("k2", "a content", "';--")]
    batch.SMALL = 0
    assert state(view_of(log)) == state(judged)
