"""A recall is recorded after its answer, and nobody who comes later can tell."""

from __future__ import annotations

from pathlib import Path

from tests.journeys.running_node import RunningNode, caught_up, running


def test_a_verdict_right_after_an_answer_is_of_something_served(node: RunningNode) -> None:
    with node.client() as client:
        ada = client.acting_as(agent="ada").within(trace_id="t-served")
        item = ada.save("Where the ladder is", "Behind the barn.", ["definition"])["id"]
        caught_up(client.acting_as())
        assert [each["id"] for each in ada.search("where is the ladder", top_k=1)["results"]] == [item]
        ada.rate(item, "helpful", task="the gutter")
        (case,) = ada.get(item)["eval"]["helpful_history"]
        assert case["credit"] == "served"


def test_a_read_of_recalls_has_those_that_were_just_answered(node: RunningNode) -> None:
    with node.client() as client:
        bea = client.acting_as(agent="bea").within(trace_id="t-read")
        item = bea.save("Where the rope is", "In the trunk.", ["definition"])["id"]
        caught_up(client.acting_as())
        for number in range(1, 4):
            recall_id = bea.search("where is the rope", top_k=1)["recall_id"]
            assert recall_id is not None
            if number == 1:
                assert bea.recalls.get(recall_id)["recall_id"] == recall_id
            assert bea.recalls.of(item)["results"][0]["recall_id"] == recall_id
            assert bea.recalls.list()["total"] == number
            assert recall_id in {edge["entity_id"] for edge in bea.lineage(item)["edges"]}


def test_a_stop_right_after_an_answer_loses_no_recall(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node, node.client() as client:
        cyd = client.acting_as(user="cyd")
        cyd.save("Where the saw is", "On the nail.", ["definition"])
        caught_up(client.acting_as())
        asked = [cyd.search("where is the saw")["recall_id"] for _ in range(20)]
        assert node.stop() == 0, node.said()
    with running(tmp_path / "data") as again, again.client() as client:
        cyd = client.acting_as(user="cyd")
        caught_up(client.acting_as())
        assert [each["recall_id"] for each in cyd.recalls.list(limit=50)["results"]] == asked[::-1]
