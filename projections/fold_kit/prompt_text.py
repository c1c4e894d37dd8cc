"""Escaping of user text in a prompt, so that it cannot pass for a part of the prompt itself, nor say what nobody sees.

A text may hide words in letters without a form (the tags of Unicode spell ASCII, selectors of variants any bytes),
steer a terminal, or show its letters in another order than it has them. Joiners stay, which scripts and emoji need.
"""

from __future__ import annotations

_NO_WIDTH = (
    0x61C,
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xE0000, 0xE0080),
    *range(0xE0100, 0xE01F0),
)
_CONTROLS = (*(code for code in range(0x20) if chr(code) not in "\t\n"), *range(0x7F, 0xA0))
UNSEEN: dict[int, str] = dict.fromkeys(_CONTROLS, " ") | dict.fromkeys(_NO_WIDTH, "")
"""What stands in the place of each: a space where a control may have been one."""


def harmless(text: str) -> str:
    """The text with its comment marks escaped, and without what a reader does not see and a model reads.

    It can neither open nor close a marked section. Tabs and line ends stay.
    """
    # Unseen letters first: between the characters of a mark they would hide it.
    return text.translate(UNSEEN).replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def indented(text: str, by: str) -> str:
    """The text with every line but the first indented, so that it stays inside its list entry."""
    return f"\n{by}".join(text.strip().splitlines())


def shortened(text: str, most: int) -> str:
    """The text, cut at `most` characters with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
