"""Where a node may listen: without tokens on loopback alone, with them anywhere, and then nobody gets in without."""

from __future__ import annotations

from pathlib import Path

import httpx

from producers.access.tokens import create_token
from tests.journeys.running_node import running, up
from tests.patience import PATIENCE
from tests.processes import started

ELSEWHERE = "127.0.0.2:0"  # this machine still, and not one of the names that a node takes for its own


def test_another_address_is_served_with_tokens_only(tmp_path: Path) -> None:
    data = tmp_path / "data"
    ran = started.kledger(*up(data, ELSEWHERE))
    assert ran.returncode == 1
    assert "kledger token create" in ran.stderr
    assert not (data / "broker").exists(), "nothing was begun"
    _, token = create_token(data, {"user": ["ada"]})
    with running(data, "--quack", "off", http=ELSEWHERE) as node:
        with httpx.Client(base_url=node.url, trust_env=False, timeout=PATIENCE) as client:
            assert client.get("/health").status_code == 200
            assert client.get("/api/knowledge").status_code == 401
            told = client.get("/api/knowledge", headers={"Authorization": f"Bearer {token}"})
            assert told.status_code == 200
            (data / "tokens.json").unlink()
            assert client.get("/api/knowledge").status_code == 401
        assert token not in node.said()
