"""Checks of arguments before anything is sent: a text for a list, a number for a text, a wrong word are refused.

The hints of an endpoint say what each argument takes. `"tool"` is a sequence of letters to Python: where a list is
meant it would be kept as `["t", "o", "o", "l"]`, in a log that forgets nothing.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePath
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from kledger.client.slips.other_names import named_here, told_otherwise
from kledger.client.slips.own_advice import in_python
from kledger.client.slips.own_names import in_names
from kledger.contract.errors import InvalidPayload, LedgerError

P = ParamSpec("P")
R = TypeVar("R")
W = TypeVar("W")
_OBJECTS = (dict, Mapping)
_OF_OBJECTS = ("messages", "conversation")
"""What takes a list of objects, beside an argument that takes a text."""


def refusing_slips(
    function: Callable[Concatenate[W, P], Coroutine[Any, Any, R]], called: Callable[[], str]
) -> Callable[Concatenate[W, P], Coroutine[Any, Any, R]]:
    """The function, refusing an argument of another type with InvalidPayload; `called` is its name to who calls it."""

    @functools.cache
    def rules() -> tuple[inspect.Signature, dict[str, Callable[[str, Any], None]], frozenset[str]]:
        signature, hints = inspect.signature(function), hints_of_arguments(function)
        instead = next((name for name in _OF_OBJECTS if name in hints), "")
        named = ((name, _rule(hint, instead)) for name, hint in hints.items())
        # None where there is a default is what is not stated, as it is of an argument that may be None.
        needed = {name for name in hints if signature.parameters[name].default is inspect.Parameter.empty}
        optional = frozenset(name for name, hint in hints.items() if NoneType in get_args(hint) or name not in needed)
        return signature, {name: rule for name, rule in named if rule is not None}, optional

    @functools.wraps(function)
    async def checked(wire: W, /, *args: P.args, **kwargs: P.kwargs) -> R:
        signature, checks, optional = rules()
        try:
            given = signature.bind(wire, *args, **kwargs).arguments
        except TypeError as error:
            taken = tuple(signature.parameters)[1:]
            raise told_otherwise(error, called(), taken, kwargs, named_here(signature)) from None
        for name, value in given.items():
            if name in checks and not (value is None and name in optional):
                checks[name](name, value)
        try:
            return await function(wire, *args, **kwargs)
        except UnicodeEncodeError as error:  # an address, a header or a form of it, where a body says it itself
            raise InvalidPayload(
                f"{error.object[:100]!r} holds a lone surrogate, which is not Unicode text: half a character, perhaps"
            ) from error
        except LedgerError as error:
            in_names(error, signature.parameters)
            error.message = in_python(error.message)
            error.args = (error.message,)
            raise

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


def require_text(name: str, value: Any, instead: str = "") -> None:
    """Refuse what is no text; `instead` is the argument that takes a list of objects. Raises InvalidPayload."""
    if isinstance(value, str):
        return
    hint = ""
    if isinstance(value, int | float):
        hint = f": write {str(value)[:100]!r}"
    elif instead and isinstance(value, list | tuple):
        hint = f": write {instead}=[…]"
    raise _refused(name, f"is {said_of(value)}, and a text is meant{hint}")


def require_number(name: str, value: Any) -> None:
    """Refuse what is no whole number. Raises InvalidPayload."""
    _require_any((int,), name, value)


def require_seconds(name: str, value: Any) -> None:
    """Refuse what is no number. Raises InvalidPayload."""
    _require_any((float,), name, value)


def require_list(name: str, value: Any) -> None:
    """Refuse what is no list of texts, such as a text. Raises InvalidPayload."""
    _require_list((list, tuple, Sequence), name, value)
    for number, each in enumerate(value):
        require_text(f"{name}[{number}]", each)


def require_one_of(words: Sequence[str], name: str, value: Any) -> None:
    """Refuse what is none of these words. Raises InvalidPayload."""
    if not isinstance(value, str) or value not in words:
        raise _refused(name, f"is {said_of(value)}: write {' or '.join(words)}")


def said_of(value: Any) -> str:
    """What was given, for a sentence: a text or a number itself, of all else what it is."""
    if isinstance(value, str):
        return repr(value[:100])
    if value is None or isinstance(value, int | float):
        return str(value)[:100]
    if isinstance(value, list | tuple | bytes):
        return "bytes" if isinstance(value, bytes) else "a list"
    kind = "object" if isinstance(value, Mapping) else type(value).__name__
    return f"{'an' if kind[0] in 'aeioAEIO' else 'a'} {kind}"


def _require_list(kinds: tuple[Any, ...], name: str, value: Any) -> None:
    if isinstance(value, str):
        raise _refused(name, f"is a text, and a list is meant: write [{value[:100]!r}]")
    if isinstance(value, bytes | Mapping) or not isinstance(value, kinds):
        written = f": write list({name})" if isinstance(value, Iterable) and not isinstance(value, bytes) else ""
        hint = ": write […]" if isinstance(value, Mapping) else written
        raise _refused(name, f"is {said_of(value)}, and a list is meant{hint}")


def _require_many(name: str, value: Any) -> None:
    """Refuse what cannot be read one by one; the node judges each on its own."""
    _require_list((Iterable,), name, value)


def _require_objects(name: str, value: Any) -> None:
    """Refuse what is no list of objects: a text, one object alone, texts in a list."""
    if isinstance(value, str | bytes):
        raise _refused(name, "is a text, and a list of objects is meant: write [{…}]")
    if isinstance(value, Mapping):
        raise _refused(name, "is an object, and a list of them is meant: write [{…}]")
    _require_list((list, tuple, Sequence), name, value)
    for number, each in enumerate(value):
        _require_object(f"{name}[{number}]", each)


def _require_object(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        word = value[0][:100] if isinstance(value, list | tuple) and value and isinstance(value[0], str) else ""
        written = f"{{{word!r}: '', …}}" if word else "{…}"
        raise _refused(name, f"is {said_of(value)}, and an object is meant: write {written}")


def _require_object_or_texts(name: str, value: Any) -> None:
    if isinstance(value, str | bytes) or not isinstance(value, Mapping | Sequence):
        raise _refused(name, f"is {said_of(value)}, and an object or a list is meant: write {{…}} or […]")
    if not isinstance(value, Mapping):
        require_list(name, value)


def _require_any(kinds: tuple[type, ...], name: str, value: Any) -> None:
    """Refuse what is of none of these kinds."""
    if any(_is_one(kind, value) for kind in kinds):
        return
    meant = [_WORDS[kind] for kind in kinds if kind in _WORDS]
    hint = f": write {value.strip()}" if isinstance(value, str) and _is_number_in(value, kinds) else ""
    raise _refused(name, f"is {said_of(value)}, and {' or '.join(meant)} is meant{hint}")


_WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a text", datetime: "a datetime"}
_WORDS |= {bytes: "bytes", PurePath: "a Path"}


def _is_one(kind: type, value: Any) -> bool:
    """Whether a value is of a kind; numbers of other libraries are numbers, and a truth is none."""
    if kind in (int, float):
        if isinstance(value, bool):
            return False
        if isinstance(value, float):  # 3.0 is a whole number to JSON
            return kind is float or value.is_integer()
        return hasattr(type(value), "__index__") or (kind is float and hasattr(type(value), "__float__"))
    return isinstance(value, kind)


def _is_number_in(text: str, kinds: tuple[type, ...]) -> bool:
    return int in kinds and len(text) < 20 and text.strip().isascii() and text.strip().isdecimal()


def _rule(hint: Any, instead: str) -> Callable[[str, Any], None] | None:
    """What an argument of this type has to be; None where any is let through."""
    stated = [part for part in get_args(hint) if part is not NoneType] if _is_union(hint) else [hint]
    kinds = tuple(PurePath if part is Path else part for part in stated)
    if kinds == (str,):
        return functools.partial(require_text, instead=instead)
    if set(kinds) <= set(_WORDS):
        return functools.partial(_require_any, kinds)
    origins = {get_origin(each) or each for each in stated}
    if len(origins) == 2 and origins & set(_OBJECTS) and origins & {list, Sequence}:
        return _require_object_or_texts
    if len(stated) != 1:
        return None
    (origin,) = origins
    if origin is Literal:
        return functools.partial(require_one_of, get_args(stated[0]))
    if origin is Iterable:
        return _require_many
    if origin in (list, Sequence):
        parts = {get_origin(each) or each for each in get_args(stated[0])}
        return _require_objects if parts & set(_OBJECTS) else require_list
    return _require_object if origin in _OBJECTS else None


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _refused(name: str, reason: str) -> InvalidPayload:
    return InvalidPayload(f"{name} {reason}", errors=[{"field": name, "reason": reason}])
