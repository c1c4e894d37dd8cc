"""The page of the tools: what an MCP client lists, and the functions of the same names in the SDK."""

from __future__ import annotations

from docs.generators.schema_words import kind
from docs.generators.tables import GENERATED, table
from kledger.client.tools.defaults import OWNER_VARIABLE, SCOPES_VARIABLE
from ledger.prompts import prompt, prompt_names
from producers.mcp.catalogue import CATALOGUE, CataloguedTool
from producers.mcp.resources import PAGE, TEMPLATE
from producers.mcp.server import INSTRUCTIONS


def tools_page() -> str:
    """docs/reference/tools.md."""
    return "\n".join(
        [
            "# Tools\n",
            GENERATED,
            "What an agent does with the ledger, over [MCP](../how-to/connect-an-mcp-client.md) (`kledger mcp`, and "
            "`/mcp` of a node) and, with the same names and defaults, in Python: `client.tools.knowledge_search(…)`. "
            "A tool answers with the document of its endpoint, as structured content and as text. An error is the "
            "result of the call with `isError`, and its text is the body that [HTTP](http.md) has: "
            '`{"error": {"code", "message", "details"}}`.\n',
            "What a client is told to begin with:\n",
            f"> {INSTRUCTIONS}\n",
            table(("tool", "does"), ((f"[`{tool.name}`](#{tool.name})", _first(tool)) for tool in CATALOGUE)),
            f"`{SCOPES_VARIABLE}` (separated by commas) and `{OWNER_VARIABLE}` (in which `{{agent_id}}` stands for the "
            "agent) say who may read and who owns what the tools of a process save where a call does not; else the "
            "owner is whoever asks, and the scope the owner.\n",
            *map(_tool, CATALOGUE),
            *_resources(),
            *_prompts(),
        ]
    )


def _resources() -> list[str]:
    return [
        "## Resources\n",
        f"Over MCP an item is a resource as well, `{TEMPLATE.uri_template}` with the id percent-encoded. "
        f"{TEMPLATE.description}. `resources/list` has the active items that the caller may see, newest first, {PAGE} "
        "a page. An item that the caller may not see is refused as one that does not exist.\n",
    ]


def _prompts() -> list[str]:
    found = map(prompt, prompt_names())
    rows = [(f"`{each.name}`", each.title, each.description) for each in found]
    return [
        "## Prompts\n",
        "Each in Chinese and English, by its argument `language`; without one, in the node's language.\n",
        table(("prompt", "title", "description"), rows),
    ]


def _first(tool: CataloguedTool) -> str:
    return (tool.described.description or "").partition("\n\n")[0]


def _tool(tool: CataloguedTool) -> str:
    told = tool.described
    schema = told.input_schema
    rows = [
        (f"`{name}`", "yes" if name in schema.get("required", ()) else "", kind(field), field.get("description", ""))
        for name, field in schema["properties"].items()
    ]
    return "\n".join(
        [
            f"## {tool.name}\n",
            f"{told.description}\n",
            table(("argument", "required", "type", "meaning"), rows),
            f"It {_effect(tool)}.\n",
        ]
    )


def _effect(tool: CataloguedTool) -> str:
    if tool.hints.reads:
        return "changes nothing"
    if tool.hints.hides:
        return "takes items out of recall, and nothing is lost: a client should ask before"
    return "adds to the ledger" + ("; the same call again adds nothing new" if tool.hints.repeatable else "")
