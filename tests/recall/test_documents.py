"""Recall of documents: a chunk comes with what stands around it; what a person gave up is held when a file says it."""

from __future__ import annotations

from kledger import LedgerClient

HANDBOOK = """# Handbook of the harbour

## Mooring

Boats are moored at the north quay by two ropes, one at the bow and one at the stern, whatever the harbour master says.

## Refuelling

Diesel is sold at the pump beside the crane between seven and nine in the morning, and nowhere else in the harbour.

## Storms

In a storm the outer gate is closed by hand, and every boat has to be behind it an hour before.
"""


def test_a_chunk_comes_with_its_headings_and_the_chunks_before_and_after(ann: LedgerClient) -> None:
    ann.documents.ingest("handbook-1", text=HANDBOOK, content_type="text/markdown")
    (first, *_) = ann.recall("where is diesel sold")["results"]
    assert first["layer"] == "document"
    part = first.get("part")
    assert part is not None
    assert part["document"] == "handbook-1"
    assert part["headings"][-1] == "Refuelling"
    assert "north quay" in part["before"][0]["content"]
    assert "outer gate" in part["after"][0]["content"]


def test_a_bug_is_answered_by_documents_too(ann: LedgerClient) -> None:
    ann.documents.ingest("handbook-2", text=HANDBOOK, content_type="text/markdown")
    answer = ann.recall("the diesel pump beside the crane is broken", layers=["document"])
    assert answer["intent"] == "bug_fix"
    assert answer["results"][0]["why"]["intent"] == 0.5


def test_what_a_person_gave_up_is_held_when_a_document_says_it_again(ann: LedgerClient) -> None:
    said = "Diesel is sold at the pump beside the crane between seven and nine in the morning, and nowhere else."
    item = ann.save("diesel", said, ["definition"])["id"]
    ann.retire(item, reason="the pump was taken down")
    done = ann.documents.ingest("handbook-3", text=f"# Diesel\n\n{said}\n", content_type="text/markdown")
    assert (done["saved"], done["held"]) == (0, 1)
    assert ann.recall("where is diesel sold")["nothing_known"]
    (held,) = ann.held_statements()["results"]
    ann.release_statement(held["id"])
    assert not ann.recall("where is diesel sold")["nothing_known"]
    again = ann.documents.ingest("handbook-3", text=f"# Diesel\n\n{said}\n", content_type="text/markdown")
    assert (again["saved"], again["held"], again["unchanged"]) == (0, 0, 1)


def test_what_a_document_says_no_longer_may_be_said_again(ann: LedgerClient) -> None:
    ann.documents.ingest("handbook-4", text=HANDBOOK, content_type="text/markdown")
    ann.documents.ingest("handbook-4", text="# Handbook of the harbour\n\nNothing.\n", content_type="text/markdown")
    again = ann.documents.ingest("handbook-4", text=HANDBOOK, content_type="text/markdown")
    assert again["held"] == 0
    ann.documents.delete("handbook-4")
    assert ann.documents.ingest("handbook-4", text=HANDBOOK, content_type="text/markdown")["held"] == 0
