"""Tools for what is remembered of the acting user: their two memories, `user` and `work`."""

from __future__ import annotations

from kledger.answers.parts import JsonDocument
from kledger.answers.profiles import Profiles
from kledger.client import profiles
from kledger.client.tools import arguments as given
from kledger.client.tools.hints import tool
from kledger.client.wire import Wire


@tool("Read what is remembered of your user", reads=True)
async def profile_read(wire: Wire) -> Profiles:
    """The two memories of your user, whole: `user_memory` (who they are, people, places, preferences, routines) and
    `work_memory` (projects, tools, habits, team, rules)."""
    return await profiles.both(wire)


@tool("Change what is remembered of your user", repeatable=True)
async def profile_update(wire: Wire, profile: given.Profile, changes: given.ProfileChanges) -> JsonDocument:
    """State anew part of a memory of your user, when they tell you something of themselves or their work. The answer is
    the whole memory.

    Objects merge, null removes a field, a list replaces the whole list: read it first to add to it.
    """
    return await profiles.patch(wire, profile, changes)
