"""Who may state that a person is forgotten? A node alone: its tombstone stands in the vault before the log tells of it.

So whoever publishes `subject.forgotten` makes nobody forgotten: the event counts when the vault has the tombstone that
it names, by the one who asked for it. No publisher knows the receipt before the log has it, and who states it then is
another.
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


def untold(keyring: Keyring, events: Iterable[StoredEvent]) -> list[tuple[StoredEvent, NotOwner]]:
    """The events that state a forgetting which no node carried out. Who listens to the keyring hears of the others.

    Raises what the vault raises.
    """
    stated = [(event, *told) for event in events if _HINT in event.subject and (told := _stated(event)) is not None]
    if not stated:
        return []
    # Another node may have destroyed a key that this one knows.
    keyring.again({said.entity_id for _, said, _ in stated if is_person(said.entity_id)})
    unfounded = []
    for event, said, receipt in stated:
        held = keyring.known(said.entity_id)
        if isinstance(held, Tombstone) and (held.by, held.receipt) == (said.actor, receipt):
            keyring.forget(said.entity_id)
        else:
            reason = f"{said.entity_id} is forgotten by the node that destroys the key: run kledger forget"
            unfounded.append((event, NotOwner(reason)))
    return unfounded


def _stated(event: StoredEvent) -> tuple[SubjectParts, str] | None:
    """What the event is about and the receipt that it names; None for what decoding refuses, or for another event."""
    try:
        said = parse_subject(event.subject)
        document = orjson.loads(event.body)
        receipt = document["data"]["receipt"]
    except (IllegalSubject, orjson.JSONDecodeError, KeyError, TypeError, IndexError):
        return None
    if f"{said.entity}.{said.event}" != SubjectForgotten.name or not isinstance(receipt, str):
        return None
    return said, receipt
