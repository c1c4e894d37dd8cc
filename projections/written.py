"""Dates, telephone numbers and codes, each as one word however it is written.

3 May is 2026-05-03 and 5月3日, +49 30 5557 812 is 030/5557812, and BR-009-V9 is BR009V9. All patterns read normalised
text, in lower case and simplified Chinese.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_NAMED = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may(?! (?:be|not|have|also|only)\b)|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_M, _D, _Y = r"(?:1[0-2]|0?[1-9])", r"(?:[12]\d|3[01]|0?[1-9])", r"\d{4}"
_TH = "(?:st|nd|rd|th)?"
_ENDS = r"(?![^\W_])"
_IN_ORDER = (
    *(rf"{_Y}{mark}{_M}{mark}{_D}(?!\d)" for mark in ("-", "/", r"\.")),  # 2026-05-03
    rf"(?:{_Y}年)?{_M}月{_D}(?!\d)[日号]?",  # 2026年5月3日
)
_DAY_FIRST = (
    rf"{_D}\.{_M}\.{_Y}(?!\d)",  # 3.5.2026
    rf"{_D}{_TH} (?:of )?{_NAMED}{_ENDS}(?:\.?,? {_Y}{_ENDS})?",  # 3rd of May, 2026
)
_MONTH_FIRST = rf"{_NAMED}\.? {_D}(?!:?\d){_TH}{_ENDS}(?:,? {_Y}{_ENDS})?"  # May 3rd, 2026
_ALONE = r"(?<![^\W_\u3400-\u9fff])(?<!\d[-./])"
DATE = rf"(?=[0-9jfmasond]){_ALONE}(?:{'|'.join((*_IN_ORDER, *_DAY_FIRST, _MONTH_FIRST))})"
"""A day of a month, perhaps with its year."""
_PARTS = re.compile("[a-z]+|[0-9]+")
_ENDINGS = frozenset(("st", "nd", "rd", "th", "of"))

_FEWEST_DIGITS, _MOST_DIGITS = 7, 15
GROUPED = (
    rf"(?=[0-9+(]){_ALONE}(?=\+?(?:[ ./()-]{{0,2}}\d){{{_FEWEST_DIGITS}}})"
    r"\+?\(?\d+\)?(?:[ ./()-]{1,2}\d+\)?)+(?![^\W_]|-[^\W_])"
)
"""Digits in groups, as those of a telephone number."""
CODE = (
    r"(?<![^\W\u3400-\u9fff])(?<!-)(?=[0-9-]*[a-z])(?=[a-z-]*\d)(?![a-z0-9-]*\d{4}-\d\d-\d\d)"
    r"[a-z0-9]+(?:-[a-z0-9]+){2,}(?![^\W\u3400-\u9fff]|-)"
)
"""Three or more parts with hyphens, of letters and digits: BR-009-V9."""

_DIGITS = re.compile(r"\d+")
_LINKED = re.compile(rf"^$|\d|{_ALONE}(?:{_NAMED}|of|be|not|have|also|only)").search
"""Whether a word beside digits may be a part of what they say, or decide it, as in `3 of may have`; or is none."""


class Date(NamedTuple):
    """A day of a month, and the year where it is said."""

    day: int
    month: int
    year: str | None


class Grouped(NamedTuple):
    """A number in groups: the groups, all as one number, and what is left without the first of them, as within a
    country. `is_one` where it is surely no list of numbers."""

    groups: tuple[str, ...]
    joined: str
    ends: tuple[str, ...]
    is_one: bool


def apart(plain: str) -> list[str]:
    """The pieces of a text between spaces, each of which can be read on its own; a date or a number is in one piece.

    No match of DATE, GROUPED or CODE goes beyond a piece, nor depends on what is outside of it.
    """
    words, pieces, done = plain.split(" "), list[str](), 0
    at = read = 0
    for digits in _DIGITS.finditer(plain):
        at += plain.count(" ", read, digits.start())  # which word they are in
        read = digits.end()
        if at < done:
            continue
        begin, end = at, at + 1
        while begin > done and _LINKED(words[begin - 1]):
            begin -= 1
        while end < len(words) and _LINKED(words[end]):
            end += 1
        pieces += (*words[done:begin], " ".join(words[begin:end]))
        done = end
    return pieces + words[done:]


def date_of(run: str) -> Date:
    """The date that a run which DATE matches says."""
    parts = [part for part in _PARTS.findall(run) if part not in _ENDINGS]
    name = next((part for part in parts if part.isalpha()), None)
    numbers = [part for part in parts if part.isdecimal()]
    if name is not None:
        month = next(at for at, each in enumerate(MONTHS, 1) if each.startswith(name[:3]))
        return Date(int(numbers[0]), month, numbers[1] if len(numbers) > 1 else None)
    if len(numbers) < 3:
        return Date(int(numbers[1]), int(numbers[0]), None)
    year, month, day = numbers if len(numbers[0]) == 4 else reversed(numbers)
    return Date(int(day), int(month), year)


def grouped(run: str) -> Grouped | None:
    """The number that a run which GROUPED matches says; None where it has too many digits to be one."""
    groups = tuple(re.findall(r"\d+", run.replace("(0)", " ")))  # +49 (0)30: dialled within the country alone
    rests = ["".join(groups[at:]) for at in range(len(groups))] if sum(map(len, groups)) <= _MOST_DIGITS else []
    if not rests:
        return None
    ends = tuple(rest for rest in rests[1:] if len(rest) >= _FEWEST_DIGITS)
    is_one = run[0] in "+(" or (run[0] == "0" and len(groups[0]) > 1)
    return Grouped(groups, rests[0], ends, is_one)
