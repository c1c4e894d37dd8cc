"""Decoding ahead of the fold: pieces of a batch are decoded as they are read, then folded as one batch.

The cost of a fold hardly depends on the size of its batch, that of decoding does: so bulk is decoded while it arrives,
and folded at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ledger.event import StoredEvent
from ledger.events import FACTS
from ledger.privacy.keyring import Keyring
from ledger.store.parked import Parked
from projections.engine.batch import Folded, fold_decoded, ready
from projections.engine.decode import Decoded, decode
from projections.engine.parking import ABOUT_THE_EVENT, fold_strictly
from projections.engine.unsealing import Opened
from projections.fold_kit.decisions import Candidate
from projections.fold_kit.envelopes import narrow
from projections.fold_kit.parser import Parser
from projections.fold_kit.workbench import Workbench

Ahead = Decoded | list[StoredEvent]
"""A decoded piece; or its raw events, where decoding failed because of one of them."""


def decode_ahead(parser: Parser, keyring: Keyring, events: list[StoredEvent], parked: Parked) -> Ahead:
    """Decode one piece. Raises what the vault raises."""
    try:
        return decode(parser, ready(keyring, events, parked))
    except ABOUT_THE_EVENT:
        return events  # fold_strictly finds the event


def fold_ahead(bench: Workbench, ahead: Ahead, parked: Parked) -> Folded:
    """Fold a decoded piece, strictly: see engine/parking.py. `parked` has to be what it was decoded with.

    With lanes, an error of what they have begun is raised as it is: an event is found where there are none.
    """
    if isinstance(ahead, list):
        bench.close_lanes()
        return fold_strictly(bench, ahead, parked)
    try:
        return fold_decoded(bench, ahead, parked)
    except ABOUT_THE_EVENT:
        if bench.torn:
            raise
        bench.close_lanes()
        return fold_strictly(bench, list(ahead.opened.stored), parked)


def together(pieces: Sequence[Ahead]) -> Ahead:
    """Consecutive pieces as one; equal to the result of decoding them in one go."""
    decoded = [piece for piece in pieces if isinstance(piece, Decoded)]
    if len(decoded) < len(pieces):
        return [event for piece in pieces for event in _stored(piece)]
    if len(decoded) == 1:
        return decoded[0]
    opened = Opened(
        [event for piece in decoded for event in piece.opened.events],
        [event for piece in decoded for event in piece.opened.stored],
        {at: why for piece in decoded for at, why in piece.opened.failed.items()},
        {at: places for piece in decoded for at, places in piece.opened.erased.items()},
    )
    refused = [refusal for piece in decoded for refusal in piece.refused]
    parsed = {
        fact: pa.concat_tables([piece.parsed[fact] for piece in decoded if fact in piece.parsed])
        for fact in FACTS.values()
        if any(fact in piece.parsed for piece in decoded)
    }
    if not parsed:
        return Decoded(opened, {}, refused)
    candidates: Sequence[Candidate] | None = None
    if all(piece.candidates is not None for piece in decoded):
        candidates = [candidate for piece in decoded for candidate in piece.candidates or ()]
    lineage = pa.concat_tables([piece.lineage for piece in decoded if piece.lineage is not None])
    return Decoded(opened, parsed, refused, narrow(parsed.values()), candidates, lineage)


def _stored(piece: Ahead) -> Sequence[StoredEvent]:
    return piece if isinstance(piece, list) else piece.opened.stored
