"""Checks of arguments before anything is sent: a text for a list, a text for an object, a wrong word are refused.

The hints of an endpoint say what each argument takes. `"tool"` is a sequence of letters to Python: where a list is
meant it would be kept as `["t", "o", "o", "l"]`, in a log that forgets nothing.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from kledger.client.slips.other_names import told_otherwise
from kledger.contract.errors import InvalidPayload

P = ParamSpec("P")
R = TypeVar("R")
W = TypeVar("W")
_LISTS = (list, Sequence, Iterable)
_OBJECTS = (dict, Mapping)


def refusing_slips(
    function: Callable[Concatenate[W, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[W, P], Coroutine[Any, Any, R]]:
    """The same function, which refuses such an argument with InvalidPayload."""

    @functools.cache
    def rules() -> tuple[inspect.Signature, dict[str, Callable[[str, Any], None]]]:
        named = ((name, _rule(hint)) for name, hint in hints_of_arguments(function).items())
        return inspect.signature(function), {name: rule for name, rule in named if rule is not None}

    @functools.wraps(function)
    async def checked(wire: W, /, *args: P.args, **kwargs: P.kwargs) -> R:
        signature, checks = rules()
        try:
            given = signature.bind(wire, *args, **kwargs).arguments
        except TypeError as error:
            raise told_otherwise(error, function.__name__, tuple(signature.parameters)[1:]) from None
        for name, value in given.items():
            if value is not None and name in checks:
                checks[name](name, value)
        try:
            return await function(wire, *args, **kwargs)
        except UnicodeEncodeError as error:  # an address, a header or a form of it, where a body says it itself
            raise InvalidPayload(
                f"{error.object[:100]!r} holds a lone surrogate, which is not Unicode text: half a character, perhaps"
            ) from error

    return checked


def hints_of_arguments(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of an endpoint's arguments that can be told without the module of its answer, which may not be loaded.

    The others are functions that take an answer, and any function is let through.
    """
    hints: dict[str, Any] = {}
    for name, hint in function.__annotations__.items():
        if name != "return":
            with contextlib.suppress(NameError):
                stated = SimpleNamespace(__annotations__={name: hint})
                hints |= get_type_hints(stated, vars(sys.modules[function.__module__]))
    return hints


def require_list(name: str, value: Any) -> None:
    """Refuse a text, or an object, where a list is meant. Raises InvalidPayload."""
    if isinstance(value, str | bytes):
        raise _refused(name, f"is a text, and a list is meant: write [{str(value)[:100]!r}]")
    if isinstance(value, Mapping):
        raise _refused(name, "is an object, and a list is meant: write […]")


def require_one_of(words: Sequence[str], name: str, value: Any) -> None:
    """Refuse what is none of these words. Raises InvalidPayload."""
    if value not in words:
        raise _refused(name, f"is {str(value)[:100]!r}: write {' or '.join(words)}")


def _require_objects(name: str, value: Any) -> None:
    """Refuse what is no list of objects: a text, one object alone, texts in a list."""
    if isinstance(value, str | bytes):
        raise _refused(name, "is a text, and a list of objects is meant: write [{…}]")
    if isinstance(value, Mapping):
        raise _refused(name, "is an object, and a list of them is meant: write [{…}]")
    if isinstance(value, Sequence):
        for number, each in enumerate(value):
            if not isinstance(each, Mapping):
                raise _refused(f"{name}[{number}]", f"is {str(each)[:100]!r}, and an object is meant: write {{…}}")


def _require_object(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise _refused(name, f"is {str(value)[:100]!r}, and an object is meant: write {{…}}")


def _rule(hint: Any) -> Callable[[str, Any], None] | None:
    """What an argument of this type has to be; None where the node says it."""
    stated = [part for part in get_args(hint) if part is not NoneType] if _is_union(hint) else [hint]
    if len(stated) != 1:
        return None
    origin = get_origin(stated[0]) or stated[0]
    if origin is Literal:
        return functools.partial(require_one_of, get_args(stated[0]))
    if origin in _LISTS:
        parts = {get_origin(each) or each for each in get_args(stated[0])}
        # Of many that are read as they come, the node judges each on its own.
        return _require_objects if origin is not Iterable and parts & set(_OBJECTS) else require_list
    return _require_object if origin in _OBJECTS else None


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _refused(name: str, reason: str) -> InvalidPayload:
    return InvalidPayload(f"{name} {reason}", errors=[{"field": name, "reason": reason}])
