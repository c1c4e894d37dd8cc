"""The tools of an agent on both faces, loaded when a client is asked for its `tools`."""

from __future__ import annotations

from kledger.client.faces import AsyncFace, SyncFace
from kledger.client.tools.endpoints import ToolEndpoints


class AsyncTools(AsyncFace, ToolEndpoints):
    """`client.tools` of the async client."""


class SyncTools(SyncFace, ToolEndpoints):
    """`client.tools` of the sync client."""
