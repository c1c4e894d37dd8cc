"""Rules of document events: a document is its owner's, and is removed while it is there."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from kledger.contract.errors import IllegalState, NotOwner, UnknownDocument
from projections.fold_kit.decisions import Candidate, Rules, Ruling

_STATE = """
SELECT org, id, owner, version, status = 'active', valid_from FROM document_versions
WHERE valid_to IS NULL AND id IN ({about})
"""


@dataclass(slots=True)
class Document:
    """State of one document."""

    owner: str
    version: int
    active: bool
    version_position: int


class DocumentRules(Rules):
    """The rules over the state of a batch's documents."""

    def __init__(self, con: duckdb.DuckDBPyConnection, about: str) -> None:
        self._documents = {
            (org, document_id): Document(*state)
            for org, document_id, *state in con.execute(_STATE.format(about=about)).fetchall()
        }

    def decide(self, event: Candidate) -> Ruling:
        """Judge one event; see Rules.decide."""
        named, ingested = event.entity_id, event.type == "document.ingested"
        document = self._documents.get((event.org, named))
        if ingested and event.owner != event.actor:
            return Ruling(NotOwner.code, f"{event.actor} may not ingest what {event.owner} is to own")
        if document is None:
            if not ingested:
                return Ruling(UnknownDocument.code, f"there is no document {named} to be removed")
            self._documents[event.org, named] = Document(event.actor, 1, True, event.position)
            return Ruling(version=1)
        if event.actor != document.owner:
            return Ruling(NotOwner.code, f"{named} is owned by {document.owner}, not by {event.actor}")
        if not ingested and not document.active:
            return Ruling(IllegalState.code, f"{named} is removed already")
        closes = document.version_position
        document.version += 1
        document.version_position = event.position
        document.active = ingested
        return Ruling(version=document.version, closes=closes)
