"""Check of `subject.forgotten` events: one counts only where the vault holds the tombstone that it names.

A node writes the tombstone to the vault before it publishes the event. A forged event therefore erases nobody: it has
to name the receipt and the actor of a tombstone, and no other publisher knows the receipt before the log has it; who
repeats it then is another actor.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from kledger.contract.errors import IllegalSubject, NotOwner
from ledger.event import StoredEvent
from ledger.events.subject import SubjectForgotten
from ledger.privacy.keyring import Keyring
from ledger.privacy.personal import is_person
from ledger.privacy.vault import Tombstone
from ledger.wire.subjects import SubjectParts, parse_subject

_HINT = f".{SubjectForgotten.entity()}."


def may_be_a_claim(subject: str) -> bool:
    """False where an event with this subject surely records no forgetting."""
    return _HINT in subject


def unconfirmed(keyring: Keyring, events: Iterable[StoredEvent]) -> list[tuple[StoredEvent, NotOwner]]:
    """The `subject.forgotten` events without their tombstone, each with its error. Confirmed ones notify the keyring.

    Raises what the vault raises.
    """
    hinted = [event for event in events if may_be_a_claim(event.subject)]
    claims = [(event, *claim) for event in hinted if (claim := _claim(event)) is not None]
    if not claims:
        return []
    # Another node may have destroyed a key that this one has cached.
    keyring.again({subject.entity_id for _, subject, _ in claims if is_person(subject.entity_id)})
    refused = []
    for event, subject, receipt in claims:
        held = keyring.known(subject.entity_id)
        if isinstance(held, Tombstone) and (held.by, held.receipt) == (subject.actor, receipt):
            keyring.forget(subject.entity_id)
        else:
            reason = f"{subject.entity_id} is forgotten by the node that destroys the key: run kledger forget"
            refused.append((event, NotOwner(reason)))
    return refused


def _claim(event: StoredEvent) -> tuple[SubjectParts, str] | None:
    """The event's subject and receipt; None for another event, and for one that decoding refuses."""
    try:
        subject = parse_subject(event.subject)
        document = orjson.loads(event.body)
        receipt = document["data"]["receipt"]
    except (IllegalSubject, orjson.JSONDecodeError, KeyError, TypeError, IndexError):
        return None
    if f"{subject.entity}.{subject.event}" != SubjectForgotten.name or not isinstance(receipt, str):
        return None
    return subject, receipt
