"""Forms that count once: one that is sent twice, by a second click or by a repeated load, changes nothing more."""

from __future__ import annotations

import hashlib
import secrets

import orjson

from producers.web.visit import Visit

FIELD = "once"
_APART = frozenset({"csrf", "back", FIELD})


def fresh() -> str:
    """What a form states as its field `once`."""
    return secrets.token_urlsafe(12)


def key_of(visit: Visit) -> str:
    """The idempotency key of the form that was sent: another text in the same form is another change."""
    said = sorted((name, values) for name, values in visit.form.items() if name not in _APART)
    digest = hashlib.sha256(orjson.dumps([visit.said(FIELD) or fresh(), visit.request.url.path, said]))
    return digest.hexdigest()[:40]
