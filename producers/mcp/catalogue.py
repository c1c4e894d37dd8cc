"""The MCP tool catalogue: name, description, schemas and hints of each tool.

Everything but the schemas comes from the functions of `kledger/client/tools/endpoints.py:ToolEndpoints`; the schemas
come from the request and answer models of the node.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_type_hints

from mcp import types
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from kledger.client.faces import Endpoint
from kledger.client.slips.own_names import in_names
from kledger.client.tools.endpoints import ToolEndpoints
from kledger.client.tools.hints import Hints, hints_of
from kledger.client.wire import Wire
from kledger.contract.errors import LedgerError
from kledger.requests.knowledge import CaseBody, FeedbackBody
from kledger.requests.models import MessageBody
from kledger.requests.resources import Together
from kledger.requests.sessions import Scratchpad, SessionMessageBody
from ledger.event import JsonObject
from producers.mcp.schemas import plain, without_defaults, without_null
from producers.requests.reading import fields_in, refusal, refuse_many_fields


class _Arguments(BaseModel):
    """Base of the arguments of each tool: unknown fields are refused, nothing is converted, as over HTTP."""

    model_config = ConfigDict(extra="forbid", strict=True)


LEFT_OUT = ("metadata", "degraded")
"""Fields of an answer that a tool may leave out, to save a model's tokens."""


@dataclass(frozen=True)
class CataloguedTool:
    """One tool: its function, with the title and hints that it has."""

    function: Callable[..., Coroutine[Any, Any, Any]]
    hints: Hints

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    async def call(self, wire: Wire, arguments: Mapping[str, Any]) -> JsonObject:
        """The node's answer. Raises InvalidPayload, PayloadTooLarge for the arguments, and what the node raises."""
        refuse_many_fields(arguments, f"the call of {self.name}")
        try:
            self._form.model_validate(arguments)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False)
            raise refusal(faults, f"the call of {self.name}", fields_in(self._form)) from error
        try:
            answer: JsonObject = await self.function(wire, **arguments)
        except LedgerError as error:
            in_names(error, self._form.model_fields)
            raise
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
            title=self.hints.title,
            description=inspect.getdoc(self.function),
            input_schema=self._input_schema(),
            output_schema=self._output_schema(),
            annotations=types.ToolAnnotations(
                title=self.hints.title,
                read_only_hint=self.hints.reads,
                destructive_hint=self.hints.hides,
                idempotent_hint=self.hints.reads or self.hints.repeatable,
                open_world_hint=False,
            ),
        )

    def _output_schema(self) -> JsonObject:
        answer = self.hints.answers or get_type_hints(self.function)["return"]
        schema = plain(TypeAdapter(answer).json_schema(mode="serialization"))
        if "required" in schema:
            schema["required"] = [name for name in schema["required"] if name not in LEFT_OUT]
        return schema

    def _input_schema(self) -> JsonObject:
        schema = without_null(plain(self._form.model_json_schema()))
        for name, argument in schema["properties"].items():
            if name in FORMS:
                form = plain(TypeAdapter(FORMS[name]).json_schema())
                shown = without_defaults(form) if name in PATCHES else without_null(form)
                argument |= {**shown, "description": argument["description"]}
        return schema

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


CATALOGUE = tuple(
    CataloguedTool(endpoint.function, hints_of(endpoint.function))
    for name, endpoint in vars(ToolEndpoints).items()
    if isinstance(endpoint, Endpoint) and name == endpoint.function.__name__  # another name is no other tool
)
BY_NAME = {tool.name: tool for tool in CATALOGUE}

FORMS: Mapping[str, Any] = {
    "add_helpful_case": CaseBody,
    "add_harmful_case": CaseBody,
    "feedback_list": list[FeedbackBody],
    "resources": Together,
    "messages": list[SessionMessageBody],
    "patch": Scratchpad,
    "conversation": list[MessageBody],
}
"""Arguments whose schema is shown in full and validated by the node alone: one invalid verdict refuses no other."""
PATCHES = ("patch",)
"""Those of them in which null is said: it removes a field."""
