"""MCP prompts: those of the node, in the requested language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp import MCPError, types

from kledger.client import recall
from kledger.client.wire import Wire
from kledger.contract.errors import LedgerError

_OF_THE_CALLER = ("unknown_prompt", "invalid_payload")


async def listed(wire: Wire) -> types.ListPromptsResult:
    """The answer to prompts/list. Raises LedgerError."""
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=prompt["name"],
                title=prompt["title"],
                arguments=[
                    types.PromptArgument(name="language", description=" or ".join(prompt["languages"]), required=False)
                ],
            )
            for prompt in await recall.prompts(wire)
        ]
    )


async def get(wire: Wire, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """One prompt as a message. Raises LedgerError when there is none of this name or language."""
    language: Any = arguments.get("language")  # the node refuses an unknown one
    prompt = await recall.prompt(wire, name, language=language)
    content = types.TextContent(type="text", text=prompt["text"])
    return types.GetPromptResult(
        description=prompt["title"], messages=[types.PromptMessage(role="user", content=content)]
    )


@contextmanager
def as_protocol() -> Iterator[None]:
    """Turn a LedgerError into a protocol error, because a prompt has no error result."""
    try:
        yield
    except LedgerError as error:
        kind = types.INVALID_PARAMS if error.code in _OF_THE_CALLER else types.INTERNAL_ERROR
        raise MCPError(kind, error.message, {"code": error.code, "details": error.details}) from error
