"""Export of a tree: writes pages into temporary parts, then replaces each file atomically.

A file of an earlier export stays complete until it is replaced. `manifest.json` is written last; it names every file
and what the format does not hold. A directory with anything else in it is refused. The parts are there until the
manifest is: those of an export that was killed name the files that it may have written, so that the next one goes on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import orjson

from kledger.contract.errors import Erased, IllegalTree, InvalidPayload, UnknownKnowledge
from ledger.privacy.sealed import ERASED
from ledger.runtime.no_room import no_room
from ledger.runtime.whole_file import check_directory_place
from producers.tree.entries import entry_of
from producers.tree.placing import memories_place, place_of
from producers.tree.seen import all_visible

if TYPE_CHECKING:
    from kledger import LedgerClient

FORM, FORM_VERSION = "kledger tree", 1
MANIFEST = "manifest.json"
_PARTS = ".parts-"
_PRIVATE_FILE, _PRIVATE_DIRECTORY = 0o600, 0o700  # knowledge may be personal


@dataclass(slots=True)
class Written:
    """The outcome of an export: entries by file, and what the format does not hold, by kind."""

    position: int = 0
    items: int = 0
    files: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


def export_tree(
    ledger: LedgerClient, directory: Path, *, user: str | None = None, progress: Callable[[int], None] = lambda _: None
) -> Written:
    """Export what the caller of `ledger` sees, as of one position, and the memories of `user`, into `directory`.

    `progress` is called with the number of items read. Raises IllegalTree, and what reading raises; then every existing
    file is still there.
    """
    try:
        return _export(ledger, directory, user, progress)
    except OSError as error:
        if (full := no_room(error)) is not None:
            raise full from error
        raise IllegalTree(
            f"{error.filename or directory} cannot be written ({error.strerror or error}): give a directory that you "
            "may write to"
        ) from error


def _export(ledger: LedgerClient, directory: Path, user: str | None, progress: Callable[[int], None]) -> Written:
    before = _checked(directory)
    new = not directory.exists()
    written = Written(ledger.list(limit=1)["position"])  # first query: without a node nothing is created
    directory.mkdir(exist_ok=True, mode=_PRIVATE_DIRECTORY)
    try:
        return _write_files(ledger, directory, user, progress, before, written)
    except BaseException:
        if new:
            shutil.rmtree(directory, ignore_errors=True)
        raise


def _write_files(
    ledger: LedgerClient,
    directory: Path,
    user: str | None,
    progress: Callable[[int], None],
    before: set[str],
    written: Written,
) -> Written:
    leftovers = [*directory.glob(f"{_PARTS}*")]  # of exports that were killed
    for part in _parts_in(leftovers):
        os.truncate(part, 0)  # only its name is needed until the manifest is there
    parts = Path(tempfile.mkdtemp(prefix=_PARTS, dir=directory))
    new_files: list[str] = []
    try:
        for item in all_visible(ledger, written.position):
            if item["content"] == ERASED and _is_erased(ledger, item["id"], written.position):
                written.left_out["erased"] += 1
                continue
            place = place_of(item)
            _append(parts / place, entry_of(item))
            written.files[str(place)] += 1
            written.items += 1
            written.left_out["earlier_versions"] += item["version"] > 1
            counts = (item["eval"]["helpful"], item["eval"]["harmful"])
            written.left_out["feedback_cases"] += counts != (1, 0)
            written.left_out["merges"] += item["status"] == "merged"
            written.left_out["resource_bodies"] += len(item["resource_ids"])
            progress(written.items)
        for name in written.files:
            new_files += [name] if name not in before else []
            entries = [orjson.loads(line) for line in (parts / name).read_bytes().splitlines()]
            _put(directory, parts, PurePosixPath(name), sorted(entries, key=lambda entry: str(entry["id"])))
        if user is not None:
            from projections.views.profiles.content import CONTENTS, default_content

            memories = ledger.profiles.both()
            by_type = {"user": memories["user_memory"], "work": memories["work_memory"]}
            if any(by_type[name] not in (None, default_content(name)) for name in CONTENTS):
                place = memories_place(user)
                _append(parts / place, memories)
                new_files += [str(place)] if str(place) not in before else []
                written.files[str(place)] = 1
                _put(directory, parts, place, memories)
        for name in before - set(written.files):
            _remove(directory, PurePosixPath(name))
        _put(directory, parts, PurePosixPath(MANIFEST), _manifest(written))
    except BaseException:
        for name in new_files:  # no manifest names them
            _remove(directory, PurePosixPath(name))
        shutil.rmtree(parts, ignore_errors=True)
        raise
    for done in (*leftovers, parts):
        shutil.rmtree(done)
    return written


def _is_erased(ledger: LedgerClient, item_id: str, position: int) -> bool:
    """Whether the content was erased rather than written so; called only for items whose content is `[erased]`."""
    with contextlib.suppress(UnknownKnowledge):  # it was hidden meanwhile; keep it as listed
        try:
            ledger.get(item_id, as_of=position)
        except Erased:
            return True
    return False


def _manifest(written: Written) -> dict[str, Any]:
    return {
        "form": FORM,
        "version": FORM_VERSION,
        "position": written.position,
        "exported_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "items": written.items,
        "files": dict(sorted(written.files.items())),
        "not_held": not_held(written),
    }


def not_held(written: Written) -> dict[str, int]:
    """What the ledger has of these items and the format does not hold: the number of items by kind."""
    return {kind: count for kind, count in sorted(written.left_out.items()) if count}


def _checked(directory: Path) -> set[str]:
    """The files of the existing export in the directory. Raises IllegalTree; changes nothing."""
    try:
        check_directory_place(directory)
    except InvalidPayload as error:
        raise IllegalTree(error.message) from error
    if not directory.exists():
        return set()
    leftovers = [*directory.glob(f"{_PARTS}*")]
    begun = {part.relative_to(leftover).as_posix() for leftover in leftovers for part in _parts_in([leftover])}
    if (directory / MANIFEST).is_file():
        return begun.union(files_of(directory))
    there = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if not path.is_dir()}
    if any(not name.startswith(_PARTS) and name not in begun for name in there):
        raise IllegalTree(
            f"{directory} has files in it and is no export of before: give an empty directory, or a new one"
        )
    return begun


def _parts_in(leftovers: Iterable[Path]) -> Iterator[Path]:
    return (part for leftover in leftovers for part in leftover.rglob("*") if part.is_file() and not part.is_symlink())


def files_of(directory: Path) -> list[str]:
    """The files that the manifest of a tree names. Raises IllegalTree."""
    try:
        manifest = orjson.loads((directory / MANIFEST).read_bytes())
        if manifest["form"] == FORM and isinstance(manifest["files"], dict):
            return list(manifest["files"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        pass
    raise IllegalTree(f"{directory / MANIFEST} is not the manifest of a tree of knowledge: give another directory")


def _append(part: Path, document: Any) -> None:
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("ab") as file:
        file.write(orjson.dumps(document) + b"\n")


def _put(directory: Path, parts: Path, place: PurePosixPath, document: Any) -> None:
    """Write a document to its file atomically."""
    target = _inside(directory, place)
    target.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_DIRECTORY)
    _inside(directory, place)
    descriptor, temporary = tempfile.mkstemp(prefix=".whole-", dir=parts)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    Path(temporary).chmod(_PRIVATE_FILE)
    Path(temporary).replace(target)


def _remove(directory: Path, place: PurePosixPath) -> None:
    """Remove a file of the previous export, and directories that become empty."""
    if place.is_absolute() or ".." in place.parts:
        return  # a manifest that was edited by hand
    target = _inside(directory, place)
    target.unlink(missing_ok=True)
    for parent in target.parents:
        if parent == directory or not parent.is_dir() or any(parent.iterdir()):
            return
        parent.rmdir()


def _inside(directory: Path, place: PurePosixPath) -> Path:
    """The path of a place; a link must not lead out of the tree. Raises IllegalTree."""
    target = directory / place
    if not target.parent.resolve().is_relative_to(directory.resolve()):
        raise IllegalTree(f"{target.parent} leads out of {directory}: remove the link, or give another directory")
    return target
