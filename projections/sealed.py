"""How does a batch read what is sealed? Once, before it is decoded; what cannot be opened is refused.

The words of a person whose key is destroyed become the fallback, `"[erased]"` or `{}`: the same log with the same
vault gives the same views. What is refused for any reason keeps the bytes that the log has.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from ledger.errors import IllegalSubject, KeyMissing, SealBroken
from ledger.event import StoredEvent
from ledger.keyring import Keyring
from ledger.sealed import HINT, open_document
from ledger.subjects import decode_token
from projections.ruling import Refusal

_NAMED = re.compile(rb'"sealed:v1:((?:[^"\\]|\\.)*):[A-Za-z0-9+/=]*"')
_FORGOTTEN = ".subject."
# Never JSON, so that decoding refuses it whatever road it takes; the reason is then told by `told`.
_UNREADABLE = b""


@dataclass(frozen=True, slots=True)
class Opened:
    """A batch ready to be decoded, and (code, reason) of each position that could not be opened."""

    events: list[StoredEvent]
    stored: list[StoredEvent]
    failed: dict[int, tuple[str, str]]

    def told(self, refusals: Iterable[Refusal]) -> list[Refusal]:
        """Refusals with the bytes that the log has, and with what kept a seal from being opened."""
        first = self.stored[0].position
        result = []
        for refusal in refusals:
            at = refusal.event.position
            code, reason = self.failed.get(at, (refusal.code, refusal.reason))
            result.append(Refusal(self.stored[at - first], code, reason))
        return result


def open_events(keyring: Keyring, events: list[StoredEvent]) -> Opened:
    """Open what is sealed in consecutive events.

    Raises what the vault raises (BrokerUnavailable, WrongMasterKey): then nothing may be folded.
    """
    for event in events:
        if _FORGOTTEN in event.subject:
            _notice(keyring, event.subject)
    sealed = [at for at, event in enumerate(events) if HINT in event.body]
    if not sealed:
        return Opened(events, events, {})
    keyring.learn({name for at in sealed for name in _names(events[at].body)})
    opened, failed = list(events), {}
    for at in sealed:
        event = events[at]
        try:
            opened[at] = event._replace(body=_opened(keyring, event.body))
        except (KeyMissing, SealBroken) as error:
            failed[event.position] = (error.code, error.message)
            opened[at] = event._replace(body=_UNREADABLE)
    return Opened(opened, events, failed)


def _notice(keyring: Keyring, subject: str) -> None:
    """Another node may have destroyed a key that this one knows: the vault is asked again."""
    tokens = subject.split(".")
    if len(tokens) == 7 and tokens[2] == "subject":
        with contextlib.suppress(IllegalSubject):  # decoding refuses it, with the reason
            keyring.forget(decode_token(tokens[3]))


def _names(body: bytes) -> Iterable[str]:
    for match in _NAMED.finditer(body):
        try:
            yield orjson.loads(b'"' + match[1] + b'"')
        except orjson.JSONDecodeError:
            continue


def _opened(keyring: Keyring, body: bytes) -> bytes:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body  # decoding says what is wrong with it
    if not isinstance(document, dict) or "data" not in document:
        return body
    document["data"] = open_document(document["data"], keyring.look, str(document.get("id")))
    return orjson.dumps(document)
