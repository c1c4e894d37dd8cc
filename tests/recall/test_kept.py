"""What a recall found is kept for a while, and never given after something that it follows from has changed."""

from __future__ import annotations

import time

import httpx

from kledger import LedgerClient
from producers.operations.kept_recalls import MOST, MOST_CHARACTERS, SECONDS, RecallCache
from tests.journeys.running_node import RunningNode, caught_up, until
from tests.patience import PATIENCE
from tests.recall.people import somebody

ASKED = "where is the key of the boathouse"
SAID = "The key of the boathouse hangs behind the clock."


def kept(node: RunningNode) -> float:
    """How many recalls were answered from what was kept."""
    told = httpx.get(f"{node.url}/metrics", timeout=PATIENCE).text
    return float(next(line for line in told.splitlines() if line.startswith("kledger_recalls_kept_total")).split()[1])


def found(client: LedgerClient) -> list[str]:
    return [item["content"] for item in client.recall(ASKED)["results"]]


def test_a_recall_that_is_kept_is_recorded_like_any_other(node: RunningNode, ann: LedgerClient) -> None:
    ann.save("boathouse", SAID, ["definition"])
    told = [ann.recall(ASKED)]

    def is_given_again() -> bool:
        before = kept(node)
        told.append(ann.recall(ASKED))
        return kept(node) == before + 1

    until(is_given_again, "it is kept, though an item of another test changes meanwhile")
    first, second = told[-2:]
    assert second["results"] == first["results"]
    assert first["recall_id"] != second["recall_id"]
    with node.client() as operator:
        caught_up(operator)
        ids = f"('{first['recall_id']}', '{second['recall_id']}')"
        assert operator.sql(f"SELECT count(*) FROM recalls WHERE recall_id IN {ids}")["rows"] == [[2]]


def test_nothing_is_given_again_after_a_save_a_revision_a_retirement_or_a_restore(ann: LedgerClient) -> None:
    item = ann.save("boathouse", SAID, ["definition"])["id"]
    assert found(ann) == [SAID]
    other = ann.save("boathouse", "A second key of the boathouse is with Mia.", ["definition"])["id"]
    assert len(found(ann)) == 2
    ann.revise(item, content="The key of the boathouse is lost.")
    assert "The key of the boathouse is lost." in found(ann)
    ann.retire(other)
    assert found(ann) == ["The key of the boathouse is lost."]
    ann.restore(other)
    assert len(found(ann)) == 2


def test_what_is_kept_for_one_caller_is_given_to_no_other(node: RunningNode, ann: LedgerClient) -> None:
    ann.save("boathouse", SAID, ["definition"])
    assert found(ann) == [SAID]
    with somebody(node) as eve:
        assert found(eve) == []


def test_a_reader_who_is_no_longer_one_is_given_nothing(node: RunningNode, ann: LedgerClient) -> None:
    with node.client() as client:
        bob = client.acting_as(user="bob-of-the-boathouse")
        item = ann.save("boathouse", SAID, ["definition"])["id"]
        assert found(bob) == []
        ann.share(item, [{"entity": "user:bob-of-the-boathouse", "permission": "read"}])
        until(lambda: found(bob) == [SAID], "bob reads what was shared with him")
        ann.share(item, [])
        until(lambda: found(bob) == [], "bob reads no longer what was taken from him")


def test_a_short_memory_that_is_over_is_given_no_more(ann: LedgerClient) -> None:
    """Recalls that leave no event do not renew its life."""

    def unrecorded() -> list[str]:
        return [item["content"] for item in ann.recall(ASKED, record=False)["results"]]

    for lifetime in (2, 16, 128):  # a machine that is busy may not ask in time for the first
        began = time.monotonic()
        ann.remember(SAID, "short", kind="preference", lifetime=lifetime)
        if unrecorded() == [SAID]:
            break
    until(lambda: unrecorded() == [], "the memory is over")
    assert time.monotonic() - began >= 1, "it was given while it lived"
    assert unrecorded() == []


def test_nothing_of_a_forgotten_person_is_given_again(node: RunningNode) -> None:
    with node.client() as operator:
        ann = operator.acting_as(user="forgotten-of-the-boathouse")
        ann.save("boathouse", SAID, ["definition"])
        assert found(ann) == [SAID]
        operator.wait_job(operator.start_job("forget", subject="user:forgotten-of-the-boathouse")["id"])
        assert found(ann) == []


def test_what_is_kept_ends_with_its_time_its_state_and_what_is_forgotten() -> None:
    now = [0.0]
    cache = RecallCache(lambda: now[0])
    cache.put("a", 1, {"results": []}, 1e9)
    assert cache.get("a", 1) == {"results": []}
    assert cache.get("a", None) is None
    cache.put("a", 1, {"results": []}, 1e9)
    assert cache.get("a", 2) is None
    cache.put("a", 1, {"results": []}, 1e9)
    now[0] = SECONDS
    assert cache.get("a", 1) is None
    cache.put("a", 1, {"results": []}, 5)
    now[0] += 5
    assert cache.get("a", 1) is None
    cache.put("a", 1, {"results": []}, 5)
    cache.forget()
    assert cache.get("a", 1) is None
    assert (cache.hits, cache.misses) == (1, 5)


def test_so_many_recalls_are_kept_and_no_more() -> None:
    cache = RecallCache(lambda: 0.0)
    nothing: dict[str, list[str]] = {"results": []}
    for number in range(MOST + 1):
        cache.put(number, 1, nothing, 9)
    assert cache.get(0, 1) is None
    assert cache.get(1, 1) == nothing


def test_long_contents_push_each_other_out_and_the_longest_are_not_kept() -> None:
    cache = RecallCache(lambda: 0.0)
    long = {"results": [{"content": "x" * (MOST_CHARACTERS // 10)}]}
    for number in range(11):
        cache.put(number, 1, long, 9)
    assert cache.get(0, 1) is None
    assert cache.get(1, 1) == long
    cache.put("longer", 1, {"results": [{"content": "x" * (MOST_CHARACTERS // 10 + 1)}]}, 9)
    assert cache.get("longer", 1) is None
