"""kill -9 of the node at any step of a slim: one result, each group billed once, and all of it can be brought back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kledger import LedgerClient
from kledger.contract.errors import NodeUnreachable
from tests.journeys.running_node import ROOT, caught_up, result_of, running, until
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint

GROUPS = 3
# After how many appends that were acknowledged each life of the node ends.
LIVES = (3, 1, 2)
LIVES_OF_REVERT = (2,)


def environment(server: EmbeddingEndpoint, armed: Path, data: Path, **more: str) -> dict[str, str]:
    return {
        "PYTHONPATH": f"{ROOT / 'tests' / 'faults' / 'inject'}:{ROOT}",
        "FAULT_ROOT": str(ROOT),
        "FAULT_ARMED": str(armed),
        "FAULT_DATA": str(data),
        "KLEDGER_MODEL_URL": server.url,
        "KLEDGER_MODEL": "big",
        "KLEDGER_MODEL_CONCURRENCY": "1",
    } | more


def plant(ledger: LedgerClient) -> list[str]:
    """GROUPS pairs of items that say the same."""
    texts = (
        "Retry a failed call: call retry",
        "Drain the queue first: queue drain",
        "部署之前检查监控面板: deploy check",
    )
    for number, text in enumerate(texts):
        ledger.save("Calls", text, ["tool"], scopes=["public"], id=f"first-{number}")
        ledger.save("Calls", f"Please {text}. Thanks!", ["tool"], scopes=["public"], id=f"second-{number}")
    return [f"{which}-{number}" for number in range(GROUPS) for which in ("first", "second")]


def state(ledger: LedgerClient, ids: list[str]) -> list[dict[str, Any]]:
    moving = {"version", "position", "updated_at"}
    return [{name: said for name, said in ledger.get(item).items() if name not in moving} for item in ids]


def found(ledger: LedgerClient) -> set[str]:
    return {item["id"] for item in ledger.search("Calls retry queue 部署", top_k=20, record=False)["results"]}


def test_a_slim_whose_node_is_killed_again_and_again_has_one_result_and_is_billed_once(tmp_path: Path) -> None:
    armed, data = tmp_path / "armed", tmp_path / "data"
    armed.mkdir()
    point = armed / "node.append.acknowledged"
    with embedding_endpoint() as server:
        server.chat.says({"task": "Calls", "content": "Retry: call retry; drain: queue drain; 部署: deploy check"})
        about = environment(server, armed, data, KLEDGER_MODEL_IDEMPOTENT="true")
        slim, ids = "", []
        before: list[dict[str, Any]] = []
        for life, passages in enumerate(LIVES):
            with running(data, env=about) as node:
                with node.client(read_your_writes=False, retries=0) as ledger:
                    if life == 0:
                        ids = plant(ledger.acting_as(user="ana"))
                        caught_up(ledger)
                        before = state(ledger.acting_as(user="ana"), ids)
                        point.write_text(f"node {passages}")
                        slim = ledger.acting_as(user="ana").slim(wait=0, idempotency_key="slim")["id"]
                    else:
                        point.write_text(f"node {passages}")
                until(lambda: node.process.poll() is not None, f"life {life} of the node ends")
        with running(data, env=about) as node, node.client(retries=0) as ledger:
            ana = ledger.acting_as(user="ana")
            done = ana.slim(idempotency_key="slim")
            assert (done["id"], done["status"], len(done["groups"]), done["items_after"]) == (
                slim,
                "applied",
                GROUPS,
                3,
            )
            assert server.chat.billed == GROUPS
            assert ana.get("second-0")["merged_into"] == "first-0"
            assert ana.get("first-0")["version"] == 2
            counts = ledger.sql("SELECT type, count(*) FROM events GROUP BY type")["rows"]
            assert {name: count for name, count in counts if name.startswith("slim.")} == {
                "slim.requested": 1,
                "slim.started": GROUPS,
                "slim.proposed": GROUPS,
                "slim.reported": 1,
                "slim.applied": 1,
            }
            point.write_text(f"node {LIVES_OF_REVERT[0]}")
            with pytest.raises(NodeUnreachable):
                ana.slim_revert(slim)
            until(lambda: node.process.poll() is not None, "the node ends amid reverting")
        with running(data, env=about) as node, node.client() as ledger:
            ana = ledger.acting_as(user="ana")
            until(lambda: ana.slim_get(slim)["status"] == "reverted", "the slim is reverted")
            assert state(ana, ids) == before
            caught_up(ledger)
            assert found(ana) == set(ids)
            assert result_of(ledger, "verify")["equal"] is True
            assert ledger.sql("SELECT count(*) FROM refused_events")["rows"] == [[0]]
            assert server.chat.billed == GROUPS


def test_where_the_endpoint_may_bill_twice_a_slim_that_was_cut_off_ends_and_merges_nothing(tmp_path: Path) -> None:
    armed, data = tmp_path / "armed", tmp_path / "data"
    armed.mkdir()
    with embedding_endpoint() as server:
        server.chat.says({"task": "Calls", "content": "Never kept"})
        server.chat.ignores_key = True
        server.chat.held.clear()
        about = environment(server, armed, data)
        with running(data, env=about) as node, node.client() as ledger:
            ana = ledger.acting_as(user="ana")
            ids = plant(ana)
            slim = ana.slim(wait=0)["id"]
            until(lambda: server.chat.calls == 1, "the model is asked")
            node.kill()
        server.chat.held.set()
        with running(data, env=about) as node, node.client() as ledger:
            ana = ledger.acting_as(user="ana")
            until(lambda: ana.slim_get(slim)["done"], "the slim has ended")
            told = ana.slim_get(slim)
            assert (told["status"], told["code"]) == ("failed", "interrupted")
            assert server.chat.calls == 1
            assert {ana.get(item)["status"] for item in ids} == {"active"}
