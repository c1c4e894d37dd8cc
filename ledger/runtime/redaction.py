"""Secret redaction for log lines and errors: tokens, passwords and keys are replaced by a mark.

Secrets are recognised by form (our tokens, Bearer values, passwords in URLs, attach statements, keys in OpenAI's
format), by the name of the field, and by value: the secrets in the node's own environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

MARK = "[secret]"

TOKEN = re.compile(r"kledger_[A-Za-z0-9_-]{43}")
"""A token of a node; see producers/access/tokens.py."""
# No \b: a Chinese character may stand beside a word, 口令password=…
_BEGINS = "(?<![0-9A-Za-z_])"
# The text before a secret stays, so that a reader sees what was redacted.
_FORMS = (
    (TOKEN, MARK),
    (re.compile(rf"(?i)({_BEGINS}(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{{8,}}"), rf"\1{MARK}"),
    (re.compile(rf"({_BEGINS}[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s/@]+(@)"), rf"\1{MARK}\2"),
    (re.compile(rf"(?i)({_BEGINS}token\s*(?::=|=|\s)\s*)'(?:[^']|'')*'"), rf"\1'{MARK}'"),
    (re.compile(rf"(?i)([\"']?{_BEGINS}(?:password|passwd|secret|api[-_]?key|authorization)[\"']?\s*[:=：＝]\s*[\"']?)"
                "[^\\s\"',;}]+"), rf"\1{MARK}"),
    (re.compile(rf"{_BEGINS}sk-[A-Za-z0-9_-]{{16,}}"), MARK),
)  # fmt: skip
_SECRET_NAMES = re.compile(
    r"(?i)(password|passwd|secret|secure[-_]body|token|(api|private|master)[-_]?key|^master$|authorization|credential"
    r"|cookie)"
)
_OF_ENVIRONMENT = re.compile(r"(?i)(PASSWORD|SECRET|TOKEN|KEY|CREDENTIAL|OTLP_HEADERS)")
_SHORTEST = 8
"""A shorter value may be an ordinary word."""


def secrets_of_environment(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Values of the variables with secret-sounding names, longest first."""
    values = {
        value
        for name, value in environment.items()
        if _OF_ENVIRONMENT.search(name) and len(value) >= _SHORTEST and not name.endswith(("_FILE", "_PATH"))
    }
    return tuple(sorted(values, key=len, reverse=True))


class Redactor:
    """Removes secrets from log lines and texts."""

    def __init__(self, secrets: tuple[str, ...] | None = None) -> None:
        self._secrets = secrets_of_environment() if secrets is None else secrets

    def text(self, value: str) -> str:
        """`value` without secrets."""
        for secret in self._secrets:
            value = value.replace(secret, MARK)
        for form, mark in _FORMS:
            value = form.sub(mark, value)
        return value

    def value(self, value: Any) -> Any:
        """Any value of a log line without secrets; an object that is not a plain value becomes text."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.field(str(name), part) for name, part in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(part) for part in value]
        return self.text(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))

    def field(self, name: str, value: Any) -> Any:
        """A named value: redacted if its name is that of a secret, unless it is a number or a flag (`tokens_used`)."""
        plain = value is None or isinstance(value, bool | int | float)
        return MARK if not plain and _SECRET_NAMES.search(name) else self.value(value)

    def __call__(self, _logger: Any, _method: str, line: Any) -> Any:
        """A processor of structlog: runs after the one that formats exceptions, before the renderer."""
        return {name: self.field(name, value) for name, value in line.items()}
