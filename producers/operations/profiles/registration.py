"""Registration of users: both memories exist from the moment that a token is created for a user.

`kledger token create` writes a file, with or without a node; a running node finds the users in it.
"""

from __future__ import annotations

import asyncio

import structlog

from kledger.contract.errors import IllegalSubject, LedgerError, SubjectForgotten, VersionConflict
from kledger.contract.scopes import Caller
from ledger.event import NO_LINEAGE
from ledger.runtime.log_once import Outage
from producers.access.book import TokenBook
from producers.operations.desk import Desk
from producers.operations.profiles.changes import register_new

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0


async def keep_registered(desk: Desk, tokens: TokenBook) -> None:
    """Create the memories of each user of a valid token who has none in the log. Runs until cancelled."""
    known: set[str] = set()
    outage = Outage("users are not registered", "users are registered again", log)
    while True:
        for user in sorted(tokens.users() - known):
            try:
                await register_new(desk, Caller(user=user), NO_LINEAGE)
            except VersionConflict:
                continue  # another node or the user was first: the next round finds what they created
            except (SubjectForgotten, IllegalSubject):
                pass  # this user can never be registered
            except LedgerError as error:
                outage.met(error.message)
                break
            known.add(user)
        else:
            outage.over()
        await asyncio.sleep(LOOK_SECONDS)
