"""What was said later about one thing stands before what was said earlier, where it answers as well.

The deploy port is 8080; the deploy port is 9090 now. Both cover the question, and the shorter one, which is the older,
had the higher relevance. Nothing is left out: whether the earlier one still holds is for its reader, who is told which
one it is. Only memories of one owner are compared, and only what nobody has touched since the later one was said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from ledger.event import JsonObject
from projections.english import BASES, stem
from projections.similar.first_person import speaks_of_itself
from projections.vectors.tokens import CJK, STOP_CHARACTERS, STOP_WORDS, normalise
from projections.views.knowledge.layers import PROFILE_TYPE, layer_of

LAYERS = frozenset(("semantic", "short", "shared"))
"""Facts and preferences, which may be said anew, as profiles may; what happened stays, and steps are another matter."""
MOST = 10
"""The best results, among which is looked."""
AS_WELL, CHANGES = 0.9, 0.5
"""The least match of the later one, of that of the earlier: where it says nothing of a change, and where it does."""
ALIKE = 0.5
"""Of the words of the shorter one, those that both have."""
ONE_VALUE = 0.6
"""Of the words of the longer one, those that both have, where the later one says nothing of a change: they differ in a
value. Mei drinks oolong in the morning and rooibos in the evening."""
LESS_SURE = 0.2
"""A later one that is less certain by so much renews nothing, as among what a project shares."""
_READ = 300
"""Characters of a statement that are compared; a longer one says more than one thing."""
_WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
NEGATED = re.compile(r"\b(?:not|never|no|none|nothing|cannot)\b|n['\u2019]t\b|[不没无未沒無]", re.IGNORECASE)
_NOT_WORDS = frozenset("不没无未") | {"never", "none", "noth", "cannot"}
_CLAUSE = re.compile("[,;:.!?，。；：、！？]")
_DAY = (
    r"(?:\d|the|this|last|next|today|tomorrow|yesterday|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january"
    r"|february|march|april|may|june|july|august|september|october|november|december)"
)
_ENDS = r"(?=[，。；、！？,.;!?\s]|$)"
CHANGE = re.compile(
    r"\b(?:now|no longer|no more|any ?more|any longer|moved|changed|switched|replaced|renamed|instead|since then"
    r"|from now on|these days|after all|postponed|brought forward|has left|used to|updated"
    # what somebody does no more, and what holds no more
    r"|stopped(?= \w+ing\b)|quit|gave up|given up|cancell?ed|called off|retired|resigned"
    # what is more or less than it was, or another one
    r"|upgraded|downgraded|raised|lowered|increased|decreased|reduced|extended|shortened|rescheduled|delayed|reset"
    r"|migrated|grew|grown|shrank|became|(?:went|gone) (?:up|down)|(?:rose|risen|fell|fallen|dropped) (?:to|from|by)"
    # since when it holds
    rf"|(?:since|starting|effective|as of) (?:on |from )?{_DAY}\b|from (?:on )?{_DAY}\b[^.,;]{{0,12}} on)\b"
    r"|现在|改|不再|换|搬|推迟|提前|离开|如今|取消|更新|调整|以后"
    rf"|(?<!差)不[^，。；、！？,.;!?\s了]{{1,8}}了{_ENDS}|没有[^，。；、！？,.;!?\s了]{{1,8}}了{_ENDS}"
    r"|停用|停止|暂停|停掉|戒(?!指)|离职|辞职|退休|卸任|调走"
    r"|(?:涨|降|升|减|增|延|缩|扩|移|迁|调|转)[^，。；、！？,.;!?\s]{0,3}[到为至成]|变成|变为|成了|重置|涨价|降价|升级|延期|延长|缩短"
    r"|从(?:今|明|昨|下|本)[天日年后晚起周月季学个]|从[^，。；、！？,.;!?\s]{1,8}起"
)


def later_first(results: Sequence[JsonObject], upheld: Mapping[str, str] = MappingProxyType({})) -> list[JsonObject]:
    """The results, each earlier statement behind the later one about the same; it names that in `later`.

    `upheld` says of items when they were last stated or supported (RFC 3339); of others nothing has become since they
    were saved.
    """
    order = list(results)
    facts = [item for item in order[:MOST] if len(item["content"]) <= _READ and _is_said_anew(item)]
    for earlier in facts:
        for later in facts:
            at, place = _place(order, later), _place(order, earlier)
            if "later" not in order[place] and _renews(later, earlier, upheld):
                order[place] = {**earlier, "later": later["id"]}
                if place < at:
                    order.insert(place, order.pop(at))
                break
    return order


def _is_said_anew(item: JsonObject) -> bool:
    """Whether an item is a fact or a preference: what is found of somebody is a profile, and no memory."""
    layer = _layer(item)
    return layer in LAYERS or (layer == "plain" and PROFILE_TYPE in item.get("types", ()))


def _place(order: Sequence[JsonObject], item: JsonObject) -> int:
    # the id of a message of a session may be that of an item
    return next(at for at, each in enumerate(order) if each["id"] == item["id"] and _layer(each) == _layer(item))


def _layer(item: JsonObject) -> str:
    return str(item.get("layer") or layer_of(item))


def _match(item: JsonObject) -> float:
    """How well a result answers; where nothing was asked, as well as any other."""
    return float(item.get("match", 1.0))


def _renews(later: JsonObject, earlier: JsonObject, upheld: Mapping[str, str]) -> bool:
    """Whether a result was said after another one, by the same owner and about the same, and answers as well."""
    if later["owner"] != earlier["owner"] or _match(later) < CHANGES * _match(earlier):
        return False
    if later["eval"]["confidence"] <= earlier["eval"]["confidence"] - LESS_SURE:
        return False
    mine, others = _said(later["content"]), _said(earlier["content"])
    if not others.about or others.about not in (mine.words if others.about in others.words else mine.plain):
        return False
    if others.of_itself and not mine.of_itself and mine.names_another(others):
        return False
    lengths, both = sorted((len(mine.words), len(others.words))), len(mine.words & others.words)
    if both < ALIKE * lengths[0]:
        return False
    another_value = _match(later) >= AS_WELL * _match(earlier) and both >= ONE_VALUE * lengths[1]
    if not another_value and not CHANGE.search(mine.plain) and not mine.denies(others):
        return False
    last = upheld.get(earlier["id"], earlier["created_at"])
    return datetime.fromisoformat(later["created_at"]) > datetime.fromisoformat(last)


class Said(NamedTuple):
    """A statement: the stems of its words, in Chinese its characters, and the first of them, or the first two
    characters, which is what or whom it is about."""

    plain: str
    words: frozenset[str]
    about: str
    of_itself: bool
    """Whether it says *I* or 我, which is no word of these."""
    negated: bool

    def denies(self, earlier: Said) -> bool:
        """Whether it says all that an earlier one says, and one of the two says *not*."""
        return self.negated != earlier.negated and earlier.words - _NOT_WORDS <= self.words

    def names_another(self, earlier: Said) -> bool:
        """Whether it names something before what an earlier statement is about that is no word of that one or of a
        change: of somebody who said *I* it is then not said."""
        about = earlier.about
        at = next((word.start() for word in _WORD.finditer(self.plain) if _stem(word[0]) == about), None)
        before = self.plain.partition(about)[0] if at is None else self.plain[:at]
        before = _CLAUSE.split(before)[-1]
        return not _said(CHANGE.sub(" ", before)).words <= earlier.words


@lru_cache(maxsize=4_096)
def _said(content: str) -> Said:
    plain = normalise(content)
    said = (word for word in _WORD.findall(plain) if word not in STOP_WORDS and word not in STOP_CHARACTERS)
    words = list(map(_stem, said))
    chinese = [word for word in words[:2] if len(word) == 1 and not word.isascii()]
    about = "".join(chinese if len(chinese) == 2 else words[:1])
    return Said(plain, frozenset(words), about, speaks_of_itself(content), NEGATED.search(content) is not None)


def _stem(word: str) -> str:
    return stem(BASES.get(word, word))
