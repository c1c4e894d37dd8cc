"""Decoded columns of sealed events: what is clear in the log as columns, the words encrypted with their person's key.

The words that a person's events of a segment hold are one piece, compressed and encrypted with the data key that sealed
them in the log, one key after the other where they belong to several persons. A destroyed key leaves nothing to be read
there, as in the log; nothing has to be done about a forgetting. Lengths of words stand in clear, as they do in the log.

Only events that our own writers sealed are kept, once they were opened and decoded: their MAC verified, and they need
no other keys. Who reads them with other keys than those, or without one, decodes the events themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from cryptography.exceptions import InvalidTag

from ledger.archive.segments import Segment
from ledger.event import Fact, StoredEvent
from ledger.privacy import sealed_as_written
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import DataKey, Held
from projections.archive.texts import Path, put_back, starts_in, taken_out
from projections.engine.decode import parse
from projections.fold_kit import late_compute as pc
from projections.fold_kit.parser import Parser

Tables = dict[type[Fact], pa.Table]
Persons = tuple[str, ...]

_CODEC = "zstd"
_WHOSE = "whose"
_WORDS = pa.schema([("persons", pa.list_(pa.string())), ("words", pa.large_binary())])


class SealedColumns(NamedTuple):
    """Rows by fact with lengths instead of words, in the order of `whose`: the number of a row of `words`.

    `words` has the names of persons, the first of whom encrypted first, and the words of their rows.
    """

    tables: Tables
    words: pa.Table


def nothing() -> SealedColumns:
    """No rows. Made when asked for: the first table of Arrow takes 3 MiB, which an idle node is spared."""
    return SealedColumns({}, _WORDS.empty_table())


def sealed_ahead(parser: Parser, keyring: Keyring, segment: Segment, events: Iterable[StoredEvent]) -> SealedColumns:
    """The columns of the events that can be opened and decoded with the keys of this moment, of a segment.

    Raises what the vault raises.
    """
    written = [each for event in events if (each := sealed_as_written.as_written(event)) is not None]
    keyring.learn({each.person for each in written})
    whose: dict[Persons, int] = {}
    opened, owners = list[StoredEvent](), dict[int, int]()
    for each in written:
        names: dict[str, None] = {}

        def look(name: str, names: dict[str, None] = names) -> Held | None:
            names[name] = None
            return keyring.look(name)

        if (body := sealed_as_written.opened(each, look)) is not None:
            opened.append(each.event._replace(body=body))
            owners[each.event.position] = whose.setdefault(tuple(reversed(names)), len(whose))
    if not opened:
        return nothing()
    parsed, _ = parse(parser, opened)
    tables, words = Tables(), [list[memoryview]() for _ in whose]
    for fact, table in parsed.items():
        if not len(table):  # none of them fits its schema
            continue
        numbers = np.fromiter((owners[at] for at in table["position"].to_pylist()), np.int32, len(table))
        order = np.lexsort((table["position"].to_numpy(), numbers))
        rest, texts = taken_out(table.take(order).combine_chunks(), _places(fact))
        numbers = numbers[order]
        tables[fact] = rest.append_column(_WHOSE, pa.array(numbers))
        for number, (first, end) in _runs(numbers).items():
            words[number] += (each.content[each.starts[first] : each.starts[end]] for each in texts)
    return SealedColumns(tables, _encrypted(keyring, segment, whose, words))


def _encrypted(
    keyring: Keyring, segment: Segment, whose: Iterable[Persons], words: Iterable[Sequence[memoryview]]
) -> pa.Table:
    pieces = []
    for persons, parts in zip(whose, words, strict=True):
        piece: bytes = pa.compress(b"".join(parts), codec=_CODEC, asbytes=True)
        for person in persons:
            key = keyring.look(person)
            assert isinstance(key, DataKey)  # it has opened the events
            piece = key.encrypt(piece, _about(segment))
        pieces.append(piece)
    return pa.table(
        [pa.array(list(map(list, whose)), _WORDS.field(0).type), pa.array(pieces, _WORDS.field(1).type)], schema=_WORDS
    )


def opened(columns: SealedColumns, keyring: Keyring, segment: Segment) -> Tables:
    """The columns with their words, but for the events whose keys are not here. Raises what the vault raises."""
    names: list[list[str]] = columns.words["persons"].to_pylist()
    keyring.learn({name for persons in names for name in persons})
    pieces: dict[int, bytes] = {}
    for number, (persons, encrypted) in enumerate(zip(names, columns.words["words"].to_pylist(), strict=True)):
        piece = _decrypted([keyring.known(name) for name in persons], encrypted, segment)
        if piece is not None:
            pieces[number] = piece
    return _put_together(columns.tables, pieces)


def _decrypted(keys: Sequence[Held | None], piece: bytes, segment: Segment) -> bytes | None:
    """What was encrypted with these keys; None where they are others, or destroyed."""
    for key in reversed(keys):
        if not isinstance(key, DataKey):
            return None
        try:
            piece = key.decrypt(piece, _about(segment))
        except (InvalidTag, ValueError):
            return None
    return piece


def _put_together(tables: Mapping[type[Fact], pa.Table], pieces: Mapping[int, bytes]) -> Tables:
    """The tables with the words of those persons whose compressed words are there, and only their rows."""
    rows, lengths = Tables(), list[np.ndarray]()
    known = np.array(sorted(pieces), np.int32)
    there = pa.array(known)
    for fact, table in tables.items():
        mine = table.filter(pc.is_in(table[_WHOSE], there)) if len(there) else table[:0]
        if not len(mine):
            continue
        rows[fact] = mine
        numbers = mine[_WHOSE].to_numpy()
        first, end = np.searchsorted(numbers, known, "left"), np.searchsorted(numbers, known, "right")
        for path in _places(fact):
            starts = starts_in(mine, path)
            lengths.append(starts[end] - starts[first])
    if not rows:
        return {}
    ends = np.cumsum(np.array(lengths), axis=0)  # by place, then by person: where their words end in their piece
    begins = np.vstack((np.zeros(len(known), np.int64), ends))
    words = [
        memoryview(pa.decompress(pieces[number], decompressed_size=int(size), codec=_CODEC))
        if size
        else memoryview(b"")
        for number, size in zip(known.tolist(), ends[-1].tolist(), strict=True)
    ]

    def contents() -> Iterator[bytes]:
        for starts, stops in zip(begins.tolist(), ends.tolist(), strict=False):
            yield b"".join(
                [each[start:stop] for each, start, stop in zip(words, starts, stops, strict=True) if start != stop]
            )

    content = contents()
    return {fact: put_back(table.drop_columns(_WHOSE), _places(fact), content) for fact, table in rows.items()}


def _runs(numbers: np.ndarray) -> dict[int, tuple[int, int]]:
    """Where each number begins and ends, of ascending ones."""
    found, first = np.unique(numbers, return_index=True)
    ends = [*first[1:].tolist(), len(numbers)]
    return {int(number): (int(at), end) for number, at, end in zip(found, first, ends, strict=True)}


def _about(segment: Segment) -> bytes:
    """What a piece is bound to: no value of an event is, as no event's id holds a NUL."""
    return b"\0kledger archive columns\n" + segment.name.encode()


@cache
def _places(fact: type[Fact]) -> tuple[Path, ...]:
    """Where an event's columns hold words that its writer seals: its personal fields, and all of it as JSON."""
    return ("data",), *(("d", *field.split(".")) for field in fact.personal)
