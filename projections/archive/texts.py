"""Texts of a table, taken out of it and put back: the table keeps the length of each in its place.

So the texts can be encrypted in a few pieces, while all that stands in clear beside them stays columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from projections.fold_kit import late_compute as pc

Path = tuple[str, ...]
"""Where texts stand: a column, and the fields inside of it. There it is a text, JSON, or a list of either."""

_TYPES = b"kledger types"


class Texts(NamedTuple):
    """The texts at one place: their bytes, and where those of each row begin, with the end of the last."""

    content: memoryview
    starts: np.ndarray


def taken_out(table: pa.Table, paths: Sequence[Path]) -> tuple[pa.Table, list[Texts]]:
    """The table with lengths instead of the texts at these places, and the texts, place by place."""
    rest, texts = table, list[Texts]()
    for path in paths:
        column = _column(rest, path[0])
        lengths, content, starts = _lengths(_at(column, path[1:]))
        rest = _set(rest, path[0], _with(column, path[1:], lengths))
        texts.append(Texts(content, starts))
    return rest.replace_schema_metadata({_TYPES: table.schema.serialize().to_pybytes()}), texts


def starts_in(rest: pa.Table, path: Path) -> np.ndarray:
    """Where the texts of each row begin among those at a place, with the end of the last."""
    return _starts(_at(_column(rest, path[0]), path[1:]))


def put_back(rest: pa.Table, paths: Sequence[Path], contents: Iterator[bytes]) -> pa.Table:
    """The table that `taken_out` was given, with these bytes at each place."""
    schema = pa.ipc.read_schema(pa.py_buffer(rest.schema.metadata[_TYPES]))
    for path in paths:
        column = _column(rest, path[0])
        kind = schema.field(path[0]).type
        for name in path[1:]:
            kind = kind.field(name).type
        texts = _texts(_at(column, path[1:]), kind, next(contents))
        rest = _set(rest, path[0], _with(column, path[1:], texts))
    return rest.replace_schema_metadata(None)


def _column(table: pa.Table, name: str) -> pa.Array:
    column: pa.Array = table[name].combine_chunks()
    return column


def _set(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)


def _at(array: pa.Array, path: Path) -> pa.Array:
    for name in path:
        array = array.field(name)
    return array


def _with(array: pa.Array, path: Path, changed: pa.Array) -> pa.Array:
    """The array with another one at this place inside of it."""
    if not path:
        return changed
    names = [array.type.field(number).name for number in range(array.type.num_fields)]
    fields = [_with(array.field(name), path[1:], changed) if name == path[0] else array.field(name) for name in names]
    return pa.StructArray.from_arrays(fields, names=names, mask=array.is_null())


def _lengths(array: pa.Array) -> tuple[pa.Array, memoryview, np.ndarray]:
    """The lengths in bytes of texts, in their form and null where they are; their bytes; where each row begins."""
    if pa.types.is_list(array.type):
        inner, content, starts = _lengths(array.flatten())
        offsets = _sums(pc.list_value_length(array))
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner, mask=array.is_null())
        return lists, content, starts[offsets]
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    lengths = pc.binary_length(array)
    if array.null_count:
        array = pc.fill_null(array, "")
    starts = _sums(lengths)
    _, offsets, content = array.buffers()
    begins = np.frombuffer(offsets, np.int32)[array.offset] if len(array) else 0
    return lengths, memoryview(content or b"")[begins : begins + starts[-1]], starts


def _starts(lengths: pa.Array) -> np.ndarray:
    if not pa.types.is_list(lengths.type):
        return _sums(lengths)
    inner: np.ndarray = _starts(lengths.flatten())[_sums(pc.list_value_length(lengths))]
    return inner


def _sums(lengths: pa.Array) -> np.ndarray:
    """0, and the sum up to each of them."""
    sums = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False), out=sums[1:])
    return sums


def _texts(lengths: pa.Array, kind: pa.DataType, content: bytes) -> pa.Array:
    """Texts of this type from their lengths and bytes."""
    if pa.types.is_list(kind):
        offsets = pa.array(_sums(pc.list_value_length(lengths)), pa.int32())
        inner = _texts(lengths.flatten(), kind.value_type, content)
        return pa.ListArray.from_arrays(offsets, inner, type=kind, mask=lengths.is_null())
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _texts(lengths, kind.storage_type, content))
    offsets = pa.py_buffer(_sums(lengths).astype(np.int32))
    valid = None if not lengths.null_count else pc.is_valid(lengths).buffers()[1]
    return pa.Array.from_buffers(kind, len(lengths), [valid, offsets, pa.py_buffer(content)])
