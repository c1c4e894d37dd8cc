"""Does anybody learn of somebody else's documents? Each question by each door, beside what is told of nothing.

All that is Ada's alone holds her word, what a model said of it as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kledger import LedgerClient
from tests.attacks.leak_doors import Ask, Doors, Told, Who, documents, lacking, search
from tests.journeys.running_node import caught_up, head, running, until
from tests.openai_server import embedding_endpoint

WORD = "zqadasdocument"
ADA: Who = {"user": "ada", "team": "web"}
OTHERS: dict[str, Who] = {"a stranger": {"user": "mallory"}, "one of her team": {"user": "bob", "team": "web"}}
ALONE, REMOVED, TEAM, ALL = "alone.md", "removed.md", "team.md", "all.md"
SEEN = {"a stranger": {ALL}, "one of her team": {ALL, TEAM}}
HERS = (ALONE, REMOVED)
NOT_THERE = "not-there.md"
LONG = "The lighthouse is told of at length. " * 8


@dataclass
class Adas:
    """The node, and the chunk of a document for all that is hers alone."""

    doors: Doors
    ledger: LedgerClient
    narrowed: str

    def ask(self, who: Who, ask: Ask) -> Iterator[tuple[str, Told]]:
        """What each door that can be asked tells."""
        for door in self.doors.of(ask):
            yield door, self.doors.all[door](who, ask)


@pytest.fixture(scope="module")
def adas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adas]:
    with embedding_endpoint() as server:
        # It repeats the word where it is given that.
        server.chat.says(lambda text: {"summary": f"said {WORD if WORD in text else ''}", "sections": []}, to="<title>")
        environment = {"KLEDGER_MODEL_URL": server.url, "KLEDGER_MODEL_SUMMARISE": "small"}
        with running(tmp_path_factory.mktemp("documents") / "data", env=environment) as node, node.client() as ledger:
            ada: Any = ledger.acting_as(**ADA)
            text = f"# Of {WORD}\n\n{WORD}: {LONG}"
            for name in HERS:
                ada.documents.ingest(name, text=text, url=f"https://example.com/{WORD}")
            ada.documents.delete(REMOVED)
            ada.documents.ingest(TEAM, text=f"# Team\n\n{LONG}", scopes=["team:web"])
            ada.documents.ingest(ALL, text=f"# All\n\nCalm.\n\n## Part\n\n{LONG}", scopes=["public"])
            chunk = ada.documents.get(ALL)["chunks"][0]["id"]
            ada.revise(chunk, content=f"Calm, {WORD}. {LONG}", scopes=["user:ada"])
            ada.documents.ingest(ALL, text=f"# All\n\nCalm.\n\n## Part\n\n{LONG}\n\n## More\n\n{LONG}")

            def completed() -> Any:
                caught_up(ledger)
                left = "SELECT count(*) FROM processes WHERE kind = 'abstract' AND stage IN ('requested', 'started')"
                return ledger.sql(left)["rows"] == [[0]] and ada.documents.get(ALONE)["summary_by"] == "model"

            until(completed, "what is there is summed up")
            assert WORD in ada.documents.get(ALONE)["summary"]
            doors = Doors(node.url)
            yield Adas(doors, ledger, chunk)
            doors.close()


def test_a_document_of_hers_is_told_of_as_what_is_not_there(adas: Adas) -> None:
    before = head(adas.ledger)
    for question in ("show", "delete"):
        for principal, who in OTHERS.items():
            nothing = dict(adas.ask(who, documents(question, NOT_THERE)))
            for name in (*HERS, *({TEAM} - SEEN[principal])):
                for door, told in adas.ask(who, documents(question, name)):
                    assert lacking(told, name) == lacking(nothing[door], NOT_THERE), (principal, door, question)
                    assert WORD not in told.text, (principal, door, question)
    assert head(adas.ledger) == before, "nothing was said of any"


def test_ingesting_over_a_document_of_hers_tells_that_the_id_is_taken_and_nothing_else(adas: Adas) -> None:
    before = head(adas.ledger)
    said = {lacking(told, name) for name in HERS for _, told in adas.ask(OTHERS["a stranger"], documents("over", name))}
    ((code, message),) = said
    assert code == "not_owner"
    assert WORD not in message
    assert head(adas.ledger) == before


def test_lists_documents_and_searches_hold_what_each_may_read_alone(adas: Adas) -> None:
    for principal, who in OTHERS.items():
        for door, told in adas.ask(who, documents("list")):
            assert {each["id"] for each in told.document["results"]} == SEEN[principal], (principal, door)
            assert WORD not in told.text, (principal, door)
        for name in SEEN[principal]:
            for door, told in adas.ask(who, documents("show", name)):
                assert (told.code, told.document["summary_by"]) == (None, "model"), (principal, door)
                assert WORD not in told.text, (principal, door)
                assert adas.narrowed not in told.text, (principal, door)
        for query in (WORD, "calm", "lighthouse"):
            for door, told in adas.ask(who, search(query)):
                assert WORD not in told.text, (principal, door, query)
