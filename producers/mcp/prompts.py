"""MCP prompts: those of the node, in the requested language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import types

from kledger.client import recall
from kledger.client.wire import Wire


async def listed(wire: Wire) -> types.ListPromptsResult:
    """The answer to prompts/list. Raises LedgerError."""
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=prompt["name"],
                title=prompt["title"],
                description=prompt["description"],
                arguments=[
                    types.PromptArgument(
                        name="language",
                        description=f"Language of the text: {' or '.join(prompt['languages'])}; by default the node's",
                        required=False,
                    )
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
        description=prompt["description"], messages=[types.PromptMessage(role="user", content=content)]
    )
