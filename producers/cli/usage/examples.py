"""Layout of the example in a command's help: on lines of its own, which can be pasted as shown."""

from __future__ import annotations

import inspect
import re

HEAD = "\b\nExample:"
"""Before the example; typer keeps the line breaks of a paragraph that begins with this mark."""
_MARK = "Example: "
_WIDTH = 74
"""Columns. A terminal of 80 would break a longer line, and a paste would run its first part alone."""
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")


def with_example(doc: str | None) -> str:
    """A docstring as help: the command after `Example:` gets its own lines, broken with backslashes."""
    text, mark, example = inspect.cleandoc(doc or "").partition(_MARK)
    if not mark:
        return text
    return f"{text}{HEAD}\n" + "\n".join(broken(example))


def broken(command: str) -> list[str]:
    """A command on lines joined by backslashes; an option stays with its value."""
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
