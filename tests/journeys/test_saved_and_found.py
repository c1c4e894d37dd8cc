"""From a saved fact to an answer: what is said to a node is found, with its past and where it came from."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import httpx
import pytest

from kledger import AsyncLedgerClient, LedgerClient
from kledger.contract.errors import UnknownKnowledge, UnknownReference, ViewBehind
from tests.journeys.running_node import RunningNode, caught_up, head

ENGLISH = "Descale the espresso machine of the third floor with citric acid"
CHINESE = "三楼的意式咖啡机用柠檬酸除垢"


@pytest.mark.parametrize(
    ("item_id", "task", "asked"),
    [
        ("descale-en", ENGLISH, "how do I descale the espresso machine"),
        ("descale-zh", CHINESE, "咖啡机怎么除垢"),
    ],
)
def test_a_search_that_names_the_position_of_a_save_finds_it(
    shared_node: RunningNode, item_id: str, task: str, asked: str
) -> None:
    with httpx.Client(base_url=shared_node.url, timeout=30, headers={"X-Ledger-User": "%E6%A2%85"}) as http:
        body = {"id": item_id, "task": task, "content": task, "types": ["tool"], "scopes": ["public"]}
        saved = http.post("/api/knowledge", json=body)
        assert saved.status_code == 201, saved.text
        found = http.get("/api/knowledge/search", params={"q": asked, "min_position": saved.json()["position"]})
    assert found.status_code == 200, found.text
    first = found.json()["results"][0]
    assert (first["id"], first["owner"], first["version"]) == (item_id, "user:梅", 1)
    assert found.json()["position"] >= saved.json()["position"]


def test_the_sync_client_reads_what_it_wrote(ledger: LedgerClient) -> None:
    for number in range(10):
        word = f"synchronous{number}"
        saved = ledger.save(f"Oil the {word} hinge", "A drop is enough.", ["tool"], scopes=["public"])
        assert ledger.get(saved["id"])["content"] == "A drop is enough."
        assert ledger.search(f"oil {word}", top_k=1, record=False)["results"][0]["id"] == saved["id"]
        ledger.rate(saved["id"], "helpful", outcome="it no longer creaks")
        assert ledger.get(saved["id"])["eval"]["helpful"] == 2


async def test_the_async_client_reads_what_it_wrote(shared_node: RunningNode) -> None:
    async with AsyncLedgerClient(shared_node.url) as ledger:
        mei = ledger.acting_as(user="mei", agent="scribe")
        for number in range(10):
            word = f"asynchronous{number}"
            saved = await mei.save(f"Wax the {word} drawer", "用蜂蜡，不要用油。", ["tool"])
            assert (await mei.get(saved["id"]))["version"] == 1
            found = await mei.search(f"wax {word}", top_k=1, record=False)
            assert found["results"][0]["id"] == saved["id"]
            with pytest.raises(UnknownKnowledge):
                await ledger.acting_as(user="jonas").get(saved["id"])


def test_an_answer_as_of_then_is_what_was_known_then_and_nothing_else(ledger: LedgerClient) -> None:
    ana = ledger.acting_as(user="ana")
    before = head(ledger)
    saved = ana.save("Park the delivery van", "Behind the bakery.", ["plan"], id="van", scopes=["public"])
    between = datetime.now(UTC)
    ana.revise("van", content="In front of the chemist.", expected_version=1)
    retired = ana.retire("van", reason="sold")
    ana.restore("van")

    assert ledger.get("van")["content"] == "In front of the chemist."
    for then in (saved["position"], between, between.isoformat()):
        item = ledger.get("van", as_of=then)
        assert (item["content"], item["version"], item.get("status")) == ("Behind the bakery.", 1, "active")
        found = ledger.search("where to park the delivery van", as_of=then, record=False)
        assert {hit["id"]: hit["content"] for hit in found["results"]}["van"] == "Behind the bakery."
    assert ledger.get("van", as_of=retired["position"]).get("status") == "retired"
    gone = ledger.search("where to park the delivery van", as_of=retired["position"], record=False)
    assert "van" not in [hit["id"] for hit in gone["results"]]
    with pytest.raises(UnknownKnowledge):
        ledger.get("van", as_of=before)
    assert "van" not in [hit["id"] for hit in ledger.search("delivery van", as_of=before, record=False)["results"]]


def test_lineage_leads_from_a_message_to_what_came_of_it_and_back(ledger: LedgerClient) -> None:
    trace, message = f"trace-{uuid.uuid4()}", "消息/7 ♥"
    scribe = ledger.acting_as(agent="scribe").within(trace_id=trace, message_id=message)
    saved = scribe.save("Ring the bell twice", "Once is for visitors.", ["strategy"], id="bell", scopes=["public"])
    rated = ledger.acting_as(user="ana").within(trace_id=trace, causation_id=saved["event_id"]).rate("bell", "helpful")

    assert {edge["entity_id"] for edge in ledger.lineage(f"message:{message}")["edges"]} == {"bell"}
    of_trace = ledger.lineage(f"trace:{trace}")["edges"]
    assert {edge["event_type"] for edge in of_trace} >= {"knowledge.saved", "knowledge.rated"}
    assert {edge["direction"] for edge in of_trace} == {"to"}
    of_item = ledger.lineage("bell")["edges"]
    assert {f"trace:{trace}", f"message:{message}"} <= {edge["ref"] for edge in of_item if edge["direction"] == "from"}
    caused = [edge for edge in ledger.lineage(f"event:{saved['event_id']}")["edges"] if edge["direction"] == "to"]
    assert rated["events"][0]["event_id"] in [edge["event_id"] for edge in caused]
    with pytest.raises(UnknownReference):
        ledger.lineage("trace:nobody-said-this")


def test_lineage_tells_every_event_that_made_an_item_once_with_its_role(ledger: LedgerClient) -> None:
    made, judged = f"trace-made-{uuid.uuid4()}", f"trace-judged-{uuid.uuid4()}"
    ana = ledger.acting_as(user="ana")
    item = ana.within(trace_id=made, message_id="m-made").save("Fold a map", "Along its creases.", ["tool"])["id"]
    ana.share(item, [{"entity": "user:bob", "permission": "read"}])
    bob = ledger.acting_as(user="bob").within(trace_id=judged, message_id="m-judged")
    bob.rate(item, "harmful", task="a walk", outcome="it tore", reason="wet paper")
    ana.rate(item, "helpful")
    ana.score(item, 4)
    ana.revise(item, content="Along its creases, when it is dry.")
    served = ana.search("fold a map")["recall_id"]
    ana.retire(item)
    ana.restore(item)

    told = ana.lineage(item)
    assert [(event["role"], event["event_type"]) for event in told["events"]] == [
        ("origin", "knowledge.saved"),
        ("change", "knowledge.shared"),
        ("verdict", "knowledge.rated"),
        ("verdict", "knowledge.rated"),
        ("verdict", "knowledge.scored"),
        ("change", "knowledge.revised"),
        ("use", "recall.served"),
        ("change", "knowledge.retired"),
        ("change", "knowledge.restored"),
    ]
    save, _, harm, help_, score, _, recall, *_ = told["events"]
    assert (save["actor"], save["trace_id"], save["message_id"]) == ("user:ana", made, "m-made")
    assert (harm["verdict"], harm["actor"], harm["trace_id"], harm["message_id"]) == (
        *("harmful", "user:bob"),
        *(judged, "m-judged"),
    )
    assert harm["case"] == {"task": "a walk", "outcome": "it tore", "reason": "wet paper"}
    assert (help_["verdict"], help_["case"], score["score"]) == ("helpful", {}, 4)
    assert recall["entity_id"] == served

    ways = {edge["ref"]: edge["direction"] for edge in told["edges"] if edge["relation"] in ("trace", "message")}
    assert ways == {
        f"trace:{made}": "from",
        "message:m-made": "from",
        f"trace:{judged}": "to",
        "message:m-judged": "to",
    }
    of_trace = ana.lineage(f"trace:{judged}")["events"]
    assert [(event["role"], event["entity_id"]) for event in of_trace] == [("verdict", item)]


def test_history_tells_every_version_and_every_verdict_in_order(ledger: LedgerClient) -> None:
    ana = ledger.acting_as(user="ana")
    ana.save("Lock the cellar", "With the brass key.", ["tool"], id="cellar", scopes=["public"])
    ana.rate("cellar", "helpful", outcome="it locks")
    ana.revise("cellar", content="With the steel key.")
    ana.rate("cellar", "harmful", reason="it stuck")
    told = ledger.history("cellar")
    assert [(version["version"], version["content"]) for version in told["versions"]] == [
        (1, "With the brass key."),
        (2, "With the steel key."),
    ]
    assert [case["verdict"] for case in told["feedback"]] == ["helpful", "harmful"]


def test_a_profile_begins_changes_and_ends(ledger: LedgerClient) -> None:
    memories = ledger.acting_as(user="小明").profiles
    at_first = memories.both()
    assert memories.register() == at_first
    memories.patch("user", {"timezone": "Asia/Shanghai"})
    content = memories.get("user")
    assert content is not None
    assert content["timezone"] == "Asia/Shanghai"
    memories.put("user", {**content, "timezone": "Europe/Berlin"})
    again = memories.get("user")
    assert again is not None
    assert again["timezone"] == "Europe/Berlin"
    memories.disable("user")
    assert memories.get("user") is None
    assert memories.get("work") is not None


def test_what_was_served_to_whom_is_kept_as_an_event(ledger: LedgerClient) -> None:
    ana = ledger.acting_as(user="ana")
    saved = ana.save("Feed the office parrot", "Sunflower seeds.", ["tool"], scopes=["public"])
    found = ana.within(trace_id="trace-parrot").search("feed the parrot", top_k=1)
    assert found["recall_id"] is not None
    caught_up(ledger)
    rows = ledger.sql(f"SELECT item_id FROM recalls WHERE recall_id = '{found['recall_id']}'")["rows"]
    assert rows == [[saved["id"]]]


def test_a_position_that_is_not_there_yet_is_waited_for_and_then_refused(shared_node: RunningNode) -> None:
    with httpx.Client(base_url=shared_node.url, timeout=30) as http, shared_node.client() as ledger:
        position = head(ledger) + 1_000
        beyond = {"min_position": position, "wait": 0.3}
        for path, params in (("search", {"q": "x"}), ("", {}), ("/bell", {}), ("/bell/history", {})):
            answer = http.get(f"/api/knowledge{'/' if path == 'search' else ''}{path}", params={**params, **beyond})
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "view_behind"), answer.text
            assert answer.elapsed.total_seconds() >= 0.3
            assert "Retry-After" in answer.headers
        with pytest.raises(ViewBehind):
            ledger.seeing(position, wait=0.1).get("bell")
