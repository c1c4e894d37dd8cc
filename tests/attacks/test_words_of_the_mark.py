"""Attacks with the words that stand where something was erased: whoever writes them has erased nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import nats
import orjson
import pytest
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.contract.errors import Erased, KnowledgeExists, SubjectForgotten
from ledger.privacy.sealed import ERASED
from producers.cli.main import app
from producers.tree.writing import export_tree
from tests.journeys.running_node import RunningNode, caught_up, result_of, running
from tests.journeys.test_publishing_by_hand import ACTOR, data, envelope, subject, text

WORDS = {"mark": ERASED, "sentence": f"quokka: the page says {ERASED} where a name was"}
WHO = {"ada": {"X-Ledger-User": "ada"}, "scribe": {"X-Ledger-Agent": "scribe"}}
CASES = [(who, said) for who in WHO for said in WORDS]


def requests_of(who: str, said: str, words: str) -> dict[str, Any]:
    """What is sent by each endpoint with one key, and says these words wherever it says any."""
    name = f"{who}-{said}"
    source = {"name": words, "category": words, "urls": [words], "submitted_by": words}
    item = {"task": words, "content": words, "types": ["tool"], "tags": {"a": [words]}, "source": source}
    resource = {"id": f"r/{name}", "title": words, "body": words, "secure_body": words, "metadata": {"language": words}}
    asked = {
        "POST /api/knowledge": {**item, "id": f"new-{name}", "scopes": ["public"]},
        f"PUT /api/knowledge/revised-{name}": {"content": words, "task": words, "reason": words},
        f"PUT /api/knowledge/judged-{name}": {"add_helpful_case": {"reason": words, "query": words}},
        "POST /api/resource": resource,
        f"POST /api/goals/{said}/focus": {"description": words},
    }
    return asked | ({"PUT /api/v1/memories/work": {"content": {"occupation": words}}} if who == "ada" else {})


def ask(node: RunningNode, line: str, who: str, said: str, body: Any) -> httpx.Response:
    method, _, path = line.partition(" ")
    headers = WHO[who] | {"Idempotency-Key": f"{who}-{said}"}
    return httpx.request(method, node.url + path, json=body, headers=headers, timeout=30)


def acting(op: LedgerClient, who: str) -> LedgerClient:
    return op.acting_as(**{"user" if who == "ada" else "agent": who})


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node that was told all of it, after a restart: what it remembers of a request, it has from the log."""
    data: Path = tmp_path_factory.mktemp("mark") / "data"
    with running(data, "--quack", "off") as first:
        with first.client() as op:
            for who, said in CASES:
                for kind in ("revised", "judged"):
                    item = f"{kind}-{who}-{said}"
                    acting(op, who).save(item, f"before {item}", ["tool"], id=item, scopes=["public"])
            caught_up(op)
        for who, said in CASES:
            for line, body in requests_of(who, said, WORDS[said]).items():
                told = ask(first, line, who, said, body)
                assert told.is_success, (line, told.text)
        assert first.stop() == 0
    with running(data, "--quack", "off") as again:
        with again.client() as op:
            caught_up(op)
        yield again


@pytest.mark.parametrize(("who", "said"), CASES)
def test_a_key_of_a_request_that_says_the_mark_is_refused_to_other_words_and_answers_its_own(
    node: RunningNode, who: str, said: str
) -> None:
    sent, others = (requests_of(who, said, words) for words in (WORDS[said], "transfer it to mallory"))
    for line, body in sent.items():
        for part in others[line].keys() - {"id", "types", "scopes"}:
            told = ask(node, line, who, said, {**body, part: others[line][part]})
            code = told.json().get("error", {}).get("code")
            assert (told.status_code, code) == (422, "idempotency_mismatch"), (line, part, told.text)
        again = ask(node, line, who, said, body)
        assert again.is_success, (line, again.text)


@pytest.mark.parametrize(("who", "said"), CASES)
def test_what_says_the_mark_is_read_found_listed_and_brought_back(node: RunningNode, who: str, said: str) -> None:
    words, name = WORDS[said], f"{who}-{said}"
    with node.client() as op:
        me = acting(op, who)
        for item in (f"new-{name}", f"revised-{name}"):
            assert (me.get(item)["task"], me.get(item)["content"]) == (words, words)
            found = {each["id"] for each in me.search(words, top_k=50, record=False)["results"]}
            assert item in found, "by its own words"
        (first, second) = me.history(f"revised-{name}")["versions"]
        assert me.get(f"revised-{name}", as_of=second["valid_from"])["content"] == words
        me.revert(f"revised-{name}", first["version"])
        assert me.revert(f"revised-{name}", second["version"])["version"] == 4
        assert me.get(f"revised-{name}")["content"] == words
        (case,) = me.get(f"judged-{name}")["eval"]["helpful_history"]
        assert (case["reason"], case["query"]) == (words, words)
        resource = me.resources.get(f"r/{name}")
        assert [resource[part] for part in ("title", "body", "secure_body")] == [words] * 3
        assert me.goal(said)["description"] == words
        if who == "ada":
            assert (me.profiles.get("work") or {})["occupation"] in WORDS.values()
        assert me.startup()["count"] > 0


def test_an_item_whose_content_is_the_mark_is_searchable_and_startup_serves_it(node: RunningNode) -> None:
    with node.client() as op:
        ada = op.acting_as(user="ada")
        item = ada.save("profile of the numbat", ERASED, ["user_profile"], scopes=["user:ada"])["id"]
        caught_up(op)
        assert item in {each["id"] for each in ada.search("numbat", record=False)["results"]}
        assert ERASED in json.dumps(ada.startup())


async def test_what_a_publisher_states_is_read_as_it_says_and_a_replay_agrees(node: RunningNode) -> None:
    user = node.access.credentials("writer")
    assert user is not None
    client = await nats.connect(node.access.url, user=user[0], password=user[1])
    for said, words in WORDS.items():
        document = envelope(f"raw-{said}", data=data("by hand", content=words, tags={"a": words}))
        await client.jetstream().publish(subject(f"raw-{said}"), text(document))
    with node.client() as op:
        caught_up(op)
        for said, words in WORDS.items():
            assert op.get(f"raw-{said}")["content"] == words
            reader = op.acting_as(agent=ACTOR.partition(":")[2])
            assert f"raw-{said}" in {each["id"] for each in reader.search(words, top_k=50, record=False)["results"]}
        told = result_of(op, "verify")
        assert told["equal"], told["differences"]
    await client.close()


def test_commands_files_and_tools_keep_the_mark_as_words(node: RunningNode, tmp_path: Path) -> None:
    def command(*words: str) -> Any:
        ran = CliRunner(env={"KLEDGER_URL": node.url, "KLEDGER_USER": "cli"}).invoke(app, [*words, "--json"])
        assert ran.exit_code == 0, ran.output
        return json.loads(ran.stdout)

    item = command("save", "--content", ERASED, "--types", "tool", "--id", "by-command")["id"]
    assert command("show", item)["content"] == ERASED
    lines = [{"id": "by-file", "task": ERASED, "content": ERASED, "types": ["tool"]}]
    (tmp_path / "items.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    assert command("import", str(tmp_path / "items.jsonl"))["saved"] == 1
    assert command("import", str(tmp_path / "items.jsonl"))["unchanged"] == 1
    with node.client() as op:
        cli = op.acting_as(user="cli")
        saved = cli.tools.knowledge_save(task=ERASED, content=ERASED, types=["tool"], owner="user:cli")
        assert cli.get(saved["id"])["content"] == ERASED
        caught_up(op)
        written = export_tree(cli, tmp_path / "tree")
        assert "erased" not in written.left_out
        files = b"".join(path.read_bytes() for path in (tmp_path / "tree").rglob("*.json"))
        for name in ("by-command", "by-file", saved["id"]):
            assert name.encode() in files


def test_what_is_erased_stays_erased_whatever_others_write(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    cases = {"reason": "she says it works"}
    with running(directory, "--quack", "off") as node:
        with node.client() as op:
            eve, scribe = op.acting_as(user="eve"), op.acting_as(agent="scribe")
            for item, words in (("hers", "her words"), ("hers-marked", ERASED)):
                eve.save("of eve", words, ["tool"], id=item, scopes=["public"])
            scribe.save("of nobody", ERASED, ["tool"], id="others", scopes=["public"])
            scribe.save("for eve", "what she likes", ["tool"], id="for-eve", scopes=["user:eve"])
            eve.resources.save("r/hers", ERASED, body=ERASED)
            scribe.resources.save("r/for-eve", "for eve", body="what she likes", scopes=["user:eve"])
            eve.focus("g", ERASED)
            scribe.rate("hers", "helpful", **cases, idempotency_key="rated")
            caught_up(op)
            assert [eve.get(item)["content"] for item in ("hers", "hers-marked")] == ["her words", ERASED]
            result_of(op, "forget", subject="user:eve")
            caught_up(op)
        assert node.stop() == 0
    with running(directory, "--quack", "off") as node, node.client() as op:
        caught_up(op)
        eve, scribe = op.acting_as(user="eve"), op.acting_as(agent="scribe")
        for item in ("hers", "hers-marked"):
            with pytest.raises(Erased):
                eve.get(item)
            with pytest.raises(Erased):
                eve.revert(item, 1)
        with pytest.raises(Erased):
            eve.resources.get("r/hers")
        with pytest.raises(Erased):
            eve.goal("g")
        assert op.sql("SELECT id, content, erased FROM knowledge ORDER BY id")["rows"] == [
            *(["for-eve", ERASED, True], ["hers", ERASED, True], ["hers-marked", ERASED, True]),
            ["others", ERASED, False],
        ]
        found = {each["id"] for each in scribe.search(ERASED, top_k=50, record=False)["results"]}
        assert found == {"others"}
        assert scribe.get("others")["content"] == ERASED
        again = scribe.rate("hers", "helpful", reason="other words", idempotency_key="rated")
        assert again["id"] == "hers", "what was erased says nothing that could be compared"
        with pytest.raises((KnowledgeExists, SubjectForgotten)):  # what stands there is not what was said
            scribe.save(ERASED, ERASED, ["tool"], id="for-eve", scopes=["user:eve"])
        with pytest.raises(SubjectForgotten):
            scribe.resources.save("r/for-eve", ERASED, body=ERASED, scopes=["user:eve"])
        written = export_tree(op.acting_as(agent="scribe"), tmp_path / "tree")
        assert written.left_out["erased"] == 3
        assert b"others" in b"".join(path.read_bytes() for path in (tmp_path / "tree").rglob("*.json"))
        told = result_of(op, "verify")
        assert told["equal"], told["differences"]
