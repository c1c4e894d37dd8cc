"""Inclusion proof: a JSON document that shows to anyone without the log that an item's events are in it.

It names an item (`about`) and holds its events as stored, for each the hashes from its leaf up to a root (RFC 9162,
2.1.3), and the checkpoint over that root with the node's public key. It shows that these events were in the log, at
these positions, when the checkpoint was signed. It does not show that no other event is about the same item.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from kledger.contract.errors import ChainContradicted, IllegalSubject, InvalidPayload, LedgerError, SealBroken
from ledger.event import JsonObject, StoredEvent
from ledger.integrity.chain import Chain, inclusion_paths, leaf_hash, verify_inclusion
from ledger.integrity.checkpoints import SignedCheckpoint
from ledger.integrity.signing_keys import VerifyingKey
from ledger.privacy.sealed import name_in, sealed_values
from ledger.wire.envelope import parse_json
from ledger.wire.publication import MSG_ID
from ledger.wire.subjects import parse_subject

KIND, VERSION = "kledger proof", 1


@dataclass(frozen=True, slots=True)
class ProvedEvent:
    """One event of a proof; `fault` is why its place in the log is not proved, None when it is."""

    event: StoredEvent
    fault: str | None

    def to_json(self) -> JsonObject:
        """The event's main attributes and what it says, from the proved bytes; `sealed_for`: whose words are sealed."""
        attributes: JsonObject = {"position": self.event.position, "subject": self.event.subject, "fault": self.fault}
        try:
            document = parse_json(self.event.body)
        except LedgerError:
            return attributes
        if isinstance(document, dict):
            attributes |= {name: document.get(name) for name in ("type", "id", "time", "actor", "data")}
            attributes["sealed_for"] = _sealed_for(document.get("data"))
        return attributes


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking a proof. `trusted` is False when the key was taken from the proof itself."""

    about: JsonObject
    checkpoint: SignedCheckpoint
    key: VerifyingKey
    trusted: bool
    faults: list[str]
    events: list[ProvedEvent]

    @property
    def holds(self) -> bool:
        return not self.faults and bool(self.events) and all(one.fault is None for one in self.events)

    def to_json(self) -> JsonObject:
        return {
            "holds": self.holds,
            "about": self.about,
            "checkpoint": self.checkpoint.to_json(),
            "key": {"id": self.key.id, "key": self.key.text(), "given": self.trusted},
            "faults": self.faults,
            "events": [one.to_json() for one in self.events],
        }


def make_proof(
    about: JsonObject,
    events: Sequence[StoredEvent],
    leaves: Sequence[bytes],
    checkpoint: SignedCheckpoint,
    key: VerifyingKey,
) -> JsonObject:
    """The proof that `events` are in the log; `leaves` are all leaves up to `checkpoint`.

    Raises ChainContradicted when the leaves do not match the checkpoint, or an event does not match its leaf.
    """
    if not checkpoint.fits(Chain.empty().extended(leaves)):
        raise ChainContradicted(
            f"the leaves up to position {checkpoint.position} are not those that were signed: restart the node, which "
            "makes them anew from the log, and run kledger audit"
        )
    for event in events:
        if leaf_hash(event) != leaves[event.position - 1]:
            raise ChainContradicted(
                f"the event at position {event.position} is not the one that was signed: run kledger audit",
                position=event.position,
            )
    paths = inclusion_paths(leaves, [event.position - 1 for event in events])
    return {
        "kind": KIND,
        "version": VERSION,
        "about": about,
        "key": key.text(),
        "checkpoint": checkpoint.to_json(),
        "events": [
            {
                "position": event.position,
                "stored_ns": event.stored_ns,
                "subject": event.subject,
                "headers": {MSG_ID: event.message_id} if event.message_id else {},
                "body": base64.b64encode(event.body).decode(),
                "path": [neighbour.hex() for neighbour in path],
            }
            for event, path in zip(events, paths, strict=True)
        ],
    }


def check_proof(document: object, key: VerifyingKey | None = None) -> Checked:
    """Check a proof with a public key; without one, with the key in the proof itself.

    Raises InvalidPayload when the document is not a proof.
    """
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise InvalidPayload("this is no proof of the ledger: kledger prove writes one", errors=[])
    if document.get("version") != VERSION:
        raise InvalidPayload(f"a proof of version {document.get('version')!r}: this program knows {VERSION}", errors=[])
    try:
        checkpoint = SignedCheckpoint.from_json(document["checkpoint"])
        included = VerifyingKey.from_text(document["key"])
        about = dict(document["about"])
        proved = [(_event(one), [bytes.fromhex(step) for step in one["path"]]) for one in document["events"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidPayload(f"this proof cannot be read: {error!r}", errors=[]) from error
    used = key or included
    faults = []
    if used.id != included.id:
        faults.append(f"it was made with the key {included.id}, not with the given one, {used.id}")
    if not checkpoint.signed_by({used.id: used}):
        faults.append("the signature of its checkpoint is not by this key, or the checkpoint was changed")
    if [event.position for event, _ in proved] != about.get("positions") or not proved:
        faults.append("it does not hold the events that it names")
    events = [ProvedEvent(event, _fault(event, path, checkpoint, about)) for event, path in proved]
    return Checked(about, checkpoint, used, key is not None, faults, events)


def _fault(event: StoredEvent, path: list[bytes], checkpoint: SignedCheckpoint, about: JsonObject) -> str | None:
    """The reason why an event is not proved to be in the log and about the proof's item; None when it is."""
    if not verify_inclusion(leaf_hash(event), event.position - 1, checkpoint.position, path, checkpoint.root):
        return "the event, its position or its path is not as it was signed"
    try:
        parts = parse_subject(event.subject)
    except IllegalSubject:
        return "its subject is not one of the ledger's"
    if (parts.org, parts.entity, parts.entity_id) != (about.get("org"), "knowledge", about.get("knowledge")):
        return "it is in the log, and about something else"
    return None


def _sealed_for(data: object) -> list[str]:
    """Whose keys the sealed texts of a document need, the outermost ones."""
    names = set()
    with contextlib.suppress(InvalidPayload):
        for text in sealed_values(data):
            with contextlib.suppress(SealBroken):  # somebody typed the mark
                names.add(name_in(text))
    return sorted(names)


def _event(entry: JsonObject) -> StoredEvent:
    """Parse an event of a proof. Raises KeyError, TypeError or ValueError."""
    position, stored_ns, subject, headers = (entry[name] for name in ("position", "stored_ns", "subject", "headers"))
    message_id = headers.get(MSG_ID, "")
    if type(position) is not int or type(stored_ns) is not int or not isinstance(subject, str):
        raise TypeError("an event has a position, a stored time and a subject")
    if not isinstance(message_id, str) or set(headers) - {MSG_ID}:
        raise TypeError(f"the only header that counts is {MSG_ID}")
    if not -(2**63) <= stored_ns < 2**63:
        raise ValueError("a stored time has 64 bits")
    return StoredEvent(position, stored_ns, subject, base64.b64decode(entry["body"], validate=True), message_id)
