"""Abstracts of documents: what a model said of each, as far as the document says the same still.

The abstract of a document is the last that was completed in its owner's name: another publisher may state processes,
and none about others' documents counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import duckdb
import orjson

from kledger.contract.documents import MOST_HEADING, MOST_SUMMARY
from ledger.event import JsonObject
from projections.fold_kit.named_rows import first_row
from projections.views.access import LISTED, listed

MOST_AT_ONCE = 60
"""Sections that a model sums up in one call; the others keep their sentence until the document is ingested again."""
_LAST = f"""
SELECT said->'requested'->>'document' AS document, owner,
    arg_max((said->'completed')::VARCHAR, position) AS completed
FROM processes WHERE org = ? AND kind = 'abstract' AND stage = 'completed'
    AND (said->'requested'->>'document') IN ({LISTED})
GROUP BY ALL
"""


@dataclass(frozen=True, slots=True)
class Abstract:
    """What a model said: of the whole, and of sections by the digest of what they say."""

    of: str = ""
    summary: str = ""
    sections: Mapping[str, str] = field(default_factory=dict)


NOTHING = Abstract()


def lacking(abstract: Abstract, whole: str, sections: Sequence[tuple[str, str]]) -> list[int] | None:
    """The numbers of the sections (digest, text) that a model is to sum up; None where it has nothing to do.

    A section that is no longer than a summary keeps its sentence, as does a document that is no longer than one. What a
    model summed up before is not asked for again; the whole is, where any part of it is another.
    """
    wanted: dict[str, int] = {}
    for number, (digest, text) in enumerate(sections):
        if len(text) > MOST_HEADING and digest not in abstract.sections:
            wanted.setdefault(digest, number)
    if not wanted and (abstract.of == whole or sum(len(text) for _, text in sections) <= MOST_SUMMARY):
        return None
    return sorted(wanted.values())[:MOST_AT_ONCE]


@dataclass(frozen=True, slots=True)
class Part:
    """A section: its heading, the digest of what it says, its summary without a model, and what a model may be given.

    `text` has the chunks that say what the file says, for all readers of the document: what its owner corrected,
    retired or narrowed is left out.
    """

    heading: str
    digest: str
    sentence: str
    text: str


@dataclass(frozen=True, slots=True)
class Outline:
    """A document for a model that sums it up. `digest` is that of all it says."""

    owner: str
    scopes: list[str]
    title: str
    digest: str
    parts: list[Part]


def abstracts_of(cursor: duckdb.DuckDBPyConnection, org: str, owners: Mapping[str, str]) -> dict[str, Abstract]:
    """The abstract of each of these documents that has one; `owners` are theirs, by id."""
    if not owners:
        return {}
    rows: list[tuple[Any, ...]] = cursor.execute(_LAST, [org, listed([*owners])]).fetchall()
    return {document: _abstract(orjson.loads(said)) for document, owner, said in rows if owners[document] == owner}


def _abstract(said: JsonObject) -> Abstract:
    of, *sections = said["digests"].split() or [""]
    return Abstract(of, said["summary"], dict(zip(sections, said["summaries"], strict=False)))


def digests_of(digests: str, starts: Sequence[int]) -> tuple[str, list[str]]:
    """The digest of all that a document says, and of what each section says; empty for one that says nothing."""
    chunks = digests.split()
    ends = [*starts[1:], len(chunks)]
    return _digest(chunks), [_digest(chunks[start:end]) for start, end in zip(starts, ends, strict=False)]


def _digest(chunks: Collection[str]) -> str:
    return blake2b(" ".join(chunks).encode(), digest_size=8).hexdigest() if chunks else ""


def with_abstracts(cursor: duckdb.DuckDBPyConnection, org: str, rows: Sequence[JsonObject]) -> list[JsonObject]:
    """Rows of documents with what a model said in the place of sentences, and who said it (`summary_by`).

    Each row has `digests` and `starts`, which are taken out, and may have `summaries`.
    """
    found = abstracts_of(cursor, org, {row["id"]: row["owner"] for row in rows if row["status"] == "active"})
    shown = []
    for row in rows:
        digests, starts = row.pop("digests"), row.pop("starts")
        abstract = found.get(row["id"], NOTHING)
        whole, sections = digests_of(digests, starts) if abstract.of else ("", [])
        by_model = bool(whole) and whole == abstract.of and abstract.summary != ""
        row |= {
            "summary": abstract.summary if by_model else row["summary"],
            "summary_by": "model" if by_model else "sentences",
        }
        if "summaries" in row:
            said = [abstract.sections.get(digest, "") for digest in sections] or [""] * len(row["summaries"])
            row["summaries"] = [model or own for model, own in zip(said, row["summaries"], strict=True)]
            row["summaries_by"] = ["model" if model else "sentences" for model in said]
        shown.append(row)
    return shown


def outline(cursor: duckdb.DuckDBPyConnection, org: str, document_id: str) -> Outline | None:
    """A document as a model is given it; None where there is no active one."""
    row = first_row(
        cursor,
        """SELECT owner, scopes, title, headings, starts, summaries, chunks, digests FROM document_versions
           WHERE valid_to IS NULL AND status = 'active' AND org = ? AND id = ?""",
        [org, document_id],
    )
    if row is None:
        return None
    said: list[tuple[str, str]] = cursor.execute(
        f"""SELECT k.id, k.content FROM knowledge AS k
            JOIN knowledge_versions AS v ON v.org = k.org AND v.id = k.id AND v.version = 1
            WHERE k.org = ? AND k.id IN ({LISTED}) AND k.owner = ? AND k.status = 'active'
                AND k.content = v.content AND list_sort(k.scopes) = list_sort(?::VARCHAR[])""",
        [org, listed(row["chunks"]), row["owner"], row["scopes"]],
    ).fetchall()
    contents = dict(said)
    whole, digests = digests_of(row["digests"], row["starts"])
    ends = [*row["starts"][1:], len(row["chunks"])]
    parts = [
        Part(heading, digest, sentence, "\n\n".join(contents[c] for c in row["chunks"][start:end] if c in contents))
        for heading, digest, sentence, start, end in zip(
            row["headings"], digests, row["summaries"], row["starts"], ends, strict=False
        )
    ]
    return Outline(row["owner"], row["scopes"], row["title"], whole, parts)
