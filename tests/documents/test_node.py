"""Documents on a whole node: found by a search, rebuilt, complete after a kill, forgotten with a person."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kledger import LedgerClient
from kledger.contract.errors import Erased, LedgerError
from tests.documents.made_files import pdf
from tests.files import contents
from tests.journeys.running_node import RunningNode, caught_up, result_of, running

MARKS = ["okapi01marker", "okapi02marker", "霍加狓标记"]
TEXT = f"# Keeping an {MARKS[0]}\n\nFeed the {MARKS[1]} at noon.\n\n## 说明\n\n{MARKS[2]}要喝水。\n"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[RunningNode]:
    with running(tmp_path / "data") as started:
        yield started


def test_a_document_is_found_by_what_it_says_and_made_anew_by_a_rebuild(node: RunningNode, tmp_path: Path) -> None:
    paper = tmp_path / "paper.pdf"
    paper.write_bytes(pdf([["Deploying", "We deploy on Tuesdays before noon."]], [("Deploying", 0)]))
    with node.client() as op:
        ann = op.acting_as(user="ann")
        ann.documents.ingest("guide.md", text="# Guide\n\n## Backups\n\nA backup is taken each night at two.\n")
        ann.documents.ingest("paper", file=paper, url="https://example.com/paper.pdf")
        ann.wait_searchable()
        (hit,) = ann.search("when is the backup taken", top_k=1)["results"]
        assert (hit["content"], hit["types"]) == ("A backup is taken each night at two.", ["document"])
        assert ann.get(hit["id"])["part"]["headings"] == ["Guide", "Backups"]
        ann.documents.ingest("guide.md", text="# Guide\n\n## Backups\n\nA backup is taken at three.\n")
        ann.documents.delete("paper")
        before = ann.documents.get("guide.md")
        verified = result_of(op, "verify")
        assert verified["equal"], verified["differences"]
        assert result_of(op, "rebuild")["equal"]
        assert ann.documents.get("guide.md") == before
        assert [each["id"] for each in ann.documents.list()["results"]] == ["guide.md"]


def test_a_node_that_is_killed_while_it_ingests_keeps_each_chunk_once_when_it_is_sent_again(tmp_path: Path) -> None:
    text = "".join(f"# Part {n}\n\nWhat the part number {n} says.\n\n" for n in range(250))
    edited = text.replace("says.", "says now.")
    for after in (0.0, 0.4, 0.8):
        data = tmp_path / f"data-{after}"
        with running(data) as node, node.client() as op:
            ann = op.acting_as(user="ann")
            ann.documents.ingest("d", text=text)
            sending = threading.Thread(target=ingest_until_it_ends, args=(node.url, edited))
            sending.start()
            sending.join(after)
            node.kill()
            sending.join()
        with running(data) as node, node.client() as op:
            ann = op.acting_as(user="ann")
            ann.documents.ingest("d", text=edited)
            caught_up(op)
            said = [each["content"] for each in ann.documents.get("d", limit=1_000)["chunks"]]
            assert said == [f"What the part number {n} says now." for n in range(250)]
            rows = op.sql("SELECT content FROM knowledge WHERE status = 'active' ORDER BY ALL")["rows"]
            assert sorted(content for (content,) in rows) == sorted(said)


def ingest_until_it_ends(url: str, text: str) -> None:
    """Send the edit; the node may end meanwhile."""
    with LedgerClient(url, retries=0) as ledger:
        try:
            ledger.acting_as(user="ann").documents.ingest("d", text=text)
        except LedgerError:
            return


def test_what_was_erased_of_a_document_is_removed_like_any_other(node: RunningNode) -> None:
    with node.client() as op:
        for owner, who in (("user:kim", {"user": "kim"}), ("agent:scribe", {"agent": "scribe"})):
            asking = op.acting_as(**who)
            asking.documents.ingest(f"{owner}.md", text=TEXT, scopes=["user:kim"])
        caught_up(op)
        result_of(op, "forget", subject="user:kim")
        caught_up(op)
        for owner, who in (("user:kim", {"user": "kim"}), ("agent:scribe", {"agent": "scribe"})):
            asking = op.acting_as(**who)
            asking.documents.delete(f"{owner}.md")
            caught_up(op)
            original = f"documents/{owner}.md/original"
            rows = op.sql(f"SELECT status FROM resources WHERE id = '{original}'")["rows"]
            assert rows == [["retired"]], owner


def test_a_document_is_forgotten_with_its_person_and_no_word_of_it_is_left(node: RunningNode) -> None:
    with node.client() as op:
        eve, ann = op.acting_as(user="eve"), op.acting_as(user="ann")
        eve.documents.ingest("okapi.md", text=TEXT, scopes=["public"])
        ann.documents.ingest("other.md", text="# Other\n\nStays.", scopes=["public"])
        caught_up(op)
        done = result_of(op, "forget", subject="user:eve")
        caught_up(op)
        with pytest.raises(Erased):
            ann.documents.get("okapi.md")
        listed = {each["id"]: each["title"] for each in ann.documents.list()["results"]}
        assert listed == {"okapi.md": "[erased]", "other.md": "Other"}
        assert result_of(op, "verify")["equal"]
        assert done["receipt"]["left_in_clear"] == []
        assert ann.documents.get("other.md")["total"] == 1
    node.stop()
    found = {path.name: mark for path, content in contents(node.data) for mark in MARKS if mark.encode() in content}
    assert found == {}
