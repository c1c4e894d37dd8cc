"""What an endpoint does not read is refused, on every endpoint alike: parameters that it does not have, one that is
stated twice, and a body.

A filter that is misspelt and ignored answers what was not asked, and a reason in a body that nobody reads is lost.
Which parameters an endpoint has is read off its handler and what that depends on, as FastAPI reads it: there is no list
beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from inspect import isclass

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request

from kledger.contract.errors import InvalidPayload
from producers.http.meant import other_method
from producers.requests.elsewhere import here

_CHANGING = ("POST", "PUT", "PATCH", "DELETE")
_SHOWN = 10
"""Unknown names that an error tells of."""


async def refuse_unknown(request: Request) -> None:
    """Refuse a request that names a parameter its route does not have, or says something in a body to a route that
    takes none. Raises InvalidPayload, BadJson, PayloadTooLarge."""
    route = request.scope["route"]
    if request.scope["query_string"]:
        refuse_others(request, known_of(route))
    if route.body_field is None and request.method in _CHANGING and await request.body():
        _refuse_said(request, await request.json(), known_of(route))


def _refuse_said(request: Request, document: object, known: Collection[str]) -> None:
    if document in ({}, None):  # as many clients send where there is nothing to say
        return
    said = list(document)[:_SHOWN] if isinstance(document, dict) else []
    asked = f"{request.method} {request.scope['path'][:200]}"
    parameters = [name for name in said if name in known]
    instead = f"give {' and '.join(parameters)} as a parameter of the address" if parameters else "leave it out"
    raise InvalidPayload(
        f"{asked} takes no body, and nothing in one would be kept: {instead}",
        errors=[{"field": name[:100], "reason": "is in a body, which is not read here"} for name in said],
    )


def refuse_others(request: Request, known: Collection[str]) -> None:
    """Refuse a request that names any parameter but these, or one of these twice: one value of it would be read.

    Raises InvalidPayload.
    """
    unknown = [name for name in request.query_params if name not in known]
    if not unknown:
        if len(stated := request.query_params.multi_items()) > len(request.query_params):
            _refuse_twice([name for name, _ in stated])
        return
    named = ", ".join(_named(name, known) for name in unknown[:_SHOWN])
    asked = f"{request.method} {request.scope['path'][:200]}"
    have = f"it has {', '.join(sorted(known))}" if known else "it has none"
    other = other_method(request)  # the route then takes the path for an id
    mend = f"or is {other} meant?" if other else "correct the name or leave it out"
    raise InvalidPayload(
        f"{asked} has no parameter {named}: {have}; {mend}",
        errors=[{"field": name[:100], "reason": "is not a parameter here"} for name in unknown[:_SHOWN]],
    )


def _named(name: str, known: Collection[str]) -> str:
    called = here(name, known)
    return f"{name[:100]!r} (here it is {called})" if called else repr(name[:100])


def _refuse_twice(stated: list[str]) -> None:
    twice = [name for name in dict.fromkeys(stated) if stated.count(name) > 1]
    named = ", ".join(repr(name) for name in twice)
    raise InvalidPayload(
        f"{named} is stated more than once: state it once, with commas between where it takes several",
        errors=[{"field": name, "reason": "is stated more than once"} for name in twice],
    )


def known_of(route: APIRoute) -> frozenset[str]:
    """The query parameters of a route."""
    return frozenset(_names(route.dependant))


def _names(dependant: Dependant) -> Iterator[str]:
    for parameter in dependant.query_params:
        form = parameter.field_info.annotation
        if isclass(form) and issubclass(form, BaseModel):
            yield from (field.alias or name for name, field in form.model_fields.items())
        else:
            yield parameter.alias
    for part in dependant.dependencies:
        yield from _names(part)
