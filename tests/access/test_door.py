"""The HTTP door with tokens and limits: what is let in, what is counted, and what a refusal says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from producers.access.book import TokenBook
from producers.access.limits import Limits
from producers.access.tokens import create_token, revoke_token, tokens_file
from tests.doors.http_door import http_door, refusal

ITEM: dict[str, Any] = {"task": "t", "content": "c", "types": ["tool"]}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_too_many_requests_of_one_principal_are_told_when_to_come_again(tmp_path: Path) -> None:
    _, ada = create_token(tmp_path, {"user": ["ada"]})
    _, bob = create_token(tmp_path, {"user": ["bob"]})
    tokens = TokenBook(tokens_file(tmp_path))
    async with http_door(tokens=tokens, limits=Limits(rate=0.5, burst=3)) as door:
        for _ in range(3):
            assert (await door.get("/api/knowledge", headers=bearer(ada))).status_code == 200
        before = await door.head()
        answer = await door.post("/api/knowledge", json=ITEM, headers=bearer(ada))
        assert "try again in" in refusal(answer, 429, "rate_limited")
        assert answer.headers["Retry-After"] == "2"
        assert 0 < answer.json()["error"]["details"]["retry_after"] <= 2
        assert await door.head() == before
        counted = (await door.get("/metrics", headers=bearer(bob))).text
        assert "kledger_http_rate_limited_total 1.0" in counted
        assert (await door.get("/health")).status_code == 200


async def test_refused_tokens_are_counted_by_code_and_named_nowhere(tmp_path: Path) -> None:
    record, ada = create_token(tmp_path, {"user": ["ada"]})
    _, bob = create_token(tmp_path, {"user": ["bob"]})
    async with http_door(tokens=TokenBook(tokens_file(tmp_path))) as door:
        refusal(await door.get("/api/knowledge"), 401, "unauthenticated")
        refusal(await door.post("/api/admin/rebuild", headers=bearer(ada)), 403, "forbidden")
        revoke_token(tmp_path, record.id)
        answer = await door.get("/api/knowledge", headers=bearer(ada))
        assert ada not in refusal(answer, 401, "token_revoked")
        counted = (await door.get("/metrics", headers=bearer(bob))).text
        for code in ("unauthenticated", "forbidden", "token_revoked"):
            assert f'kledger_http_turned_away_total{{code="{code}"}} 1.0' in counted
        assert record.id not in counted


async def test_sizes_are_settings_of_the_node() -> None:
    async with http_door(limits=Limits(body=2_000, batch_body=4_000, batch=3)) as door:
        await door.saved(content="x" * 1_000)
        refusal(await door.post("/api/knowledge", json={**ITEM, "content": "x" * 2_000}), 413, "payload_too_large")
        refusal(await door.post("/api/knowledge/batch", json={"items": [ITEM] * 4}), 413, "payload_too_large")
        longer = {"items": [{**ITEM, "content": "x" * 2_000}] * 3}
        refusal(await door.post("/api/knowledge/batch", json=longer), 413, "payload_too_large")
        assert (await door.post("/api/knowledge/batch", json={"items": [ITEM] * 3})).status_code == 200


async def test_a_node_with_tokens_may_stand_behind_a_name_and_one_without_may_not(tmp_path: Path) -> None:
    tokens = TokenBook(tokens_file(tmp_path))
    async with http_door(tokens=tokens) as door:
        behind = {"Host": "ledger.example"}
        refusal(await door.get("/api/knowledge", headers=behind), 403, "not_owner")
        _, ada = create_token(tmp_path, {"user": ["ada"]})
        refusal(await door.get("/api/knowledge", headers=behind), 401, "unauthenticated")
        assert (await door.get("/api/knowledge", headers={**behind, **bearer(ada)})).status_code == 200


@pytest.mark.parametrize("role", ["agent", "operator"])
async def test_an_owner_is_filled_in_by_what_the_token_is_bound_to(tmp_path: Path, role: Any) -> None:
    _, token = create_token(tmp_path, {"user": ["ada"], "team": ["web"]}, role)
    async with http_door(tokens=TokenBook(tokens_file(tmp_path))) as door:
        told = await door.saved(bearer(token), scopes=["team:web"])
        seen = await door.get(f"/api/knowledge/{told['id']}", headers={**bearer(token), "X-Ledger-Team": "web"})
        assert seen.json()["owner"] == ("user:ada" if role == "agent" else "user:local")
        as_team = await door.saved({**bearer(token), "X-Ledger-Team": "web"})
        seen = await door.get(f"/api/knowledge/{as_team['id']}", headers={**bearer(token), "X-Ledger-Team": "web"})
        assert seen.json()["owner"] == "team:web"
