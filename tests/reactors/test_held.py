"""What a person retired or corrected and a model finds again is held on a node, whatever the model says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.contract.errors import UnknownProcess
from producers.cli.main import app
from tests.files import contents
from tests.journeys.running_node import RunningNode, caught_up, result_of
from tests.openai_chat import ChatEndpoint
from tests.reactors.test_extract import finding, finds, judges, verdict


def test_a_finding_that_a_person_retired_is_held_and_the_model_is_not_asked_about_it(
    ledger: LedgerClient, chat: ChatEndpoint
) -> None:
    pia = ledger.acting_as(user="pia")
    item = pia.save("Mooring", "The chimera ferry leaves the north pier at six.", ["tool"])["id"]
    pia.retire(item, reason="the pier is closed")
    again = finding("the CHIMERA ferry leaves the north pier at six", "m1", task="When the chimera ferry leaves")
    finds(chat, "chimera", again, finding("The chimera ferry takes no bicycles.", "m1"), again)
    judges(chat, "chimera")
    messages = [{"id": "m1", "role": "user", "content": "chimera: at six, and no bicycles"}]
    done = pia.within(trace_id="trace-ferry").extract(messages=messages)
    assert [each["action"] for each in done["items"]] == ["held", "saved", "held"]
    assert all("leaves the north pier" not in call.text for call in chat.asked if "<new item=" in call.text)
    (held,) = pia.held_statements()["results"]
    assert {each["knowledge_id"] for each in done["items"] if each["action"] == "held"} == {held["id"]}
    assert (held["item_id"], held["reason"], held["content"]) == (item, "the pier is closed", again["content"])
    second = pia.extract("chimera again")
    assert second["items"][0]["action"] == "held"
    assert pia.held_statements()["total"] == 1
    with pytest.raises(UnknownProcess):
        ledger.acting_as(user="mallory").release_statement(held["id"])
    saved = pia.release_statement(held["id"], reason="open again")["knowledge_id"]
    assert saved is not None
    found = pia.get(saved)
    assert (found["content"], found["owner"], found["status"]) == (again["content"], "user:pia", "active")
    assert (found["source"]["message_id"], found["source"]["trace_id"]) == ("m1", "trace-ferry")
    caught_up(ledger)
    assert result_of(ledger, "verify")["equal"]


def test_what_was_corrected_is_not_revised_back_by_a_model(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    quin = ledger.acting_as(user="quin")
    memory = quin.remember("The kraken office opens at eight on weekdays.", task="office hours")["id"]
    quin.revise(memory, content="The kraken office opens at noon, by appointment only.")
    caught_up(ledger)
    finds(chat, "kraken", finding("The kraken office opens at eight on weekdays.", "m1"))
    judges(chat, "kraken", verdict(0, "conflict", memory))
    done = quin.extract("kraken: at eight")
    assert [each["action"] for each in done["items"]] == ["held"]
    assert quin.get(memory)["content"] == "The kraken office opens at noon, by appointment only."
    other = ledger.acting_as(user="rob").extract("kraken: at eight")
    assert [each["action"] for each in other["items"]] == ["saved"], "what quin corrected is not rob's to know"


def test_the_commands_list_release_and_drop_what_is_held(modelled: RunningNode, tmp_path: Path) -> None:
    def ask(*words: str, json_too: bool = True) -> Any:
        ran = CliRunner(env={"KLEDGER_URL": modelled.url, "KLEDGER_USER": "sam"}).invoke(
            app, [*words, *(["--json"] if json_too else [])]
        )
        assert ran.exit_code == 0, ran.output
        return json.loads(ran.stdout) if json_too else ran.stdout

    said = ["The gorgon gate is painted green.", "The gorgon gate weighs two hundred kilograms."]
    for each in said:
        item = ask("save", "--task", "the gate", "--content", each, "--types", "tool")["id"]
        ask("retire", item, "--reason", "it was replaced")
    file = tmp_path / "again.jsonl"
    lines = [{"task": "a gate", "content": each.lower(), "types": ["tool"]} for each in said]
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert "0 saved, 0 unchanged, 0 refused of 2" in (shown := ask("import", str(file), json_too=False))
    assert "; 2 held (kledger memory held)" in shown
    assert ask("import", str(file))["held"] == 2
    listed = ask("memory", "held", json_too=False)
    assert all(word in listed for word in ("painted", "kilograms.", "retired:", "replaced", "user:sam"))
    first, second = ask("memory", "held")["results"]
    saved = ask("memory", "release", first["id"], "--reason", "it is back")["knowledge_id"]
    assert ask("show", saved)["content"] == first["content"]
    assert "dropped" in ask("memory", "drop", second["id"], json_too=False)
    assert "nothing is held" in ask("memory", "held", json_too=False)
    assert [each["id"] for each in ask("memory", "held", "--status", "dropped")["results"]] == [second["id"]]


def test_forgetting_a_person_leaves_no_word_of_what_is_held_of_them(
    modelled: RunningNode, ledger: LedgerClient
) -> None:
    una = ledger.acting_as(user="una")
    item = una.save("keys", "The selkieword cellar key hangs behind the clock.", ["tool"])["id"]
    una.retire(item, reason="selkieword moved")
    held = una.save_many([{"task": "k", "content": "the selkieword cellar key hangs behind the clock", "types": ["t"]}])
    assert held["held"] == 1
    caught_up(ledger)
    broker = [content for path, content in contents(modelled.data / "broker") if path.suffix == ".blk"]
    assert b"selkieword" not in b"".join(broker), "the log holds no word in clear even before"
    told = result_of(ledger, "forget", subject="user:una")
    assert told["receipt"]["left_in_clear"] == []
    caught_up(ledger)
    for table in ("processes", "knowledge_versions", "tombstones", "events"):
        assert ledger.sql(f"SELECT count(*) FROM {table} t WHERE t::VARCHAR LIKE '%selkieword%'")["rows"] == [[0]]
    (left,) = [each for each in ledger.held_statements()["results"] if each["owner"] == "user:una"]
    assert (left["content"], left["reason"]) == (None, None)
    assert result_of(ledger, "verify")["equal"]
