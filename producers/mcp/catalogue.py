"""The MCP tool catalogue: name, description, schemas and hints of each tool.

Names, arguments, defaults and descriptions come from `kledger/client/tools/functions.py`, schemas from the request and
answer models of the node; only titles and hints are defined here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_type_hints

from mcp import types
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from kledger.answers.knowledge import Changed, ItemList, RatedMany, SearchResults
from kledger.answers.parts import Saved
from kledger.answers.recall import FocusedGoal, Startup
from kledger.answers.resources import Resource
from kledger.answers.slims import Slim
from kledger.client.tools import functions as tools
from kledger.client.wire import Wire
from kledger.requests.knowledge import CaseBody, FeedbackBody
from kledger.requests.resources import Together
from ledger.event import JsonObject
from producers.mcp.schemas import plain, without_null
from producers.requests.reading import refusal


class _Arguments(BaseModel):
    """Base of the arguments of each tool: unknown fields are refused, nothing is converted, as over HTTP."""

    model_config = ConfigDict(extra="forbid", strict=True)


LEFT_OUT = ("metadata", "degraded")
"""Fields of an answer that a tool may leave out, to save a model's tokens."""


@dataclass(frozen=True)
class CataloguedTool:
    """One tool: its function, its title, and the effect of a call."""

    function: Callable[..., Coroutine[Any, Any, Any]]
    title: str
    answers: Any = JsonObject
    """The type of the node's answer."""
    reads: bool = False
    hides: bool = False
    """It removes items from recall (reversibly): a client should ask its user first."""
    repeatable: bool = False
    """Idempotent for the same arguments."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    async def call(self, wire: Wire, arguments: Mapping[str, Any]) -> JsonObject:
        """The node's answer. Raises InvalidPayload naming the arguments that do not fit, and what the node raises."""
        try:
            self._form.model_validate(arguments)
        except ValidationError as error:
            raise refusal(error.errors(include_url=False, include_input=False), f"the call of {self.name}") from error
        answer: JsonObject = await self.function(wire, **arguments)
        if "results" in answer:
            answer.pop("metadata", None)  # for programs; it repeats every item
        if not answer.get("degraded"):
            answer.pop("degraded", None)
        return answer

    @cached_property
    def described(self) -> types.Tool:
        """The entry of tools/list."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=inspect.getdoc(self.function),
            input_schema=self._input_schema(),
            output_schema=self._output_schema(),
            annotations=types.ToolAnnotations(
                title=self.title,
                read_only_hint=self.reads,
                destructive_hint=self.hides,
                idempotent_hint=self.reads or self.repeatable,
                open_world_hint=False,
            ),
        )

    def _output_schema(self) -> JsonObject:
        schema = plain(TypeAdapter(self.answers).json_schema(mode="serialization"))
        if "required" in schema:
            schema["required"] = [name for name in schema["required"] if name not in LEFT_OUT]
        return schema

    def _input_schema(self) -> JsonObject:
        schema = plain(self._form.model_json_schema())
        for name, argument in schema["properties"].items():
            if name in FORMS:
                argument |= {**plain(TypeAdapter(FORMS[name]).json_schema()), "description": argument["description"]}
        return without_null(schema)

    @cached_property
    def _form(self) -> type[BaseModel]:
        """A pydantic model of the arguments, which the wire is not one of."""
        hints = get_type_hints(self.function, include_extras=True)
        parameters = list(inspect.signature(self.function).parameters.values())[1:]
        fields: dict[str, Any] = {
            one.name: (hints[one.name], ... if one.default is inspect.Parameter.empty else _plain(one.default))
            for one in parameters
        }
        return create_model(self.name, __base__=_Arguments, **fields)


def _plain(default: Any) -> Any:
    """A default as a JSON value: a subclass of str becomes a plain str."""
    return str(default) if isinstance(default, str) else default


CATALOGUE = (
    CataloguedTool(tools.knowledge_search, "Search knowledge", SearchResults, reads=True),
    CataloguedTool(tools.knowledge_save, "Save knowledge", Saved),
    CataloguedTool(tools.knowledge_update, "Give feedback on knowledge", Changed),
    CataloguedTool(tools.knowledge_batch_update, "Give feedback on many items", RatedMany),
    CataloguedTool(tools.knowledge_list, "List knowledge", ItemList, reads=True),
    CataloguedTool(tools.knowledge_slim, "Merge similar knowledge", Slim, hides=True),
    CataloguedTool(tools.resource_save, "Save a resource", Saved, repeatable=True),
    CataloguedTool(tools.resource_get, "Read a resource", Resource, reads=True),
    CataloguedTool(tools.goal_focus, "Focus on a goal", FocusedGoal),
    CataloguedTool(tools.knowledge_startup, "Know what to know at the start", Startup, reads=True),
)
BY_NAME = {tool.name: tool for tool in CATALOGUE}

FORMS: Mapping[str, Any] = {
    "add_helpful_case": CaseBody,
    "add_harmful_case": CaseBody,
    "feedback_list": list[FeedbackBody],
    "resources": Together,
}
"""Arguments whose schema is shown in full and validated by the node alone: one invalid verdict refuses no other."""
