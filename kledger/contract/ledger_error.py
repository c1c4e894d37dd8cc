"""What every error of the product is: a message for people, a code for programs."""

from __future__ import annotations

import re

_NEXT_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class LedgerError(Exception):
    """Base of everything the product raises on purpose; `code` never changes once released.

    The code of an error is the name of its class in lower case (UnknownGoal: `unknown_goal`), unless it states another.
    The generated list of errors, which the tests compare, shows a code that a new name would change.
    """

    code = "ledger_error"

    def __init_subclass__(cls) -> None:
        if LedgerError in cls.__bases__ and "code" not in vars(cls):
            cls.code = _NEXT_WORD.sub("_", cls.__name__).lower()

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
