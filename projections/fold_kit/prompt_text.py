"""Escaping of user text in a prompt, so that it cannot pass for a part of the prompt itself."""

from __future__ import annotations


def harmless(text: str) -> str:
    """The text with its comment marks escaped: it can neither open nor close a marked section."""
    return text.replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def indented(text: str, by: str) -> str:
    """The text with every line but the first indented, so that it stays inside its list entry."""
    return f"\n{by}".join(text.strip().splitlines())


def shortened(text: str, most: int) -> str:
    """The text, cut at `most` characters with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
