"""Intent of a message by a small model, within a deadline; who asks has rules for when there is no answer."""

from __future__ import annotations

import uuid

from consumers.model import ChatModel
from consumers.prompting import prompt
from consumers.recall.awaited import Awaited, NoAnswer
from consumers.structured import Structured
from kledger.contract.errors import LedgerError, ModelFailed
from kledger.contract.recall import Intent
from projections.search.asking import shortened

PATIENCE = 0.5
"""Seconds that a recall waits for the intent."""
MOST_ASKED = 1_000
"""Characters of the message that the model is given."""


class Intended(Structured):
    """What a message is after."""

    intent: Intent


class ModelIntents:
    """The task `intent` of a node. Nothing is kept: a message is asked about once."""

    def __init__(self, model: ChatModel, patience: float = PATIENCE) -> None:
        self._model = model
        self.awaited: Awaited[Intent] = Awaited(f"the model {model.settings.model_for('intent')} of intent", patience)

    async def intent(self, message: str) -> tuple[Intent | None, str | None]:
        """What a message is after, or None and why; never raises."""
        return await self.awaited.answer(object(), lambda: self._asked(shortened(message, MOST_ASKED)))

    async def _asked(self, message: str) -> Intent:
        rules = prompt("intent", f"<message>\n{message.replace('<', '‹')}\n</message>")
        try:
            answer = await self._model.ask("intent", rules, Intended, key=f"intent-{uuid.uuid4().hex}")
        except LedgerError as error:  # a message that it declines, or a budget, says nothing about the endpoint
            raise NoAnswer(error.message, blamed=isinstance(error, ModelFailed)) from error
        return answer.value.intent
