"""The MCP server, for both transports: lists and calls tools, and serves prompts and resources.

A LedgerError is the result of a tool call, with `isError`, its code and its message, so that a model can read and
correct it. An unknown tool is a protocol error, and so is an error of anything but a tool call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import orjson
import structlog
from mcp import MCPError, types
from mcp.server import CacheHint, Server, ServerRequestContext

from kledger.client.tools.defaults import AGENT
from kledger.client.wire import Wire
from kledger.contract.errors import LedgerError, ServiceFailed
from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.installed import PRODUCT, version
from producers.mcp import prompts, resources
from producers.mcp.catalogue import BY_NAME, CATALOGUE
from producers.mcp.lineage import lineage_of
from producers.mcp.other_names import meant
from producers.mcp.protocol_errors import InWords, as_protocol

log = structlog.get_logger(__name__)

NAME, TITLE = "kledger", "Knowledge Ledger"
INSTRUCTIONS = (
    "A ledger of what agents and people have learned. Before you plan, research or repeat work, look for what is "
    "known: knowledge_startup once when you start, goal_focus when you turn to a goal, memory_recall before you "
    "answer a message, knowledge_search for anything else. After you used an item, say with knowledge_update or "
    "knowledge_batch_update whether it helped or harmed and why: that decides what others are shown. Keep what you "
    "learned with knowledge_save, one fact or method an item, and what happened or matters for a while with "
    "memory_save; correct what is yours with knowledge_revise, and keep what your user says of themselves with "
    "profile_update. Secrets belong into the secure_body of a resource alone. An error names its code and what to do."
)
NOBODY_NAMED = Caller(agent=AGENT)
"""The caller where neither the connection nor a token names one: an agent that finds what it saved, and never the
operator, whose rights a model should not have by default."""
_WHILE_IT_RUNS = CacheHint(3_600_000, "public")  # milliseconds; these lists change only with the version

Call = ServerRequestContext[Any, Any]
WireOf = Callable[[Call], Awaitable[Wire]]
"""Returns the wire for the tools of one request. Raises LedgerError for an invalid caller."""
Counted = Callable[[str, str], None]
"""Counts a call: the tool, and `ok` or the code of its error."""


def _uncounted(_tool: str, _outcome: str) -> None:
    """Count nothing."""


def create_server(wire_of: WireOf, counted: Counted = _uncounted, in_words: InWords = str) -> Server[Any]:
    """The MCP server, for either transport. `in_words` puts what a node says into the words of its clients."""

    async def list_tools(_call: Call, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.described for tool in CATALOGUE])

    async def call_tool(call: Call, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = BY_NAME.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, _no_tool(params.name))
        try:
            wire = await wire_of(call)
            wire = replace(wire, lineage=lineage_of(call.meta, wire.lineage))
            answer = await tool.call(wire, params.arguments or {})
        except LedgerError as error:
            counted(tool.name, error.code)
            return _refused(error, in_words)
        except Exception:
            log.exception("a tool failed", tool=tool.name)
            counted(tool.name, ServiceFailed.code)
            return _refused(
                ServiceFailed(f"something inside {tool.name} failed: the log of the server has the cause"), in_words
            )
        counted(tool.name, "ok")
        return _answer(answer)

    async def list_prompts(call: Call, _params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        with as_protocol(in_words):
            return await prompts.listed(await wire_of(call))

    async def get_prompt(call: Call, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        with as_protocol(in_words):
            return await prompts.get(await wire_of(call), params.name, params.arguments or {})

    async def list_resources(call: Call, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        with as_protocol(in_words):
            return await resources.listed(await wire_of(call), params.cursor if params else None)

    async def list_resource_templates(
        _call: Call, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[resources.TEMPLATE])

    async def read_resource(call: Call, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        with as_protocol(in_words):
            return await resources.read(await wire_of(call), params.uri)

    return Server(
        NAME,
        version=version(PRODUCT),
        title=TITLE,
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": _WHILE_IT_RUNS, "resources/templates/list": _WHILE_IT_RUNS},
        get_tool_input_schema=lambda name: BY_NAME[name].described.input_schema if name in BY_NAME else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_resource_templates,
        on_read_resource=read_resource,
    )


def _no_tool(name: str) -> str:
    near = meant(name, BY_NAME)
    return f"there is no tool {name[:100]!r}{f'; is {near} meant?' if near else ':'} tools/list names them all"


def _answer(document: JsonObject) -> types.CallToolResult:
    """A document as structured content, and as text for clients that read text alone."""
    return types.CallToolResult(content=[_text(document)], structured_content=document)


def _refused(error: LedgerError, in_words: InWords) -> types.CallToolResult:
    """An error as text alone: clients validate structured content against the output schema even for errors."""
    body = {"code": error.code, "message": in_words(error.message), "details": error.details}
    return types.CallToolResult(content=[_text({"error": body})], is_error=True)


def _text(document: JsonObject) -> types.TextContent:
    return types.TextContent(type="text", text=orjson.dumps(document).decode())
