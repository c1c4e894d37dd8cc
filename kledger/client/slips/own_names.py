"""What does not fit, by the caller's own name for it: a request may call it otherwise than a function does."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from kledger.contract.errors import LedgerError

QUERY = {"q": "query"}
"""What an argument is called in an address."""
_ARGUMENTS = {
    **QUERY,
    "update_score": "score",
    "evolve_feedback": "feedback",
    "evolve_model": "model",
    "evolve_dry_run": "dry_run",
}
_CASES = ("add_helpful_case.", "add_harmful_case.")


def argument_of(field: str, taken: Collection[str]) -> str:
    """The argument that a field of a request comes from, of those that a function takes; else the field."""
    case = next((field.removeprefix(each) for each in _CASES if field.startswith(each)), "")
    if case.partition(".")[0] in taken:
        return case
    head, dot, rest = field.partition(".")
    named = _ARGUMENTS.get(head, "")
    return f"{named}{dot}{rest}" if head not in taken and named in taken else field


def in_names(error: LedgerError, taken: Collection[str]) -> None:
    """Have an error name the arguments that a function takes in place of the fields that its request has."""
    message = retold(error, lambda field: argument_of(field, taken))
    for each in _faults(error):
        each["field"] = argument_of(each["field"], taken)
    error.message, error.args = message, (message,)


def retold(error: LedgerError, named: Callable[[str], str]) -> str:
    """The message of an error with other names for the fields that do not fit."""
    message = error.message
    for each in _faults(error):
        said, told = (f"{name} {each.get('reason')}" for name in (each["field"], named(each["field"])))
        if (found := re.search(rf"(?<![\w.]){re.escape(said)}", message)) is not None:
            message = message[: found.start()] + told + message[found.end() :]
        else:
            message = _begun_with(each["field"], message, named)
    return message


def _begun_with(field: str, message: str, named: Callable[[str], str]) -> str:
    """A message that says of a field what it says in words of its own: `as_of 99 is beyond the head of the log`."""
    if (rest := message.removeprefix(f"{field} ")) == message:
        return message
    return f"{named(field)} {rest}".replace(f"leave {field} out", f"leave {named(field)} out")


def _faults(error: LedgerError) -> list[dict[str, str]]:
    faults = error.details.get("errors")
    stated = faults if isinstance(faults, list) else []
    return [each for each in stated if isinstance(each, dict) and isinstance(each.get("field"), str) and each["field"]]
