"""A node with tokens, and who holds them: what the attacks of this folder are tried on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from producers.access.tokens import create_token, revoke_token
from tests.journeys.running_node import RunningNode, caught_up, running

ADAS_SECRET = "ada-keeps-the-blue-key-under-the-stone"
ADAS_RESOURCE, ADAS_CREDENTIAL = "adas/account", "ada:password-in-the-vault-7f3a"
BOBS_SECRET = "bob-hides-the-red-key-in-the-clock"


@dataclass(frozen=True)
class Guarded:
    """The node, its tokens by holder, and their ids."""

    node: RunningNode
    tokens: dict[str, str]
    ids: dict[str, str]

    def client(self, holder: str) -> httpx.Client:
        """HTTP as one holder; `nobody` has no token."""
        headers = {} if holder == "nobody" else {"Authorization": f"Bearer {self.tokens[holder]}"}
        return httpx.Client(base_url=self.node.url, headers=headers, timeout=30)

    def sql(self, query: str) -> list[list[Any]]:
        """Rows of the live view, as the operator reads it when it has the whole log."""
        with self.node.client(token=self.tokens["operator"]) as ledger:
            return ledger.seeing(self.head()).sql(query)["rows"]

    def head(self) -> int:
        """The last position of the stream."""
        with self.node.client(token=self.tokens["operator"]) as ledger:
            return int(ledger.status()["stream"]["head"])

    def state(self) -> list[list[Any]]:
        """What no refused attack may change: every item and profile."""
        return self.sql(
            "SELECT id, version::VARCHAR, owner, content, scopes::VARCHAR FROM knowledge UNION ALL "
            "SELECT owner, version::VARCHAR, memory_type, content::VARCHAR, '' FROM profile_versions ORDER BY ALL"
        )


@contextmanager
def guarded(data: Path) -> Iterator[Guarded]:
    """A running node with items of Ada and Bob."""
    data.mkdir(parents=True)
    holders: dict[str, Any] = {
        "ada": ({"user": ["ada"], "agent": ["scribe"], "team": ["platform"]}, "agent"),
        "bob": ({"user": ["bob"]}, "agent"),
        "several": ({"project": ["p1", "p2"]}, "agent"),
        "analyst": ({}, "analyst"),
        "analyst-to-revoke": ({}, "analyst"),
        "operator": ({}, "operator"),
        "revoked": ({"user": ["ada"]}, "operator"),
    }
    tokens, ids = {}, {}
    for holder, (bound, role) in holders.items():
        record, tokens[holder] = create_token(data, bound, role)
        ids[holder] = record.id
    past = datetime.now(UTC) - timedelta(seconds=1)
    record, tokens["expired"] = create_token(data, {"user": ["ada"]}, "operator", past)
    ids["expired"] = record.id
    revoke_token(data, ids["revoked"])
    with running(data) as node:
        told = Guarded(node, tokens, ids)
        for holder, secret in (("ada", ADAS_SECRET), ("bob", BOBS_SECRET)):
            with node.client(token=tokens[holder]) as ledger:
                ledger.save("where the key is", secret, ["tool"], id=f"{holder}s-item")
                ledger.save(
                    "what all may know", f"{holder} waters plants", ["tool"], id=f"{holder}s-open", scopes=["public"]
                )
                ledger.profiles.register()
        with node.client(token=tokens["ada"]) as ledger:
            ledger.acting_as(user="ada").resources.save(ADAS_RESOURCE, "her account", secure_body=ADAS_CREDENTIAL)
        with node.client(token=tokens["operator"]) as ledger:
            caught_up(ledger)
        yield told
