"""Reader of a tree: its entries as payloads, the users' memories, and refused files with the reason."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import orjson

from kledger.contract.errors import IllegalTree
from kledger.contract.json_text import loads
from kledger.contract.words import ItemStatus
from producers.requests.encoding import BYTE_ORDER_MARK, not_json
from producers.tree.entries import payload_of
from producers.tree.placing import defaults_at, user_at
from producers.tree.writing import MANIFEST

STAYING: tuple[ItemStatus, ...] = ("active", "proposed")
"""What an item is that is in recall, or may be once a coordinator approves it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its file, its number in it (from 1), and its payload."""

    file: str
    number: int
    payload: dict[str, Any]
    stays: bool
    """Whether it is in recall, or waits for a coordinator: what is neither was retired, replaced or rejected."""


@dataclass(slots=True)
class Tree:
    """The content of a tree. `refused` has `file`, `number`, `code`, `message`; `skipped` are other files."""

    entries: list[Entry] = field(default_factory=list)
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def refuse(self, file: str, number: int | None, code: str, message: str) -> None:
        """Record a refusal with its reason."""
        self.refused.append({"file": file, "number": number, "code": code, "message": message})


def read_tree(directory: Path) -> Tree:
    """Read the tree in `directory`, exported or written by hand. Raises IllegalTree where there is none."""
    if not directory.is_dir():
        raise IllegalTree(f"{directory} is no directory: give the one that holds global/, agents/ or users/")
    tree = Tree()
    is_tree = False  # any place of the tree, even empty or a link, or the manifest of an empty export
    for path in _files(directory, tree):
        place = PurePosixPath(path.relative_to(directory).as_posix())
        if (shown := _as_text(place)) != str(place):
            if place.suffix == ".json":
                tree.refuse(shown, None, "illegal_tree", "its name, or a directory's, is no UTF-8: rename it")
            else:
                tree.skipped.append(shown)
            continue
        if place.name == MANIFEST and len(place.parts) == 1:
            is_tree = True
            continue
        is_tree |= defaults_at(place) is not None
        # A link could lead to any file of the reader's, whose contents would then be sent to the node.
        if place.suffix != ".json" or path.is_symlink() or defaults_at(place) is None:
            tree.skipped.append(str(place))
            continue
        _read_file(path, place, tree)
    if not is_tree and not tree.refused:
        raise IllegalTree(
            f"{directory} holds no tree of knowledge: one has JSON files in global/, agents/NAME/, users/ID/ or "
            "shared/KIND/ID/, or retired.json, as kledger export-tree writes them"
        )
    return tree


def _files(directory: Path, tree: Tree) -> Iterator[Path]:
    """Every file that is not hidden, sorted by name; links are not followed.

    A directory that cannot be read is refused. Raises IllegalTree when it is the tree itself.
    """

    def unreadable(error: OSError) -> None:
        place = _as_text(Path(error.filename).relative_to(directory))
        if place == ".":
            raise IllegalTree(f"{directory} cannot be read ({error.strerror}): may you look into it?") from error
        tree.refuse(place, None, "illegal_tree", f"the directory cannot be read: {error.strerror}")

    for folder, folders, files in os.walk(directory, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder) / name for name in sorted(files) if not name.startswith("."))


def _as_text(place: PurePath) -> str:
    """A place as text that can be printed and sent; bytes of a name that are no UTF-8 stand as `\\udcXX`."""
    return place.as_posix().encode(errors="backslashreplace").decode()


def _content(path: Path) -> bytes:
    """The content of a regular file; reading a pipe would block forever. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is a pipe, a device or the like, not a file")
        return file.read()


def _read_file(path: Path, place: PurePosixPath, tree: Tree) -> None:
    try:
        content = _content(path).removeprefix(BYTE_ORDER_MARK)
        document = loads(content)
    except orjson.JSONDecodeError as error:
        return tree.refuse(str(place), None, "bad_json", f"this is not JSON: {not_json(content, error)}")
    except OSError as error:
        return tree.refuse(str(place), None, "illegal_tree", f"the file cannot be read: {error.strerror or error}")
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
                Entry(str(place), number, payload_of(entry, place), entry.get("status", "active") in STAYING)
            )
        else:
            tree.refuse(str(place), number, "invalid_payload", "an entry is an object with a task and a content")
    return None
