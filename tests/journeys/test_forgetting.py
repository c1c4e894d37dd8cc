"""A person is forgotten: no word of theirs is left in any file, whatever happens meanwhile, and all else stays."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest

from kledger import LedgerClient
from kledger.contract.errors import Erased, SubjectForgotten, UnknownReference
from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.integrity.signing_keys import VerifyingKey, public_keys
from ledger.store.jetstream import JetStreamLedger
from projections.vectors.embedding.hashed import hashed_vectors
from tests.files import contents
from tests.journeys.running_node import (
    ENVIRONMENT,
    RunningNode,
    caught_up,
    items,
    result_of,
    running,
    until,
)
from tests.openai_server import embedding_endpoint
from tests.patience import PATIENCE
from tests.processes import started
from tests.processes.sooner import sooner

MARKERS = [
    *(f"zebra{number:02d}marker" for number in range(11)),
    *(f"紫色标记第{number}号" for number in "一二三四五六七八九十"),
]
SECRETS = ["zebra15marker", "紫色标记第甲号", "zebra16marker", "紫色标记第乙号"]
MARKERS += [
    "zebra12marker",
    "紫色标记第丙号",
    "zebra13marker",
    "紫色标记第丁号",
    "zebra14marker",
    "紫色标记第戊号",
    *SECRETS,
]
REMEMBERED = [
    *(f"quagga{number:02d}marker" for number in range(8)),
    *(f"记忆标记第{number}号" for number in "一二三四"),
]
SAID = [*MARKERS]
MARKERS += REMEMBERED


def files_with(directory: Path, markers: list[str]) -> dict[str, list[str]]:
    """Which files hold which markers: in their bytes, and in every table of every DuckDB file that is closed."""
    found: dict[str, list[str]] = {}
    for path, content in contents(directory):
        if hits := [marker for marker in markers if marker.encode() in content]:
            found[path.relative_to(directory.parent if path == directory else directory).as_posix()] = hits
    return found


def rows_with(file: Path, markers: list[str]) -> dict[str, list[str]]:
    """Which tables of a view file hold which markers: strings may be compressed in its blocks."""
    found: dict[str, list[str]] = {}
    with duckdb.connect(str(file), read_only=True) as con:
        for (table,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            said = str(con.execute(f'SELECT * FROM "{table}"').fetchall())
            if hits := [marker for marker in markers if marker in said]:
                found[table] = hits
    return found


def backed_up_with(directory: Path, markers: list[str]) -> list[str]:
    """The markers that a backup holds anywhere: in the bytes of its files, or in an event."""
    events = duckdb.execute("SELECT * FROM read_parquet(?)", [str(directory / "**" / "*.parquet")]).fetchall()
    assert events
    return [marker for marker in markers if files_with(directory, [marker]) or marker in str(events)]


def tell_everything(op: LedgerClient) -> str:
    """Alice says each marker somewhere; bob and an agent say some about her. Returns an item of hers."""
    m = iter(SAID)
    alice, bob = op.acting_as(user="alice"), op.acting_as(user="bob")
    alice.profiles.register()
    alice.profiles.put("user", {"occupation": next(m), "people": [{"name": next(m), "notes": next(m)}]})
    alice.profiles.patch("work", {"expertise": [next(m)], "work_rules": [next(m)]})
    source = {"name": next(m), "urls": [f"https://example.com/{next(m)}"], "submitted_by": next(m)}
    own = alice.save(next(m), next(m), ["tool"], tags={"about": next(m)}, scopes=["user:alice"], source=source)
    alice.revise(own["id"], content=next(m), reason=next(m))
    shared = alice.save("What everybody may know", next(m), ["tool"], scopes=["public"])
    alice.rate(shared["id"], "helpful", query=next(m), reason=next(m))
    bob.rate(shared["id"], "harmful", task=next(m), outcome=next(m))
    op.acting_as(agent="scribe").save("What the agent knows of her", next(m), ["tool"], scopes=["user:alice"])
    alice.search(next(m))
    alice.focus("goal-1", next(m))
    keep_resources(op, m)
    assert next(m, None) is None
    remember(alice)
    bob.save("Bob's own", "bobs-own-word", ["tool"], scopes=["public"])
    caught_up(op)
    return str(own["id"])


def remember(alice: LedgerClient) -> None:
    """What alice remembers, in every field of a memory that takes words."""
    m = iter(REMEMBERED)
    alice.remember(
        event=next(m), layer="episodic", participants=[next(m)], outcome=next(m), artifacts=[next(m)], tags=[next(m)]
    )
    alice.remember(layer="procedural", name=next(m), trigger=next(m), steps=[next(m)])
    alice.remember(next(m), category=next(m))
    mood = alice.remember(next(m), "short", kind="mood")
    alice.confirm(mood["id"], case={"reason": next(m)})
    assert next(m, None) is None


def keep_resources(op: LedgerClient, m: Iterator[str]) -> None:
    """What alice keeps, shares with bob and takes back, and what an agent keeps for her; the secrets last."""
    alice, scribe = op.acting_as(user="alice"), op.acting_as(agent="scribe")
    title, body, language, reason = next(m), next(m), next(m), next(m)
    hers, only = (next(m), next(m)), ["user:alice"]
    first, second, third, fourth = m
    alice.resources.save("cookies/网站", title, body=body, secure_body=first, metadata={"language": language})
    alice.resources.save("cookies/网站", title, secure_body=f"{second} \n 密码", shared_with=["user:bob"])
    alice.resources.save("code/old", "t", secure_body=third)
    alice.resources.retire("code/old", reason=reason)
    scribe.resources.save("kept/for/alice", hers[0], body=hers[1], secure_body=fourth, scopes=only, shared_with=only)
    assert op.acting_as(user="bob").resources.get("cookies/网站")["secure_body"] == f"{second} \n 密码"
    assert alice.resources.get("kept/for/alice")["secure_body"] == fourth


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def assert_forgotten(op: LedgerClient, data: Path, item: str) -> None:
    """Nothing of alice is left in a file or an answer; what is others' is as it was."""
    caught_up(op)
    assert files_with(data, MARKERS) == {}
    alice = op.acting_as(user="alice")
    with pytest.raises(Erased):
        alice.get(item)
    life = alice.history(item)
    assert [version["content"] for version in life["versions"]] == ["[erased]", "[erased]"]
    assert [version["tags"] for version in life["versions"]] == [{}, {}]
    for words in (MARKERS[0], MARKERS[-1], "erased"):
        found = alice.search(words, record=False)["results"]
        assert {each["owner"] for each in found} <= {"user:bob"}
    assert op.sql("SELECT count(*) FROM refused_events")["rows"] == [[0]]
    assert op.search("bobs-own-word", record=False)["results"][0]["content"] == "bobs-own-word"
    for resource_id, who in (("cookies/网站", "alice"), ("cookies/网站", "bob"), ("kept/for/alice", "alice")):
        with pytest.raises(Erased):
            op.acting_as(user=who).resources.get(resource_id, include_expired=True)
    told = result_of(op, "verify")
    assert told["equal"], told["differences"]


def test_after_forget_no_word_of_the_person_is_in_any_file(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedding_endpoint() as paid:
        for name, value in (("URL", paid.url), ("MODEL", "m"), ("DIMENSIONS", "64"), ("KEY", "k")):
            monkeypatch.setitem(ENVIRONMENT, f"KLEDGER_EMBEDDING_{name}", value)
        with running(data) as node, node.client() as op:
            item = tell_everything(op)
            result_of(op, "snapshot")
            result_of(op, "backup", into=tmp_path / "backup")
            assert backed_up_with(tmp_path / "backup", MARKERS) == [], "a backup holds no word in clear even before"
            assert b"key.user" in (tmp_path / "backup" / "keys.json").read_bytes()
            in_clear = {name.partition("/")[0] for name in files_with(data, MARKERS)}
            assert in_clear == {"views", "snapshots"}, "the log itself holds no word in clear even before"
            result_of(op, "replay", into=tmp_path / "before.duckdb")
            for place in (data, tmp_path / "backup", tmp_path / "before.duckdb"):
                assert files_with(place, SECRETS) == {}, "no file holds a secret in clear even before"
            assert rows_with(tmp_path / "before.duckdb", SECRETS) == {}
            hers = {text for text in paid.texts if any(marker in text for marker in MARKERS)}
            calls = len(paid.texts)
            told = forget_by_command(node)
            assert told["receipt"]["left_in_clear"] == []
            said = b"kledger receipt\n" + orjson.dumps(told["receipt"], option=orjson.OPT_SORT_KEYS)
            by = VerifyingKey.from_text(told["signature"]["key"])
            assert by.signed(said, base64.b64decode(told["signature"]["signature"]))
            assert by.id in public_keys(data / "keys")
            assert told["receipt"]["snapshots_removed"] != []
            assert told["receipt"]["secrets_destroyed"] == 2
            kept = {text for text in hers if "\n" in text}  # of items; those of questions are in memory alone
            assert told["receipt"]["embeddings_removed"] == len(kept) > 4
            assert len(paid.texts) == calls, "what others said was not paid for again"
            assert_forgotten(op, data, item)
            assert_no_embedding_of(hers, data)
            result_of(op, "replay", into=tmp_path / "after.duckdb")
            assert rows_with(tmp_path / "after.duckdb", MARKERS) == {}
            for backup in (tmp_path / "backup", tmp_path / "backup-made-afterwards"):
                result_of(op, "backup", into=backup)
                assert backed_up_with(backup, MARKERS) == []
                kept = set(orjson.loads((backup / "keys.json").read_bytes())["records"])
                assert "gone.user=3Aalice" in kept
                assert "key.user=3Aalice" not in kept, "the backup holds no key of hers any more"
                assert "key.resource=3Acode=2Fold" not in kept, "nor one of a resource of hers"
                assert "key.resource=3Akept=2Ffor=2Falice" in kept
            assert result_of(op, "rebuild")["equal"]
            assert result_of(op, "forget", subject="user:alice") == told
            with pytest.raises(SubjectForgotten):
                op.acting_as(user="alice").save("t", MARKERS[0], ["tool"])
            with pytest.raises(UnknownReference):
                result_of(op, "forget", subject="user:nobody-of-this-name")
            told_by_log = op.sql("SELECT entity_id, actor FROM events WHERE type = 'subject.forgotten'")["rows"]
            assert told_by_log == [["user:alice", "user:local"]]
            position = published_by_hand(node, "user:carol", "in-clear-by-hand")
            caught_up(op)
            clear = result_of(op, "forget", subject="user:carol")
            assert clear["receipt"]["left_in_clear"] == [position], "what was never sealed is named"
    assert files_with(data, MARKERS) == {}
    for file in data.rglob("*.duckdb"):
        assert rows_with(file, MARKERS) == {}, file
    assert not any(marker in node.log.read_text("utf-8") for marker in MARKERS)


def forget_by_command(node: RunningNode) -> dict[str, Any]:
    """The receipt that `kledger forget` gives once it is told that this is meant."""

    def kledger(*words: str, said: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**ENVIRONMENT, "KLEDGER_URL": node.url}
        return started.kledger(*words, said=said, environment=environment)

    refused = kledger("forget", "user:alice", said="n\n")
    assert refused.returncode == 1
    assert "Forget user:alice?" in refused.stderr
    unasked = kledger("forget", "user:alice", said="")
    assert (unasked.returncode, "say --yes when it is meant" in unasked.stderr) == (2, True), unasked.stderr
    assert kledger("forget", "user:alice", "--json").returncode == 2
    assert kledger("forget", "team:x", "--yes").returncode == 1
    shown = kledger("forget", "user:alice", said="y\n")
    assert shown.returncode == 0, shown.stderr
    again = kledger("forget", "user:alice", "--yes", "--json")
    told: dict[str, Any] = orjson.loads(again.stdout)
    assert told["receipt"]["id"] in shown.stdout
    return told


def assert_no_embedding_of(texts: set[str], data: Path) -> None:
    """The broker's files hold none of their vectors."""
    left = b"".join(content for _, content in contents(data / "broker" / "jetstream"))
    for text in texts:
        assert hashed_vectors([text], 64)[0].astype("<f4").tobytes() not in left


def test_a_forgetting_that_kill_9_interrupts_twice_is_completed_at_the_next_start(data: Path) -> None:
    with running(data) as node:
        with node.client() as op:
            item = tell_everything(op)
            result_of(op, "snapshot")
            op.start_job("forget", subject="user:alice")
            until(lambda: node.children("projections.live.rebuild"), "the view is folded anew")
            kill_all(node)
        assert begun(data)
        assert files_with(data, MARKERS), "there was something left to do"
    with running(data) as node:
        until(lambda: list((data / "vectors").glob("generation-*")), "the vectors are made anew")
        kill_all(node)
        assert begun(data)
    with running(data) as node, node.client() as op:
        until(lambda: not begun(data), "the order is carried out")
        (receipt,) = [orjson.loads(path.read_bytes()) for path in (data / "receipts").iterdir()]
        assert_forgotten(op, data, item)
        assert result_of(op, "forget", subject="user:alice") == receipt
        assert len(op.sql("SELECT 1 FROM events WHERE type = 'subject.forgotten'")["rows"]) == 1


@pytest.mark.parametrize("job", ["verify", "rebuild"])
def test_a_person_who_is_forgotten_while_the_view_is_compared_is_no_damage(data: Path, job: Any) -> None:
    with running(data) as node, node.client() as op:
        op.save_many(items(300))
        tell_everything(op)
        comparing = op.start_job(job)
        until(lambda: node.children("projections.live.rebuild"), "the log is folded beside")
        forgetting = op.start_job("forget", subject="user:alice")
        told = op.wait_job(comparing["id"], timeout=PATIENCE)["result"] or {}
        assert told["equal"], told["differences"]
        op.wait_job(forgetting["id"], timeout=PATIENCE)
        assert result_of(op, "verify")["equal"]


def test_a_forgetting_that_cannot_be_done_is_a_reason_of_health_until_it_is(data: Path) -> None:
    with running(data) as node, node.client() as op:
        tell_everything(op)
        op.start_job("forget", subject="user:alice")
        until(lambda: node.children("projections.live.rebuild"), "the view is folded anew")
        kill_all(node)
    (order,) = begun(data)
    in_the_way = order.with_name(order.name.replace(".pending", ""))
    in_the_way.mkdir()  # where the receipt is to stand
    with running(data, env=sooner({"producers.node.eraser:_RETRY_SECONDS": 0.2})) as node, node.client() as op:
        until(lambda: any("a person is to be forgotten" in why for why in op.health()["reasons"]), "health tells")
        in_the_way.rmdir()
        until(lambda: not begun(data), "the order is carried out")
        until(lambda: op.health()["status"] == "healthy", "the node is well")


def test_another_node_of_the_same_log_forgets_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "KLEDGER_MASTER_KEY", "ab" * 32)
    with (
        running(tmp_path / "one") as one,
        running(tmp_path / "two", "--nats", one.access.url_for("admin")) as two,
        one.client() as op,
        two.client() as other,
    ):
        tell_everything(op)
        caught_up(other)
        assert files_with(tmp_path / "two", MARKERS), "it has folded what she said"
        told = result_of(op, "forget", subject="user:alice")
        name = f"{told['receipt']['id']}.json"
        until(lambda: (tmp_path / "two" / "receipts" / name).exists(), "the other node follows")
        assert files_with(tmp_path / "two", MARKERS) == {}
        assert result_of(other, "verify")["equal"]
        with pytest.raises(SubjectForgotten):
            other.acting_as(user="alice").save("t", MARKERS[0], ["tool"])


def test_a_node_that_slept_and_has_its_views_made_anew_keeps_nothing_in_its_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "KLEDGER_MASTER_KEY", "ab" * 32)
    with running(tmp_path / "one") as one, one.client() as op:
        nats = ("--nats", one.access.url_for("admin"))
        with running(tmp_path / "two", *nats) as two, two.client() as other:
            op.acting_as(user="alice").save("t", "xylophone", ["tool"], id="hers", scopes=["user:alice"])
            op.acting_as(user="mei").save("t", "marimba", ["tool"], id="kept", scopes=["public"])
            caught_up(other)
        assert files_with(tmp_path / "two" / "vectors", ["hers"])
        receipt = result_of(op, "forget", subject="user:alice")["receipt"]["id"]
        days = {"KLEDGER_RECALL_DETAIL_DAYS": "30"}  # as an upgrade does, it has the views made anew
        with running(tmp_path / "two", *nats, env=days) as two, two.client() as other:
            until((tmp_path / "two" / "receipts" / f"{receipt}.json").exists, "the other node follows")
            assert files_with(tmp_path / "two" / "vectors", ["hers"]) == {}
            verified = result_of(other, "verify")
            assert verified["equal"], verified


def begun(data: Path) -> list[Path]:
    """The orders that are not carried out yet."""
    return list((data / "receipts").glob("*.pending.json"))


def kill_all(node: RunningNode) -> None:
    """kill -9 of the node and all that works for it."""
    beside = ("projections.vectors.process", "projections.live.rebuild")
    for pid in (node.process.pid, node.broker, *(pid for module in beside for pid in node.children(module))):
        os.kill(pid, signal.SIGKILL)
    node.process.wait()


def published_by_hand(node: RunningNode, owner: str, content: str) -> int:
    """What a foreign client that seals nothing appends; its position."""

    async def append() -> int:
        ledger = await JetStreamLedger.connect(node.access, role="writer")
        try:
            fact = KnowledgeSaved(types=["tool"], task="t", content=content, scopes=[owner], owner=owner)
            return (await ledger.append(NewEvent(fact, "by-hand", owner))).position
        finally:
            await ledger.close()

    return asyncio.run(append())
