"""Backup manifest: one JSON file with a backup's files, its chain and its signed checkpoint, replaced atomically.

It has its own SHA-256 over its exact bytes, so that a damaged manifest is never taken for another backup.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import orjson

from kledger.contract.errors import BackupDamaged, BackupMismatch, NoBackup
from ledger.archive.columns_manifest import is_sha256
from ledger.archive.segments import COLUMNS
from ledger.archive.segments import Segment as Stretch
from ledger.backup.place import BESIDE, EVENTS, LOCK, Directory, Place, Where, not_writable, place_of
from ledger.backup.place import MANIFEST as NAME
from ledger.backup.witnesses import Witness
from ledger.event import JsonObject
from ledger.integrity.chain import HASH_BYTES, Chain

FORMAT = "kledger-backup-1"
_OF_COLUMNS = re.compile(rf"{COLUMNS}/\d{{15}}-\d{{15}}")
_FILE = re.compile(r"\d{15}-(?P<last>\d{15})\.parquet")


@dataclass(frozen=True, slots=True)
class Segment:
    """One file: positions `first` to `last`, the chain's head after it, and its last leaf.

    Its bytes are a segment of the archive, as the archive has it, or events that were in none when it was written.
    """

    file: str
    first: int
    last: int
    size: int
    sha256: str
    head: bytes
    leaf: bytes

    @property
    def events(self) -> int:
        """The number of its events."""
        return self.last - self.first + 1

    @property
    def stretch(self) -> Stretch:
        """Its events, as the archive names them."""
        return Stretch(self.first, self.last)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup up to `chain.position`; `signed` is the last signed checkpoint of its events, if any.

    `beside` names the files that have to stand beside the events: the keys of persons and the words of sessions.
    `tokens` is whether the node asked for tokens, of which none is in a backup. `columns` has the SHA-256 of the
    manifest of each segment's decoded columns, by the segment's name; it is None where nobody wants any.
    """

    created: str
    updated: str
    chain: Chain
    segments: tuple[Segment, ...] = ()
    signed: Witness | None = None
    beside: tuple[str, ...] = ()
    tokens: bool = False
    columns: Mapping[str, str] | None = None

    @property
    def position(self) -> int:
        return self.chain.position

    def with_segment(self, segment: Segment, chain: Chain) -> Manifest:
        """The manifest with one more file."""
        return self.with_segments((*self.segments, segment), chain)

    def with_segments(self, segments: Iterable[Segment], chain: Chain) -> Manifest:
        """The manifest with these files instead of those that it has."""
        changed = replace(self, updated=_now(), chain=chain, segments=tuple(segments))
        if self.columns is None:
            return changed
        names = {one.stretch.name for one in changed.segments}
        return replace(changed, columns={name: said for name, said in self.columns.items() if name in names})

    def with_columns(self, columns: Mapping[str, str] | None) -> Manifest:
        """The manifest with these decoded columns."""
        return replace(self, updated=_now(), columns=columns)

    def with_beside(self, *names: str) -> Manifest:
        """The manifest that names these files beside the events, too."""
        return replace(self, updated=_now(), beside=tuple(sorted({*self.beside, *names})))

    def with_tokens(self, tokens: bool) -> Manifest:
        """The manifest that says whether the node asks for tokens."""
        return replace(self, updated=_now(), tokens=tokens)

    def with_signed(self, signed: Witness) -> Manifest:
        """The manifest with a later signed checkpoint."""
        return replace(self, updated=_now(), signed=signed)


def new_manifest() -> Manifest:
    """The manifest of an empty backup."""
    now = _now()
    return Manifest(now, now, Chain.empty())


def segment_name(first: int, last: int) -> str:
    """The name of the file for these positions; names sort by position."""
    return f"{EVENTS}/{first:015d}-{last:015d}.parquet"


def load(where: Where) -> Manifest:
    """Load the manifest of a backup. Raises BackupDamaged when it is missing, changed or truncated, NoBackup when
    nothing of a backup is there.
    """
    place = place_of(where)
    try:
        raw = place.read(NAME)
    except OSError as error:
        raise _without_manifest(place, error) from error
    try:
        document = orjson.loads(raw)
        content = document["backup"]
        if _serialized(content) != raw:
            raise ValueError("it is not what was written")
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}, this program reads {FORMAT}")
        manifest = _from_json(content)
        _check_order(manifest)
    except (KeyError, TypeError, ValueError) as error:
        raise BackupDamaged(
            f"{NAME} of the backup in {place} is damaged ({error}): take this file from another copy of the backup, or "
            "back up into a new directory"
        ) from error
    return manifest


def _without_manifest(place: Place, error: OSError) -> BackupDamaged:
    """What a place is whose manifest cannot be read: a backup that has lost it, something else, or nothing."""
    if isinstance(error, NotADirectoryError):
        return NoBackup(f"{place} is a file: name the directory of a backup, into which kledger backup wrote")
    if not isinstance(error, FileNotFoundError):
        return BackupDamaged(f"{NAME} of the backup in {place} cannot be read: {error.strerror or error}")
    there, has_events = _what_is_there(place)
    if has_events:
        return BackupDamaged(
            f"the backup in {place} has lost its {NAME}: take this file from another copy of the backup"
        )
    what = f"has no {NAME}, so it is no backup" if there else "is not there, or has nothing in it"
    return NoBackup(f"{place} {what}: check the name of the directory, into which kledger backup wrote")


def _what_is_there(place: Place) -> tuple[bool, bool]:
    """Whether anything is at a place, and whether events of a backup are. A directory may be any: it is not walked."""
    if isinstance(place, Directory):
        there = place.path.is_dir() and any(place.path.iterdir())
        return there, any((place.path / EVENTS).glob("*.parquet"))
    names = place.sizes()
    return bool(names), any(name.startswith(f"{EVENTS}/") for name in names)


def save(where: Where, manifest: Manifest) -> None:
    """Replace the manifest atomically and durably."""
    place_of(where).write(NAME, _serialized(_to_json(manifest)))


def named_after(where: Where, document: JsonObject) -> JsonObject:
    """A document beside the events, with the backup that it is of, which the moment of its beginning names."""
    with suppress(BackupDamaged):
        return {**document, "of": load(where).created}
    return document


def check_is_of(where: Where, document: JsonObject) -> None:
    """Raise ValueError for a document of another backup; those that were written before name none."""
    with suppress(BackupDamaged):
        if document.get("of") not in (None, load(where).created):
            raise ValueError("it is of another backup")


def note_beside(where: Where, *names: str) -> None:
    """Have the manifest name files that were written beside the events, so that they are missed where they are gone.

    Raises BackupDamaged, BackupMismatch (somebody else writes), InvalidPayload.
    """
    place = place_of(where)
    if set(names) <= set(load(place).beside):
        return
    with writing_to(place) as manifest:
        save(place, manifest.with_beside(*names))


@contextmanager
def writing_to(where: Where) -> Iterator[Manifest]:
    """Keep a place for one writer; yields its manifest, a new one if there is none yet.

    Raises BackupMismatch (it has other files, or another writer), BackupDamaged, InvalidPayload (it cannot be created).
    """
    place = place_of(where)
    try:
        sizes = place.sizes()
    except OSError as error:
        raise not_writable(place, error) from error
    _check_ours(place, sizes)
    with place.only_writer():
        yield _open(place)


def remove_left_over(where: Where, manifest: Manifest) -> None:
    """Remove the files of an interrupted run, and those that others took the place of, once a run has gone well.

    What the manifest's files do not have is left: where the log was cut, or the manifest is another one, there may be
    no other copy. A run that goes on at the same time may be about to list it.
    """
    place = place_of(where)
    listed = {segment.file for segment in manifest.segments}
    for name in _drafts(there := place.sizes()):
        place.remove(name)
    kept = {f"{COLUMNS}/{segment}" for segment in manifest.columns or ()}
    for name in there:
        folder, _, file = name.rpartition("/")
        if name == f"{COLUMNS}/" or (_OF_COLUMNS.fullmatch(folder) and folder not in kept):
            place.remove(name)
        made = _FILE.fullmatch(file) if folder == EVENTS and name not in listed else None
        if made is not None and int(made["last"]) <= manifest.position:
            place.remove(name)


def _drafts(names: Iterable[str]) -> list[str]:
    """The files that were not finished."""
    return [name for name in names if name.startswith((f"{EVENTS}/", f"{COLUMNS}/")) and name.endswith(".part")]


def _open(place: Place) -> Manifest:
    there = place.sizes()
    for name in _drafts(there):  # they take room
        place.remove(name)
    if NAME in there:
        return load(place)
    manifest = new_manifest()
    save(place, manifest)
    return manifest


def _check_ours(place: Place, sizes: Mapping[str, int]) -> None:
    """Raise BackupMismatch for a place with other files, before anything is written into it."""
    if NAME in sizes:
        return
    events = {name for name in sizes if name.startswith(f"{EVENTS}/")}
    others = set(sizes) - events - {LOCK, f"{NAME}.draft"}
    if others or sum(name.endswith(".parquet") for name in events) > 1:  # one may precede the first manifest
        raise BackupMismatch(f"{place} is not empty and holds no backup: choose an empty or a new directory")


def _serialized(content: JsonObject) -> bytes:
    digest = hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
    document = {"backup": content, "sha256": digest}
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _to_json(manifest: Manifest) -> JsonObject:
    return {
        "format": FORMAT,
        "created": manifest.created,
        "updated": manifest.updated,
        "chain": manifest.chain.to_json(),
        "root": manifest.chain.root().hex(),
        "signed": manifest.signed.to_json() if manifest.signed else None,
        "beside": list(manifest.beside),
        "tokens": manifest.tokens,
        "columns": None if manifest.columns is None else dict(manifest.columns),
        "segments": [
            {
                "file": one.file,
                "first": one.first,
                "last": one.last,
                "bytes": one.size,
                "sha256": one.sha256,
                "head": one.head.hex(),
                "leaf": one.leaf.hex(),
            }
            for one in manifest.segments
        ],
    }


def _from_json(content: JsonObject) -> Manifest:
    if content["root"] != (chain := Chain.from_json(content["chain"])).root().hex():
        raise ValueError("its root is not that of its chain")
    for name in ("created", "updated"):
        datetime.fromisoformat(content[name])
    segments = tuple(
        Segment(
            one["file"],
            one["first"],
            one["last"],
            _size(one["bytes"]),
            one["sha256"],
            bytes.fromhex(one["head"]),
            bytes.fromhex(one["leaf"]),
        )
        for one in content["segments"]
    )
    signed = Witness.from_json(content["signed"]) if content["signed"] is not None else None
    beside = content.get("beside", [])  # manifests of before have none
    if not isinstance(beside, list) or not set(beside) <= set(BESIDE):
        raise ValueError("it names other files beside the events than there are")
    tokens, columns = bool(content.get("tokens")), content.get("columns")
    if columns is not None and not (isinstance(columns, dict) and all(map(is_sha256, columns.values()))):
        raise ValueError("its columns are no digests by the name of a segment")
    return Manifest(content["created"], content["updated"], chain, segments, signed, tuple(beside), tokens, columns)


def _size(stated: object) -> int:
    if type(stated) is not int or stated < 0:
        raise ValueError(f"{stated!r} is no number of bytes")
    return stated


def _check_order(manifest: Manifest) -> None:
    """Raise ValueError unless the files follow each other from position 1 to the end of the chain."""
    before = 0
    for segment in manifest.segments:
        if segment.first != before + 1 or segment.last < segment.first or len(segment.leaf) != HASH_BYTES:
            raise ValueError(f"{segment.file} does not follow position {before}")
        if segment.file != segment_name(segment.first, segment.last):
            raise ValueError(f"{segment.file!r} is not the name of a segment")
        before = segment.last
    names = {one.stretch.name for one in manifest.segments}
    if manifest.columns is not None and not set(manifest.columns) <= names:
        raise ValueError("it names columns of other events")
    head = manifest.segments[-1].head if manifest.segments else Chain.empty().head
    if manifest.signed is not None and manifest.signed.position > before:
        raise ValueError(f"its signed checkpoint is at {manifest.signed.position}, behind its end")
    if manifest.chain.position != before or manifest.chain.head != head:
        raise ValueError(f"its chain ends at {manifest.chain.position}, its files end at {before}")


def _now() -> str:
    return datetime.now(UTC).isoformat()
