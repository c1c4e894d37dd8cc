"""Changes of one item by a person: retire, restore, share, judge, score, confirm, revert; undone where it can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from starlette.responses import Response

from kledger.contract.errors import InvalidPayload
from kledger.contract.words import Verdict
from producers.web.addresses import HOME
from producers.web.once import key_of
from producers.web.rendering import back_to, item_page
from producers.web.sessions import Notice
from producers.web.site import Site, change
from producers.web.undoing import changed_since, version_now
from producers.web.visit import Visit

_CASE = ("task", "query", "outcome", "reason", "trace_id", "message_id")


async def retire(_: Site, visit: Visit) -> Response:
    """Take it out of recall."""
    item_id = visit.part("id")
    if await changed_since(visit, item_id):
        return _left(visit)
    reason = visit.said("reason") or None
    await visit.ledger.retire(item_id, reason=reason, idempotency_key=key_of(visit))
    text = visit.words("Retired: no recall serves it any more.")
    if reason is None:
        text = visit.words(
            "Retired: no recall serves it any more. Without a reason it is not held when it is said again."
        )
    return _done(visit, text, undo="restore", fields={"of_version": await version_now(visit, item_id)})


async def restore(_: Site, visit: Visit) -> Response:
    """Bring it back."""
    item_id = visit.part("id")
    if await changed_since(visit, item_id):
        return _left(visit)
    await visit.ledger.restore(item_id, reason=visit.said("reason") or None, idempotency_key=key_of(visit))
    text = visit.words("Restored: recalls serve it again.")
    return _done(visit, text, undo="retire", fields={"of_version": await version_now(visit, item_id)})


async def share(_: Site, visit: Visit) -> Response:
    """State its whole ACL: rows of an entity and what it may, or `acl`, a line for each."""
    item_id = visit.part("id")
    rows = zip(visit.form.get("entity", []), visit.form.get("permission", []), strict=False)
    lines = (line.rpartition(" ") for line in visit.said("acl").splitlines())
    stated = [*rows, *((entity, permission) for entity, _blank, permission in lines)]
    acl = [{"entity": entity.strip(), "permission": permission} for entity, permission in stated if entity.strip()]
    if await changed_since(visit, item_id):
        return _left(visit)
    before = (await visit.ledger.get(item_id)).get("acl", [])
    await visit.ledger.share(item_id, acl, idempotency_key=key_of(visit))
    was = "\n".join(f"{row['entity']} {row['permission']}" for row in before)
    text = visit.words("Shared as stated.")
    return _done(visit, text, undo="share", fields={"acl": was, "of_version": await version_now(visit, item_id)})


async def rate(_: Site, visit: Visit) -> Response:
    """Say that it helped or harmed, with the case that shows it."""
    verdict = visit.said("verdict")
    if verdict not in ("helpful", "harmful"):
        raise InvalidPayload("say whether it was helpful or harmful", errors=[{"field": "verdict"}])
    case = {name: said for name in _CASE if (said := visit.said(name))}
    await visit.ledger.rate(visit.part("id"), cast(Verdict, verdict), **case, idempotency_key=key_of(visit))
    return _done(visit, visit.words("Your verdict is kept."))


async def score(_: Site, visit: Visit) -> Response:
    """Give it another score."""
    item_id, given = visit.part("id"), visit.said("score")
    before = (await visit.ledger.get(item_id))["eval"]["score"]
    if visit.said("of_score") not in ("", str(before)):
        return _left(visit)
    await visit.ledger.score(item_id, visit.said_number("score"), idempotency_key=key_of(visit))
    return _done(
        visit,
        visit.words("The score is {n} now.", n=given),
        undo="score",
        fields={"score": str(before), "of_score": given},
    )


async def confirm(_: Site, visit: Visit) -> Response:
    """Say that a memory holds."""
    case = {name: said for name in _CASE if (said := visit.said(name))}
    told = await visit.ledger.confirm(visit.part("id"), case=case or None, idempotency_key=key_of(visit))
    text = "Confirmed; it became a semantic memory." if told["promoted"] else "Confirmed: that is evidence for it."
    return _done(visit, visit.words(text))


async def revert(_: Site, visit: Visit) -> Response:
    """Make it what it was at an earlier version."""
    item_id, to_version = visit.part("id"), visit.said_number("to_version")
    expected = visit.said_number("expected_version")
    told = await visit.ledger.revert(item_id, to_version, expected_version=expected, idempotency_key=key_of(visit))
    text = visit.words("It says again what version {n} said.", n=to_version)
    return _done(visit, text, undo="revert", fields=back_again(expected, told["version"]))


def back_again(to_version: int, now: int) -> dict[str, str]:
    """The fields of a form that reverts to a version, where nothing came after `now`."""
    return {"to_version": str(to_version), "expected_version": str(now)}


def _left(visit: Visit) -> Response:
    visit.notify(visit.words("It was changed since, and stays as it is."), bad=True)
    return back_to(visit, None if visit.said("back") else item_page(visit.part("id")))


def _done(visit: Visit, text: str, undo: str | None = None, fields: Mapping[str, str] | None = None) -> Response:
    item_id = visit.part("id")
    address = None if undo is None else item_page(item_id, undo)
    visit.session.tell(Notice(text, address, fields or {}))
    return back_to(visit, None if visit.said("back") else item_page(item_id))


PAGES = tuple(
    change(f"{HOME}/items/{{id}}/{handle.__name__}", handle)
    for handle in (retire, restore, share, rate, score, confirm, revert)
)
