"""Whether a proposed group can still be merged: who shows it and who merges it go by the same rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kledger.contract.bounds import MOST_LISTED
from projections.similar.ask import Proposed, Standing


def items_of(groups: Sequence[Proposed]) -> list[str]:
    """The ids of the items of these groups."""
    return [name for group in groups for name in (group.survivor, *(name for name, _, _ in group.merged))]


def resources_of(group: Proposed, now: Mapping[str, Standing]) -> list[str]:
    """The ids of the resources of all items of a group, each once, those of the survivor first."""
    return list(dict.fromkeys(each for name in items_of([group]) for each in now[name].resource_ids))


def outdated(owner: str, group: Proposed, now: Mapping[str, Standing]) -> str:
    """The reason why a group of this owner cannot be merged any more; empty when it can."""
    versions = {group.survivor: group.survivor_version, **{name: version for name, version, _ in group.merged}}
    for name, version in versions.items():
        item = now.get(name)
        if item is None or item.owner != owner:
            return f"{name} is not {owner}'s any more"
        if item.version != version or item.status != "active":
            return f"{name} has changed since it was compared"
        if item.erased:
            return f"{name} was erased with the person it belonged to"
    if len(resources_of(group, now)) > MOST_LISTED:
        return f"its items refer to more than {MOST_LISTED:,} resources together"
    return ""
