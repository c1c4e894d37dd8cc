"""kill -9 of a node or of its parts, in the middle of its work: what was acknowledged is there, once."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from kledger import LedgerClient
from kledger.contract.errors import ServiceFailed
from tests.journeys.running_node import (
    Importing,
    RunningNode,
    alive,
    assert_found,
    assert_kept_once,
    caught_up,
    head,
    items,
    result_of,
    running,
    sockets,
    until,
    word_of,
)
from tests.patience import PATIENCE

COUNT = 700


def assert_whole(ledger: LedgerClient, importing: Importing) -> None:
    """After the import was sent once more: all of it is there once, in every view."""
    told = ledger.save_many(importing.payloads)
    assert told["refused"] == 0
    assert told["saved"] <= len(importing.payloads) - len(importing.acknowledged)
    caught_up(ledger)
    assert_kept_once(ledger, importing.acknowledged)
    kept = ledger.sql("SELECT count(*) FROM knowledge WHERE id LIKE 'part-%'")["rows"]
    assert kept == [[len(importing.payloads)]]
    assert result_of(ledger, "verify")["equal"] is True
    assert_found(ledger, range(0, len(importing.payloads), 100))
    before = head(ledger)
    assert ledger.save_many(importing.payloads)["unchanged"] == len(importing.payloads)
    assert head(ledger) == before


def test_after_kill_9_of_the_node_amid_an_import_all_that_was_acknowledged_is_there_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data) as node:
        importing = Importing(node.url, items(COUNT)).start()
        importing.until_acknowledged(200)
        left = node.kill()
        importing.end()
        assert importing.error is not None
        # the next start does not wait for what the killed one left behind
    with running(data) as again, again.client() as ledger:
        assert not any(alive(pid) for pid in left[:1]), "two brokers on one directory"
        caught_up(ledger)
        assert_kept_once(ledger, importing.acknowledged)
        assert_whole(ledger, importing)
        until(lambda: not alive(left[1]), "the old vector process ends")


def test_after_kill_9_of_everything_amid_an_import_all_that_was_acknowledged_is_there_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    importing = Importing("", items(COUNT))
    for life in (1, 2):
        with running(data) as node:
            importing.url = node.url
            importing.start()
            importing.until_acknowledged(200 if life == 1 else 400)
            node.kill_everything()
            importing.end()
            assert importing.error is not None
    with running(data) as again, again.client() as ledger:
        assert_whole(ledger, importing)


def test_the_children_of_a_killed_node_end_by_themselves(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node:
        with node.client() as ledger:
            ledger.save_many(items(50))
        left = node.kill()
    until(lambda: not any(alive(pid) for pid in left), "broker and vector process end")


def test_kill_9_of_the_broker_alone_does_not_end_an_import(node: RunningNode) -> None:
    importing = Importing(node.url, items(COUNT), retries=3).start()
    importing.until_acknowledged(200)
    broker = node.broker
    os.kill(broker, signal.SIGKILL)
    importing.end()
    assert importing.error is None or importing.error.code == "broker_unavailable", importing.error
    with node.client() as ledger:
        until(lambda: node.broker != broker and alive(node.broker), "another broker runs")
        assert_whole(ledger, importing)
    assert node.process.poll() is None
    # else the port would be held, and nobody answer there, once the node is gone
    assert not sockets(node.broker) & sockets(node.process.pid)


def test_kill_9_of_the_vector_process_loses_no_answer(node: RunningNode) -> None:
    with node.client(retries=0) as ledger:
        ledger.save_many(items(200, "steady"))
        assert_found(ledger, [0], "steady")
        for number in range(1, 4):
            vectors = node.vectors
            os.kill(vectors, signal.SIGKILL)
            # asked at once, by one who wrote nothing and waits for no position, while nothing is appended
            with node.client(retries=0) as other:
                assert_found(other, [number], "steady")
            assert node.vectors != vectors
        caught_up(ledger)
        assert_found(ledger, range(0, 200, 20), "steady")


def test_kill_9_of_the_vector_process_amid_an_import_and_searches_fails_none_of_them(node: RunningNode) -> None:
    with node.client(retries=0) as ledger:
        importing = Importing(node.url, items(COUNT, "amid")).start()
        importing.until_acknowledged(200)

        def found(number: int) -> bool:
            results = ledger.search(word_of(number, "amid"), record=False)["results"]
            return f"amid-{number:05d}" in [item["id"] for item in results]

        until(lambda: all(map(found, range(20))), "the first items are searchable")
        os.kill(node.vectors, signal.SIGKILL)
        assert [number for number in range(20) if not found(number)] == []
        importing.end()
        assert importing.error is None
        caught_up(ledger)
        assert_found(ledger, range(0, COUNT, 100), "amid")


def test_an_idle_node_without_its_vector_process_starts_another_by_itself(node: RunningNode) -> None:
    vectors = node.vectors
    os.kill(vectors, signal.SIGKILL)
    until(lambda: node.children("projections.vectors.process") not in ([], [vectors]), "another one runs")
    with node.client() as ledger:
        caught_up(ledger)


def begun_and_killed(node: RunningNode, ledger: LedgerClient) -> str | None:
    """The id of a rebuild whose process was killed amid its work; None where it came to its end before."""
    job = ledger.start_job("rebuild")["id"]
    while ledger.job(job)["state"] == "running":
        for rebuild in node.children("projections.live.rebuild"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(rebuild, signal.SIGKILL)
    return job if ledger.job(job)["state"] == "failed" else None


def test_kill_9_of_a_rebuild_leaves_the_live_view_as_it_was(node: RunningNode) -> None:
    with node.client() as ledger:
        before = (node.data / "views" / "current").read_text()
        while (job := begun_and_killed(node, ledger)) is None:  # it was over before it was seen
            before = (node.data / "views" / "current").read_text()
        with pytest.raises(ServiceFailed):
            ledger.wait_job(job, timeout=PATIENCE)
        assert (node.data / "views" / "current").read_text() == before
        assert ledger.search(word_of(1, "steady"), top_k=1)["results"]
        assert result_of(ledger, "rebuild")["equal"] is True
