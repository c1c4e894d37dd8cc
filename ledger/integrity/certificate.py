"""Rebuild certificate: a signed JSON document with the result of a rebuild, which other nodes can compare.

It binds the log (root and head at a position) to the views that were folded from it (a digest for each) and to the
version of the program, and records the duration.
"""

from __future__ import annotations

import base64
from datetime import datetime

import orjson

from kledger.contract.errors import InvalidPayload
from ledger.event import JsonObject
from ledger.events import FACTS
from ledger.integrity.chain import Chain
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey

KIND, VERSION = "kledger certificate", 1
_PURPOSE = b"kledger certificate 1\n"
# Two certificates are comparable when these fields are equal.
LOG = ("position", "root", "head")
PROGRAM = ("product", "schemas", "views_schema")
RETENTION = "recall_days"
"""For how many days the views keep the detail of recalls; absent where they keep all."""


def make_certificate(result: JsonObject, chain: Chain, keys: SigningKeys, time: datetime) -> JsonObject:
    """Sign the result of a rebuild (kind of run, views, durations, program versions) together with its log's `chain`.

    Raises UnsafeKeyFile.
    """
    key = keys.in_use()
    document: JsonObject = {
        "kind": KIND,
        "version": VERSION,
        **result,
        "position": chain.position,
        "root": chain.root().hex(),
        "head": chain.head.hex(),
        "log_read_by": "the notary, from the leaves of what it read and signed",
        "schemas": {name: fact.version for name, fact in sorted(FACTS.items())},
        "time": time.isoformat(),
        "key": key.public.text(),
    }
    return {**document, "signature": base64.b64encode(key.sign(_message(document))).decode()}


def check_certificate(document: object) -> str | None:
    """The fault of a certificate; None when its signature was made with the key that it names.

    Raises InvalidPayload when the document is not a certificate.
    """
    if not isinstance(document, dict) or document.get("kind") != KIND or document.get("version") != VERSION:
        raise InvalidPayload("this is no certificate of a rebuild that this program knows", errors=[])
    try:
        key, signature = VerifyingKey.from_text(document["key"]), base64.b64decode(document["signature"], validate=True)
        views = {name: (one["rows"], one["digest"]) for name, one in document["views"].items()}
        complete = views and all(name in document for name in (*LOG, *PROGRAM))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidPayload(f"this certificate cannot be read: {error!r}", errors=[]) from error
    if not complete:
        raise InvalidPayload("this certificate does not name its log, its views and its program", errors=[])
    unsigned = {name: value for name, value in document.items() if name != "signature"}
    return None if key.signed(_message(unsigned), signature) else "its signature is wrong: it was changed, or forged"


def compare_certificates(one: JsonObject, other: JsonObject) -> JsonObject:
    """Whether two certificates have the same state, and if not, the difference: log, program or views.

    Raises InvalidPayload when one of them is not a certificate.
    """
    faults = [
        f"{name}: {fault}" for name, fault in zip("AB", map(check_certificate, (one, other)), strict=True) if fault
    ]
    same_position = one["position"] == other["position"]
    same_log = all(one[name] == other[name] for name in LOG)
    names = sorted({*one["views"], *other["views"]})
    views: list[JsonObject] = []
    if same_log:
        for name in names:
            a, b = (document["views"].get(name) for document in (one, other))
            views.append({"view": name, "a": a, "b": b, "equal": a == b})
    return {
        "equal": not faults and same_log and all(view["equal"] for view in views),
        "faults": faults,
        "same_position": same_position,
        "same_log": same_log,
        "program_differs": [name for name in (*PROGRAM, RETENTION) if one.get(name) != other.get(name)],
        "positions": {"a": one["position"], "b": other["position"]},
        "keys": {name: VerifyingKey.from_text(document["key"]).id for name, document in (("a", one), ("b", other))},
        "views": views,
    }


def _message(document: JsonObject) -> bytes:
    return _PURPOSE + orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
