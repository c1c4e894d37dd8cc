"""Rules of resource events: the decider of what may happen to a resource."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from kledger.contract.errors import IllegalState, NotOwner, UnknownResource, VersionConflict
from projections.fold_kit.decisions import Candidate, Rules, Ruling

_STATE = """
SELECT org, id, owner, version, status = 'active', valid_from FROM resource_versions
WHERE valid_to IS NULL AND id IN ({about})
"""


@dataclass(slots=True)
class Resource:
    """State of one resource."""

    owner: str
    version: int
    active: bool
    version_position: int


class ResourceRules(Rules):
    """The rules over the state of a batch's resources."""

    def __init__(self, con: duckdb.DuckDBPyConnection, about: str) -> None:
        self._resources = {
            (org, resource_id): Resource(*state)
            for org, resource_id, *state in con.execute(_STATE.format(about=about)).fetchall()
        }

    def decide(self, event: Candidate) -> Ruling:
        resource = self._resources.get((event.org, event.entity_id))
        named = event.entity_id
        if event.type == "resource.saved" and event.owner != event.actor:
            return Ruling(NotOwner.code, f"{event.actor} may not save what {event.owner} is to own")
        if resource is None:
            return self._first(event)
        if event.actor != resource.owner:
            return Ruling(NotOwner.code, f"{named} is owned by {resource.owner}, not by {event.actor}")
        if event.type == "resource.retired" and not resource.active:
            return Ruling(IllegalState.code, f"{named} is retired already")
        if event.type == "resource.restored" and resource.active:
            return Ruling(IllegalState.code, f"{named} is active: there is nothing to restore")
        if event.expected_version is not None and event.expected_version != resource.version:
            return Ruling(
                VersionConflict.code,
                f"{named} is at version {resource.version}, the save expected {event.expected_version}",
            )
        closes = resource.version_position
        resource.version += 1
        resource.version_position = event.position
        if event.type != "resource.secret_destroyed":
            resource.active = event.type != "resource.retired"
        return Ruling(version=resource.version, closes=closes)

    def _first(self, event: Candidate) -> Ruling:
        named, verb = event.entity_id, event.type.partition(".")[2]
        if event.type != "resource.saved":
            return Ruling(UnknownResource.code, f"there is no resource {named} to be {verb}")
        if event.expected_version is not None:
            return Ruling(
                VersionConflict.code, f"there is no resource {named} yet, the save expected {event.expected_version}"
            )
        self._resources[event.org, named] = Resource(event.actor, 1, True, event.position)
        return Ruling(version=1)
