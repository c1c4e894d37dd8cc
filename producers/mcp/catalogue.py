"""Which tools does the MCP server list, and how does it tell a client what each takes, gives and changes?

Names, arguments, defaults and words are those of `kledger/tools/functions.py`, forms those that the node takes and
gives; only the title and the hints stand here.
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
from kledger.client.wire import Wire
from kledger.tools import functions as tools
from ledger.event import JsonObject
from producers.mcp.schemas import left_out, plain
from producers.requests.knowledge import CaseBody, FeedbackBody, refusal
from producers.requests.resources import Together


class _Arguments(BaseModel):
    """Base of the arguments of each tool: nothing unknown, nothing converted, as on the other doors."""

    model_config = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True)
class CataloguedTool:
    """One tool: the function, its title, and what calling it does to the ledger."""

    function: Callable[..., Coroutine[Any, Any, Any]]
    title: str
    answers: Any = JsonObject
    """The form of the node's answer."""
    reads: bool = False
    hides: bool = False
    """It takes items out of recall (nothing is ever lost): a client should ask its user before."""
    repeatable: bool = False
    """Calling it again with the same arguments changes nothing more."""

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
        told: JsonObject = await self.function(wire, **arguments)
        if "results" in told:
            told.pop("metadata", None)  # for programs: a model would read, and pay for, every item twice
        return told

    @cached_property
    def described(self) -> types.Tool:
        """What tools/list says."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=inspect.getdoc(self.function),
            input_schema=self._input_schema(),
            output_schema=plain(TypeAdapter(self.answers).json_schema(mode="serialization")),
            annotations=types.ToolAnnotations(
                title=self.title,
                read_only_hint=self.reads,
                destructive_hint=self.hides,
                idempotent_hint=self.reads or self.repeatable,
                open_world_hint=False,
            ),
        )

    def _input_schema(self) -> JsonObject:
        schema = plain(self._form.model_json_schema())
        for name, within in schema["properties"].items():
            if name in FORMS:
                within |= {**plain(TypeAdapter(FORMS[name]).json_schema()), "description": within["description"]}
        return left_out(schema)

    @cached_property
    def _form(self) -> type[BaseModel]:
        """The arguments as a model; the wire is ours and no argument."""
        hints = get_type_hints(self.function, include_extras=True)
        stated = list(inspect.signature(self.function).parameters.values())[1:]
        fields: dict[str, Any] = {
            one.name: (hints[one.name], ... if one.default is inspect.Parameter.empty else _plain(one.default))
            for one in stated
        }
        return create_model(self.name, __base__=_Arguments, **fields)


def _plain(default: Any) -> Any:
    """A default as JSON has it: a text is no more than its letters."""
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
"""Arguments told in full and judged by the node alone: one verdict of many that does not fit stops no other."""
