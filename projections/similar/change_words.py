"""Words that say that something is no longer as it was, or was wrong, that deny it, and that only believe it."""

from __future__ import annotations

import re

NEGATED = re.compile(r"\b(?:not|never|no|none|nothing|cannot)\b|n['\u2019]t\b|[不没无未沒無]", re.IGNORECASE)
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
    # what was wrong, and is said anew
    r"|correction|corrected|erratum|turn(?:s|ed) out|actually|in fact|(?:was|were) (?:wrong|mistaken|incorrect)"
    r"|(?:measured|counted|checked|tested|surveyed|weighed|calculated) (?:again|anew)"
    r"|re-?(?:measured|counted|checked|tested|calculated|weighed)"
    # since when it holds
    rf"|(?:since|starting|effective|as of) (?:on |from )?{_DAY}\b|from (?:on )?{_DAY}\b[^.,;]{{0,12}} on)\b"
    r"|现在|改|不再|换|搬|推迟|提前|离开|如今|取消|更新|调整|以后"
    rf"|(?<!差)不[^，。；、！？,.;!?\s了]{{1,8}}了{_ENDS}|没有[^，。；、！？,.;!?\s了]{{1,8}}了{_ENDS}"
    r"|停用|停止|暂停|停掉|戒(?!指)|离职|辞职|退休|卸任|调走"
    r"|(?:涨|降|升|减|增|延|缩|扩|移|迁|调|转)[^，。；、！？,.;!?\s]{0,3}[到为至成]|变成|变为|成了|重置|涨价|降价|升级|延期|延长|缩短"
    r"|更正|纠正|勘误|其实|实际上|有误|弄错|搞错|说错|记错|复查|重新[测量数算查]"
    r"|从(?:今|明|昨|下|本)[天日年后晚起周月季学个]|从[^，。；、！？,.;!?\s]{1,8}起"
)

BELIEVED = re.compile(
    r"^(?:(?:at first|first|initially|originally),? )?(?:(?:i|we) )?"
    r"(?:(?:had|have|first|initially|originally|at first) )*"
    r"(?:believed|thought|assumed|supposed|expected|guessed|suspected)(?: at first)?(?: that)?(?= )"
    r"|^(?:我们?|大家|咱们)?(?:起初|最初|原先|原来|本来|一开始|先前|之前|曾经?)*(?:以为|认为|猜测?|估计)"
)
"""That something is only believed, at the beginning of a statement in lower case: it is about what follows."""
