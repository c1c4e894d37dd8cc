"""Who told an item, for whom and in which conversation; and who made it what its status says, when and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kledger.answers.knowledge import ItemVersion, WholeItem


@dataclass(frozen=True, slots=True)
class Told:
    """Where an item came from; each is None where nothing says so. `for_whom` where that is somebody else than `by`."""

    by: str | None
    for_whom: str | None
    session: str | None
    message: str | None
    trace: str | None


def told_of(item: WholeItem, versions: Sequence[ItemVersion]) -> Told:
    """What the item's save says, by its source and its origin first, then by the request that made it."""
    save = next((each for each in versions if each["version"] == 1), None)
    source, origin = item["source"], item["origin"]
    agent = source["agent_id"]
    by = f"agent:{agent}" if agent else source["submitted_by"] or (save["actor"] if save else None)
    owner = save["owner"] if save else item["owner"]
    return Told(
        by,
        owner if by is not None and owner != by else None,
        item["memory"].get("session") if "memory" in item else None,
        item["message_id"] or (save["message_id"] if save else None),
        source["trace_id"] or (origin["trace_id"] if origin else None) or (save["trace_id"] if save else None),
    )


def made_so(item: WholeItem, versions: Sequence[ItemVersion]) -> ItemVersion | None:
    """The version that gave the item the status that it has; None of what is active, or where it is not known."""
    if item["status"] == "active":
        return None
    made = None
    for version in reversed(versions):
        if version["status"] != item["status"]:
            return made
        made = version
    return made
