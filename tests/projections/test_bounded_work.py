"""Large events are worked on in pieces that fit: into the parser's memory, and into what the vector process takes."""

from __future__ import annotations

import pytest

from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeRevised
from ledger.privacy.keyring import Keyring
from ledger.store.parked import NONE_PARKED
from projections.engine import batch, decode
from projections.engine.batch import fold_batch, ready
from projections.fold_kit.parser import Parser
from projections.vectors import changes
from projections.vectors.changes import changes_after
from projections.vectors.wire import Close, Store
from tests.projections.histories import new_view, saved, state, stored, view_of


def test_a_batch_of_the_largest_events_is_decoded_within_the_memory_of_the_parser() -> None:
    log = stored([saved(f"k{n}", content="word " * 200_000) for n in range(64)])
    parser = Parser()
    decoded = decode.decode(parser, ready(Keyring(), log, NONE_PARKED))
    parser.close()
    assert decoded.refused == []
    assert decoded.envelopes is not None
    assert decoded.envelopes.num_rows == 64


def test_a_batch_that_is_decoded_in_pieces_gives_the_view_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", 0)
    log = stored([saved(f"k{n % 7}", content=f"content {n}") for n in range(20)])
    log[3] = log[3]._replace(body=b"\xff" + log[3].body)
    log[11] = log[11]._replace(body=log[11].body.replace(b'"data":', b' "data":'))
    whole = state(view_of(log))
    monkeypatch.setattr(decode, "_PARSED_AT_ONCE", 1_200)
    assert state(view_of(log)) == whole


def test_a_few_events_with_long_lists_are_folded_as_a_set(monkeypatch: pytest.MonkeyPatch) -> None:
    log = stored([saved(f"k{n}", resource_ids=[f"resource/{at}" for at in range(1_000)]) for n in range(20)])
    assert sum(len(event.body) for event in log) > batch.SMALL_BYTES
    monkeypatch.setattr(batch, "fold_few", None)  # it is not asked
    assert fold_batch(new_view(), log).accepted == 20


def left_by(changes: list[Store | Close]) -> dict[tuple[str, int], tuple[str, int | None]]:
    """The text of each version, and where it ends, once all of these changes are applied."""
    versions: dict[tuple[str, int], tuple[str, int | None]] = {}
    for change in changes:
        key = change.item_id, change.version
        versions[key] = (change.content if isinstance(change, Store) else versions[key][0], change.valid_to)
    return versions


def test_changes_hold_nothing_that_was_folded_after_the_position_they_are_complete_to() -> None:
    events = [saved("k"), NewEvent(KnowledgeRevised(content="d"), "k", "agent:a")]
    con = view_of(stored(events)).con
    con.execute("UPDATE checkpoints SET position = 1 WHERE name = 'views'")  # read before the second event was folded
    (first,), upto = changes_after(con.cursor(), "default", 0, 500)
    assert (upto, first.version, first.valid_to) == (1, 1, None)


def test_changes_are_fed_in_requests_that_the_vector_process_takes_and_none_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = [saved(f"k{n}", content="c" * 100) for n in range(9)]
    events += [NewEvent(KnowledgeRevised(content="d" * 100), f"k{n}", "agent:a") for n in range(4)]
    con = view_of(stored(events)).con
    whole, upto = changes_after(con.cursor(), "default", 0, 500)
    assert upto == len(events)
    for most in (1, 150, 350):
        monkeypatch.setattr(changes, "MOST_CHARACTERS", most)
        fed: list[Store | Close] = []
        applied, requests = 0, 0
        while applied < len(events):
            some, now = changes_after(con.cursor(), "default", applied, 500)
            assert now > applied
            assert all(change.valid_to is None or change.valid_to <= now for change in some)
            assert sum(len(change.content) for change in some if isinstance(change, Store)) <= most + 2 * 110
            fed, applied, requests = [*fed, *some], now, requests + 1
        assert requests > 1
        assert left_by(fed) == left_by(whole)
