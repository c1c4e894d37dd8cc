"""Which resource events count, and what a refused one shows: never the secret that somebody published in clear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from ledger.event import Fact, NewEvent, StoredEvent
from ledger.events.resource import ResourceRestored, ResourceRetired, ResourceSaved, ResourceSecretDestroyed
from projections.engine import batch
from projections.views.refused.shown import body_of
from tests.projections.histories import rows, stored, view_of

SECRET = "pässwort-秘密-7f3a"
SEALED = "sealed:v1:resource:r:QUJD"


@pytest.fixture(params=["judged by the models", "parsed by SQL"], autouse=True)
def _both_roads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", 256 if request.param == "judged by the models" else 0)


def saved(resource_id: str = "r", owner: str = "agent:a", actor: str = "agent:a", **said: Any) -> NewEvent:
    """A save as our own encoder writes it, whatever it says."""
    fields = {"title": "t", "scopes": ["public"], "owner": owner, **said}
    return NewEvent(ResourceSaved.model_construct(None, **fields), resource_id, actor)


def about(fact: Fact, actor: str = "agent:a") -> NewEvent:
    return NewEvent(fact, "r", actor)


def refused(*events: NewEvent) -> list[tuple[int, str]]:
    con = view_of(stored(events)).con
    return rows(con, "SELECT position, code FROM refused_events ORDER BY position")


def test_only_the_owner_changes_a_resource_and_its_owner_stays() -> None:
    assert refused(saved(), saved(owner="agent:b", actor="agent:b"), saved(owner="agent:b")) == [
        (2, "not_owner"),
        (3, "not_owner"),
    ]
    for fact in (ResourceRetired(), ResourceRestored(), ResourceSecretDestroyed()):
        assert refused(saved(), about(fact, "agent:b")) == [(2, "not_owner")]
        assert refused(about(fact)) == [(1, "unknown_resource")]


def test_a_save_states_anew_and_makes_a_retired_resource_active() -> None:
    log = stored([saved(secure_body=SEALED), about(ResourceRetired()), saved(title="u"), about(ResourceRestored())])
    con = view_of(log).con
    assert rows(con, "SELECT code FROM refused_events") == [("illegal_state",)]
    told = "version, title, status, has_secure, created_position, position"
    assert rows(con, f"SELECT {told} FROM resources") == [(3, "u", "active", False, 1, 3)]
    assert rows(con, f"SELECT {told} FROM resources_as_of(2)") == [(2, "t", "retired", True, 1, 2)]


def test_a_version_that_was_expected_and_is_another_one_is_a_conflict() -> None:
    assert refused(saved(), saved(expected_version=1), saved(expected_version=1)) == [(3, "version_conflict")]
    assert refused(saved(expected_version=1)) == [(1, "version_conflict")]


@pytest.mark.parametrize("resource_id", ["/a", "a//b", "a/../b", "a\nb", "x" * 201])
def test_an_id_that_is_no_plain_path_does_not_count(resource_id: str) -> None:
    assert refused(saved(resource_id)) == [(1, "invalid_payload")]


@pytest.mark.parametrize("expires_at", ["tomorrow", "2026-03-07", 7, "2026-02-30T10:00:00Z"])
def test_an_expiry_that_is_no_moment_does_not_count(expires_at: object) -> None:
    assert refused(saved(metadata={"expires_at": expires_at})) == [(1, "invalid_payload")]


def test_expiry_is_asked_of_the_clock_and_is_no_part_of_the_state() -> None:
    moments = {"past": "2001-01-01T00:00:00+08:00", "future": "2999-01-01T00:00:00.123456789Z", "none": None}
    con = view_of(stored([saved(name, metadata={"expires_at": at}) for name, at in moments.items()])).con
    assert dict(rows(con, "SELECT id, expired FROM resources")) == {"past": True, "future": False, "none": False}


def otherwise(**changes: Any) -> Callable[[StoredEvent], StoredEvent]:
    """The event as another program might have published it."""

    def change(event: StoredEvent) -> StoredEvent:
        document = orjson.loads(event.body)
        return event._replace(body=orjson.dumps({**document, **changes}))

    return change


IN_CLEAR: dict[str, tuple[str, Callable[[StoredEvent], StoredEvent]]] = {
    "as it is": ("secret_in_clear", lambda event: event),
    "spelled otherwise": ("secret_in_clear", lambda e: e._replace(body=orjson.dumps(orjson.loads(e.body), option=2))),
    "an object": ("secret_in_clear", otherwise(data={"title": "t", "secure_body": {"password": SECRET}})),
    "sealed without a key": ("seal_broken", otherwise(data={"title": "t", "secure_body": f"sealed:v1:{SECRET}"})),
    "under another name": ("invalid_payload", otherwise(data={"secureBody": SECRET})),
    "data that is none": ("invalid_payload", otherwise(data=SECRET)),
    "another actor": ("secret_in_clear", lambda e: e._replace(subject=e.subject.replace(".agent.a", ".agent.b"))),
    "another subject": ("secret_in_clear", lambda e: e._replace(subject="ledger.default.knowledge.k.saved.agent.a")),
    "an unknown event": (
        "unknown_event",
        lambda e: e._replace(body=e.body.replace(b"resource.saved", b"resource.told")),
    ),
    "cut off": ("bad_json", lambda e: e._replace(body=e.body[:-3])),
    "no text": ("bad_json", lambda e: e._replace(body=b"\xff" + e.body)),
    "no subject of ours": ("illegal_subject", lambda e: e._replace(subject="ledger.x")),
}


@pytest.mark.parametrize("how", IN_CLEAR)
def test_a_secret_in_clear_is_refused_and_nothing_shows_it(how: str) -> None:
    code, publish = IN_CLEAR[how]
    (event,) = stored([saved(secure_body=SECRET)])
    con = view_of([publish(event)]).con
    tables = [name for (name,) in rows(con, "SELECT table_name FROM duckdb_tables()")]
    for table in tables:
        assert SECRET not in str(rows(con, f"FROM {table}")), table
    assert rows(con, "SELECT code FROM refused_events") == [(code,)]
    assert rows(con, "SELECT count(*) FROM resource_versions") == [(0,)]


def test_what_is_stated_twice_counts_as_it_was_stated_last() -> None:
    (event,) = stored([saved(secure_body=SEALED)])
    twice = event.body.replace(b'"secure_body"', f'"secure_body":"{SECRET}","secure_body"'.encode())
    con = view_of([event._replace(body=twice)]).con
    assert rows(con, "SELECT secure_body FROM resource_versions") == [(SEALED,)]
    assert SECRET not in str(rows(con, "FROM events"))


def test_a_repeated_save_shows_what_it_says_and_its_secret_sealed() -> None:
    event = saved(secure_body=SEALED, body="for all")
    con = view_of(stored([event, event])).con
    ((body,),) = rows(con, "SELECT body FROM refused_events")
    assert orjson.loads(body)["data"]["secure_body"] == SEALED
    assert orjson.loads(body)["data"]["body"] == "for all"


@pytest.mark.parametrize("entity", ["knowledge", "resource"])
def test_a_refused_event_nested_as_deep_as_json_may_be_is_shown_without_its_depths(entity: str) -> None:
    deep = b'{"a":' * 900 + b'{"secure_body":"hunter2"}' + b"}" * 900
    event = StoredEvent(1, 1, f"ledger.default.{entity}.x.saved.agent.a", deep)
    assert "hunter2" not in body_of(event, orjson.loads(deep))
