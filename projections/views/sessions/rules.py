"""Rules of session events: a session is its owner's, is closed while it is open, and removed while it is there."""

from __future__ import annotations

import duckdb

from kledger.contract.errors import IllegalState, NotOwner, UnknownSession
from projections.fold_kit.decisions import ACCEPTED, Candidate, Rules, Ruling

_STATE = """
SELECT org, owner, owner || '/' || session_id, arg_max(status, position) FROM session_events
WHERE status IS NOT NULL AND owner || '/' || session_id IN ({about}) GROUP BY org, owner, session_id
"""

_MAKES = {"session.opened": "open", "session.closed": "closed", "session.removed": "removed"}


class SessionRules(Rules):
    """The rules over what the sessions of a batch are.

    The owner is part of the key: `user:a` with the session `b/c` and `user:a/b` with `c` have the same entity id.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, about: str) -> None:
        rows = con.execute(_STATE.format(about=about)).fetchall()
        self._status = {(org, owner, entity_id): status for org, owner, entity_id, status in rows}

    def decide(self, event: Candidate) -> Ruling:
        """Judge one event; see Rules.decide."""
        named = f"the session {event.entity_id}"
        if event.owner is None or event.actor != event.owner:
            return Ruling(NotOwner.code, f"{named} is {event.owner}'s, not {event.actor}'s")
        key = (event.org, event.owner, event.entity_id)
        status = self._status.get(key)
        if event.type == "session.opened":
            if status == "open":
                return Ruling(IllegalState.code, f"{named} is open already")
        elif status is None:
            return Ruling(UnknownSession.code, f"{named} was never opened")
        elif status == "removed" or (event.type == "session.closed" and status == "closed"):
            return Ruling(IllegalState.code, f"{named} is {status} already")
        self._status[key] = _MAKES.get(event.type, status or "open")
        return ACCEPTED
