"""The families of endpoints of a client, each with how it is reached from one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kledger.client.clients import LedgerEndpoints
from kledger.client.documents import DocumentEndpoints
from kledger.client.profiles import ProfileEndpoints
from kledger.client.recall import RecordedRecallEndpoints
from kledger.client.resources import ResourceEndpoints
from kledger.client.sessions import SessionEndpoints
from kledger.client.tools.endpoints import ToolEndpoints

FAMILIES: dict[type, Callable[[Any], Any]] = {
    LedgerEndpoints: lambda client: client,
    ProfileEndpoints: lambda client: client.profiles,
    RecordedRecallEndpoints: lambda client: client.recalls,
    ResourceEndpoints: lambda client: client.resources,
    DocumentEndpoints: lambda client: client.documents,
    SessionEndpoints: lambda client: client.session("s-1"),
    ToolEndpoints: lambda client: client.tools,
}
