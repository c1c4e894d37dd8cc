"""Plan of an ingestion: which chunks of a document stay, which are new, and which it says no longer."""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from kledger.contract.documents import CHUNK, ITEM_TYPE
from kledger.contract.knowledge import Source
from ledger.events.document import DocumentIngested
from ledger.events.knowledge import KnowledgeRetired, KnowledgeSaved
from ledger.named_ids import named_id
from producers.documents.converting import Converted
from producers.operations.publish import NAMESPACE
from projections.views.documents.ask import ChunkState, Standing, headings_above

_MOST_TASK = 500


@dataclass(frozen=True, slots=True)
class Statement:
    """A chunk as it is to be saved: `task` are the headings above it."""

    task: str
    content: str

    @property
    def digest(self) -> str:
        """Equal for equal words below equal headings."""
        return blake2b(f"{self.task}\n{self.content}".encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be appended. `missing` are the chunks without an item: the new ones, and what a crash left out."""

    fact: DocumentIngested
    changed: bool
    missing: dict[str, Statement]
    gone: list[str]
    rescoped: list[str]

    def saved(self, item_id: str) -> KnowledgeSaved:
        """The event of a missing chunk."""
        said, fact = self.missing[item_id], self.fact
        return KnowledgeSaved(
            types=[ITEM_TYPE],
            task=said.task,
            content=said.content,
            scopes=fact.scopes,
            owner=fact.owner,
            resource_ids=fact.resource_ids[:1],
            source=Source(urls=[] if fact.url is None else [fact.url]),
        )


def statements_of(converted: Converted, title: str) -> list[Statement]:
    """The chunks of a document, in its order."""
    headings = [section.heading for section in converted.sections]
    levels = [section.level for section in converted.sections]
    return [
        Statement(" › ".join(headings_above(headings, levels, number))[:_MOST_TASK] or title, chunk)
        for number, section in enumerate(converted.sections)
        for chunk in section.chunks
    ]


def plan(
    fact: DocumentIngested,
    said: Sequence[Statement],
    now: Standing | None,
    known: Mapping[str, ChunkState],
    seed: str,
) -> Plan:
    """The plan for a document that is to say this. `fact` names no chunks of its own; `known` are the items of those
    that the document has now. The ids of new chunks follow from `seed`, so that a request that is sent twice at once
    makes the same ones.

    A chunk keeps its item where the document says the same as before, whatever has become of the item: what its owner
    corrected or retired stays so. A document that was removed begins anew.
    """
    ours = {item_id for item_id in known if known[item_id].owner == fact.owner}
    before = now.chunks if now is not None and now.status == "active" else []
    kept: defaultdict[str, deque[str]] = defaultdict(deque)
    if now is not None:
        for item_id, digest in zip(before, now.stated["digests"].split(), strict=False):
            if item_id not in known or item_id in ours:
                kept[digest].append(item_id)
    chunks = [
        kept[each.digest].popleft() if kept[each.digest] else _fresh_id(seed, number)
        for number, each in enumerate(said)
    ]
    stated = fact.model_copy(update={"chunks": chunks, "digests": " ".join(each.digest for each in said)})
    scopes_before = None if now is None else now.stated["scopes"]
    return Plan(
        fact=stated,
        changed=now is None
        or before != chunks
        or any(getattr(stated, name) != value for name, value in now.stated.items()),
        missing={item_id: each for item_id, each in zip(chunks, said, strict=True) if item_id not in known},
        gone=[
            item_id
            for item_id in before
            if item_id not in chunks and item_id in ours and known[item_id].status in KnowledgeRetired.taken_in
        ],
        rescoped=[
            item_id
            for item_id in chunks
            if item_id in ours
            and known[item_id].status == "active"
            and known[item_id].scopes == scopes_before != fact.scopes
        ],
    )


def _fresh_id(seed: str, number: int) -> str:
    """An id that nobody can take first who does not know the seed: it stands in the log before its item does."""
    return f"{CHUNK}{uuid.UUID(named_id(NAMESPACE, f'{seed} {CHUNK}{number}')).hex[:20]}"
