"""Comparison of a rebuilt view with the live one."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from ledger.event import JsonObject
from ledger.runtime.damaged_file import is_damaged
from projections.engine.digest import NO_ROWS, RelationDigest, differences, state_digest
from projections.engine.view import Instance
from projections.live.more_memory import digests_of
from projections.live.rebuild import Rebuilt


async def compared_with(live: Instance, fresh: Instance, rebuilt: Rebuilt) -> JsonObject:
    """Digests and differences of a rebuilt view and the live one, both at the same position.

    A live view that cannot be read has none, and one of another log may be at any position.
    """
    ours, theirs = await asyncio.to_thread(lambda: (_digests_of(live), digests_of(fresh)))
    unlike = ours != theirs and not live.damage
    differing = await asyncio.to_thread(differences, live.con.cursor(), fresh.con) if unlike else []
    return {
        "position": fresh.position,
        "events": rebuilt.events,
        "refused": rebuilt.refused,
        "seconds": round(rebuilt.seconds, 3),
        "rate": round(rebuilt.rate, 1),
        "live": {"digest": state_digest(ours)},
        "rebuilt": {"digest": state_digest(theirs), "views": {name: asdict(one) for name, one in theirs.items()}},
        "archive": rebuilt.archive,
        "equal": ours == theirs,
        "views": [
            {
                "view": name,
                "rows": ours.get(name, NO_ROWS).rows,
                "live": ours.get(name, NO_ROWS).digest,
                "replayed": theirs.get(name, NO_ROWS).digest,
                "equal": ours.get(name) == theirs.get(name),
            }
            for name in dict.fromkeys((*ours, *theirs))
        ],
        "differences": [asdict(difference) for difference in differing],
    }


def _digests_of(live: Instance) -> dict[str, RelationDigest]:
    try:
        return digests_of(live)
    except Exception as error:
        if not is_damaged(error):
            raise
        live.note_damage(error)
        return {}
