"""How does the example of a command stand in its help? On lines of its own, which can be pasted as they are shown."""

from __future__ import annotations

import inspect
import re

HEAD = "\b\nExample:"
"""Before the example; typer keeps the line breaks of a paragraph that begins with this mark."""
_MARK = "Example: "
_WIDTH = 74
"""Columns: what is longer a terminal of 80 would break in the middle, and a paste would run the first part alone."""
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")


def with_example(doc: str | None) -> str:
    """A docstring as help: what follows `Example:` is laid out, a long command broken as a shell takes it."""
    text, mark, example = inspect.cleandoc(doc or "").partition(_MARK)
    if not mark:
        return text
    return f"{text}{HEAD}\n" + "\n".join(broken(example))


def broken(command: str) -> list[str]:
    """A command on lines that end with a backslash but for the last, an option together with its value."""
    parts: list[str] = []
    for word in _WORD.findall(command):
        if parts and parts[-1].startswith("-") and " " not in parts[-1] and not word.startswith("-"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    lines = [f"  {parts[0]}"]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 > _WIDTH:
            lines[-1] += " \\"
            lines.append(f"      {part}")
        else:
            lines[-1] += f" {part}"
    return lines
