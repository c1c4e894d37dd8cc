"""Many items at once: what would become of each is shown first, then it is done, and undone by one click."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, cast
from uuid import uuid4

from starlette.responses import Response

from kledger.answers.bulk import BulkResult
from kledger.contract.errors import InvalidPayload, LedgerError
from kledger.contract.lists import split_words
from kledger.contract.scopes import OPERATOR
from kledger.contract.words import BulkAction
from kledger.requests.knowledge import MAX_BATCH
from producers.web.addresses import HOME, local
from producers.web.errors.telling import told
from producers.web.narrowed import Narrowed
from producers.web.rendering import back_to, page
from producers.web.site import Page, Site, change
from producers.web.visit import Visit

ACTIONS: tuple[BulkAction, ...] = ("retire", "restore", "share")
LIST = f"{HOME}/knowledge"
BULK = f"{LIST}/bulk"
MOST_SHOWN = 200
Forms = tuple[str, str]
"""A text about one item, and about several."""
HEADINGS: dict[BulkAction, Forms] = {
    "retire": ("Retire {n} item?", "Retire {n} items?"),
    "restore": ("Restore {n} item?", "Restore {n} items?"),
    "share": ("Share {n} item?", "Share {n} items?"),
}
BUTTONS: dict[BulkAction, Forms] = {
    "retire": ("Retire {n} item", "Retire {n} items"),
    "restore": ("Restore {n} item", "Restore {n} items"),
    "share": ("Share {n} item", "Share {n} items"),
}
DONE: dict[BulkAction, Forms] = {
    "retire": ("{n} item is retired.", "{n} items are retired."),
    "restore": ("{n} item is restored.", "{n} items are restored."),
    "share": ("{n} item is shared.", "{n} items are shared."),
}


class With(TypedDict, total=False):
    """With whom items are shared."""

    readers: list[str]
    writers: list[str]


async def preview(_: Site, visit: Visit) -> Response:
    """What would be done, and what is refused and why; nothing is done."""
    action = cast(BulkAction, visit.one_of("action", ACTIONS, "retire"))
    ids, more = await _chosen(visit)
    who, permission = visit.text("who") or "", visit.one_of("permission", ("read", "read_write"), "read")
    would, error = None, None
    asks = action == "share" and not who
    if ids:
        try:
            # Before it is said with whom, a share with oneself names the items, and those that are not one's to share.
            shared = _with(action, _self(visit) if asks else who, permission)
            would = await visit.ledger.bulk(action, ids, dry_run=True, **shared)
        except LedgerError as refused:
            error = refused
    return page(
        visit,
        "bulk.html",
        200 if error is None else 422,
        action=action,
        ids=ids,
        more=more,
        most=MAX_BATCH,
        who=who,
        permission=permission,
        would=would,
        asks=asks,
        heading=_counted(visit, HEADINGS[action], len(ids)) if ids else visit.words("Nothing is chosen"),
        button=None if would is None else _counted(visit, BUTTONS[action], would["done"]),
        holds=action == "retire" and not _self(visit).startswith("agent:"),
        shown=() if would is None else _refused_first(would["results"])[:MOST_SHOWN],
        error=error,
        once=uuid4().hex,
        back=local(visit.text("back") or LIST),
    )


async def carry_out(_: Site, visit: Visit) -> Response:
    """Do it; what was refused stays as it was."""
    action = next((known for known in ACTIONS if known == visit.said("action")), None)
    if action is None:
        raise InvalidPayload(f"no such action: it is one of {', '.join(ACTIONS)}", errors=[])
    done = await visit.ledger.bulk(
        action,
        visit.said_many("id"),
        dry_run=False,
        reason=None if action == "share" else visit.said("reason") or None,
        idempotency_key=visit.said("once") or None,
        **_with(action, visit.said("who"), visit.said("permission")),
    )
    text = _counted(visit, DONE[action], done["done"])
    if done["refused"]:
        text += " " + visit.words("{n} were refused.", n=done["refused"])
    if done["bulk_id"] is None:
        visit.notify(text)
    else:
        visit.notify(text, undo=f"{BULK}/revert", bulk=done["bulk_id"])
    return back_to(visit)


async def revert(_: Site, visit: Visit) -> Response:
    """Undo it; what was changed since stays as it is."""
    done = await visit.ledger.revert_bulk(visit.said("bulk"))
    text = _counted(visit, ("{n} item is as it was before.", "{n} items are as they were before."), done["done"])
    if done["unchanged"]:
        text += " " + visit.words("{n} are so already.", n=done["unchanged"])
    refused = [each["error"] for each in done["results"] if each["outcome"] == "refused" and each["error"] is not None]
    changed = sum(error["code"] == "version_conflict" for error in refused)
    if changed:
        text += " " + visit.words("{n} were changed since, and stay as they are.", n=changed)
    if others := [error for error in refused if error["code"] != "version_conflict"]:
        text += " " + visit.words("{n} stay as they are: {why}", n=len(others), why=told(others[0], visit.words))
    visit.notify(text, bad=bool(others))
    return back_to(visit)


def _counted(visit: Visit, forms: Forms, n: int) -> str:
    return visit.words(forms[n != 1], n=f"{n:,}")


def _self(visit: Visit) -> str:
    """Who asks, as the events of a bulk name them."""
    return (visit.session.who() or [OPERATOR])[0]


def _refused_first(results: Sequence[BulkResult]) -> list[BulkResult]:
    return sorted(results, key=lambda each: each["outcome"] != "refused")


async def _chosen(visit: Visit) -> tuple[Sequence[str], bool]:
    """The ids that are chosen, or all of the list, as many as one bulk takes; and whether there are more."""
    if visit.text("all") is None:
        chosen = list(dict.fromkeys(filter(None, visit.request.query_params.getlist("id"))))
        return chosen[:MAX_BATCH], len(chosen) > MAX_BATCH
    ids: list[str] = []
    async for item in visit.ledger.iterate(page=MAX_BATCH, **Narrowed.of(visit, LIST).filters()):
        if len(ids) == MAX_BATCH:
            return ids, True
        ids.append(item["id"])
    return ids, False


def _with(action: str, who: str, permission: str) -> With:
    if action != "share":
        return {}
    named = split_words(who.replace("，", ","))
    return {"writers": named} if permission == "read_write" else {"readers": named}


PAGES = (Page(BULK, preview), change(BULK, carry_out), change(f"{BULK}/revert", revert))
