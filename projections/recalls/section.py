"""How is knowledge put before a model? As the numbered list that source 001 shows on a goal (mission K7, K12)."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.event import JsonObject
from projections.prompt_text import harmless, indented, shortened

SHOWN_CHARACTERS = 2_000
"""Of one item's content; whoever needs the rest asks for the item by its id."""
KNOWLEDGE, PROFILE = "📚 相关知识", "👤 用户画像"
NONE_FOUND = "没有找到相关知识；知识不足时先调研，再用 knowledge_save 保存结果。"


def knowledge_section(items: Sequence[JsonObject], title: str = KNOWLEDGE) -> str:
    """`📚 相关知识 (n 条):` and one numbered entry an item: task, types, content, id and evaluation."""
    entries = "\n".join(_entry(number, item) for number, item in enumerate(items, 1))
    return harmless(f"{title} ({len(items)} 条):\n{entries or NONE_FOUND}")


def goal_text(description: str, items: Sequence[JsonObject]) -> str:
    """What an agent is told when its goal is focused (source 001)."""
    return f"当前 Goal: {harmless(description)}\n\n{knowledge_section(items)}"


def _entry(number: int, item: JsonObject) -> str:
    by = "   "
    told = item["eval"]
    counts = f"score {told['score']}, helpful {told['helpful']}, harmful {told['harmful']}"
    return (
        f"{number}. {indented(item['task'], by)} [{', '.join(item['types'])}]\n"
        f"{by}{indented(shortened(item['content'], SHOWN_CHARACTERS), by)}\n"
        f"{by}({item['id']}; {counts}, confidence {told['confidence']:g})"
    )
