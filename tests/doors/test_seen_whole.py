"""Whom an item belongs to, who reads it and who acts are named as one sees them, at each door and in each event."""

from __future__ import annotations

import time
import unicodedata
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from kledger.contract.bounds import STRICTER
from kledger.contract.errors import IllegalScope
from kledger.contract.scopes import check_name, check_seen
from ledger.event import NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeRetired, KnowledgeRevised, KnowledgeShared
from ledger.events.resource import ResourceSaved
from ledger.events.session import SessionClosed, session_entity_id
from ledger.store import in_memory
from producers.access.principal import bindings
from projections.engine import batch
from tests.conftest import saved
from tests.doors.http_door import Door, http_door, refusal
from tests.mcp.mcp_door import mcp_door
from tests.projections.histories import rows, stored, view_of

UNSEEN, IN_PARTS, JOSE = "user:me\u200bi", "user:jose\u0301", "user:jos\u00e9"
LOOK_ALIKE = (UNSEEN, "team:\u202eweb", IN_PARTS, "project:m\u00adap")
SEEN = (
    *(JOSE, "user:梅", "team:\u0645\u06cc\u200c\u062e", "user:Ω", "project:\ud55c\uad6d", "user:👍"),
    *("user:\u0d28\u0d4d\u200d", "user:👩\u200d🚀", "user:山田\u3000太郎", "user:Øyvind Åse"),
)
_DRAWN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Of Unicode's category of format, those that are drawn around or before others."""
_OF_HIEROGLYPHS = frozenset(map(chr, range(0x13430, 0x13440)))
"""Which arrange the signs beside them."""
ITEM: dict[str, Any] = {"task": "t", "content": "c", "types": ["tool"]}
FACT: dict[str, Any] = {"layer": "semantic", "content": "c"}


async def asked(door: Door, name: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Whatever a request may state a name in, of an item that there is."""
    item = await door.saved({}, owner="user:mei", scopes=["user:mei"])
    path = f"/api/knowledge/{item['id']}"
    person = name if name.startswith("user:") else "user:" + name.partition(":")[2]
    return [
        *(("POST", "/api/knowledge", ITEM | said) for said in ({"owner": name}, {"scopes": ["public", name]})),
        ("POST", "/api/knowledge", ITEM | {"acl": [{"entity": name}]}),
        ("PUT", path, {"owner": name}),
        ("PUT", path, {"scopes": [name]}),
        ("PUT", f"{path}/acl", {"acl": [{"entity": name, "permission": "read"}]}),
        ("POST", "/api/knowledge/bulk", {"action": "share", "ids": [item["id"]], "readers": [name]}),
        ("POST", "/api/memory", FACT | {"owner": name}),
        ("POST", "/api/memory", FACT | {"scopes": [name]}),
        ("POST", "/api/resource", {"id": "a/b", "title": "t", "owner": name}),
        ("POST", "/api/resource", {"id": "a/b", "title": "t", "shared_with": [name]}),
        ("POST", "/api/documents", {"id": "d", "text": "says this", "scopes": [name]}),
        ("POST", "/api/documents", {"id": "d", "text": "says this", "owner": name}),
        ("PUT", f"/api/projects/p/coordinators/{quote(person)}", {}),
    ]


@pytest.mark.parametrize("name", LOOK_ALIKE, ids=ascii)
async def test_no_body_names_an_owner_or_reader_who_looks_like_another(name: str) -> None:
    async with http_door() as door:
        requests = await asked(door, name)
        before = await door.head()
        for method, path, body in requests[:-1]:
            answer = await door.client.request(method, path, json=body)
            assert answer.status_code == 422, (path, body, answer.text)
            assert ("nobody sees" in answer.text) is (name != IN_PARTS), answer.text
            told = refusal(answer, 422, "illegal_scope")
            assert "looks like" in told
            assert answer.json()["error"]["details"]["errors"][0]["reason"] == told
        many = await door.post("/api/knowledge/batch", json={"items": [ITEM | {"owner": name}, ITEM]})
        assert [each["outcome"] for each in many.json()["results"]] == ["refused", "saved"]
        assert await door.head() == before + 1


async def test_names_of_any_script_are_taken() -> None:
    async with http_door() as door:
        for name in SEEN:
            await door.saved({}, owner=name, scopes=[name])
        assert await door.head() == len(SEEN)


async def test_a_tool_names_nobody_who_looks_like_another() -> None:
    async with mcp_door() as door:
        assert await door.refused("knowledge_save", **ITEM, scopes=[UNSEEN]) == "illegal_scope"
        assert (await door.desk.ledger.head()).position == 0


@pytest.mark.parametrize(
    "letter",
    [
        *("\ufe0f", "\U000e0100", "\U000e0041", "\u034f", "\u3164", "\u115f", "\u180b", "\u206a", "\ufff9", "\u2800"),
        *("\u200c", "\u200d", "\u0085", "\u00a0", "\u2009", "\u2028", "\u202f", "\u3000", "\U0001d173", "\U0001bca0"),
    ],
    ids=ascii,
)
def test_whatever_shows_nothing_is_in_no_name(letter: str) -> None:
    for name in (f"mei{letter}", f"{letter}mei", *([] if letter == "\u3000" else [f"me{letter}i"])):
        with pytest.raises(IllegalScope, match="looks like"):
            check_name("user", name)
        with pytest.raises(IllegalScope, match="looks like"):
            check_seen("owner", f"user:{name}")


def test_every_letter_that_python_knows_to_have_no_form_is_in_no_name() -> None:
    shown = {"\u200c", "\u200d", "\u3000"}  # of these the place tells
    letters = {chr(code) for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000}
    unseen = {one for one in letters if unicodedata.category(one) in ("Cc", "Zs", "Zl", "Zp")}
    unseen |= {one for one in letters if unicodedata.category(one) == "Cf"} - _DRAWN - _OF_HIEROGLYPHS
    taken = []
    for one in sorted(unseen - shown):
        with suppress(IllegalScope):
            taken.append(check_seen("owner", f"user:m{one}i"))
    assert taken == []


def test_no_token_is_bound_to_an_entity_of_any_type_that_looks_like_another() -> None:
    with pytest.raises(IllegalScope, match="looks like"):
        bindings({"guild": ["me\u200bi"]})


async def test_whoever_was_kept_before_reads_is_moved_and_states_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async with http_door() as door:
        monkeypatch.setattr(in_memory, "time", SimpleNamespace(time_ns=lambda: STRICTER - 1))
        before = published(saved("k1", actor=IN_PARTS), owner=IN_PARTS, scopes=[IN_PARTS])
        await door.desk.ledger.append(before)
        monkeypatch.setattr(in_memory, "time", SimpleNamespace(time_ns=lambda: max(STRICTER, time.time_ns())))
        await door.desk.view.wait_for(1)
        who = {"X-Ledger-Scope": quote(IN_PARTS)}
        assert (await door.get("/api/knowledge/k1", headers=who)).status_code == 200
        assert (await door.get("/api/knowledge/search?q=c", headers=who)).status_code == 200
        assert "looks like" in refusal(await door.post("/api/knowledge", json=ITEM, headers=who), 422, "illegal_scope")
        rated = await door.put("/api/knowledge/k1", json={"add_helpful_case": {"task": "t"}}, headers=who)
        refusal(rated, 422, "illegal_scope")
        moved = await door.put("/api/knowledge/k1", json={"owner": JOSE, "scopes": [JOSE]})
        assert moved.status_code == 200, moved.text
        await door.desk.view.wait_for(moved.json()["position"])
        assert (await door.get("/api/knowledge/k1", headers={"X-Ledger-Scope": quote(JOSE)})).status_code == 200


def published(event: NewEvent, **said: Any) -> NewEvent:
    """The event as somebody publishes it who has no models."""
    return NewEvent(
        type(event.fact).model_construct(**{**dict(event.fact), **said}),
        event.entity_id,
        said.get("actor", event.actor),
    )


def _by(actor: str, event: NewEvent) -> NewEvent:
    return NewEvent(event.fact, event.entity_id, actor)


def _log(moment: int) -> list[StoredEvent]:
    """Two events of the right names, then each with a name that looks like another, at this moment."""
    resource = ResourceSaved(title="t", content_type="text/plain", metadata={}, scopes=["public"], owner="user:ada")
    shared = NewEvent(KnowledgeShared.model_construct(acl=[{"entity": UNSEEN, "permission": "read"}]), "k1", "user:ada")
    revised = NewEvent(KnowledgeRevised(content="c"), "k1", "user:ada")
    rated = NewEvent(KnowledgeRated(verdict="helpful"), "k1", "user:ada")
    events = [
        saved("k1"),
        published(saved("k2", actor=UNSEEN), owner=UNSEEN),
        published(saved("k3"), scopes=["public", IN_PARTS]),
        shared,
        published(revised, scopes=[UNSEEN]),
        published(NewEvent(resource, "r1", "user:ada"), shared_with=[UNSEEN]),
        _by(UNSEEN, rated),
    ]
    return [each._replace(stored_ns=moment + each.position * 1_000) for each in stored(events)]


@pytest.fixture(params=[256, 0], ids=["judged by the models", "parsed by SQL"])
def either_road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", request.param)


@pytest.mark.usefixtures("either_road")
def test_an_event_of_any_publisher_that_names_one_who_looks_like_another_does_not_count() -> None:
    refused = rows(view_of(_log(STRICTER)).con, "SELECT position, code, reason FROM refused_events ORDER BY position")
    assert [(position, code) for position, code, _ in refused] == [(at, "illegal_scope") for at in range(2, 8)]
    assert all("looks like" in reason for _, _, reason in refused)


@pytest.mark.usefixtures("either_road")
def test_what_the_log_kept_before_counts_as_it_did() -> None:
    assert rows(view_of(_log(STRICTER - 1_000_000)).con, "SELECT position FROM refused_events") == []


@pytest.mark.usefixtures("either_road")
def test_whoever_was_kept_before_is_closed_and_taken_out_of_use_as_ever() -> None:
    before = [
        each._replace(stored_ns=STRICTER - 1_000_000 + each.position)
        for each in stored([_by(UNSEEN, published(saved("k1"), owner=UNSEEN))])
    ]
    closed = SessionClosed(session_id="s", owner=UNSEEN, cause="idle", messages=1)
    after = stored(
        [
            NewEvent(KnowledgeRetired(reason="no more"), "k1", UNSEEN),
            NewEvent(closed, session_entity_id(UNSEEN, "s"), UNSEEN),
        ],
        2,
    )
    log = [*before, *(each._replace(stored_ns=STRICTER + each.position) for each in after)]
    view = view_of(log)
    refused = rows(view.con, "SELECT code FROM refused_events")
    assert "illegal_scope" not in {code for (code,) in refused}
    assert rows(view.con, "SELECT status FROM knowledge") == [("retired",)]
