"""Defaults of a deployment for `knowledge_save`, where its caller states nothing.

By default nothing: the node makes whoever asks the owner (`agent:` and the `agent_id` for a caller without an
identity), and the owner the scope. KLEDGER_TOOLS_SCOPES (separated by commas) and KLEDGER_TOOLS_OWNER, in which
`{agent_id}` stands for the agent, say it for every tool call of a process, over MCP and from the SDK.
"""

from __future__ import annotations

import os

SCOPES_VARIABLE = "KLEDGER_TOOLS_SCOPES"
OWNER_VARIABLE = "KLEDGER_TOOLS_OWNER"
AGENT = "research_agent"
"""Who speaks when nobody says so."""


def default_scopes() -> list[str] | None:
    """The scopes of this deployment, None where it states none."""
    named = [part.strip() for part in os.environ.get(SCOPES_VARIABLE, "").split(",")]
    return [name for name in named if name] or None


def default_owner(agent_id: str) -> str | None:
    """The owner of what an agent says in this deployment, None where it states none."""
    return os.environ.get(OWNER_VARIABLE, "").strip().replace("{agent_id}", agent_id) or None
