"""What is said while its person is forgotten is erased as well, or refused; what they asked is kept nowhere."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kledger import LedgerClient
from kledger.contract.errors import SubjectForgotten, UnknownSession
from ledger.broker.access import SESSIONS_STREAM
from tests.journeys.running_node import ENVIRONMENT, caught_up, running
from tests.journeys.test_forgetting import assert_no_embedding_of, files_with, forget_by_command
from tests.openai_server import EmbeddingEndpoint, embedding_endpoint
from tests.patience import PATIENCE
from tests.sessions.test_forgotten import kept

SAID, ASKED = "okapi{}marker", "where the okapiquestionmarker stands"


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingEndpoint]:
    """An endpoint for the embeddings of every node of this test."""
    with embedding_endpoint() as endpoint:
        for name, value in (("URL", endpoint.url), ("MODEL", "m"), ("DIMENSIONS", "64"), ("KEY", "k")):
            monkeypatch.setitem(ENVIRONMENT, f"KLEDGER_EMBEDDING_{name}", value)
        yield endpoint


def test_what_a_person_says_while_they_are_forgotten_leaves_no_word_and_no_embedding(
    tmp_path: Path, paid: EmbeddingEndpoint
) -> None:
    data = tmp_path / "data"
    begun = threading.Event()
    refused: list[SubjectForgotten] = []

    def say_on(alice: LedgerClient) -> None:
        for number in range(100_000):
            try:
                alice.save("a thing", SAID.format(number), ["tool"], scopes=["user:alice"])
            except SubjectForgotten as error:
                refused.append(error)
                return
            if number == 20:
                begun.set()

    with running(data) as node, node.client() as op:
        talking = threading.Thread(target=say_on, args=[op.acting_as(user="alice")])
        talking.start()
        assert begun.wait(PATIENCE)
        forget_by_command(node)
        talking.join(PATIENCE)
        assert refused, "she was refused once she was forgotten"
        caught_up(op)
        assert op.sql("SELECT count(*) FROM knowledge WHERE owner = 'user:alice' AND NOT erased")["rows"] == [[0]]
        said = {text for text in paid.texts if "okapi" in text}
        assert said
        assert_no_embedding_of(said, data)
    assert files_with(data, ["okapi"]) == {}


def test_what_a_person_says_in_a_session_while_they_are_forgotten_is_removed_or_refused(tmp_path: Path) -> None:
    begun = threading.Event()
    refused: list[SubjectForgotten] = []

    def talk_on(alice: LedgerClient) -> None:
        for number in range(10_000):
            said = [{"id": f"{number}-{n}", "role": "user", "content": SAID.format(n) * 5_000} for n in range(200)]
            try:
                alice.session("s1").append(said)
            except SubjectForgotten as error:
                refused.append(error)
                return
            begun.set()

    with running(tmp_path / "data") as node, node.client() as op:
        alice = op.acting_as(user="alice")
        alice.save("a thing", SAID, ["tool"])
        talking = threading.Thread(target=talk_on, args=[alice])
        talking.start()
        assert begun.wait(PATIENCE)
        forget_by_command(node)
        talking.join(PATIENCE)
        assert refused, "she was refused once she was forgotten"
        for read in (alice.session("s1").messages, lambda: alice.session("s1").context(8_000)):
            with pytest.raises(UnknownSession):
                read()
        assert asyncio.run(kept(node, SESSIONS_STREAM, "sessions.default.user=3Aalice.>")) == {}


def test_a_question_that_nobody_recorded_is_kept_nowhere(tmp_path: Path, paid: EmbeddingEndpoint) -> None:
    data = tmp_path / "data"
    with running(data) as node, node.client() as op:
        alice = op.acting_as(user="alice")
        alice.save("a thing", "in the box", ["tool"], scopes=["public"])
        caught_up(op)
        alice.search(ASKED, record=False)
        alice.search(ASKED, record=False)
        assert paid.texts.count(ASKED) == 1, "asked again, it costs nothing"
    assert_no_embedding_of({ASKED}, data)
    assert files_with(data, [ASKED]) == {}
