"""Knowledge is found in what people and agents said: kept with its messages, confirmed, or told to be a conflict."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import pytest
from typer.testing import CliRunner

from consumers.reactors.findings import Finding
from kledger import LedgerClient
from kledger.contract.errors import InvalidPayload, NotOwner, UnknownProcess
from producers.cli.main import app
from tests.files import contents
from tests.journeys.running_node import RunningNode, caught_up, result_of, until
from tests.openai_chat import ChatEndpoint


def finding(content: str, *messages: str, **about: Any) -> dict[str, Any]:
    stated = {"type": "tool", "task": content, "category": "exp", "domain": "office"} | about
    return {**stated, "content": content, "message_ids": list(messages)}


def finds(chat: ChatEndpoint, word: str, *found: dict[str, Any]) -> None:
    """Have the model find these in messages that hold `word`."""
    chat.says({"items": list(found)}, to=lambda text: word in text and "<message id=" in text)


def judges(chat: ChatEndpoint, word: str, *verdicts: dict[str, Any]) -> None:
    """Have it judge findings that hold `word`."""
    chat.says({"verdicts": list(verdicts)}, to=lambda text: word in text and "<new item=" in text)


def verdict(item: int, verdict: str, known: str | None) -> dict[str, Any]:
    return {"item": item, "verdict": verdict, "known": known, "reason": "they say so"}


@pytest.mark.parametrize("judged", ["duplicate", "conflict"])
def test_what_somebody_says_of_themselves_is_compared_with_nobody_elses_profile(
    ledger: LedgerClient, chat: ChatEndpoint, judged: str
) -> None:
    word = f"basilisk-{judged}"
    said = f"Wants short answers about the {word}."
    theirs = ledger.acting_as(user="alba").save("Answers", said, ["user_profile"], scopes=["public"])["id"]
    caught_up(ledger)
    finds(chat, word, finding(said, "m-1", type="user_profile"))
    judges(chat, word, verdict(0, judged, theirs))
    bo = ledger.acting_as(user=f"bo-{judged}")
    done = bo.extract(messages=[{"id": "m-1", "role": "user", "content": said}], kind="statement")
    assert [each["action"] for each in done["items"]] == ["saved"]
    (own,) = bo.list(owner=f"user:bo-{judged}")["results"]
    assert (own["content"], own["types"]) == (said, ["user_profile"])
    assert not [call for call in chat.asked if theirs in call.text], "a model is not told of it"
    assert bo.conflicts()["results"] == []
    # Their own is known: said again, it is evidence.
    caught_up(ledger)
    judges(chat, word, verdict(0, "duplicate", own["id"]))
    again = bo.extract(messages=[{"id": "m-2", "role": "user", "content": said}], kind="statement")
    assert again["items"] == [{"knowledge_id": own["id"], "action": "confirmed"}]


def test_what_somebody_says_of_themselves_becomes_their_profile(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    mei = ledger.acting_as(user="梅", agent="scribe").within(trace_id="trace-tea", message_id="m-tea")
    said = finding("喜欢不加糖的乌龙茶。", "m-tea", "made-up", type="user_profile", category="liking", task="泡茶时")
    finds(chat, "乌龙", said)
    judges(chat, "乌龙")
    done = mei.extract("我只喝不加糖的乌龙茶。", scopes=["project:web", "public"])
    assert (done["status"], [each["action"] for each in done["items"]]) == ("completed", ["saved"])
    item = mei.get(done["items"][0]["knowledge_id"])
    assert (item["types"], item["owner"], item["scopes"]) == (["user_profile"], "user:梅", ["user:梅", "project:web"])
    assert item["tags"] == {"category": "background", "domain": "office", "message_ids": ["m-tea"]}
    assert (item["source"]["message_id"], item["source"]["trace_id"]) == ("m-tea", "trace-tea")
    assert (item["eval"]["helpful"], item["eval"]["confidence"]) == (1, 0.5)
    assert item["id"] in {edge["entity_id"] for edge in ledger.lineage("message:m-tea")["edges"]}
    with pytest.raises(UnknownProcess):
        ledger.acting_as(user="bob").extraction(done["id"])


def test_messages_in_the_form_of_models_apis_are_taken_and_those_without_words_are_read_over(
    ledger: LedgerClient, chat: ChatEndpoint
) -> None:
    scribe = ledger.acting_as(agent="scribe-of-calls")
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    spoken: list[dict[str, Any]] = [
        {"id": "m1", "role": "user", "content": "What feeds the wyvern?"},
        {"id": "m2", "role": "assistant", "content": None, "refusal": None, "tool_calls": [call]},
        {"id": "m3", "role": "tool", "content": "The wyvern eats kelp.", "tool_call_id": "c1"},
        {"id": "m4", "role": "assistant", "content": "", "tool_calls": None},
    ]
    finds(chat, "wyvern", finding("The wyvern eats kelp.", "m3", "m2"))
    judges(chat, "wyvern")
    done = scribe.extract(messages=spoken, kind="conversation")
    assert ([each["action"] for each in done["items"]], done["messages"]) == (["saved"], 2)
    assert scribe.get(done["items"][0]["knowledge_id"])["tags"]["message_ids"] == ["m3"]
    (asked,) = [each.text for each in chat.asked if "What feeds the wyvern" in each.text]
    assert "None" not in asked
    with pytest.raises(InvalidPayload, match="without words"):
        scribe.extract(messages=[spoken[1], spoken[3]], kind="conversation")


def test_a_model_is_told_when_a_message_was_said_so_that_tomorrow_becomes_a_date(
    ledger: LedgerClient, chat: ChatEndpoint
) -> None:
    finds(chat, "gorgon", finding("狮鹫 gorgon 在2026年3月6日搬家。", "m1"))
    judges(chat, "gorgon")
    spoken = [
        {"id": "m1", "role": "user", "content": "gorgon 明天搬家。", "created_at": "2026-03-05T12:00:00+08:00"},
        {"id": "m2", "role": "user", "content": "gorgon 上周三到的。"},
    ]
    done = ledger.acting_as(agent="scribe-of-days").extract(messages=spoken, kind="conversation")
    (asked,) = [each.text for each in chat.asked if "gorgon 明天搬家" in each.text]
    assert '<message id="m1" role="user" time="2026-03-05T12:00:00+08:00">' in asked
    assert f'<message id="m2" role="user" time="{done["requested_at"]}">' in asked
    assert "按消息的 `time` 写成日期" in asked


def test_what_is_known_is_confirmed_what_contradicts_it_is_a_conflict_and_the_rest_is_new(
    ledger: LedgerClient, chat: ChatEndpoint
) -> None:
    scribe = ledger.acting_as(agent="scribe")
    known = scribe.save("Open the manticore gate", "With the brass key.", ["tool"])["id"]
    hours = scribe.save("When the manticore gate opens", "At eight.", ["definition"])["id"]
    caught_up(ledger)
    finds(
        chat,
        "manticore",
        finding("The manticore gate takes the brass key.", "m1"),
        finding("The manticore gate opens at nine.", "m2"),
        finding("The manticore gate sticks in winter.", "m1", "m2"),
        finding("   ", "m1"),
        finding("Somebody likes gates.", "m1", type="user_profile"),
    )
    judges(chat, "manticore", verdict(0, "duplicate", known), verdict(1, "conflict", hours), verdict(2, "new", None))
    messages = [
        {"id": "m1", "role": "user", "content": "The manticore gate? Brass key. It sticks in winter."},
        {"id": "m2", "role": "assistant", "content": "It opens at nine; and yes, it sticks."},
    ]
    done = scribe.within(trace_id="trace-gate").extract(messages=messages, kind="conversation")
    actions = [each["action"] for each in done["items"]]
    assert actions == ["confirmed", "conflict", "saved"]
    assert done["items"][0]["knowledge_id"] == known
    assert done["usage"] is not None
    assert done["usage"]["calls"] == 2
    assert done["usage"]["prompt_version"].startswith(
        f"{ledger.prompt('knowledge_extraction', language='en')['version']}+judge-"
    )

    assert scribe.get(known)["eval"]["confidence"] == pytest.approx((2 * 0.5 + 1) / 3), "evidence, not a copy"
    nine, sticks = done["items"][1]["knowledge_id"], done["items"][2]["knowledge_id"]
    assert scribe.get(sticks)["tags"]["message_ids"] == ["m1", "m2"]
    (conflict,) = scribe.conflicts(item_id=nine)["results"]
    assert (conflict["first"], conflict["second"], conflict["extraction"]) == (hours, nine, done["id"])
    assert ledger.acting_as(user="bob").conflicts()["results"] == []
    with pytest.raises(InvalidPayload):
        scribe.resolve_conflict(conflict["id"], known)
    decided = scribe.resolve_conflict(conflict["id"], nine, reason="the sign says nine")
    assert decided["retired"] == hours
    assert scribe.get(hours)["status"] == "retired"
    assert scribe.conflicts(item_id=nine)["results"] == []
    assert scribe.conflicts(item_id=nine, status=None)["results"][0]["winner"] == nine


@pytest.mark.parametrize(("said", "language"), [("喂狮鹫要趁早。", "zh"), ("Feed the gryphon early.", "en")])
def test_the_model_is_told_the_prompt_that_is_handed_out(
    ledger: LedgerClient, chat: ChatEndpoint, said: str, language: Literal["zh", "en"]
) -> None:
    chat.says({"items": []}, to=said)
    done = ledger.acting_as(agent="scribe").extract(said)
    prompt = ledger.prompt("knowledge_extraction", language=language)
    (told,) = [call.text for call in chat.asked if said in call.text]
    assert told.startswith(prompt["text"].strip())
    assert done["usage"] is not None
    assert done["usage"]["prompt_version"] == prompt["version"]
    assert set(Finding.model_fields) <= set(re.findall(r"`(\w+)`", prompt["text"])), (
        "it names every field of the answer"
    )


def test_the_model_is_told_who_speaks_where_several_have_one_role(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    chat.says({"items": []}, to="phoenix-quay")
    scribe = ledger.acting_as(agent="scribe")
    said = [{"type": "text", "text": "I feed"}, {"type": "text", "text": "the phoenix-quay."}]
    named = {"role": "user", "name": 'Ken "K"', "content": said, "refusal": None}
    scribe.extract(messages=[named, {"role": "user", "content": "So do I."}])
    (told,) = [call.text for call in chat.asked if "phoenix-quay" in call.text]
    told = re.sub(' time="[^"]*"', "", told)
    assert 'role="user" name="Ken \\"K\\"">\nI feed\nthe phoenix-quay.\n' in told
    assert 'role="user">\nSo do I.\n' in told
    with pytest.raises(InvalidPayload, match="of the type 'image_url'"):  # a picture says no word to extract
        scribe.extract(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])


def test_a_second_extraction_knows_what_the_first_one_found(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    scribe = ledger.acting_as(agent="scribe")
    finds(chat, "hippogriff", finding("Feed the hippogriff at dawn."))
    judges(chat, "hippogriff")
    first = scribe.extract("hippogriff: at dawn", wait=0)
    second = scribe.extract("hippogriff, at dawn!")
    found = scribe.extraction(first["id"])["items"][0]["knowledge_id"]
    compared = [call.text for call in chat.asked if "<new item=" in call.text and "hippogriff" in call.text]
    assert f'<known id="{found}">' in compared[-1]
    assert second["items"][0]["action"] == "saved"


def test_what_a_person_revises_while_the_model_compares_is_not_overwritten(
    modelled: RunningNode, ledger: LedgerClient, chat: ChatEndpoint
) -> None:
    ida = ledger.acting_as(user="ida")
    known = ida.remember("The manticore is fed at noon.", layer="semantic")["id"]
    ida.wait_searchable()

    def meanwhile(_text: str) -> dict[str, Any]:
        with modelled.client() as another:
            another.acting_as(user="ida").revise(known, content="The manticore is fed at nine.")
        return {"verdicts": [verdict(0, "conflict", known)]}

    finds(chat, "manticore", finding("The manticore is fed at midnight."))
    chat.says(meanwhile, to=lambda text: "manticore" in text and "<new item=" in text)
    asked = ida.extract("manticore: at midnight")["id"]
    until(lambda: ida.extraction(asked)["status"] == "completed", "the extraction is completed")
    assert [each["action"] for each in ida.extraction(asked)["items"]] == ["conflict"]
    assert ida.get(known)["content"] == "The manticore is fed at nine."


def test_a_message_that_says_the_mark_of_what_was_erased_is_read_like_any_other(
    ledger: LedgerClient, chat: ChatEndpoint
) -> None:
    finds(chat, "[erased]", finding("The basilisk page shows marks.", "m1"))
    judges(chat, "basilisk")
    done = ledger.acting_as(user="ola").extract(messages=[{"id": "m1", "role": "user", "content": "[erased]"}])
    until(lambda: ledger.extraction(done["id"])["status"] == "completed", "the extraction is completed")


def test_an_extraction_with_nothing_to_find_or_for_somebody_else(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    finds(chat, "good morning")
    ana = ledger.acting_as(user="ana")
    asked = ana.extract("good morning")["id"]  # it answers what there is when its patience ends, on a slow machine
    until(lambda: ana.extraction(asked)["status"] == "completed", "the extraction is completed")
    assert ana.extraction(asked)["items"] == []
    with pytest.raises(NotOwner):
        ledger.acting_as(user="ana").extract("x", owner="user:bob")
    failed = ledger.acting_as(user="ana").extract("nothing is scripted for this")
    assert (failed["status"], failed["code"]) == ("failed", "model_failed")


def test_findings_that_show_nothing_are_left_out_and_the_others_kept(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    whole = finding("Feed the cockatrice at dusk.", "c-1")
    finds(chat, "cockatrice", {**whole, "task": " "}, {**whole, "content": "\u200b\u3000"}, whole)
    judges(chat, "cockatrice")
    fay = ledger.acting_as(user="fay")
    asked = fay.extract(messages=[{"id": "c-1", "role": "user", "content": "cockatrice"}])["id"]
    until(lambda: fay.extraction(asked)["status"] == "completed", "the extraction is completed")
    assert [each["action"] for each in fay.extraction(asked)["items"]] == ["saved"]


def test_the_commands_extract_evolve_and_decide(modelled: RunningNode, chat: ChatEndpoint, tmp_path: Any) -> None:
    def ask(*words: str, stdin: str | None = None) -> Any:
        ran = CliRunner(env={"KLEDGER_URL": modelled.url, "KLEDGER_USER": "cli"}).invoke(
            app, [*words, "--json"], input=stdin
        )
        assert ran.exit_code == 0, ran.output
        return json.loads(ran.stdout)

    finds(chat, "wyvern", finding("Oil the wyvern.", "w1"))
    judges(chat, "wyvern")
    file = tmp_path / "said.json"
    file.write_text(json.dumps([{"id": "w1", "role": "user", "content": "wyvern: oil it"}]))
    item = ask("extract", str(file), "--kind", "conversation")["items"][0]["knowledge_id"]
    second = ask("extract", "-", stdin="wyvern again")
    assert second["status"] == "completed"
    assert ask("extraction", "show", second["id"])["items"] == second["items"]
    assert second["id"] == ask("extraction", "list", "--limit", "1")["results"][0]["id"]
    chat.says({"content": "Oil it twice.", "task": None, "reason": "r"}, to="twice wyvern")
    proposed = ask("evolve", item, "twice wyvern", "--dry-run")["evolution"]["id"]
    assert ask("evolution", "show", proposed)["status"] == "proposed"
    assert ask("evolution", "apply", proposed)["status"] == "applied"
    assert [each["id"] for each in ask("evolution", "list", "--item", item)["results"]] == [proposed]
    assert ask("evolution", "revert", proposed)["status"] == "reverted"
    assert ask("revert", item, "2")["version"] == 4
    assert ask("conflicts", "list")["results"] == []
    assert ask("show", item)["content"] == "Oil it twice."


def test_forgetting_a_person_leaves_nothing_of_what_models_were_told_of_them(
    modelled: RunningNode, ledger: LedgerClient, chat: ChatEndpoint
) -> None:
    eve = ledger.acting_as(user="eve")
    finds(chat, "sphinxword", finding("The sphinxword answer.", type="user_profile", category="habit"))
    judges(chat, "sphinxword")
    extraction = eve.extract("sphinxword: I always answer")
    item = extraction["items"][0]["knowledge_id"]
    chat.says({"content": "A sphinxword, rewritten.", "task": "sphinxword", "reason": "sphinxword"}, to="feedback>")
    evolution = eve.evolve(item, "sphinxword feedback")["evolution"]
    caught_up(ledger)
    assert b"sphinxword" not in b"".join(
        content for path, content in contents(modelled.data / "broker") if path.suffix == ".blk"
    ), "the log holds no word in clear even before"
    told = result_of(ledger, "forget", subject="user:eve")
    assert told["receipt"]["left_in_clear"] == []
    caught_up(ledger)
    for table in ("processes", "knowledge_versions", "feedback", "events"):
        assert ledger.sql(f"SELECT count(*) FROM {table} t WHERE t::VARCHAR LIKE '%sphinxword%'")["rows"] == [[0]]
    assert result_of(ledger, "verify")["equal"]
    assert ledger.extraction(extraction["id"])["messages"] == 1
    assert ledger.evolution(evolution["id"])["content"] in (None, "[erased]")


@pytest.mark.parametrize("judged", ["duplicate", "conflict"])
def test_what_an_agent_heard_of_a_person_is_written_into_nothing_that_outlasts_them(
    ledger: LedgerClient, chat: ChatEndpoint, judged: str
) -> None:
    word, person = f"chimera{judged}", f"pia-{judged}"
    scribe = ledger.acting_as(agent="scribe")
    known = scribe.remember(f"The {word} sleeps.", scopes=["agent:scribe"])["id"]
    caught_up(ledger)
    finds(chat, word, finding(f"{word}: her child is afraid of it.", "m1"))
    judges(chat, word, verdict(0, judged, known) | {"reason": f"{word}: her child"})
    said = [{"id": "m1", "role": "user", "content": f"{word}: my child is afraid"}]
    done = scribe.extract(messages=said, scopes=[f"user:{person}"])
    assert [each["action"] for each in done["items"]] == ["confirmed" if judged == "duplicate" else "conflict"]
    told = result_of(ledger, "forget", subject=f"user:{person}")
    assert told["receipt"]["left_in_clear"] == []
    caught_up(ledger)
    for table in ("processes", "conflicts", "knowledge_versions", "feedback", "events"):
        rows = ledger.sql(f"SELECT count(*) FROM {table} t WHERE t::VARCHAR LIKE '%{word}%child%'")["rows"]
        assert rows == [[0]], table


def test_what_is_found_names_the_agent_and_is_scoped_to_the_context(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    asking = ledger.acting_as(user="ida", agent="scribe", project="web", team="ops", org="lantern")
    profile = finding("Likes griffins.", "m1", type="user_profile", category="preference")
    finds(chat, "griffin", finding("A griffin eats at dawn.", "m1"), profile)
    judges(chat, "griffin")
    done = asking.extract(messages=[{"id": "m1", "role": "user", "content": "The griffin eats at dawn; I like it."}])
    found, own = (asking.get(each["knowledge_id"]) for each in done["items"])
    assert (found["owner"], found["scopes"]) == ("user:ida", ["user:ida", "agent:scribe", "project:web"])
    assert own["scopes"] == ["user:ida", "project:web"], "a profile is of its user, and at most of projects"
    assert {item["source"]["agent_id"] for item in (found, own)} == {"scribe"}


def test_scopes_that_are_stated_are_all_that_what_is_found_has(ledger: LedgerClient, chat: ChatEndpoint) -> None:
    asking = ledger.acting_as(agent="scribe", project="web")
    finds(chat, "wyvern", finding("A wyvern has two legs.", "m1"))
    judges(chat, "wyvern")
    said = [{"id": "m1", "role": "user", "content": "wyvern: two legs"}]
    done = asking.extract(messages=said, scopes=["agent:scribe"])
    (each,) = done["items"]
    assert asking.get(each["knowledge_id"])["scopes"] == ["agent:scribe"]


def test_the_command_finds_for_the_context_that_it_names(
    modelled: RunningNode, ledger: LedgerClient, chat: ChatEndpoint, tmp_path: Any
) -> None:
    finds(chat, "basilisk", finding("A basilisk fears the weasel.", "m1"))
    judges(chat, "basilisk")
    file = tmp_path / "said.json"
    file.write_text(json.dumps([{"id": "m1", "role": "user", "content": "The basilisk fears the weasel."}]), "utf-8")
    who = ["--user", "ida", "--agent", "scribe", "--project", "web", "--url", modelled.url, "--json"]
    ran = CliRunner().invoke(app, ["extract", str(file), *who])
    assert ran.exit_code == 0, ran.output
    (each,) = json.loads(ran.stdout)["items"]
    item = ledger.acting_as(user="ida").get(each["knowledge_id"])
    assert (item["source"]["agent_id"], item["scopes"]) == ("scribe", ["user:ida", "agent:scribe", "project:web"])
