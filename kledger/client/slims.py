"""Requests about slims: items that say the same are merged, and brought back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kledger.client.faces import Endpoint
from kledger.client.wire import Wire, segment, without_none
from kledger.contract.words import SlimStatus

if TYPE_CHECKING:
    from kledger.answers.slims import Slim, SlimList

BASE = "/api/slims"
A_LOOK = 10.0
"""Seconds that one request waits at most: a caller that is interrupted, or a node that stops, is not waited for."""


async def slim(
    wire: Wire,
    model: str | None = None,
    *,
    scopes: Sequence[str] | None = None,
    owner: str | None = None,
    threshold: float | None = None,
    dry_run: bool = False,
    wait: float = 600.0,
    idempotency_key: str | None = None,
) -> Slim:
    """Merge the caller's items that say the same; with `dry_run` only say which would be.

    `model` writes the merged texts; where none is configured the best of each group is kept. Waits up to `wait`
    seconds: `done` says whether that was long enough.
    """
    body = without_none(model=model, scopes=scopes, owner=owner, threshold=threshold, dry_run=dry_run)
    body["wait"] = min(wait, A_LOOK)
    answer: Slim = await wire.write("POST", "/api/knowledge/slim", body, idempotency_key=idempotency_key)
    return await _settled(wire, answer, wait - A_LOOK)


async def slims(wire: Wire, *, status: SlimStatus | None = None, limit: int = 20, offset: int = 0) -> SlimList:
    """The slims that the caller asked for, newest first, without their groups."""
    return await wire.read(BASE, {"status": status, "limit": limit, "offset": offset})


async def slim_get(wire: Wire, id: str, *, wait: float = 0.0) -> Slim:
    """One slim with its groups; waits up to `wait` seconds until it is settled. UnknownProcess when there is none."""
    return await _settled(wire, await _looked(wire, id, wait), wait - A_LOOK)


async def slim_apply(wire: Wire, id: str, *, wait: float = 600.0, idempotency_key: str | None = None) -> Slim:
    """Merge what a dry run proposed. IllegalState when it is rejected or reverted."""
    return await _decided(wire, id, "apply", wait, idempotency_key)


async def slim_reject(wire: Wire, id: str, *, reason: str | None = None, idempotency_key: str | None = None) -> Slim:
    """Leave everything as it is."""
    return await wire.write(
        "POST", f"{BASE}/{segment(id)}/reject", params={"reason": reason}, idempotency_key=idempotency_key
    )


async def slim_revert(wire: Wire, id: str, *, wait: float = 600.0, idempotency_key: str | None = None) -> Slim:
    """Make every item again what it was before; groups that changed since are left, and named as skipped."""
    return await _decided(wire, id, "revert", wait, idempotency_key)


async def _decided(wire: Wire, id: str, what: str, wait: float, key: str | None) -> Slim:
    params = {"wait": min(wait, A_LOOK)}
    answer: Slim = await wire.write("POST", f"{BASE}/{segment(id)}/{what}", params=params, idempotency_key=key)
    return await _settled(wire, answer, wait - A_LOOK)


async def _settled(wire: Wire, answer: Slim, wait: float) -> Slim:
    """Look again until it is done, or `wait` seconds are over."""
    while not answer["done"] and wait > 0:
        answer = await _looked(wire, answer["id"], wait)
        wait -= A_LOOK
    return answer


async def _looked(wire: Wire, id: str, wait: float) -> Slim:
    """A slim after one request."""
    answer: Slim = await wire.read(f"{BASE}/{segment(id)}", {"patience": min(wait, A_LOOK)})
    return answer


class SlimEndpoints:
    """Merging items that say the same."""

    slim = Endpoint(slim)
    slims = Endpoint(slims)
    slim_get = Endpoint(slim_get)
    slim_apply = Endpoint(slim_apply)
    slim_reject = Endpoint(slim_reject)
    slim_revert = Endpoint(slim_revert)
