"""Letters that a reader does not see and a model reads: they have no place in a prompt that tells what others stated.

A text may hide words in them (the tags of Unicode spell ASCII, selectors of variants any bytes), steer a terminal, or
show its letters in another order than it has them. Joiners stay, which scripts and emoji need.
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


def seen(text: str) -> str:
    """The text without them, with its tabs and line ends."""
    return text.translate(UNSEEN)
