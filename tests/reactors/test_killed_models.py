"""kill -9 of the node and its broker at the steps of a model's work: one result, billed once.

KLEDGER_EVERY_KILL=1 has it killed at every step (`make faults`), which takes a node's start each.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kledger import LedgerClient
from kledger.contract.errors import NodeUnreachable
from tests.journeys.running_node import ROOT, RunningNode, caught_up, result_of, running, until
from tests.openai_chat import ChatEndpoint
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.reactors.conftest import models

INJECT = Path(__file__).parents[1] / "faults" / "inject"
ENDED = {"applied", "proposed", "completed", "failed"}


class Kill(NamedTuple):
    """At which passage of which step of which work; `always`, or only when every step is asked for."""

    work: str
    step: str
    passage: int
    always: bool = False


# An evolution is kept twice and an extraction three times; an extraction asks twice.
KILLS = [
    Kill("evolve", "model.heard", 1),
    Kill("evolve", "model.begun", 1),
    Kill("evolve", "model.answered", 1, always=True),
    Kill("evolve", "model.keeping", 2),
    Kill("evolve", "model.kept", 2),
    Kill("extract", "model.begun", 1),
    Kill("extract", "model.answered", 1),
    Kill("extract", "model.asking", 2),
    Kill("extract", "model.answered", 2, always=True),
    Kill("extract", "model.keeping", 3),
    Kill("extract", "model.kept", 3),
]
CALLS = {"evolve": 1, "extract": 2}


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as running_server:
        yield running_server


@dataclass
class Lives:
    """A node that is killed and started again on one data directory."""

    data: Path
    armed: Path
    endpoint: EmbeddingEndpoint
    idempotent: bool = True

    @contextmanager
    def life(self) -> Iterator[tuple[RunningNode, LedgerClient]]:
        faults = {
            "PYTHONPATH": f"{INJECT}:{ROOT}",
            "FAULT_ROOT": str(ROOT),
            "FAULT_ARMED": str(self.armed),
            "FAULT_DATA": str(self.data),
            "KLEDGER_MODEL_IDEMPOTENT": str(self.idempotent).lower(),
        }
        with running(self.data, env=models(self.endpoint, **faults)) as node, node.client(retries=0) as ledger:
            yield node, ledger

    def killed_at(self, node: RunningNode, step: str, passage: int, ask: Callable[[], object]) -> None:
        """Ask for the work, and return once the node has died at that step of it, which may be before it answers."""
        (self.armed / f"node.{step}").write_text(f"all {passage}")
        with contextlib.suppress(NodeUnreachable):
            ask()
        until(lambda: node.process.poll() is not None, f"the node is killed at {step}")


@pytest.fixture
def lives(tmp_path: Path, endpoint: EmbeddingEndpoint) -> Lives:
    armed = tmp_path / "armed"
    armed.mkdir()
    scripted(endpoint.chat)
    return Lives(tmp_path / "data", armed, endpoint)


def scripted(chat: ChatEndpoint) -> None:
    chat.says({"content": "Rewritten.", "task": None, "reason": "r"}, to="<feedback>")
    found = {"type": "tool", "task": "t", "category": "c", "domain": "d", "message_ids": []}
    chat.says({"items": [{**found, "content": f"Found {n}."} for n in range(2)]}, to="<message id=")
    chat.says({"verdicts": []}, to="<new item=")


def begin(ledger: LedgerClient, work: str, item: str) -> object:
    """Ask for the work, and do not wait for it."""
    return ledger.evolve(item, "better", wait=0) if work == "evolve" else ledger.extract("so it is", wait=0)


def last_begun(op: LedgerClient) -> str:
    """The id of the process that was asked for last."""
    caught_up(op)
    (row,) = op.sql("SELECT id FROM processes ORDER BY requested_position DESC LIMIT 1")["rows"]
    return str(row[0])


def ended(ledger: LedgerClient, process: str) -> dict[str, Any]:
    """What became of it."""
    read: Callable[[str], Any] = ledger.evolution if process.startswith("evolution") else ledger.extraction
    until(lambda: read(process)["status"] in ENDED, f"{process} comes to its end")
    return dict(read(process))


def assert_done_once(op: LedgerClient, item: str) -> None:
    """The work that was interrupted has one result: an evolution a version, an extraction each item it found."""
    ana, process = op.acting_as(user="ana"), last_begun(op)
    done = ended(ana, process)
    if process.startswith("evolution"):
        assert done["status"] == "applied", done
        assert [version["content"] for version in ana.history(item)["versions"]] == ["As it was.", "Rewritten."]
    else:
        assert [each["action"] for each in done["items"]] == ["saved", "saved"], done
        kept = f"SELECT count(*) FROM events WHERE type = 'knowledge.saved' AND correlation_id = '{process}'"
        assert op.sql(kept)["rows"] == [[2]]


def test_work_that_kill_9_interrupts_has_one_result_and_one_bill(lives: Lives) -> None:
    chat = lives.endpoint.chat
    every = os.environ.get("KLEDGER_EVERY_KILL") == "1"
    item, bill = "", 0
    for kill in [kill for kill in KILLS if every or kill.always]:
        with lives.life() as (node, op):
            if item:
                assert_done_once(op, item)
            assert chat.billed == bill, kill
            ana = op.acting_as(user="ana")
            item = str(ana.save("t", "As it was.", ["tool"])["id"])
            lives.killed_at(node, kill.step, kill.passage, partial(begin, ana, kill.work, item))
            bill += CALLS[kill.work]
    with lives.life() as (_, op):
        assert_done_once(op, item)
        assert chat.billed == bill
        caught_up(op)
        assert op.sql("SELECT count(*) FROM refused_events")["rows"] == [[0]]
        assert result_of(op, "verify")["equal"]


def test_where_a_key_is_billed_twice_the_work_ends_as_interrupted_and_is_not_paid_for_again(lives: Lives) -> None:
    lives.idempotent = False
    chat = lives.endpoint.chat
    chat.ignores_key = True
    with lives.life() as (node, op):
        ana = op.acting_as(user="ana")
        item = str(ana.save("t", "As it was.", ["tool"])["id"])
        lives.killed_at(node, "model.answered", 1, partial(begin, ana, "evolve", item))
    with lives.life() as (node, op):
        ana = op.acting_as(user="ana")
        told = ended(ana, last_begun(op))
        assert (told["status"], told["code"], chat.billed) == ("failed", "interrupted", 1)
        assert ana.get(item)["version"] == 1
        assert ana.evolve(item, "ask again")["evolution"]["status"] == "applied"
        assert chat.billed == 2
        other = str(ana.save("t", "As it was.", ["tool"])["id"])
        chat.held.clear()
        begin(ana, "evolve", other)
        until(lambda: chat.billed == 3, "the model is asked")
        threading.Timer(1.0, chat.held.set).start()
        assert node.stop() == 0, "a node that is stopped hears the answer that it pays for"
    with lives.life() as (_, op):
        assert_done_once(op, other)
        assert chat.billed == 3
