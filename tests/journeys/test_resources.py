"""A secret goes in by the command and comes out for two readers; by no other way does anything of the node show it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from kledger import AsyncLedgerClient
from kledger.contract.errors import LedgerError, VersionConflict
from ledger.event import NewEvent
from ledger.events.resource import ResourceSaved
from ledger.store.jetstream import JetStreamLedger
from tests.journeys.running_node import ENVIRONMENT, ROOT, RunningNode, caught_up, result_of, running
from tests.journeys.test_forgetting import files_with, rows_with
from tests.patience import PATIENCE
from tests.processes import started

SECRETS = ["correct-horse-7f3a", "密码是牛油果九号", "rotated-horse-81c0"]
IN_CLEAR = "hunter-published-this-in-clear"
CLIENT = ROOT / "tests" / "analysts" / "quack_client.py"
RELATIONS = ("resources", "resource_versions", "events", "refused_events")


def kledger(node: RunningNode, *words: str, said: str = "", code: int = 0) -> str:
    """What a command prints, on both streams; its secret comes by stdin."""
    environment = {**ENVIRONMENT, "KLEDGER_URL": node.url}
    done = started.kledger("resource", *words, said=said, environment=environment)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_a_secret_is_told_to_its_readers_and_by_no_other_way(tmp_path: Path) -> None:
    data, about = tmp_path / "data", ("--title", "测试账号", "--type", "credential", "--share-with", "team:web")
    with running(data) as node, node.client() as op:
        key = "credentials/网站 a"
        file = tmp_path / "secret.txt"
        file.write_text(f"{SECRETS[1]}\n", "utf-8")
        told = [kledger(node, "save", key, *about, "--secure-file", "-", "--user", "ann", said=SECRETS[0])]
        told += [kledger(node, "save", key, *about, "--secure-file", str(file), "--user", "ann", "--json")]
        shown = kledger(node, "show", key, "--reveal", "--user", "bob", "--team", "web", "--json")
        assert json.loads(shown)["secure_body"] == SECRETS[1]
        told += [kledger(node, *words, "--user", "ann") for words in (["show", key], ["list"], ["history", key])]
        told += [kledger(node, "show", key, "--reveal", "--json")]  # the operator, who owns no secret of hers
        told += [kledger(node, "show", key, "--reveal", "--user", "eve", code=1)]
        told += [kledger(node, "save", key, *about, "--secure-file", "-", "--user", "eve", said=SECRETS[0], code=1)]
        told += [*refusals(node, key), replayed(node)]
        position = published_by_hand(node)
        caught_up(op)
        ((body, code),) = op.sql(f"SELECT body, code FROM refused_events WHERE position = {position}")["rows"]
        assert code == "secret_in_clear"
        assert IN_CLEAR not in body
        told += [str(op.refused()), httpx.get(f"{node.url}/metrics", timeout=PATIENCE).text, str(op.status())]
        told += [str(op.sql(f"SELECT * FROM {relation}")) for relation in RELATIONS] + analysts(node)
        told += [str(op.acting_as(user="ann").lineage(ref)) for ref in ("trace:t-1",)]
        result_of(op, "snapshot")
        result_of(op, "backup", into=tmp_path / "backup")
        result_of(op, "replay", into=tmp_path / "replayed.duckdb")
        assert result_of(op, "verify")["equal"]
        assert result_of(op, "rebuild")["equal"]
        ann = op.acting_as(user="ann")
        assert ann.resources.get(key)["secure_body"] == SECRETS[1]
        told += [kledger(node, "retire", key, "--destroy-secret", "--user", "ann")]
        assert ann.resources.get(key, as_of=2, include_expired=True)["secure"] == "erased"
    every = "\n".join(told)
    assert every.count("测试账号") > 8
    assert [secret for secret in (*SECRETS, IN_CLEAR) if secret in every] == []
    file.unlink()
    assert files_with(tmp_path, SECRETS) == {}
    for view in tmp_path.rglob("*.duckdb"):
        assert rows_with(view, [*SECRETS, IN_CLEAR]) == {}, view
    events = duckdb.execute("SELECT * FROM read_parquet(?)", [str(tmp_path / "backup" / "**" / "*.parquet")]).fetchall()
    assert not any(secret in str(events) for secret in SECRETS)
    # What somebody published in clear stays in the log, and so in its copies: the bytes of the log are kept for good.
    assert {name.split("/")[0] for name in files_with(tmp_path, [IN_CLEAR])} <= {"data", "backup"}


def refusals(node: RunningNode, key: str) -> list[str]:
    """Answers to requests that hold a secret and are wrong: none of them repeats it."""
    good = {"id": key, "title": "t", "secure_body": SECRETS[0], "content_type": "credential"}
    bad: list[Any] = [
        {**good, "secure_body": {"password": SECRETS[0]}},
        {**good, "secure_body": [SECRETS[0]]},
        {**good, "secret": SECRETS[0]},
        {**good, "title": None},
        {**good, "scopes": ["nobody"]},
        {**good, "expected_version": 9},
        {**good, "metadata": {"expires_at": "soon"}},
        {**good, "secure_body": SECRETS[0] + "\0"},
        {**good, "secure_body": SECRETS[0] * 60_000},
        [good],
    ]
    answers = []
    for body in bad:
        answer = httpx.post(f"{node.url}/api/resource", json=body, headers={"X-Ledger-User": "ann"}, timeout=PATIENCE)
        assert 400 <= answer.status_code < 500, answer.text
        answers.append(answer.text)
    cut = httpx.post(
        f"{node.url}/api/resource",
        content=json.dumps(good)[:-2],
        headers={"Content-Type": "application/json"},
        timeout=PATIENCE,
    )
    assert cut.status_code == 400
    return [*answers, cut.text]


def replayed(node: RunningNode) -> str:
    """What the door answers to a save that is sent twice under one key, in a trace."""
    headers = {"X-Ledger-User": "ann", "Idempotency-Key": "once", "X-Ledger-Trace-Id": "t-1"}
    body = {"id": "cookies/a", "title": "t", "secure_body": SECRETS[2], "content_type": "cookie"}
    first, again = (
        httpx.post(f"{node.url}/api/resource", json=body, headers=headers, timeout=PATIENCE) for _ in range(2)
    )
    assert first.status_code == again.status_code == 201
    assert again.json() == {**first.json(), "duplicate": True}
    return first.text + again.text


def published_by_hand(node: RunningNode) -> int:
    """A secret in clear, published by a client that seals nothing; its position."""

    async def append() -> int:
        ledger = await JetStreamLedger.connect(node.access, role="writer")
        try:
            said: dict[str, Any] = {"title": "t", "secure_body": IN_CLEAR, "scopes": ["public"], "owner": "agent:x"}
            return (
                await ledger.append(NewEvent(ResourceSaved.model_construct(None, **said), "by/hand", "agent:x"))
            ).position
        finally:
            await ledger.close()

    return asyncio.run(append())


def analysts(node: RunningNode) -> list[str]:
    """What an analyst reads over Quack: the views, and not one row that is refused."""
    with node.client() as op:
        attach = op.attach()["statement"]
    orders = {"attach": attach, "mode": "statements", "statements": [["server", f"FROM {name}"] for name in RELATIONS]}
    done = subprocess.run(
        [sys.executable, str(CLIENT)],
        input=json.dumps(orders) + "\n",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(RELATIONS)
    assert all("rows" in json.loads(line) for line in lines), done.stdout
    return lines


async def test_the_async_face_and_the_errors_of_the_door_are_the_same(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node:
        async with AsyncLedgerClient(node.url) as client:
            scribe = client.acting_as(agent="scribe").resources
            saved = await scribe.save("code/登录", "登录代码", body="driver.get(...)", metadata={"language": "python"})
            assert (await scribe.save("code/登录", "anew", expected_version=1))["version"] == saved["version"] + 1
            with pytest.raises(VersionConflict):
                await scribe.save("code/登录", "late", expected_version=1)
            assert [each["id"] for each in (await scribe.list(content_type="text"))["results"]] == ["code/登录"]
            await scribe.retire("code/登录", reason="old")
            await scribe.restore("code/登录")
            changes = [version["change"] for version in (await scribe.history("code/登录"))["versions"]]
            assert changes == ["saved", "saved", "retired", "restored"]
            for who in (client.acting_as(user="bob"), client.acting_as(agent="scribe")):
                for call in (who.resources.get("code/none"), who.resources.retire("code/none")):
                    with pytest.raises(LedgerError) as told:
                        await call
                    assert told.value.code == "unknown_resource"
