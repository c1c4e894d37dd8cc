"""What is called otherwise in other libraries: a name that a client does not have is answered with the one it has."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_METHODS = {
    "add": "remember, or save for knowledge about a task",
    "add_many": "save_many",
    "append": "save, or session(id).append for what is said",
    "backup": "kledger backup DIR, where the node runs",
    "close_session": "session(id).close",
    "delete": "retire, which restore takes back; kledger forget user:ID is for good",
    "delete_all": "bulk('retire', ids); kledger forget user:ID is for good",
    "export": "kledger export-tree",
    "forget": "retire, which takes one item out of recall; kledger forget user:ID is for good",
    "get_all": "list, a page, or iterate, all",
    "insert": "remember, or save for knowledge about a task",
    "query": "search, or sql",
    "read": "get",
    "remove": "retire, which restore takes back",
    "store": "remember, or save for knowledge about a task",
    "subscribe": "changes(after=position), asked again after its next",
    "update": "revise, or rate for a verdict",
    "upsert": "save with an id, which changes nothing where it says the same; revise",
}
_ARGUMENTS = {
    "user_id": "acting_as(user=…)",
    "agent_id": "acting_as(agent=…)",
    "run_id": "within(trace_id=…)",
    "session_id": "session=…, where a method takes it, or within(trace_id=…)",
    "metadata": "tags=…",
    "filters": "types, owner, layers, tags, since, until",
    "limit": "top_k=…",
    "k": "top_k=…",
}


def called_otherwise(client: object, name: str) -> NoReturn:
    """Raise AttributeError with the name that the method has here."""
    here = f": here it is {_METHODS[name]}" if name in _METHODS else ""
    said = f"{type(client).__name__!r} object has no attribute {name!r}{here}"
    raise AttributeError(said, name=name, obj=client)


def told_otherwise(error: TypeError, method: str, taken: tuple[str, ...]) -> TypeError:
    """The error about arguments that do not fit, with the method's name, what it takes, and what it is called here."""
    here = next((f"; here it is {word}" for name, word in _ARGUMENTS.items() if f"argument '{name}'" in str(error)), "")
    return TypeError(f"{method}() {error}{here}; it takes {', '.join(taken)}")


def telling_what_it_takes(method: Callable[P, R]) -> Callable[P, R]:
    """The same method; arguments that do not fit are answered as those of an endpoint are."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise told_otherwise(error, method.__name__, tuple(signature.parameters)[1:]) from None
        return method(*args, **kwargs)

    return checked
