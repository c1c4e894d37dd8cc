"""What sources 001 and 002 leave out or write shorter is taken: no task, and a mail address as the owner."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kledger.requests.owners import owner_named
from producers.requests.first_sentence import LONGEST, first_sentence
from tests.doors.test_http_sharing import EXAMPLES
from tests.examples import tries
from tests.journeys.running_node import ROOT, RunningNode
from tests.knowhub.doors import NAMES, Http
from tests.knowhub.walking import Walk
from tests.patience import PATIENCE


@pytest.mark.parametrize("walk", ["http", "sdk", "command"], indirect=True)
def test_a_task_that_is_left_out_is_the_first_sentence_of_the_content(walk: Walk) -> None:
    door = walk.door(agent="writer")
    item = door.one(door.save(task=None, content=f"先建影子表 {walk.word}。再双写。"))
    assert item["task"] == f"先建影子表 {walk.word}"


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_source_002_is_taken_as_it_is_written(shared_node: RunningNode, number: int) -> None:
    kind, _, name = EXAMPLES[number]["owner"].partition(":")
    door = Http(shared_node.url, {kind: name})
    told = door.ask("POST", "/api/knowledge", EXAMPLES[number])
    assert door.one(told["id"])["task"] == first_sentence(EXAMPLES[number]["content"])


def test_items_without_a_task_are_imported(shared_node: RunningNode) -> None:
    door = Http(shared_node.url, {"user": f"ann-{uuid4().hex[:8]}"})
    told = door.ask(
        "POST", "/api/knowledge/batch", {"items": [{"content": "Close the gate. Then go.", "type": "plan"}]}
    )
    assert told["saved"] == 1
    door.after = told["position"]
    assert door.one(told["results"][0]["id"])["task"] == "Close the gate"


@pytest.mark.parametrize(
    ("content", "task"),
    [
        ("先建影子表。再双写。", "先建影子表"),
        ("Use v1.2 of it. Then stop.", "Use v1.2 of it"),
        ("Why does it fail? Nobody knows.", "Why does it fail?"),
        ("one line\nanother", "one line"),
        ("...", "..."),
        ("x" * 300, "x" * LONGEST),
    ],
)
def test_the_first_sentence_ends_where_a_reader_ends_it(content: str, task: str) -> None:
    assert first_sentence(content) == task


@settings(max_examples=tries(200), deadline=None)
@given(st.text(min_size=1).filter(str.strip))
def test_every_content_has_a_task(content: str) -> None:
    task = first_sentence(content)
    assert 1 <= len(task) <= LONGEST
    assert task in content


@pytest.mark.parametrize("walk", NAMES, indirect=True)
def test_a_mail_address_is_the_user_of_that_address(walk: Walk) -> None:
    address = f"{walk.word}@example.com"
    door = walk.door_of(user=address)
    item_id = door.save(owner=address, scopes=[f"user:{address}"])
    item = door.one(item_id)
    assert (item["owner"], item["scopes"]) == (f"user:{address}", [f"user:{address}"])


def test_an_owner_is_stated_as_a_mail_address_wherever_one_is_stated(shared_node: RunningNode) -> None:
    address = f"ann-{uuid4().hex[:8]}@example.com"
    door = Http(shared_node.url, {"user": address, "team": "web"})
    item_id = door.save(owner=address)
    assert [item["id"] for item in door.ask("GET", "/api/knowledge", owner=address)["results"]] == [item_id]
    resource = {"id": f"code/{uuid4().hex[:8]}", "title": "t", "owner": address}
    door.ask("POST", "/api/resource", resource)
    assert door.ask("GET", f"/api/resource/{resource['id']}")["owner"] == f"user:{address}"
    assert door.ask("POST", "/api/knowledge/slim", {"owner": address, "dry_run": True})["owner"] == f"user:{address}"
    door.ask("PUT", f"/api/knowledge/{item_id}", {"owner": "given@example.com", "scopes": ["public"]})
    assert door.one(item_id)["owner"] == "user:given@example.com"


@pytest.mark.parametrize("stated", ["user:ann@example.com", "agent:a@b.c", "ann", "@example.com", "ann@", "a b@c.d", 3])
def test_what_is_no_mail_address_is_read_as_it_is(stated: object) -> None:
    assert owner_named(stated) == stated


def test_who_is_named_by_the_mail_address_of_git_owns_what_they_save(shared_node: RunningNode, tmp_path: Path) -> None:
    address = f"ann-{uuid4().hex[:8]}@example.com"
    settings = tmp_path / "gitconfig"
    settings.write_text(f"[user]\n\temail = {address}\n", "utf-8")
    here = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = {**here, "GIT_CONFIG_GLOBAL": str(settings), "KLEDGER_URL": shared_node.url}
    save = f'{shlex.quote(sys.executable)} -m producers.cli.main save --content "c" --types tool --json'
    ran = subprocess.run(
        ["bash", "-c", f'export KLEDGER_USER="$(git config --global user.email)"; {save}'],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    item = Http(shared_node.url, {"user": address}).one(json.loads(ran.stdout)["id"])
    assert (item["owner"], item["scopes"]) == (f"user:{address}", [f"user:{address}"])
