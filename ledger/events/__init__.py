"""Event registry: all event types of the ledger by name. Each family is a module with a tuple FACTS."""

from __future__ import annotations

from ledger.event import Fact
from ledger.events import (
    conflict,
    document,
    evolution,
    extraction,
    goal,
    knowledge,
    model,
    profile,
    project,
    recall,
    resource,
    scope_type,
    session,
    slim,
    statement,
    subject,
    summary,
)

FAMILIES = (
    *(knowledge, profile, recall, goal, resource, subject, evolution, extraction, slim, conflict, scope_type),
    *(model, session, summary, project, document, statement),
)
FACTS: dict[str, type[Fact]] = {fact.name: fact for family in FAMILIES for fact in family.FACTS}
