"""Rules of profile events: the decider of what may happen to a profile."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from kledger.contract.errors import IllegalState, NotOwner, UnknownProfile
from projections.fold_kit.decisions import Candidate, Rules, Ruling

_STATE = """
SELECT org, concat(owner, '/', memory_type), version, status = 'active', valid_from
FROM profile_versions
WHERE valid_to IS NULL
    AND concat(owner, '/', memory_type) IN ({about})
"""


@dataclass(slots=True)
class Profile:
    """State of one memory of one user."""

    version: int
    active: bool
    version_position: int


class ProfileRules(Rules):
    """The rules over the state of a batch's profiles."""

    def __init__(self, con: duckdb.DuckDBPyConnection, about: str) -> None:
        self.profiles: dict[tuple[str, str], Profile] = {
            (org, profile_id): Profile(version, active, position)
            for org, profile_id, version, active, position in con.execute(_STATE.format(about=about)).fetchall()
        }

    def decide(self, event: Candidate) -> Ruling:
        key = (event.org, event.entity_id)
        owner = event.entity_id.rpartition("/")[0]
        if event.actor != owner:
            return Ruling(NotOwner.code, f"the profile {event.entity_id} is {owner}'s, not {event.actor}'s")
        profile = self.profiles.get(key)
        if event.type == "profile.created":
            if profile is not None:
                return Ruling(IllegalState.code, f"the profile {event.entity_id} is there already")
            self.profiles[key] = Profile(1, True, event.position)
            return Ruling(version=1)
        if profile is None:
            return Ruling(UnknownProfile.code, f"there is no profile {event.entity_id}: create it first")
        if not profile.active and event.type != "profile.replaced":
            return Ruling(IllegalState.code, f"the profile {event.entity_id} is disabled: replace it to use it again")
        closes = profile.version_position
        profile.version += 1
        profile.version_position = event.position
        profile.active = event.type != "profile.disabled"
        return Ruling(version=profile.version, closes=closes)
