"""Steps of a procedure without the numbers that people write before them, where their order is told by other means."""

from __future__ import annotations

import re

_COUNT = "[一二两三四五六七八九十]{1,3}"
# What begins with a number that is no numbering stays: 2.5 seconds, 10:30, 3 times; 一、 numbers and 一次 does not.
_NUMBERED = re.compile(
    rf"\s*(?:[(（](?:\d{{1,3}}|{_COUNT})[)）]|\d{{1,3}}(?:[.．:：](?!\d)|[)）、])|{_COUNT}、|[①-⑳]"
    rf"|第\s*(?:\d{{1,3}}|{_COUNT})\s*步\s*[:：、，,.]|[Ss]tep\s+\d{{1,3}}\s*[:.])\s*(?=\S)"
)


def without_number(step: str) -> str:
    """A step without the number that it begins with, unless it says nothing else."""
    number = _NUMBERED.match(step)
    return step if number is None else step[number.end() :]
