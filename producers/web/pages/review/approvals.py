"""Approvals: memories that somebody proposed to a project, for its coordinators to take or to decline."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from starlette.responses import Response

from kledger.answers.knowledge import WholeItem
from kledger.answers.memory import Memory
from kledger.contract.errors import InvalidPayload
from kledger.contract.projects import projects_among
from producers.web.differences import Part, beside, differences
from producers.web.pages.review.items import items_of, titles_of
from producers.web.pages.review.tab import REVIEW, Tab, decided, offset, reason
from producers.web.rights import coordinates
from producers.web.site import Site, change
from producers.web.visit import Visit

PER_PAGE = 10
_MOST_PROJECTS = 5
"""Projects that are asked who coordinates them; of others the API says so when one tries."""


@dataclass(frozen=True, slots=True)
class Row:
    """A proposal, what it is a later version of, and whether the person decides on it as far as that is known."""

    memory: Memory
    before: WholeItem | None
    parts: list[Part]
    projects: list[str]
    mine: bool


async def shown(visit: Visit) -> Mapping[str, Any]:
    """A page of them; with `of=rejected` those that were declined."""
    of: Literal["proposed", "rejected"] = "rejected" if visit.text("of") == "rejected" else "proposed"
    listed = await visit.ledger.memories(status=of, limit=PER_PAGE, offset=offset(visit))
    memories = listed["results"]
    projects = {one["id"]: projects_among(_readers(one)) for one in memories}
    items, refused = await asyncio.gather(
        items_of(visit, (one.get("supersedes") for one in memories)),
        _not_coordinated(visit, {each for several in projects.values() for each in several}),
    )
    rows = await beside(
        lambda: [
            _row(one, items.get(one.get("supersedes") or ""), projects[one["id"]], not refused & {*projects[one["id"]]})
            for one in memories
        ]
    )
    return {"total": listed["total"], "rows": rows, "of": of, "size": PER_PAGE, "offset": offset(visit)}


def _readers(memory: Memory) -> list[str]:
    return [*memory["scopes"], *(entry["entity"] for entry in memory.get("acl", []))]


def _row(memory: Memory, before: WholeItem | None, projects: list[str], mine: bool) -> Row:
    parts = differences(before["content"], memory["content"]) if before else []
    return Row(memory, before, parts, projects, mine)


async def _not_coordinated(visit: Visit, projects: Iterable[str]) -> set[str]:
    """Those of these projects that the person is known not to coordinate."""
    asked = sorted(projects)[:_MOST_PROJECTS]
    does = await asyncio.gather(*(coordinates(visit, each) for each in asked))
    return {each for each, coordinated in zip(asked, does, strict=True) if not coordinated}


async def decide(_: Site, visit: Visit) -> Response:
    """Approve the version that was read, or reject it with a reason."""
    id, words, why = visit.said("id"), visit.words, reason(visit)
    version = visit.said_number("version")
    match visit.said("what"):
        case "approve":
            done = await visit.ledger.approve(id, expected_version=version, reason=why)
            task, other = await titles_of(visit, id, done["superseded"] or id)
            if done["conflict"]:
                visit.notify(words("“{task}” is shared now, and in conflict with what it is to replace.", task=task))
            elif done["superseded"]:
                visit.notify(words("“{task}” is shared now, in place of “{other}”.", task=task, other=other))
            else:
                visit.notify(words("“{task}” is shared now.", task=task))
        case "reject":
            (task,) = await titles_of(visit, id)
            await visit.ledger.reject(id, expected_version=version, reason=why)
            if why:
                visit.notify(words("“{task}” is declined; its author reads the reason.", task=task))
            else:
                visit.notify(words("“{task}” is declined, without a reason.", task=task))
        case other:
            raise InvalidPayload(f"{other[:100]!r} is no decision: approve or reject", errors=[])
    return decided(visit, "approvals")


TAB = Tab("approvals", "Approvals", shown, (change(f"{REVIEW}/approvals", decide),))
