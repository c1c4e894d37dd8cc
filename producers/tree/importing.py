"""How does a tree of files become knowledge? Its entries are saved in chunks; what is there already stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kledger.contract.errors import IllegalState, LedgerError, UnknownKnowledge
from producers.requests.chunks import chunks_of, send
from producers.tree.entries import same
from producers.tree.reading import Tree, read_tree

if TYPE_CHECKING:
    from kledger import LedgerClient
    from kledger.answers.profiles import ProfileType
    from producers.requests.chunks import Outcome

# Refusals of an item that may be there already, saying the same: revised since, or somebody else's.
_LOOK_AGAIN = ("knowledge_exists", "not_owner", "forbidden")
_OUT = "it was out of recall in the tree that it was imported from"


@dataclass(slots=True)
class Brought:
    """What became of a tree: entries `saved` and `unchanged`, what was `refused` and `skipped` (see Tree)."""

    tree: Tree
    saved: int = 0
    unchanged: int = 0
    retired: int = 0
    memories: int = 0
    ids: dict[int, str] = field(default_factory=dict)
    """The id of each entry that the ledger has now, by its number in the tree."""


def import_tree(
    ledger: LedgerClient,
    directory: Path,
    *,
    user: str | None = None,
    told: Callable[[int, int], None] = lambda *_: None,
) -> Brought:
    """Bring what stands in `directory` into the ledger, as its caller; importing it again appends nothing.

    The memories of `user` are stated anew where they differ; those of others are skipped. `told` hears how many
    entries of how many are done. Raises IllegalTree, and what writing raises: then some are saved, and importing
    again goes on.
    """
    tree = read_tree(directory)
    brought = Brought(tree)
    done = 0
    for chunk in chunks_of((number, entry.payload) for number, entry in enumerate(tree.entries)):
        for outcome in send(ledger, chunk):
            _count(ledger, brought, outcome)
            done += len(outcome[0].payloads)
            told(done, len(tree.entries))
    for number, item_id in brought.ids.items():
        if not tree.entries[number].active:
            brought.retired += _retire(ledger, item_id)
    for owner, memories in tree.memories.items():
        if owner == user:
            brought.memories += _remember(ledger, memories)
        else:
            tree.skipped.append(f"the memories of user:{owner}, which only that user may state")
    return brought


def _count(ledger: LedgerClient, brought: Brought, outcome: Outcome) -> None:
    chunk, told = outcome
    entries = brought.tree.entries
    if isinstance(told, LedgerError):
        (number,) = chunk.lines
        brought.tree.refuse(entries[number].file, entries[number].number, told.code, told.message)
        return
    for one in told["results"]:
        number = chunk.lines[one["index"]]
        entry, error = entries[number], dict(one["error"] or {})
        item_id, outcome_now = one["id"], one["outcome"]
        if outcome_now == "refused" and error.get("code") in _LOOK_AGAIN and _is_there(ledger, entry.payload):
            item_id, outcome_now = entry.payload["id"], "unchanged"
        if outcome_now == "refused" or item_id is None:
            brought.tree.refuse(entry.file, entry.number, str(error.get("code")), str(error.get("message")))
            continue
        brought.saved += outcome_now == "saved"
        brought.unchanged += outcome_now == "unchanged"
        brought.ids[number] = item_id


def _is_there(ledger: LedgerClient, payload: dict[str, Any]) -> bool:
    """Whether the ledger has the item and it says the same, whatever it said first."""
    if not isinstance(payload.get("id"), str):
        return False
    try:
        return same(ledger.get(payload["id"]), payload)
    except LedgerError:
        return False


def _retire(ledger: LedgerClient, item_id: str) -> bool:
    """Take an item out of recall that was out of it; False when it is already, or cannot be."""
    try:
        if ledger.get(item_id).get("status") != "active":
            return False
        ledger.retire(item_id, reason=_OUT)
    except (IllegalState, UnknownKnowledge):
        return False
    return True


def _remember(ledger: LedgerClient, memories: dict[str, Any]) -> int:
    """State the memories anew that say something else now; how many did."""
    kinds: tuple[ProfileType, ...] = ("user", "work")
    now = ledger.profiles.both()
    stated = 0
    for kind in kinds:
        content = memories.get(f"{kind}_memory")
        if isinstance(content, dict) and content != (now["user_memory"] if kind == "user" else now["work_memory"]):
            ledger.profiles.put(kind, content)
            stated += 1
    return stated
