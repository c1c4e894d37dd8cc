"""A context tells each statement once, and names every item that makes it; a search shows them all."""

from __future__ import annotations

from typing import Literal

import pytest

from kledger import LedgerClient
from tests.journeys.running_node import RunningNode
from tests.recall.people import somebody

SAME = [
    "Mei drinks oolong in the morning.",
    "Mei drinks oolong in the morning.",
    "- mei drinks oolong in the morning",
    "Mei drinks  oolong\u200b in the morning!",
]


def saved(client: LedgerClient, texts: list[str]) -> list[str]:
    return [client.remember(text, "semantic")["id"] for text in texts]


def test_a_sentence_that_was_saved_again_stands_once_in_a_recall_with_the_ids_of_all(ann: LedgerClient) -> None:
    same = saved(ann, SAME)
    other = saved(ann, ["In the evening Mei drinks rooibos."])
    answer = ann.recall("What does Mei drink?", top_k=2)
    first, second = answer["results"]
    assert {first["id"], *first["also"]} == set(same)
    assert second["id"] == other[0], "the place that a repetition would have taken"
    assert "also" not in second
    assert answer["text"].lower().count("oolong") == 1
    assert {item["id"] for item in ann.search("What does Mei drink?", top_k=5)["results"]} == {*same, *other}


def test_a_chinese_sentence_in_another_script_or_width_is_told_once(ann: LedgerClient) -> None:
    same = saved(ann, ["梅的車牌號碼是AB123。", "梅的车牌号码是AB123。", "梅的车牌号码是ＡＢ１２３"])
    (only,) = ann.recall("梅的车牌号码是多少")["results"]
    assert {only["id"], *only["also"]} == set(same)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("12. March is the day of the regatta on the Vistula", "13. March is the day of the regatta on the Vistula"),
        ("b) of the Vistula quiz was answered by Olek", "c) of the Vistula quiz was answered by Olek"),
        ("3、维斯瓦河的码头归阿木管", "4、维斯瓦河的码头归阿木管"),
    ],
)
def test_a_number_that_stands_where_bullets_do_says_something(ann: LedgerClient, one: str, other: str) -> None:
    both = saved(ann, [one, other])
    results = ann.recall(one)["results"]
    assert set(both) <= {item["id"] for item in results}
    assert not any("also" in item for item in results)


def test_a_sentence_in_tags_or_quoted_is_told_once(ann: LedgerClient) -> None:
    same = saved(ann, ["The barge Flisak sails to Tczew.", "<p>The <b>barge</b> Flisak sails to Tczew.</p>"])
    same += saved(ann, ["> The barge Flisak sails to Tczew."])
    (only,) = ann.recall("Where does the barge Flisak sail?")["results"]
    assert {only["id"], *only["also"]} == set(same)


def test_a_budget_is_spent_on_what_was_not_told_yet(ann: LedgerClient) -> None:
    saved(ann, ["The parcel locker of Noor opens with the code on her phone."] * 4)
    saved(ann, ["The parcel locker of Noor is emptied on Mondays."])
    one = ann.recall("parcel locker of Noor", top_k=1)
    whole = ann.recall("parcel locker of Noor", budget_tokens=2 * len(one["text"]) // 3)
    assert whole["shown"] == 2


def test_what_another_has_said_to_the_same_reader_is_told_once_too(node: RunningNode) -> None:
    with somebody(node) as ann, somebody(node) as bob:
        text = "The espresso machine of the lab is descaled on Fridays."
        mine = ann.save("espresso", text, ["definition"])["id"]
        theirs = bob.save("espresso", text, ["definition"], scopes=["public"])["id"]
        assert mine not in {item["id"] for item in bob.search(text)["results"]}
        told, *_ = ann.recall("When is the espresso machine of the lab descaled?")["results"]
        assert {told["id"], *told["also"]} == {mine, theirs}
        alone, *_ = bob.recall("When is the espresso machine of the lab descaled?")["results"]
        assert (alone["id"], alone.get("also")) == (theirs, None), "what bob may not see is not named"


def test_what_two_persons_like_is_told_of_each(node: RunningNode) -> None:
    with somebody(node) as ann, somebody(node) as bob:
        text = "Likes the corner desk of the orangery."
        both = {
            ann.remember(text, "semantic", category="preference")["id"],
            bob.remember(text, "semantic", category="preference", scopes=["public"])["id"],
        }
        assert bob.search(text)["results"], "who wrote last waits until it is found"
        answer = ann.recall("Who likes the corner desk of the orangery?")
        assert both <= {item["id"] for item in answer["results"]}
        assert answer["text"].count("corner desk") == 2


def test_a_start_tells_the_profiles_of_two_persons_that_say_the_same(node: RunningNode) -> None:
    with somebody(node) as ann, somebody(node) as bob:
        text = "Drinks nothing but barley tea."
        theirs = bob.save("tea", text, ["user_profile"], scopes=["public"])["id"]
        mine = ann.save("tea", text, ["user_profile"])["id"]
        assert {mine, theirs} <= {item["id"] for item in ann.startup("", top_k=0, profile_k=50)["profile"]}


def test_what_happened_twice_is_told_twice(ann: LedgerClient) -> None:
    for day in ("2026-03-02", "2026-03-09"):
        ann.remember("The lift of the annex stood still.", "episodic", happened_at=f"{day}T08:00:00Z")
    answer = ann.recall("Did the lift of the annex stand still?")
    assert answer["count"] == 2
    assert answer["text"].count("lift") == 2


def test_procedures_with_other_steps_say_something_else(ann: LedgerClient) -> None:
    for steps in (["Close the valve", "Call Ida"], ["Close the valve", "Call Bo"]):
        ann.remember(None, "procedural", name="When the boiler leaks", steps=steps)
    assert ann.recall("the boiler leaks")["count"] == 2


@pytest.mark.parametrize("query", ["", "the ferry to Orust"])
def test_a_start_and_a_focus_say_it_once_and_fill_the_places_with_others(ann: LedgerClient, query: str) -> None:
    others = saved(ann, ["The ferry to Orust takes no dogs.", "The ferry to Orust is free."])
    same = saved(ann, ["The ferry to Orust leaves at nine."] * 4)
    start = ann.startup(query, top_k=3)
    assert len(start["results"]) == 3
    assert {item["id"] for item in start["results"]} > set(others)
    assert start["prompt"].count("leaves at nine") == 1
    (told,) = [item for item in start["results"] if item["id"] in same]
    assert {told["id"], *told.get("also", ())} <= set(same)
    goal = ann.focus("boat", query or "the ferry to Orust", top_k=3)
    assert goal["count"] == 3
    assert goal["output"].count("leaves at nine") == 1


def test_a_number_is_the_same_with_and_without_its_separators(ann: LedgerClient) -> None:
    same = saved(ann, ["The kayak of Noor was 1,250 euros.", "The kayak of Noor was 1250 euros."])
    other = saved(ann, ["The kayak of Noor was 1,259 euros."])
    answer = ann.recall("What did the kayak of Noor cost, 1250 euros?")
    assert [sorted({each["id"], *each.get("also", ())}) for each in answer["results"]] == [sorted(same), other]


@pytest.mark.parametrize(
    ("said", "of_a_third"),
    [("I am allergic to pollen.", "Olek is allergic to pollen."), ("我对花粉过敏。", "老陈对花粉过敏。")],
)
@pytest.mark.parametrize("layer", ["semantic", "episodic", "plain"])
def test_what_two_say_of_themselves_is_told_of_both_and_what_they_say_of_a_third_once(
    ann: LedgerClient, number: int, said: str, of_a_third: str, layer: Literal["semantic", "episodic", "plain"]
) -> None:
    bo = ann.acting_as(user=f"bo{number}", project=f"web{number}")
    scopes = [f"project:web{number}"]
    for client in (ann, bo):
        for text in (said, of_a_third):
            if layer == "plain":
                client.save(text, text, ["definition"], scopes=scopes)
            else:
                client.remember(text, layer, scopes=scopes)
    asked = ann.acting_as(user=f"cat{number}", project=f"web{number}").recall(
        "Who is allergic to pollen? 谁对花粉过敏？"
    )
    contents = [item["content"] for item in asked["results"]]
    assert (contents.count(said), contents.count(of_a_third)) == (2, 1)
    for who in (f"ann{number}", f"bo{number}"):
        assert asked["text"].count(f"said by user:{who})") == 1


def test_a_start_and_a_focus_tell_who_says_something_of_themselves(ann: LedgerClient, number: int) -> None:
    bo = ann.acting_as(user=f"bo{number}", project=f"web{number}")
    for client in (ann, bo):
        client.save("pollen", "I am allergic to pollen.", ["definition"], scopes=[f"project:web{number}"])
    goal = ann.focus("a bunch of flowers", "Who is allergic to pollen?")
    start = ann.startup("Who is allergic to pollen?")
    for text in (goal["output"], ann.goal("a bunch of flowers")["section"], start["prompt"]):
        assert text.count("I am allergic to pollen.") == 2
        assert text.count(f"said by user:bo{number};") == 1
        assert f"said by user:ann{number}" not in text
