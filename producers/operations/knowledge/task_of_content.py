"""The task that was made from the content of its item: it is made anew where a revision states another content.

Otherwise the item would go on saying, and be found by, what it was corrected from.
"""

from __future__ import annotations

from ledger.events.knowledge import KnowledgeRevised
from producers.operations.desk import Desk
from producers.requests.first_sentence import first_sentence
from projections.views.knowledge.ask import Standing
from projections.views.knowledge.versions import Version, version_of


async def with_its_task(desk: Desk, item: Standing, revision: KnowledgeRevised) -> KnowledgeRevised:
    """A revision of an item, with the task that follows from its content, where the item's own does."""
    if revision.content is None or revision.task is not None:
        return revision
    now: Version | None = await desk.view.ask(version_of, desk.org, item.id, item.version)
    if now is None or now.erased or now.task != first_sentence(now.content):
        return revision
    task = first_sentence(revision.content)
    return revision if task == now.task else revision.model_copy(update={"task": task})
