"""What a column, a view or a value is called here, where DuckDB says that it knows none of that name.

DuckDB proposes names that look alike; who comes from another store means one that looks quite different.
"""

from __future__ import annotations

import re

_COLUMN = re.compile(r'Referenced column "([^"]+)" not found|does not have a column named "([^"]+)"')
_ITEM = (
    "the id of an item is id in knowledge and knowledge_versions, knowledge_id in feedback, item_id in recalls and "
    "funnel, entity_id in events and lineage"
)
_WHO = (
    "whose an item is stands in owner in knowledge, and whoever said it is actor in events, feedback, recalls and "
    "knowledge_versions; who saved an item is actor of knowledge_versions where version = 1"
)
_WHEN = "when is created_at in knowledge, valid_from_time in knowledge_versions, time in feedback, recalls and events"
_TRUST = "how far an item is trusted is confidence, helpful and harmful in knowledge; feedback has each verdict"
_ORG = "the tenant is org, in every view"
_TYPES = "the kinds of an item are types, a list: 'tool' IN types"
_TEXT = "what an item says is task and content; data in events"
_MEANT = {
    **dict.fromkeys(("id", "item", "item_id", "knowledge_id", "memory_id"), _ITEM),
    **dict.fromkeys(
        ("agent", "agent_id", "author", "created_by", "person", "user", "user_id", "writer", "by", "actor", "owner"),
        _WHO,
    ),
    **dict.fromkeys(
        ("created", "created_at", "date", "day", "month", "timestamp", "ts", "time", "updated", "stored_at"), _WHEN
    ),
    **dict.fromkeys(("trust", "helpful_count", "harmful_count", "rating", "helpful", "harmful", "confidence"), _TRUST),
    **dict.fromkeys(("tenant", "tenant_id", "org_id", "organisation", "organization"), _ORG),
    **dict.fromkeys(("type", "category"), _TYPES),
    **dict.fromkeys(("text", "body", "memory", "message", "title", "summary"), _TEXT),
}
_DESCRIBE = "DESCRIBE VIEW lists the columns of a view, such as DESCRIBE knowledge"


def with_other_names(reason: str) -> str:
    """The reason of DuckDB, and below it what is meant here where that is known."""
    advice = _advice(reason)
    return f"{reason}\n\n{advice}" if advice else reason


def _advice(reason: str) -> str | None:
    if found := _COLUMN.search(reason):
        meant = _MEANT.get((found[1] or found[2]).lower())
        return f"Here {meant}. {_DESCRIBE}" if meant else _DESCRIBE
    if "Catalog Error: Table with name" in reason:
        return "SHOW TABLES lists the views"
    if "can't be cast to the destination type VARCHAR[]" in reason:
        return "Here a list is compared with a text: write 'tool' IN types"
    if "neither a log position nor a time" in reason:
        return "Write a position, as 42, or a time, as '2026-03-05T12:00:00Z'"
    return None
