"""Rules of projects: the operator and the coordinators of a project say who has which role there."""

from __future__ import annotations

from kledger.contract.errors import NotOwner
from kledger.contract.projects import COORDINATOR, scope_of
from ledger.privacy.personal import NOBODY
from projections.fold_kit.decisions import ACCEPTED, Candidate, Rules, Ruling
from projections.views.projects.members import Members


class ProjectRules(Rules):
    """The rules over the members of the batch's projects, which the rules of knowledge ask for too."""

    def __init__(self, members: Members) -> None:
        self._members = members

    def decide(self, event: Candidate) -> Ruling:
        """Judge one event; see Rules.decide."""
        if event.actor != NOBODY and COORDINATOR not in self._members.roles(event.org, event.entity_id, event.actor):
            reason = f"the operator and the coordinators of {scope_of(event.entity_id)} give roles, not {event.actor}"
            return Ruling(NotOwner.code, reason)
        assert event.member is not None
        self._members.assign(event.org, event.entity_id, event.member, event.roles or ())
        return ACCEPTED
