"""Plain documents: free-form JSON objects in an event that the models would accept, and write as they are written.

SQL can tell that of flat ones (projections/fold_kit/schema_sql.py:flat). Of nested ones it is seen here, in a tenth of
the time that the models take for an event.
"""

from __future__ import annotations

import re

import orjson

from kledger.contract.bounds import MAX_DEPTH, check_document

# Numbers with an exponent, or with more digits than a double surely keeps: the models may spell them differently.
_ODD_NUMBER = re.compile(r"[:,\[]-?[0-9](?:[0-9.]{15}|[0-9.]*[eE])")


def is_plain(document: str) -> bool:
    """Whether the models accept this JSON object and spell it the same; where it is false they may still do so."""
    try:
        value = orjson.loads(document)
        if not isinstance(value, dict) or orjson.dumps(value).decode() != document:  # as with a key twice
            return False
        if document.count("{") + document.count("[") > MAX_DEPTH:
            check_document(value)
    except (ValueError, orjson.JSONEncodeError):  # JSON that orjson does not read, or does not write as deep
        return False
    return _ODD_NUMBER.search(document) is None
