"""Recalls of before can be read: which served an item, which are one's own, and what each said, word for word."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from kledger import LedgerClient
from kledger.contract.errors import InvalidPayload, UnknownKnowledge, UnknownReference
from tests.journeys.running_node import RunningNode, caught_up
from tests.patience import PATIENCE
from tests.recall.people import somebody

ASKED = "where is the lantern"
LANTERN = "lantern"
"""The type of what a test saves, each time another one: the tests save public items on the same node."""


@pytest.fixture(autouse=True)
def lanterns_of_its_own(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(request.module, "LANTERN", f"lantern_{number}")


@pytest.fixture
def eve(node: RunningNode) -> Iterator[LedgerClient]:
    with somebody(node) as client:
        yield client


def lantern(client: LedgerClient, content: str = "The lantern hangs in the hall.", **more: Any) -> str:
    given = {"scopes": ["public"], **more}
    saved = client.save("Where the lantern is", content, [LANTERN], **given)
    caught_up(client.acting_as())
    return saved["id"]


def looked_for(client: LedgerClient, query: str = ASKED, **more: Any) -> str:
    recall_id = client.search(query, top_k=100, types=[LANTERN], **more)["recall_id"]
    assert recall_id is not None
    caught_up(client.acting_as())
    return recall_id


def test_an_items_recalls_say_who_asked_what_and_where_the_item_stood(ann: LedgerClient, number: int) -> None:
    item = lantern(ann, scopes=None)
    within = ann.within(trace_id="t-lantern", message_id="m-1")
    first = looked_for(within)
    look = looked_for(ann, kind="page")
    message = ann.recall(ASKED, session="s-1")["recall_id"]
    caught_up(ann.acting_as())
    found = ann.recalls.of(item)
    assert [each["recall_id"] for each in found["results"]] == [message, look, first]
    assert [each["kind"] for each in found["results"]] == ["recall", "page", "search"]
    assert (found["id"], found["count"], found["total"], found["next"]) == (item, 3, 3, None)
    last, _, earliest = found["results"]
    assert (last["session"], last["query"]) == ("s-1", ASKED)
    assert last["intent"] is not None
    assert earliest.items() >= {
        "trace_id": "t-lantern", "message_id": "m-1", "actor": f"user:ann{number}", "query": ASKED, "rank": 1, "of": 1,
        "item_version": 1, "session": None, "intent": None,
    }.items()  # fmt: skip
    assert earliest["match"] is not None
    assert earliest["policy"] is not None
    assert earliest["view_position"] < earliest["position"]


def test_pages_of_recalls_end_and_none_is_told_twice(ann: LedgerClient) -> None:
    item = lantern(ann, scopes=None)
    made = [looked_for(ann) for _ in range(5)][::-1]
    by_item, own, before = list[str](), list[str](), None
    for _ in itertools.count():
        page = ann.recalls.of(item, limit=2, before=before)
        assert page["total"] == 5
        by_item += [each["recall_id"] for each in page["results"]]
        if (before := page["next"]) is None:
            break
    before = None
    for _ in itertools.count():
        listed = ann.recalls.list(limit=2, before=before)
        assert listed["total"] == 5
        own += [each["recall_id"] for each in listed["results"]]
        if (before := listed["next"]) is None:
            break
    assert by_item == own == made


def test_a_list_is_narrowed_by_trace_actor_kind_item_and_time(ann: LedgerClient, number: int) -> None:
    item = lantern(ann, scopes=None)
    first = looked_for(ann.within(trace_id="t-1"))
    look = looked_for(ann, kind="page")
    nothing = looked_for(ann, "zqnothing", path="keyword")
    whole = ann.recalls.list()["results"]
    assert [each["recall_id"] for each in whole] == [nothing, look, first]
    assert [each["of"] for each in whole] == [0, 1, 1]

    def listed(**asked: Any) -> list[str]:
        return [each["recall_id"] for each in ann.recalls.list(**asked)["results"]]

    at = {each["recall_id"]: each for each in whole}
    assert listed(trace="t-1") == [first]
    assert listed(kind="page") == [look]
    assert listed(item=item) == [look, first]
    assert listed(actor=f"user:ann{number}") == [nothing, look, first]
    assert listed(actor=f"agent:coder{number}") == []
    for field in ("position", "time"):
        since, until = at[look][field], at[nothing][field]
        assert listed(since=since, until=until) == [look], field
    assert listed(trace="t-1", kind="page") == []
    assert listed(item="not-there") == []
    wrong: list[dict[str, Any]] = [
        *({"since": "yesterday"}, {"until": "2026-03-05T12:00:00"}),
        *({"limit": 0}, {"limit": 201}, {"kind": "look"}),
    ]
    for asked in wrong:
        with pytest.raises(InvalidPayload):
            ann.recalls.list(**asked)


def test_what_was_served_is_shown_as_it_was_and_what_holds_now_beside_it(ann: LedgerClient) -> None:
    item = lantern(ann, scopes=None)
    other = ann.save("The other lantern", "The other lantern is lent.", [LANTERN])["id"]
    recall_id = looked_for(ann.within(trace_id="t-1", message_id="m-1"))
    ann.revise(item, content="The lantern is sold.")
    ann.retire(other)
    shown = ann.recalls.get(recall_id)
    assert (shown["of"], shown["left_out"], shown["query"], shown["kind"]) == (2, 0, ASKED, "search")
    assert (shown["trace_id"], shown["message_id"], shown["session"]) == ("t-1", "m-1", None)
    assert [each["rank"] for each in shown["results"]] == [1, 2]
    by_id = {each["id"]: each for each in shown["results"]}
    served = by_id[item]
    assert (served["task"], served["content"]) == ("Where the lantern is", "The lantern hangs in the hall.")
    assert (served["item_version"], served["version_now"], served["status_now"]) == (1, 2, "active")
    assert (by_id[other]["version_now"], by_id[other]["status_now"]) == (2, "retired")
    assert by_id[other]["content"] == "The other lantern is lent."


def test_what_may_not_be_seen_now_or_could_not_be_then_is_left_out_and_counted(
    ann: LedgerClient, eve: LedgerClient, number: int
) -> None:
    item = lantern(ann)
    recall_id = looked_for(eve)
    assert item in {each["id"] for each in eve.recalls.get(recall_id)["results"]}
    before = eve.recalls.get(recall_id)
    ann.revise(item, scopes=[f"user:ann{number}"])
    closed = eve.recalls.get(recall_id)
    assert item not in str(closed)
    assert closed["left_out"] == before["left_out"] + 1
    assert closed["of"] == before["of"]
    assert eve.recalls.list(item=item)["results"] == []
    with pytest.raises(UnknownKnowledge):
        eve.recalls.of(item)
    with pytest.raises(UnknownKnowledge):
        eve.recalls.of("not-there")
    operator = eve.acting_as()
    assert item in {each["id"] for each in operator.recalls.get(recall_id)["results"]}


def test_a_recall_is_its_actors_and_the_operators(ann: LedgerClient, eve: LedgerClient) -> None:
    item = lantern(ann)
    hers = looked_for(ann)
    assert eve.recalls.of(item)["results"] == []
    assert eve.recalls.of(item)["total"] == 0
    assert eve.recalls.list(trace=None, item=item)["results"] == []
    told = []
    for name in (hers, "not-there"):
        with pytest.raises(UnknownReference) as refused:
            eve.recalls.get(name)
        told.append(refused.value.message.replace(name, "ID"))
    assert told[0] == told[1]
    operator = ann.acting_as()
    assert hers in {each["recall_id"] for each in operator.recalls.of(item)["results"]}
    assert hers in {each["recall_id"] for each in operator.recalls.list(item=item)["results"]}
    assert operator.recalls.get(hers)["query"] == ASKED


def test_over_http_an_id_with_a_slash_and_a_wrong_parameter_are_told(node: RunningNode, ann: LedgerClient) -> None:
    lantern(ann, id=f"a/b {ann.wire.caller.user}")
    item = f"a%2Fb%20{ann.wire.caller.user}"
    who = {"X-Ledger-User": str(ann.wire.caller.user)}
    with httpx.Client(base_url=node.url, headers=who, timeout=PATIENCE) as http:
        assert http.get(f"/api/knowledge/{item}/recalls").json()["results"] == []
        for path in (f"/api/knowledge/{item}/recalls?limit=201", "/api/recalls?offset=3", "/api/recalls?actor=nobody"):
            assert http.get(path).status_code == 422, path
        assert http.get("/api/recalls/not-there").json()["error"]["code"] == "unknown_reference"


def test_erased_words_stay_erased(node: RunningNode) -> None:
    with node.client() as operator:
        gone = operator.acting_as(user="gone-with-the-lantern")
        item = lantern(gone, scopes=None)
        recall_id = looked_for(gone)
        operator.wait_job(operator.start_job("forget", subject="user:gone-with-the-lantern")["id"])
        caught_up(operator)
        shown = operator.recalls.get(recall_id)
        assert "lantern" not in shown["query"]
        (erased,) = (each for each in shown["results"] if each["id"] == item)
        assert "lantern" not in erased["task"] + erased["content"]
        assert "lantern is" not in str(operator.recalls.of(item)["results"])
        assert ASKED not in str(operator.recalls.list(item=item)["results"])


def test_recalls_that_count_are_told_apart_from_looks_at_a_page(ann: LedgerClient, number: int) -> None:
    item = lantern(ann, scopes=None)
    worked, looked = looked_for(ann), looked_for(ann, kind="page")
    for counts, expected in ((True, [worked]), (False, [looked]), (None, [looked, worked])):
        assert [each["recall_id"] for each in ann.recalls.of(item, counts=counts)["results"]] == expected
        page = ann.recalls.list(item=item, counts=counts)
        assert [each["recall_id"] for each in page["results"]] == expected
        assert page["total"] == len(expected)


def test_the_lineage_says_of_a_recall_what_was_asked_and_whether_it_was_a_look(ann: LedgerClient) -> None:
    item = lantern(ann, scopes=None)
    looked_for(ann)
    looked_for(ann, kind="page")
    used = [event for event in ann.lineage(item)["events"] if event["event_type"] == "recall.served"]
    assert [(event["recall_kind"], event["query"]) for event in used] == [("search", ASKED), ("page", ASKED)]


def test_the_latest_traces_are_listed_for_whoever_may_know_of_their_events(
    ann: LedgerClient, eve: LedgerClient, number: int
) -> None:
    names = [f"latest-{number}-{n}" for n in range(3)]
    for name in names:
        within = ann.within(trace_id=name)
        lantern(within, scopes=None)
        looked_for(within)
    looked_for(ann.within(trace_id=f"look-{number}"), kind="page")
    first = ann.traces(limit=2)
    assert [each["trace_id"] for each in first["results"]] == names[:0:-1]
    assert first["results"][0]["events"] == 2
    assert first["results"][0]["actors"] == [f"user:ann{number}"]
    assert first["results"][0]["began"] <= first["results"][0]["ended"]
    assert ann.traces(limit=2, before=first["next"])["results"][0]["trace_id"] == names[0]
    assert not {each["trace_id"] for each in eve.traces()["results"]} & {*names}
