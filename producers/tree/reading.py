"""What stands in a tree of files? Its entries as payloads, a user's memories, and what could not be read, with why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from ledger.errors import IllegalTree
from producers.tree.entries import payload_of
from producers.tree.placing import defaults_at, user_at
from producers.tree.writing import MANIFEST


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: where it stands (its number in the file counts from 1), and the payload that it comes to."""

    file: str
    number: int
    payload: dict[str, Any]
    active: bool


@dataclass(slots=True)
class Tree:
    """Everything that a tree holds. `refused` has `file`, `number`, `code`, `message`; `skipped` are other files."""

    entries: list[Entry] = field(default_factory=list)
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def refuse(self, file: str, number: int | None, code: str, message: str) -> None:
        """Keep why something was refused."""
        self.refused.append({"file": file, "number": number, "code": code, "message": message})


def read_tree(directory: Path) -> Tree:
    """Read the tree in `directory`, as an export wrote it or a person by hand. Raises IllegalTree for no directory."""
    if not directory.is_dir():
        raise IllegalTree(f"{directory} is no directory: give the one that holds global/, agents/ or users/")
    tree = Tree()
    for path in _files(directory):
        place = PurePosixPath(path.relative_to(directory).as_posix())
        if place.name == MANIFEST and len(place.parts) == 1:
            continue
        # A link could lead to any file of the reader's, whose contents would then be sent to the node.
        if place.suffix != ".json" or path.is_symlink() or defaults_at(place) is None:
            tree.skipped.append(str(place))
            continue
        _read_file(path, place, tree)
    return tree


def _files(directory: Path) -> Iterator[Path]:
    """Every file that does not hide, in the order of names; links are not followed."""
    for folder, folders, files in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(files) if not name.startswith("."))


def _read_file(path: Path, place: PurePosixPath, tree: Tree) -> None:
    try:
        document = orjson.loads(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        return tree.refuse(str(place), None, "bad_json", f"this is not JSON: {error}")
    except OSError as error:
        return tree.refuse(str(place), None, "illegal_tree", f"the file cannot be read: {error.strerror}")
    user = user_at(place)
    if user is not None:
        if isinstance(document, dict):
            tree.memories[user] = document
        else:
            tree.refuse(str(place), None, "invalid_payload", "memories are an object: {user_memory, work_memory}")
        return None
    for number, entry in enumerate(document if isinstance(document, list) else [document], 1):
        if isinstance(entry, dict):
            tree.entries.append(
                Entry(str(place), number, payload_of(entry, place), entry.get("status", "active") == "active")
            )
        else:
            tree.refuse(str(place), number, "invalid_payload", "an entry is an object with a task and a content")
    return None
