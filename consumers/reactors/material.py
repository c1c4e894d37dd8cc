"""Words on their way to a model and back: as material between tags, and as one line of bounded length."""

from __future__ import annotations


def escaped(text: str) -> str:
    """A text that closes no tag of the prompt that it stands in."""
    return text.replace("<", "‹").replace(">", "›")


def one_line(text: str, most: int) -> str:
    """A model's words as one line of bounded length, without characters that no text can hold."""
    kept = "".join(char for char in text[: 2 * most] if char.isprintable() or char.isspace())
    return " ".join(kept.split())[:most]
