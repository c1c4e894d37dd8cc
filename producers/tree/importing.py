"""Import of a tree: saves its entries in chunks; items that are there already stay unchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kledger.contract.errors import Erased, Forbidden, IllegalState, LedgerError, NotOwner, UnknownKnowledge
from producers.requests.chunks import chunks_of, send
from producers.tree.entries import same_statement
from producers.tree.reading import STAYING, Tree, read_tree
from producers.tree.seen import visible

if TYPE_CHECKING:
    from kledger import LedgerClient
    from kledger.contract.words import ProfileType
    from producers.requests.chunks import Outcome

# Refusals of an item that may be there already with the same statement: revised since, or of another owner.
_MAYBE_PRESENT = ("knowledge_exists", "not_owner", "forbidden")


@dataclass(slots=True)
class Brought:
    """The outcome of an import: entries `saved`, `unchanged` and `held`; `refused` and `skipped` are in the tree.

    Of what was saved or is unchanged, `proposed` (ids, as several entries may say one thing) wait for a coordinator of
    their project.
    """

    tree: Tree
    saved: int = 0
    unchanged: int = 0
    proposed: set[str] = field(default_factory=set)
    held: int = 0
    retired: int = 0
    memories: int = 0
    ids: dict[int, str] = field(default_factory=dict)
    """The id of each entry that is now in the ledger, by its number in the tree."""


def import_tree(
    ledger: LedgerClient,
    directory: Path,
    *,
    user: str | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Brought:
    """Import the tree in `directory` as the ledger's caller; importing it again appends nothing.

    The memories of `user` are replaced where they differ; those of others are skipped. `progress` is called with the
    number of entries done and their total. Raises IllegalTree, and what writing raises: then some entries are saved,
    and another import continues.
    """
    tree = read_tree(directory)
    result = Brought(tree)
    done = 0
    in_doubt: dict[int, dict[str, Any]] = {}
    for chunk in chunks_of((number, entry.payload) for number, entry in enumerate(tree.entries)):
        for outcome in send(ledger, chunk):
            in_doubt |= _count(result, outcome)
            done += len(outcome[0].payloads)
            progress(done, len(tree.entries))
    _recognise(ledger, result, in_doubt)
    gone = {number: item_id for number, item_id in result.ids.items() if not tree.entries[number].stays}
    now = visible(ledger, gone.values())
    for number, item_id in gone.items():
        entry = tree.entries[number]
        if item_id in now and now[item_id]["status"] not in STAYING:
            continue
        try:
            if _retire(ledger, item_id):
                result.retired += 1
                result.proposed.discard(item_id)
        except (NotOwner, Forbidden, Erased) as error:
            result.unchanged -= 1  # whoever saved it just now may retire it
            tree.refuse(entry.file, entry.number, error.code, error.message)
    for owner, memories in tree.memories.items():
        if owner == user:
            result.memories += _replace_memories(ledger, memories)
        else:
            tree.skipped.append(f"the memories of user:{owner}, which only that user may state")
    return result


def _count(result: Brought, outcome: Outcome) -> dict[int, dict[str, Any]]:
    """Count the outcomes of a chunk; the refusal of each entry whose item may be there already, by its number."""
    chunk, answer = outcome
    entries = result.tree.entries
    in_doubt: dict[int, dict[str, Any]] = {}
    if isinstance(answer, LedgerError):
        (number,) = chunk.lines
        result.tree.refuse(entries[number].file, entries[number].number, answer.code, answer.message)
        return in_doubt
    for row in answer["results"]:
        number = chunk.lines[row["index"]]
        entry, error = entries[number], dict(row["error"] or {})
        item_id, status = row["id"], row["outcome"]
        if error.get("code") in _MAYBE_PRESENT and isinstance(entry.payload.get("id"), str):
            in_doubt[number] = error
            continue
        if status == "refused" or item_id is None:
            result.tree.refuse(entry.file, entry.number, str(error.get("code")), str(error.get("message")))
            continue
        if status == "held":
            result.held += 1
            continue
        result.saved += status == "saved"
        if row.get("status") == "proposed":
            result.proposed.add(item_id)
        result.unchanged += status == "unchanged"
        result.ids[number] = item_id
    return in_doubt


def _recognise(ledger: LedgerClient, result: Brought, in_doubt: dict[int, dict[str, Any]]) -> None:
    """Count as unchanged what is in doubt and whose item states the same now, and refuse the rest."""
    entries = result.tree.entries
    now = visible(ledger, {str(entries[number].payload["id"]) for number in in_doubt})
    for number, error in in_doubt.items():
        entry = entries[number]
        item = now.get(entry.payload["id"])
        if item is not None and same_statement(item, entry.payload):
            result.unchanged += 1
            result.ids[number] = item["id"]
        else:
            result.tree.refuse(entry.file, entry.number, str(error.get("code")), str(error.get("message")))


def _retire(ledger: LedgerClient, item_id: str) -> bool:
    """Retire an item that was out of recall in the tree; False when it is retired already, or cannot be."""
    try:
        if ledger.get(item_id).get("status") not in STAYING:
            return False
        ledger.retire(item_id)  # without a reason: the tree does not say whether a person retired it, or it expired
    except (IllegalState, UnknownKnowledge):
        return False
    return True


def _replace_memories(ledger: LedgerClient, memories: dict[str, Any]) -> int:
    """Replace memories that differ; returns how many did."""
    kinds: tuple[ProfileType, ...] = ("user", "work")
    now = ledger.profiles.both()
    replaced = 0
    for kind in kinds:
        content = memories.get(f"{kind}_memory")
        if isinstance(content, dict) and content != (now["user_memory"] if kind == "user" else now["work_memory"]):
            ledger.profiles.put(kind, content)
            replaced += 1
    return replaced
