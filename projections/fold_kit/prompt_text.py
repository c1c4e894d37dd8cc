"""How does somebody's text stand in a prompt, so that it can be read and cannot pass for the prompt itself?"""

from __future__ import annotations


def harmless(text: str) -> str:
    """The text with no comment mark that begins or ends: it can neither open nor close a marked section."""
    return text.replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def indented(text: str, by: str) -> str:
    """The text with every line but the first moved in, so that it stays inside its list entry."""
    return f"\n{by}".join(text.strip().splitlines())


def shortened(text: str, most: int) -> str:
    """The text, cut at `most` characters with a sign that it was."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
