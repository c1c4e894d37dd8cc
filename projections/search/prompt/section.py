"""Rendering of knowledge for a prompt, as a numbered list.

In Chinese or in English. Counts that an item began with are not shown, as they are no verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kledger.contract.documents import ITEM_TYPE
from kledger.contract.language import ENGLISH, Language
from kledger.contract.scopes import OPERATOR
from ledger import new_item
from ledger.event import JsonObject
from projections.fold_kit.prompt_text import harmless, indented, shortened
from projections.similar.first_person import speaks_of_itself

SHOWN_CHARACTERS = 2_000
"""The most characters of an item's content; the rest can be read by the item's id."""


_ENDS_A_SENTENCE = " .!?…。！？"


@dataclass(frozen=True, slots=True)
class Words:
    """The fixed texts around the knowledge, in one language."""

    knowledge: str
    profile: str
    one: str
    many: str
    none_found: str
    focused: str
    goal: str
    score: str
    confidence: str
    verdicts: str
    not_judged: str
    about: str
    said_by: str
    earlier: str


WORDS: dict[Language, Words] = {
    "zh": Words(
        knowledge="📚 相关知识",
        profile="👤 用户画像",
        one="条",
        many="条",
        none_found="没有找到相关知识；知识不足时先调研，再用 knowledge_save 保存结果。",
        focused="✅ Goal 已聚焦",
        goal="当前 Goal",
        score="评分 {score}",
        confidence="置信度 {confidence:g}",
        verdicts="有用 {helped} 次，有害 {harmed} 次",
        not_judged="尚无评价",
        about="关于 {who}",
        said_by="{who} 说的",
        earlier="较早的说法",
    ),
    "en": Words(
        knowledge="📚 Related knowledge",
        profile="👤 User profile",
        one="item",
        many="items",
        none_found="Nothing related was found. Where knowledge is missing, research first, then keep the result with "
        "knowledge_save.",
        focused="✅ Goal focused",
        goal="Current goal",
        score="score {score}",
        confidence="confidence {confidence:g}",
        verdicts="helped {helped}, harmed {harmed}",
        not_judged="not judged yet",
        about="about {who}",
        said_by="said by {who}",
        earlier="said earlier",
    ),
}


def knowledge_section(items: Sequence[JsonObject], language: Language = ENGLISH, person: str | None = None) -> str:
    """`📚 Related knowledge (n items):` and one numbered entry an item: task, types, content, id and verdicts. What
    another user than `person` says of themselves names that user."""
    words = WORDS[language]
    speakers = [_named(words.said_by, speaker(item, person)) for item in items]
    return _section(items, words.knowledge, language, speakers)


def profile_section(items: Sequence[JsonObject], language: Language = ENGLISH, person: str | None = None) -> str:
    """One numbered entry for each item about the user `person`; one about another user says about whom it is."""
    words = WORDS[language]
    others = [_named(words.about, about_another(item, person)) for item in items]
    return _section(items, words.profile, language, others)


def about_another(item: JsonObject, person: str | None) -> str | None:
    """The user whose profile an item is, where that is not the person: its owner, else the first user of its scopes."""
    users = [each for each in (item["owner"], *item["scopes"]) if each.startswith("user:")]
    return users[0] if users and person not in users else None


def speaker(item: JsonObject, person: str | None) -> str | None:
    """The user who says *I* or 我 in an item, where that is not the person: its owner, whose words they are; not of a
    document, which somebody else may have written."""
    owner = str(item.get("owner") or "")
    if ITEM_TYPE in item.get("types", ()) or not owner.startswith("user:") or owner in (person, OPERATOR):
        return None
    shown = f"{item.get('task') or ''}\n{item['content'][:SHOWN_CHARACTERS]}"
    return owner if speaks_of_itself(shown) else None


def goal_text(
    description: str, items: Sequence[JsonObject], language: Language = ENGLISH, person: str | None = None
) -> str:
    """The prompt text of a focused goal."""
    return f"{WORDS[language].goal}: {harmless(description)}\n\n{knowledge_section(items, language, person)}"


def _named(note: str, who: str | None) -> str:
    return "" if who is None else note.format(who=who)


def _section(items: Sequence[JsonObject], title: str, language: Language, notes: Sequence[str]) -> str:
    words = WORDS[language]
    entries = "\n".join(
        _entry(number, item, words, note) for number, (item, note) in enumerate(zip(items, notes, strict=True), 1)
    )
    counted = f"{len(items)} {words.one if len(items) == 1 else words.many}"
    return harmless(f"{title} ({counted}):\n{entries or words.none_found}")


def _entry(number: int, item: JsonObject, words: Words, note: str) -> str:
    by = "   "
    about = f"{indented(note, by)}; " if note else ""
    about += f"{words.earlier}; " if "later" in item else ""
    task, content = item["task"], shortened(item["content"], SHOWN_CHARACTERS)
    if content.startswith(task) and not content[len(task) :].strip(_ENDS_A_SENTENCE):  # it was made from the content
        task, content = content, ""
    lines = [
        f"{number}. {indented(task, by)} [{', '.join(item['types'])}]",
        *([f"{by}{indented(content, by)}"] if content else []),
        f"{by}({item['id']}; {about}{_judged(item['eval'], words)})",
    ]
    return "\n".join(lines)


def _judged(counts: JsonObject, words: Words) -> str:
    """An item's evaluation; the initial score and counts of an item are left out, as nobody has judged it."""
    helped, harmed = new_item.helped_and_harmed(counts)
    judged = bool(helped or harmed)
    parts = [words.score.format(score=counts["score"])] if judged or counts["score"] != new_item.SCORE else []
    parts += [words.verdicts.format(helped=helped, harmed=harmed)] if judged else [words.not_judged]
    if judged or counts["confidence"] != new_item.CONFIDENCE:
        parts.append(words.confidence.format(confidence=counts["confidence"]))
    return ", ".join(parts)
