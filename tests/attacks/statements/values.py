"""Which values does an adversary try? Texts of every plane, marks of sealed values, numbers and moments at their edges.

Everything follows from one `random.Random`, so that a seed gives the same statements again.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

LARGEST = 1_000_000
"""Bytes of the largest text: an event may have about a mebibyte."""

_ODD = (
    "\x00\x01\x1f\x7f\x85\u00a0\u0301\u0378\u200b\u200d\u2028\u202e\ufdfa\ufeff\ufffd\uffff"
    "\U0001f468\U000e0001\U0010ffff'\"\\/%*>."
)
_WORDS = ("selenium", "login", "cookie", "登录", "数据", "user", "agent", "deploy", "prefer", "tool", "plan", "偏好")
_NAMES = ("user:ada", "agent:scribe", "agent:mallory", "team:platform", "org:default", "public", "user:local", "x:y")


_NESTED = re.compile(r'"@(object|list|mark):([0-9]+)@"')
_BRACKETS = {
    "object": ('{"a":', "1", "}"),
    "list": ("[", "1", "]"),
    "mark": ('{"a":', '"sealed:v1:user:eve:AAAA"', "}"),
}


def spelt(document: Any, *, plain: bool) -> str:
    """As JSON, or nearly: what Python writes may be no JSON, as NaN and a lone surrogate are none."""
    text = json.dumps(document, ensure_ascii=plain, separators=(",", ":"))

    def nest(found: re.Match[str]) -> str:
        before, inner, after = _BRACKETS[found[1]]
        return before * int(found[2]) + inner + after * int(found[2])

    return _NESTED.sub(nest, text)


class Values:
    """Values by chance."""

    def __init__(self, chance: random.Random, largest: int = LARGEST) -> None:
        self.chance = chance
        self._largest = largest

    def size(self) -> int:
        """Mostly small, seldom as large as may be."""
        most = self.chance.choices((12, 300, 5_000, self._largest), (80, 15, 4, 1))[0]
        return self.chance.randrange(most + 1)

    def text(self) -> str:
        """A text, perhaps odd, perhaps long, perhaps one that looks sealed."""
        return self.chance.choice((self.words, self.words, self._planes, self._long, self.mark, self._scope))()

    def words(self) -> str:
        """A few of the words that reads look for."""
        return " ".join(self.chance.choices(_WORDS, k=self.chance.randrange(1, 12)))

    def _planes(self) -> str:
        ones: tuple[Callable[[], str], ...] = (
            lambda: self.chance.choice(_ODD),
            lambda: chr(self.chance.randrange(0x110000)),
        )
        one = self.chance.choice(ones)
        return "".join(one() for _ in range(min(self.size(), 2_000)))

    def _long(self) -> str:
        each = ("a", "a ", "王", "\ufdfa", "\u0301\u0323", "😀", "'", '"', "\\", "\x01", ".", "a-")
        return self.chance.choice(each) * (self.size() // 2)

    def mark(self) -> str:
        """What looks like a sealed value, whole or within another text."""
        kind = self.chance.choice(
            ("user:", "resource:", "agent:", "", "user:" + "u" * 300, "user:\n", "user:ada", "user:eve")
        )
        name = kind + self.chance.choice(("", "ada", "a" * 250, "." * self.size(), "a:b", str(self.chance.random())))
        whole = (
            f"sealed:v1:{name}:{self.chance.choice(('', 'AAAA', 'A' * self.size(), '===', 'sealed:v1:user:ada:AAAA'))}"
        )
        return self.chance.choice((whole, whole, f'x "{whole}" y', f'"{whole}', "sealed:v1:", whole.upper()))

    def _scope(self) -> str:
        return self.chance.choice(_NAMES)

    def number(self) -> Any:
        """A number at the edge of something."""
        edges = (
            0,
            -0.0,
            1,
            -1,
            5e-324,
            1e-310,
            0.1,
            1e308,
            float("inf"),
            float("-inf"),
            float("nan"),
            2**31,
            2**53 + 1,
        )
        more = (2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, 1_000_000_000, 0.9999999999999999, True)
        return self.chance.choice((*edges, *more))

    def moment(self) -> str:
        """A moment, which may be none."""
        return self.chance.choice(
            (
                *("2026-03-05T12:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "infinity", "now"),
                *(
                    "-infinity",
                    "0000-01-01T00:00:00Z",
                    "2026-01-01T00:00:00+23:59",
                    "2026-01-01T00:00:00+24:00",
                    "1234",
                ),
                *("2026-06-30T23:59:60Z", "2026-01-01", "2026-01-01T00:00:00", "10000-01-01T00:00:00Z", ""),
            )
        )

    def identifier(self) -> str:
        """An id: of something that is there, of nothing, or of no legal form."""
        known = ("k1", "k2", "k3", "adas-item", "goal-1", "code/selenium/login", "p1")
        odd = ("", " ", "a" * 200, "a" * 201, "王" * 200, "a/b", "../x", "a\nb", "=", "*", ">", "a.b", "%2F", ".")
        return self.chance.choice((*known, *known, *odd, self.text()[:400]))

    def entity(self) -> str:
        """A scope or an owner."""
        return self.chance.choice(
            (*_NAMES, *_NAMES, "user:" + "a" * 195, "user:" + "a" * 196, "user:", ":", self.text()[:300])
        )

    def listed(self) -> list[Any]:
        """A list, seldom a very long one."""
        each = self.chance.choice((self.text, self.entity, self.number, self.identifier, self.flat))
        if self.chance.random() < 0.05:
            one = each()
            return [one] * self.chance.randrange(self._largest // (len(repr(one)) + 4) + 2)
        return [each() for _ in range(self.chance.randrange(6))]

    def nested(self) -> Any:
        """Something nested, perhaps deeper than Python can write: `spelt` puts it there."""
        depth = self.chance.choice((1, 2, 3, 31, 32, 33, 64, 65, 200, 255, 900, 980, 20_000))
        return f"@{self.chance.choice(('object', 'list', 'mark'))}:{depth}@"

    def flat(self) -> Any:
        """An object of a few keys, or of very many."""
        if self.chance.random() < 0.03:
            key = self.chance.choice(("t{}", "sealed:v1:a{}:", "a" * 40 + "{}"))
            return {key.format(n): 1 for n in range(self.chance.randrange(self._largest // 100))}
        return {self.text()[:40]: self.any() for _ in range(self.chance.randrange(4))}

    def any(self) -> Any:
        """Any of these."""
        made: tuple[Callable[[], Any], ...] = (
            *(self.text, self.text, self.number, self.moment, self.identifier, self.entity, self.mark),
            *(lambda: None, lambda: False, lambda: [], lambda: {}),
        )
        return self.chance.choice(made)()

    def odd(self) -> Any:
        """Any value, nested ones among them."""
        return self.chance.choice((self.any, self.any, self.any, self.listed, self.nested, self.flat))()
