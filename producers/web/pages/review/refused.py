"""Refused events: what is in the log and does not count, with the reason; the operator tries a parked one again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from kledger.contract.errors import InvalidPayload, LedgerError
from kledger.contract.json_text import MOST_POSITION
from producers.web.pages.review.tab import REVIEW, Tab, decided
from producers.web.rendering import back_to, with_query
from producers.web.site import Site, change
from producers.web.visit import Visit

PER_PAGE = 20
_PARKED = "unfoldable"


async def shown(visit: Visit) -> Mapping[str, Any]:
    """Those after a position; with `of=parked` those that no fold could take, with `job` how far a retry is."""
    after, parked = visit.number("after", 0, most=MOST_POSITION), visit.text("of") == "parked"
    listed = await visit.ledger.refused(after=after, limit=PER_PAGE + 1, code=_PARKED if parked else None)
    rows = listed["refused"][:PER_PAGE]
    goes_on = len(listed["refused"]) > PER_PAGE or "next" in listed
    return {
        "rows": rows,
        "of": "parked" if parked else None,
        "after": after,
        "following": rows[-1]["position"] if goes_on else None,
        "job": await _job(visit),
    }


async def _job(visit: Visit) -> Mapping[str, Any] | None:
    """The job that the address names, while the node knows it."""
    if not (named := visit.text("job")):
        return None
    try:
        return {**await visit.ledger.job(named)}
    except LedgerError:
        return None


async def decide(_: Site, visit: Visit) -> Response:
    """Try a parked event again, in a job, or let it rest."""
    position = visit.said_number("position")
    match visit.said("what"):
        case "retry":
            job = await visit.ledger.retry_parked(position)
            return back_to(visit, with_query(REVIEW, {"tab": "refused", "of": _of(visit), "job": job["id"]}))
        case "dismiss":
            await visit.ledger.dismiss_parked(position)
            visit.notify(visit.words("The event at {position} rests; it stays refused.", position=position))
        case other:
            raise InvalidPayload(f"{other[:100]!r} is no decision: retry or dismiss", errors=[])
    return decided(visit, "refused")


def _of(visit: Visit) -> str | None:
    return "parked" if visit.said("of") == "parked" else None


TAB = Tab("refused", "Refused events", shown, (change(f"{REVIEW}/refused", decide),), for_operators=True)
