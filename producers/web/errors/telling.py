"""An error as a page tells it: in words for persons, with the fields of the form that do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from kledger.answers.parts import Fault
from kledger.contract.errors import LedgerError
from producers.web.errors.codes import CODES
from producers.web.words import Words

UNKNOWN = "This could not be done."
FIELDS: Mapping[str, str] = {
    "acl": "Share with",
    "as_of": "as of",
    "content": "Content",
    "entity": "Share with",
    "expected_version": "Version",
    "id": "Id",
    "min_match": "least match",
    "min_score": "least score",
    "outcome": "What came of it",
    "owner": "Owner",
    "query": "Query",
    "readers": "Share with",
    "reason": "Reason",
    "resource_ids": "Resources",
    "scopes": "Scopes",
    "score": "Score",
    "source": "Source",
    "tags": "Tags",
    "task": "What it is about",
    "trace_id": "Trace",
    "types": "Types",
    "verdict": "Verdict",
    "who": "Share with",
    "writers": "Share with",
}
"""Fields of requests and forms as the pages label them."""


def told(error: LedgerError | Fault, words: Words) -> str:
    """What happened and what to do, in the language of the reader."""
    code = error.code if isinstance(error, LedgerError) else error["code"]
    text = words(str(getattr(error, "said", CODES.get(code, UNKNOWN))))
    if named := [words(FIELDS[name]) for name in _fields(error) if name in FIELDS]:
        text += " " + words("Check: {fields}", fields=", ".join(dict.fromkeys(named)))
    return text


def _fields(error: LedgerError | Fault) -> list[str]:
    """The fields of the request that do not fit: of `types.0` it is `types`."""
    details: Mapping[str, object] = error.details if isinstance(error, LedgerError) else error["details"]
    errors = details.get("errors")
    stated = cast(Sequence[object], errors) if isinstance(errors, list) else ()
    return [str(each.get("field", "")).partition(".")[0] for each in stated if isinstance(each, Mapping)]
