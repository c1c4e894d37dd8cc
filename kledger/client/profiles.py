"""Profiles of the acting user: what is remembered of them, `user` and `work`; all for `acting_as(user=…)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kledger.client.faces import Endpoint
from kledger.client.knowledge import Moment, moment
from kledger.client.wire import Wire
from kledger.contract.language import Language
from kledger.contract.words import ProfileType

if TYPE_CHECKING:
    from kledger.answers.parts import JsonDocument
    from kledger.answers.profiles import ProfileHistory, ProfilePrompt, Profiles

PROFILES = "/api/v1/memories"


async def both(wire: Wire, *, as_of: Moment | None = None) -> Profiles:
    """The two profiles of the user, now or as of then."""
    return await wire.read(PROFILES, {"as_of": moment(as_of)})


async def register(wire: Wire) -> Profiles:
    """Begin both profiles with their default content; a second time changes nothing."""
    return await wire.write("POST", PROFILES)


async def get(wire: Wire, profile: ProfileType, *, as_of: Moment | None = None) -> JsonDocument | None:
    """The content of one profile, its defaults until something is stated, None while disabled; now or as of then."""
    return await wire.read(f"{PROFILES}/{profile}", {"as_of": moment(as_of)})


async def prompt(
    wire: Wire, profile: ProfileType, *, as_of: Moment | None = None, language: Language | None = None
) -> str | None:
    """One profile as the section of a system prompt, `user` for a router and `work` for a worker; None without one.

    `language` is that of the fields' names; without one it is the node's.
    """
    asked = {"as_of": moment(as_of), "language": language}
    section: ProfilePrompt = await wire.read(f"{PROFILES}/{profile}/prompt", asked)
    return section["prompt"]


async def history(wire: Wire, profile: ProfileType, *, before: int | None = None) -> ProfileHistory:
    """Every version of one profile, oldest first. UnknownProfile when it was never created.

    Of more than fit into an answer the latest: `next` is then the `before` of the earlier ones.
    """
    return await wire.read(f"{PROFILES}/{profile}/history", {"before": before})


async def put(
    wire: Wire, profile: ProfileType, content: Mapping[str, Any], *, idempotency_key: str | None = None
) -> JsonDocument:
    """State the whole content anew. InvalidPayload names the field that does not fit."""
    return await wire.write("PUT", f"{PROFILES}/{profile}", {"content": content}, idempotency_key=idempotency_key)


async def patch(
    wire: Wire, profile: ProfileType, content: Mapping[str, Any], *, idempotency_key: str | None = None
) -> JsonDocument:
    """State part of the content anew: a JSON merge patch (RFC 7396), null removes a field."""
    return await wire.write("PATCH", f"{PROFILES}/{profile}", {"content": content}, idempotency_key=idempotency_key)


async def disable(wire: Wire, profile: ProfileType, *, idempotency_key: str | None = None) -> None:
    """Have a profile not used any more; its history stays, and a `put` makes it active again."""
    await wire.write("DELETE", f"{PROFILES}/{profile}", idempotency_key=idempotency_key)


class ProfileEndpoints:
    """The two profiles of the acting user: what is remembered of them, `user` and `work`."""

    both = Endpoint(both)
    get = Endpoint(get)
    put = Endpoint(put)
    patch = Endpoint(patch)
    disable = Endpoint(disable)
    register = Endpoint(register)
    prompt = Endpoint(prompt)
    history = Endpoint(history)
