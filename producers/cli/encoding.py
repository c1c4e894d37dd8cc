"""Output that the terminal can show: in its encoding, and with escapes for what would steer it or reorder a line."""

from __future__ import annotations

import io
import json
import sys

# Escape sequences and other controls, which a terminal obeys; marks that show a line in another order than it has.
_STEERING = (
    *(code for code in range(0x20) if chr(code) not in "\t\n"),
    *range(0x7F, 0xA0),
    0x61C,
    *range(0x200E, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _STEERING}
_IN_JSON = {code: f"\\u{code:04x}" for code in _STEERING if code >= 0x7F}


def plain(value: object) -> str:
    """A value as text, with `\\x1b` and `\\u202e` for such characters, as a terminal without them shows any other.

    A list or an object is JSON, which who asks can read and paste, and not what Python writes for it.
    """
    if isinstance(value, dict | list | tuple):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return str(value).translate(_ESCAPES)


def plain_json(text: str) -> str:
    """A JSON text of the same document, which writes such characters as escapes."""
    return text if text.isascii() and "\x7f" not in text else text.translate(_IN_JSON)


def in_encoding(text: str, encoding: str | None) -> str:
    """A text in which characters that an encoding lacks are escapes (`\\u6d4b`); UTF-8 where none is named."""
    encoding = encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def degrade() -> None:
    """Write characters that the terminal's encoding lacks as escapes (`\\u6d4b`), in answers, errors and help.

    Otherwise an ASCII terminal, or a command line with bytes that are no text, would raise UnicodeEncodeError.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
