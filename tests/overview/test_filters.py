"""Which items does a list with filters have, in which order, and what do its facets count?"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kledger import AsyncLedgerClient
from kledger.client.transport.over_httpx import HttpxTransport
from kledger.contract.projects import SHARED_KINDS
from projections.engine.duckdb import open_view
from projections.fold_kit.sql_text import literal
from projections.views.knowledge.layers import layer_in, layer_of
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.memory.test_short_memories import K, M, over, said


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def listed(door: Door, who: dict[str, str] = ALICE, path: str = K, **params: Any) -> Any:
    answer = await door.get(path, params={"min_position": await door.head(), "limit": 100, **params}, headers=who)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def read(door: Door, path: str) -> Any:
    answer = await door.get(path, params={"min_position": await door.head()}, headers=ALICE)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def ids(door: Door, who: dict[str, str] = ALICE, **params: Any) -> list[str]:
    page = await listed(door, who, **params)
    assert page["total"] == len(page["results"])
    return [item["id"] for item in page["results"]]


async def put(door: Door, path: str, body: dict[str, Any], who: dict[str, str] = ALICE) -> None:
    answer = await door.put(path, json=body, headers=who)
    assert answer.is_success, answer.text


async def facets(door: Door, who: dict[str, str] = ALICE, **params: Any) -> Any:
    answer = await door.get("/api/overview/facets", params={"min_position": await door.head(), **params}, headers=who)
    assert answer.status_code == 200, answer.text
    return answer.json()


def numbers(values: list[dict[str, Any]]) -> dict[str, int]:
    return {each["value"]: each["count"] for each in values}


async def test_a_tag_is_a_name_a_text_among_the_values_or_one_in_a_list(door: Door) -> None:
    await door.saved(id="named", tags={"testing": True})
    await door.saved(id="valued", tags={"domain": "testing", "many": 3})
    await door.saved(id="in-a-list", tags={"labels": ['测试 "q"', "testing"]})
    await door.saved(id="deeper", tags={"domain": {"area": "testing"}, "note": "testing things"})
    await said(door, M, {"id": "memory", "layer": "semantic", "content": "c", "tags": ["testing"]})
    found = ["memory", "in-a-list", "valued", "named"]
    assert await ids(door, tags="testing") == found
    assert await ids(door, tags="absent,testing") == found
    assert await ids(door, tags='测试 "q"') == ["in-a-list"]
    assert await ids(door, tags="3") == await ids(door, tags="test") == []
    words = numbers((await facets(door))["tags"])
    assert words == {"testing": 4, "domain": 2, '测试 "q"': 1, "labels": 1, "many": 1, "note": 1, "testing things": 1}
    assert numbers((await facets(door, tags="domain"))["tags"])["testing"] == 1


async def test_a_tag_is_a_name_with_its_value_which_may_be_a_number_a_truth_or_one_in_a_list(door: Door) -> None:
    await door.saved(id="booked", tags={"category": "booking", "rank": 5, "paid": True, "share": 0.5})
    await door.saved(id="other", tags={"booking": "category", "rank": "5 stars", "category": {"of": "booking"}})
    await door.saved(id="listed", tags={"category": ["dinner", "booking"], "城市": "东京"})
    await door.saved(id="odd", tags={'a/b~c "d"': "x=y", "": "nothing", "category=lunch": 1})
    await said(door, M, {"id": "memory", "layer": "semantic", "content": "c", "tags": ["category=booking"]})
    assert await ids(door, tags="category=booking") == ["memory", "listed", "booked"]
    assert await ids(door, tags="rank=5") == await ids(door, tags="paid=true") == ["booked"]
    assert await ids(door, tags="share=0.5") == ["booked"]
    assert await ids(door, tags="城市=东京,rank=6") == ["listed"]
    assert await ids(door, tags='a/b~c "d"=x=y') == await ids(door, tags="category=lunch") == ["odd"]
    assert await ids(door, tags="=nothing") == ["odd"]
    for absent in ("rank=", "category=", "category=book", "nothing=5", "paid=True", "category=['dinner']", "rank=5'"):
        assert await ids(door, tags=absent) == [], absent
    assert (await facets(door, tags="rank=5"))["total"] == 1


async def test_a_memory_whose_tags_were_stated_anew_is_found_by_those_alone(door: Door) -> None:
    words = {"layer": "semantic", "content": "Bo drinks tea", "tags": ["drink", "tea", "茶 🍵"]}
    await said(door, M, {"id": "m", **words})
    await said(door, M, {"id": "untouched", **words})
    then = await door.head()

    async def told(item_id: str = "m") -> tuple[Any, Any, Any]:
        item, memory = await read(door, f"{K}/{item_id}"), await read(door, f"{M}/{item_id}")
        return item["tags"], item["memory"].get("tags"), memory["tags"]

    assert await told() == ({}, words["tags"], words["tags"])
    await put(door, f"{K}/m", {"content": "Bo drinks coffee"})  # what is not stated anew stays
    assert await ids(door, tags="tea") == ["untouched", "m"]

    await put(door, f"{K}/m", {"tags": ["drink", "coffee"]})
    assert await told() == ({"drink": "", "coffee": ""}, None, ["drink", "coffee"])
    assert await told("untouched") == ({}, words["tags"], words["tags"])
    assert await ids(door, tags="tea") == await ids(door, tags="茶 🍵") == ["untouched"]
    assert await ids(door, tags="coffee") == ["m"]
    assert await ids(door, tags="tea", as_of=then) == ["untouched", "m"]
    assert await ids(door, path=M, tags="tea") == ["untouched"]
    assert await ids(door, path=M, tags="coffee,nothing") == ["m"]
    assert await ids(door, path=M, tags="tea", as_of=then) == ["untouched", "m"]
    assert numbers((await facets(door))["tags"]) == {"drink": 2, "tea": 1, "茶 🍵": 1, "coffee": 1}
    versions = (await read(door, f"{K}/m/history"))["versions"]
    assert [each["memory"].get("tags") for each in versions] == [words["tags"], words["tags"], None]

    await put(door, f"{K}/m", {"tags": {"drink": "coffee"}})
    assert await told() == ({"drink": "coffee"}, None, {"drink": "coffee"})

    refused = await door.put(f"{K}/m", json={"tags": {}}, headers=ALICE)
    assert refusal(refused, 422, "invalid_payload").startswith("tags of m are empty")
    assert await told() == ({"drink": "coffee"}, None, {"drink": "coffee"})
    await door.saved(id="plain", tags={"drink": "tea"})
    await put(door, f"{K}/plain", {"tags": []})
    assert (await read(door, f"{K}/plain"))["tags"] == {}

    assert (await door.post(f"{K}/m/revert", json={"to_version": 1}, headers=ALICE)).is_success
    assert await told() == ({}, words["tags"], words["tags"])
    assert await ids(door, tags="tea") == ["untouched", "m"]


async def test_a_memory_that_is_saved_with_words_and_tags_keeps_both_whatever_becomes_of_it(door: Door) -> None:
    memory = {"layer": "semantic", "tags": ["tea", "rank"]}
    await door.saved(id="m", tags={"drink": "hot", "rank": 5}, memory=memory)
    kept = {"tea": "", "drink": "hot", "rank": 5}

    async def holds() -> None:
        item = await read(door, f"{K}/m")
        assert (item["tags"], item["memory"].get("tags")) == (kept, None)
        assert (await read(door, f"{M}/m"))["tags"] == kept
        for word in ("tea", "hot", "rank=5"):
            assert await ids(door, tags=word) == await ids(door, path=M, tags=word) == ["m"], word
        assert numbers((await facets(door))["tags"]) == {"drink": 1, "tea": 1, "rank": 1, "hot": 1}

    await holds()
    again = await door.saved(id="m", tags={"drink": "hot", "rank": 5}, memory=memory)
    assert again["duplicate"]
    await put(door, f"{K}/m", {"update_score": 5})
    await holds()
    await put(door, f"{K}/m", {"content": "Bo drinks coffee"})
    await holds()


async def test_scores_layers_and_who_said_it_first_narrow_a_list(door: Door) -> None:
    for score in range(1, 6):
        await door.saved(id=f"s{score}", score=score)
    await said(door, M, {"id": "fact", "layer": "semantic", "content": "c"})
    await said(door, M, {"id": "adr", "kind": "adr", "content": "one service", "scopes": ["project:ledger"]})
    assert await ids(door, min_score=4) == ["s5", "s4"]
    assert await ids(door, max_score=2) == ["s2", "s1"]
    assert await ids(door, min_score=3, max_score=3) == ["fact", "s3"]
    assert await ids(door, layer="semantic") == ["fact"]
    assert await ids(door, layer="shared", status="all") == ["adr"]
    assert await ids(door, layer="semantic,plain", min_score=3) == ["fact", "s5", "s4", "s3"]
    await door.saved(BOB, id="bobs", scopes=["public"])
    assert await ids(door, created_by="user:bob") == ["bobs"]
    await put(door, f"{K}/s1", {"owner": "user:bob", "scopes": ["user:alice"]})
    assert await ids(door, created_by="user:alice", max_score=1) == ["s1"]
    assert numbers((await facets(door))["owners"]) == {"user:alice": 5, "user:bob": 2}


async def test_a_list_of_what_changed_lately_counts_verdicts(door: Door) -> None:
    for name in ("first", "second", "third"):
        await door.saved(id=name)
    moment = (await listed(door))["results"][0]["updated_at"]
    assert await ids(door, since=moment) == ["third"]
    assert await ids(door, until=moment) == ["second", "first"]
    await put(door, f"{K}/first", {"add_helpful_case": {}})
    assert await ids(door, since=moment) == ["third", "first"]
    assert await ids(door, since="0001-01-01T00:00:00+14:00", until="9999-12-31T23:59:59-12:00") == [
        *("third", "second", "first")
    ]


async def test_every_order_has_all_pages_and_as_of_the_first_one(door: Door) -> None:
    for name in ("a", "b", "c", "d"):
        await door.saved(id=name, eval={"confidence": 0.1 * ("abcd".index(name) + 1)})
    for name in ("b", "b", "a"):
        await put(door, f"{K}/{name}", {"add_helpful_case": {"task": f"t{await door.head()}"}})
    expected = {
        "newest": ["d", "c", "b", "a"],
        "oldest": ["a", "b", "c", "d"],
        "updated": ["a", "b", "d", "c"],
        "helpful": ["b", "a", "d", "c"],
    }
    for sort, order in expected.items():
        assert await ids(door, sort=sort) == order
        assert await ids(door, sort=sort, as_of=await door.head()) == order
    assert await ids(door, sort="helpful", as_of=4) == ["d", "c", "b", "a"]
    confident = [item["eval"]["confidence"] for item in (await listed(door, sort="confidence"))["results"]]
    assert confident == sorted(confident, reverse=True)
    page = await listed(door, sort="helpful", limit=3)
    assert (page["next"], page["total"]) == (3, 4)
    await put(door, f"{K}/c", {"add_helpful_case": {"task": "x"}})
    rest = await listed(door, sort="helpful", limit=3, offset=page["next"], as_of=page["position"])
    assert ([item["id"] for item in rest["results"]], rest["next"]) == (["c"], None)
    message = refusal(await door.get(K, params={"sort": "helpful", "before": 3}, headers=ALICE), 422, "invalid_payload")
    assert "offset" in message


async def test_filters_hold_as_of_a_moment(door: Door) -> None:
    await door.saved(id="k", score=2, tags={"old": 1})
    then = await door.head()
    await put(door, f"{K}/k", {"update_score": 5, "tags": {"new": 1}})
    assert await ids(door, tags="old", max_score=2) == []
    assert await ids(door, tags="old", max_score=2, as_of=then) == ["k"]
    assert numbers((await facets(door, as_of=then))["tags"]) == {"old": 1}


async def test_what_is_over_is_listed_as_expired_before_the_node_says_so(door: Door) -> None:
    await said(door, M, {"id": "mood", "layer": "short", "kind": "mood", "content": "m", "lifetime": 1})
    await over(door)
    assert await ids(door) == []
    page = await listed(door, status="expired")
    assert [(item["id"], item["status"]) for item in page["results"]] == [("mood", "expired")]


async def test_facets_count_what_the_caller_sees_and_the_filters_let_through(door: Door) -> None:
    await door.saved(id="a", types=["tool", "plan"], scopes=["public"])
    await door.saved(id="b", types=["tool"])
    await door.saved(BOB, id="secret", types=["tool", "hidden"], tags={"secret": 1}, scopes=["user:bob", "team:hidden"])
    await door.delete(f"{K}/b", headers=ALICE)
    found = await facets(door, status="all")
    assert numbers(found["types"]) == {"tool": 2, "plan": 1}
    assert numbers(found["scopes"]) == {"public": 1, "user:alice": 1}
    assert numbers(found["statuses"]) == {"active": 1, "retired": 1}
    assert numbers(found["layers"]) == {"plain": 2}
    assert (found["tags"], found["total"]) == ([], 2)
    assert (await facets(door))["total"] == 1
    assert [each["value"] for each in found["types"]] == ["tool", "plan"]


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"min_score": 0}, "min_score"),
        ({"max_score": 6}, "max_score"),
        ({"min_score": 4, "max_score": 2}, "min_score"),
        ({"since": "yesterday"}, "since"),
        ({"until": "42"}, "until"),
        ({"since": "2026-03-06T00:00:00Z", "until": "2026-03-05T00:00:00Z"}, "since"),
        ({"layer": "working"}, "layer"),
        ({"concern": "odd"}, "concern"),
        ({"status": "odd"}, "status"),
    ],
)
async def test_a_filter_that_does_not_fit_is_refused(door: Door, params: dict[str, Any], field: str) -> None:
    for path in (K, "/api/overview/facets"):
        message = refusal(await door.get(path, params=params, headers=ALICE), 422, "invalid_payload")
        assert field in message
    assert refusal(await door.get(K, params={"created_by": "nobody"}, headers=ALICE), 422, "illegal_scope")
    assert refusal(await door.get(K, params={"sort": "odd"}, headers=ALICE), 422, "invalid_payload")


async def test_the_client_goes_through_a_list_in_any_order_as_of_its_first_page(door: Door) -> None:
    for number in range(5):
        await door.saved(id=f"k{number}")
    ledger = AsyncLedgerClient("http://127.0.0.1:8420")
    ledger.wire.connection.transport = HttpxTransport.over(door.client)  # in place of a socket
    alice = ledger.acting_as(user="alice").seeing(await door.head())
    seen = []
    async for item in alice.iterate(page=2, sort="helpful", layers=["plain"]):
        seen.append(item["id"])
        if len(seen) == 1:
            await put(door, f"{K}/k0", {"add_helpful_case": {}})
    assert seen == ["k4", "k3", "k2", "k1", "k0"]
    assert (await alice.facets(types=["tool"]))["total"] == 5


SCOPES = st.lists(st.sampled_from(["public", "project:ledger", "user:a", "projects:x"]), min_size=1, max_size=3)


@settings(max_examples=60)
@given(
    layer=st.sampled_from([None, "short", "semantic"]),
    kind=st.sampled_from([None, "mood", *SHARED_KINDS]),
    types=st.lists(st.sampled_from(["tool", "document"]), min_size=1),
    scopes=SCOPES,
)
def test_a_layer_is_the_same_in_sql_and_of_an_answer(
    layer: str | None, kind: str | None, types: list[str], scopes: list[str]
) -> None:
    row = {"layer": layer, "kind": kind, "types": types, "scopes": scopes}
    item = {"types": types, "scopes": scopes} | ({} if layer is None else {"memory": {"layer": layer, "kind": kind}})
    values = ", ".join(f"{literal(value)} AS {name}" for name, value in row.items())
    with open_view(None) as con:
        ((found,),) = con.execute(f"SELECT {layer_in('k.')} FROM (SELECT {values}) AS k").fetchall()
    assert found == layer_of(item)
