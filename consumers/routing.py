"""Model router: a model picks, from the headings of many items, those that may help with a query."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from consumers.model import ChatModel
from consumers.prompting import element, prompt
from consumers.structured import Structured
from kledger.contract.errors import ModelFailed
from ledger.event import JsonObject

HEADING = 100
"""Characters of an item's task in the prompt."""


class Picked(Structured):
    """What the model picks."""

    ids: list[str]


class ModelRouter:
    """Calls the model of the task `route`. Answers are not stored: each search calls it again."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    async def pick(self, query: str, candidates: Sequence[JsonObject], most: int) -> list[str]:
        """Up to `most` ids of the candidates; an empty list when none of them helps.

        Raises NotAvailable, BudgetSpent, ModelFailed, ModelRefused.
        """
        lines = [
            f"{item['id']} | {','.join(item['types'])} | {' '.join(item['task'][:HEADING].split())}"
            for item in candidates
        ]
        given = (element("query", query), element("items", "\n".join(lines)), f"No more than {most} ids.")
        text = "\n\n".join(given)
        answer = await self._model.ask("route", prompt("route", text), Picked, key=f"route-{uuid.uuid4().hex}")
        known = {item["id"] for item in candidates}
        picked = [each for each in dict.fromkeys(answer.value.ids) if each in known][:most]
        if answer.value.ids and not picked:
            raise ModelFailed("the model named none of the items that it was told of", usage=answer.usage.model_dump())
        return picked
