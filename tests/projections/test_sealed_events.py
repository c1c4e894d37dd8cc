"""What is sealed folds as if it were not, falls back when its key is destroyed, and is refused when it cannot open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings

from kledger.contract.errors import BrokerUnavailable
from kledger.contract.knowledge import Case, Source
from ledger.event import NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeSaved
from ledger.events.profile import ProfileCreated, ProfilePatched, profile_id
from ledger.events.subject import SubjectForgotten
from ledger.privacy.keyring import Keyring
from ledger.privacy.sealed import seal
from ledger.privacy.vault import DataKey, Held, MemoryVault, new_secret
from ledger.vocabulary.examples import EXAMPLES
from projections.engine import batch
from projections.engine.batch import fold_batch
from projections.fold_kit.workbench import Workbench
from tests.examples import tries
from tests.projections.histories import histories, new_view, rows, saved, state, stored, view_of
from tests.sealed_events import sealed_event

ADA = "user:ada"
SECRET = "马克笔-secret-7f3a"


@pytest.fixture(params=["few", "many"])
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both roads of a fold: event by event, and set by set."""
    monkeypatch.setattr(batch, "SMALL", 64 if request.param == "few" else 0)


@pytest.fixture
async def vault() -> MemoryVault:
    vault = MemoryVault()
    await vault.obtain(ADA)
    return vault


def view(vault: MemoryVault, events: list[StoredEvent]) -> Workbench:
    bench = new_view(Keyring(vault.held))
    fold_batch(bench, events)
    return bench


def said() -> list[NewEvent]:
    """What ada says, in clear."""
    about: dict[str, Any] = {"types": ["tool"], "task": SECRET, "content": SECRET, "scopes": ["public"], "owner": ADA}
    fact = KnowledgeSaved(**about, tags={"a": [SECRET]}, source=Source(name=SECRET, urls=[SECRET], trace_id="t1"))
    content = {"occupation": SECRET, "people": [{"name": SECRET}]}
    return [
        NewEvent(fact, "k1", ADA),
        NewEvent(KnowledgeRated(verdict="helpful", case=Case(query=SECRET, reason=SECRET)), "k1", ADA),
        NewEvent(ProfileCreated(owner=ADA, memory_type="user", content=content), profile_id(ADA, "user"), ADA),
        NewEvent(
            ProfilePatched(owner=ADA, memory_type="user", patch={"timezone": SECRET}), profile_id(ADA, "user"), ADA
        ),
    ]


async def sealed(vault: MemoryVault, events: list[NewEvent]) -> list[StoredEvent]:
    log = stored([sealed_event(event, [await vault.obtain(ADA)]) for event in events])
    assert not any(b"secret-7f3a" in event.body for event in log)
    return log


async def test_a_sealed_log_folds_to_the_view_that_the_same_log_in_clear_has(road: None, vault: MemoryVault) -> None:
    events = said()
    assert state(view(vault, await sealed(vault, events))) == state(view_of(stored(events)))


async def test_when_the_key_is_destroyed_the_fallback_stands_where_the_words_were(
    road: None, vault: MemoryVault
) -> None:
    log = await sealed(vault, said())
    await vault.destroy(ADA, by="user:local", at="2026-03-05T12:00:00Z", receipt="r")
    con = view(vault, log).con
    kept = rows(con, "SELECT task, content, tags::VARCHAR, source->>'name', owner, trace_id FROM knowledge_versions")
    assert kept == [("[erased]", "[erased]", "{}", "[erased]", ADA, "t1")]
    assert rows(con, "SELECT query, reason, verdict FROM feedback") == [("[erased]", "[erased]", "helpful")]
    assert rows(con, "SELECT DISTINCT content::VARCHAR FROM profile_versions") == [("{}",)]
    assert rows(con, "SELECT count(*) FROM refused_events") == [(0,)]
    assert SECRET not in str(rows(con, "SELECT data FROM events"))


async def test_a_replay_with_the_same_vault_gives_the_same_views(road: None, vault: MemoryVault) -> None:
    log = await sealed(vault, said())
    await vault.destroy(ADA, by="user:local", at="2026-03-05T12:00:00Z", receipt="r")
    one = state(view(vault, log))
    bench = new_view(Keyring(vault.held))
    for event in log:
        fold_batch(bench, [event])
    assert state(bench) == one


async def test_an_event_whose_key_the_vault_never_had_is_refused_and_the_rest_goes_on(
    road: None, vault: MemoryVault
) -> None:
    events = said()
    log = await sealed(vault, events)
    foreign = stored([sealed_event(events[0], [DataKey("user:eve", new_secret())])])
    bench = new_view(Keyring(vault.held))
    fold_batch(bench, [*foreign, *log[1:]])
    ((code, reason, body),) = rows(bench.con, "SELECT code, reason, body FROM refused_events WHERE position = 1")
    assert code == "seal_broken"
    assert "does not verify" in reason
    assert body == foreign[0].body.decode()
    assert rows(bench.con, "SELECT count(*) FROM profile_versions") == [(2,)]


async def test_what_was_moved_from_another_event_is_refused(road: None, vault: MemoryVault) -> None:
    log = await sealed(vault, said())
    document = orjson.loads(log[0].body)
    document["id"] = "another-event"
    con = view(vault, [log[0]._replace(body=orjson.dumps(document))]).con
    assert rows(con, "SELECT code FROM refused_events") == [("seal_broken",)]


async def test_what_was_copied_into_anothers_event_under_the_same_id_is_refused(road: None, vault: MemoryVault) -> None:
    (event,) = await sealed(vault, said()[:1])
    tokens = event.subject.split(".")
    for org, actor in (("default", "user.eve"), ("elsewhere", ".".join(tokens[5:]))):
        under = ".".join((tokens[0], org, *tokens[2:5], actor))
        document = {**orjson.loads(event.body), "actor": actor.replace(".", ":")}
        con = view(vault, [event._replace(subject=under, body=orjson.dumps(document))]).con
        assert rows(con, "SELECT code FROM refused_events") == [("seal_broken",)]


async def test_what_an_earlier_version_sealed_for_any_actor_still_opens(road: None, vault: MemoryVault) -> None:
    event = said()[0]
    assert isinstance(event.fact, KnowledgeSaved)
    content = seal(SECRET, [await vault.obtain(ADA)], event.id, "/data/content")
    log = stored([replace(event, fact=event.fact.model_copy(update={"content": content}))])
    assert rows(view(vault, log).con, "SELECT content FROM knowledge_versions") == [(SECRET,)]


async def test_an_event_that_is_refused_for_another_reason_keeps_its_sealed_bytes(
    road: None, vault: MemoryVault
) -> None:
    log = await sealed(vault, said())
    again = log[0]._replace(position=2)
    con = view(vault, [log[0], again]).con
    assert rows(con, "SELECT code, body FROM refused_events") == [("duplicate_event", log[0].body.decode())]


async def test_a_text_that_merely_quotes_the_mark_is_read_as_it_is(road: None, vault: MemoryVault) -> None:
    about: dict[str, Any] = {"types": ["tool"], "task": "t", "scopes": ["public"], "owner": "agent:a"}
    fact = KnowledgeSaved(**about, content='it says "sealed:v1:user:ada:AAAA"')
    con = view(vault, stored([NewEvent(fact, "k1", "agent:a")])).con
    assert rows(con, "SELECT content FROM knowledge") == [('it says "sealed:v1:user:ada:AAAA"',)]


async def test_while_the_vault_does_not_answer_nothing_is_folded(road: None, vault: MemoryVault) -> None:
    log = await sealed(vault, said())

    def silent(_names: list[str]) -> dict[str, Held]:
        raise BrokerUnavailable("the vault does not answer")

    bench = new_view(Keyring(silent))
    with pytest.raises(BrokerUnavailable):
        fold_batch(bench, log)
    assert bench.position() == 0
    bench.keyring = Keyring(vault.held)
    fold_batch(bench, log)
    assert rows(bench.con, "SELECT count(*) FROM events") == [(4,)]


async def test_a_key_that_another_node_destroyed_is_asked_for_again_when_the_log_tells(vault: MemoryVault) -> None:
    events = said()
    log = await sealed(vault, [*events[:1], *events[2:]])
    keyring = Keyring(vault.held)
    bench = new_view(keyring)
    fold_batch(bench, log[:1])
    await vault.destroy(ADA, by="user:local", at="2026-03-05T12:00:00Z", receipt="r")
    told: list[int] = []
    keyring.when_forgotten(lambda: told.append(1))
    (forgotten,) = stored([NewEvent(SubjectForgotten(subject=ADA, receipt="r"), ADA, "user:local")], 2)
    fold_batch(bench, [forgotten, log[1]._replace(position=3)])
    assert told == [1]
    assert rows(bench.con, "SELECT content::VARCHAR FROM profile_versions") == [("{}",)]


@settings(max_examples=tries(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=histories())
def test_any_history_folds_alike_sealed_and_in_clear(log: list[StoredEvent]) -> None:
    key = DataKey(ADA, new_secret())
    bench = new_view()
    bench.keyring, before = Keyring(lambda _names: {ADA: key}), bench.keyring
    try:
        fold_batch(bench, [event._replace(body=_sealed_body(event.body, key)) for event in log])
        ours = state(bench)
    finally:
        bench.keyring = before
    theirs = state(view_of(log))
    for each in (ours, theirs):
        del each["refused_events"]  # which keep the bytes that the log has
    assert ours == theirs


def _sealed_body(body: bytes, key: DataKey) -> bytes:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body
    if not isinstance(document, dict) or not isinstance(document.get("data"), dict):
        return body
    for name in ("task", "content", "tags", "patch", "query"):
        value = document["data"].get(name)
        if value and isinstance(value, (str, dict)):
            document["data"][name] = seal(value, [key], str(document.get("id")), f"/data/{name}")
    return orjson.dumps(document)


class CountingVault:
    """A vault of the broker's manners: it refuses names that are no subject token, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def fetch(self, names: list[str]) -> dict[str, Held]:
        self.asked += names
        if any(len(name) > 250 for name in names) or len(names) > 2_000:
            raise BrokerUnavailable("maximum payload exceeded")
        return {}


def about_agent(content: str, **more: Any) -> list[StoredEvent]:
    about: dict[str, Any] = {"types": ["tool"], "task": "t", "scopes": ["public"], "owner": "agent:a"}
    return stored([NewEvent(KnowledgeSaved(**{**about, **more}, content=content), "k1", "agent:a")])


MARKS: dict[str, tuple[list[StoredEvent], list[str]]] = {
    "a mark within a text": (about_agent('x "sealed:v1:' + "." * 360_000 + ":A"), []),
    "keys of tags": (about_agent("c", tags={f"sealed:v1:a{n}:": 1 for n in range(38_000)}), []),
    "a name that never ends": (about_agent("sealed:v1:user:" + "." * 360_000 + ":AAAA"), ["seal_broken"]),
    "a name of a kind that is none": (about_agent("sealed:v1:agent:a:AAAA"), ["seal_broken"]),
    "a name with a line break": (about_agent("sealed:v1:user:a\nb:AAAA"), ["seal_broken"]),
    "no name": (about_agent("sealed:v1::"), ["seal_broken"]),
    "many names": (
        about_agent("c", tags={f"t{n}": f"sealed:v1:user:a{n}:AAAA" for n in range(20_000)}),
        ["invalid_payload"],
    ),
    "nested deep": (
        [
            event._replace(body=event.body.replace(b'"tags":{}', b'"tags":' + b'{"a":' * 900 + tail + b"}" * 900))
            for event in about_agent("c")
            for tail in [b'"sealed:v1:user:a:AAAA"']
        ],
        ["invalid_payload"],
    ),
    "an attribute nested deep": (
        [
            event._replace(body=event.body.replace(b'"id":', b'"other":' + b"[" * 900 + b"]" * 900 + b',"id":', 1))
            for event in stored([EXAMPLES["resource.saved"]])
        ],
        ["invalid_payload"],
    ),
    "a resource's name": (about_agent("sealed:v1:resource:r:AAAA"), ["seal_broken"]),
    "what bears out nothing": (
        [
            event._replace(body=event.body.replace(b'"data":', b'"sealmac":"AAAA","data":', 1))
            for event in about_agent("c")
        ],
        ["seal_broken"],
    ),
    "a name that the vault does not know": (about_agent("sealed:v1:user:eve:AAAA"), ["seal_broken"]),
}


@pytest.mark.parametrize(("log", "codes"), MARKS.values(), ids=MARKS.keys())
def test_a_mark_that_somebody_wrote_asks_the_vault_for_nothing_odd_and_refuses_its_own_event_at_most(
    road: None, log: list[StoredEvent], codes: list[str]
) -> None:
    vault = CountingVault()
    bench = new_view(Keyring(vault.fetch))
    fold_batch(bench, log)
    assert bench.position() == 1
    assert [code for (code,) in rows(bench.con, "SELECT code FROM refused_events")] == codes
    known = log == MARKS["a name that the vault does not know"][0]
    assert vault.asked == (["user:eve"] if known else []), "a missing key is asked for once"


@pytest.mark.parametrize(
    "forged",
    [
        "sealed:v1:user:ada:AAAA",
        "sealed:v1:user:ada:" + "A" * 400,
        {"deep": [{"$sealed": "sealed:v1:user:ada:AAAA"}]},
        {"first": "sealed:v1:user:bob:AAAA", "second": "sealed:v1:user:ada:AAAA"},
    ],
)
async def test_a_seal_of_somebody_who_has_no_key_yet_is_refused_with_the_reason_that_a_replay_gives(
    road: None, forged: Any
) -> None:
    (event,) = stored([saved("k1", "agent:eve")])
    document = orjson.loads(event.body)
    document["data"]["tags"] = {"a": forged}
    log = [event._replace(body=orjson.dumps(document))]
    vault = MemoryVault()
    live = state(view(vault, log))
    await vault.obtain(ADA)
    assert state(view(vault, log)) == live
    await vault.obtain("user:bob")
    assert state(view(vault, log)) == live
