"""What was said later about one thing stands before what was said earlier, where it answers as well."""

from __future__ import annotations

from typing import Any

import pytest

from projections.similar.later_first import later_first

RENEWED = [
    ("The deploy port is 8080.", "The deploy port is 9090 now, no longer 8080.", 0.8),
    ("The weekly meeting is on Monday at ten.", "The weekly meeting moved to Thursday at nine.", 1.0),
    ("The staging host is stage-01.", "The staging host is stage-02.", 1.0),
    ("Tom works at Acme as a nurse.", "Tom has left Acme and works at Brightcare now.", 0.7),
    ("部署端口是8080。", "部署端口改成9090了，不再用8080。", 0.8),
    ("周会在周一上午十点。", "周会改到周四上午九点。", 1.0),
    ("李雷在远景上班，是护士。", "李雷离开了远景，现在在康桥上班。", 0.8),
    ("部署端口是8080。", "部署端口是9090。", 1.0),
]
OTHER = [
    ("Leo likes football.", "Nina likes football and chess.", 1.0),
    ("李雷喜欢喝红茶。", "小雨喜欢喝红茶和咖啡。", 1.0),
    ("The deploy port is 8080.", "The deploy key is kept in the vault of the team.", 0.6),
    ("I drink my coffee black.", "The coffee machine at the office is broken.", 1.0),
    ("The staging host is stage-01.", "The staging host is rebooted on Sundays.", 0.7),
    ("In the morning Mei drinks oolong.", "In the evening Mei drinks rooibos.", 1.0),
    ("小梅早上喝乌龙茶。", "小梅晚上吃两片面包。", 1.0),
    ("我家猫叫豆豆。", "我家地址是文三路48号。", 0.9),
]


def fact(name: str, content: str, second: int, match: float = 1.0, **stated: Any) -> dict[str, Any]:
    at = f"2026-03-05T12:00:{second:02}Z"
    confidence = {"confidence": stated.pop("confidence", 0.5)}
    told = {"id": name, "content": content, "layer": "semantic", "owner": "user:ann", "match": match}
    return {**told, "created_at": at, "updated_at": at, "eval": confidence, **stated}


@pytest.mark.parametrize(("earlier", "later", "match"), RENEWED)
def test_a_later_statement_stands_before_the_earlier_one_which_names_it(earlier: str, later: str, match: float) -> None:
    between = fact("between", "The garden has roses.", 0)
    first, second, third = later_first([fact("old", earlier, 1), between, fact("new", later, 2, match)])
    assert (first["id"], second["id"], third["id"]) == ("new", "old", "between")
    assert second["later"] == "new"
    assert "later" not in first


@pytest.mark.parametrize("layers", [("plain", "plain"), ("plain", "short"), ("semantic", "plain")])
def test_a_profile_is_said_anew_as_a_preference_is(layers: tuple[str, str]) -> None:
    """An extraction makes a profile of what somebody prefers, and a short memory of what they have come to prefer."""
    said = ("用户偏好使用 React 框架", "用户现在偏好使用 Vue")
    earlier, later = (
        fact(name, content, at, layer=layer, types=["user_profile"] if layer == "plain" else [layer])
        for at, (name, content, layer) in enumerate(zip(("old", "new"), said, layers, strict=True))
    )
    first, second = later_first([earlier, later])
    assert (first["id"], second["later"]) == ("new", "new")


@pytest.mark.parametrize(("earlier", "later", "match"), OTHER)
def test_a_statement_about_something_else_or_somebody_else_keeps_its_place(
    earlier: str, later: str, match: float
) -> None:
    results = [fact("old", earlier, 1), fact("new", later, 2, match)]
    assert later_first(results) == results


@pytest.mark.parametrize(
    "stated",
    [
        {"owner": "user:bob"},
        {"layer": "episodic"},
        {"layer": "plain"},
        {"confidence": 0.3},
        {"created_at": "2026-03-05T12:00:00Z"},
        {"content": f"The deploy port is 9090 now. {'It is so. ' * 40}"},
    ],
)
def test_what_another_said_what_happened_or_is_less_sure_renews_nothing(stated: dict[str, Any]) -> None:
    results = [fact("old", "The deploy port is 8080.", 1), fact("new", "The deploy port is 9090 now.", 2) | stated]
    if "confidence" in stated:
        results[1]["eval"] = stated
    assert later_first(results) == results


@pytest.mark.parametrize(
    ("upheld", "renewed"),
    [({}, True), ({"old": "2026-03-05T12:00:01Z"}, True), ({"old": "2026-03-05T12:00:03Z"}, False)],
)
def test_what_was_stated_or_supported_since_is_no_earlier_statement(upheld: dict[str, str], renewed: bool) -> None:
    """`updated_at` is of any verdict, and that it harmed is none for it."""
    results = [fact("old", "The deploy port is 8080.", 1), fact("new", "The deploy port is 9090 now.", 2)]
    results[0]["updated_at"] = "2026-03-05T12:00:03Z"
    told = later_first(results, upheld)
    assert [each["id"] for each in told] == (["new", "old"] if renewed else ["old", "new"])


def test_an_earlier_statement_that_stands_behind_already_names_the_later_one_too() -> None:
    old, new = fact("old", "The deploy port is 8080.", 1), fact("new", "The deploy port is 9090 now.", 2)
    between = fact("between", "The garden has roses.", 0)
    assert later_first([new, between, old]) == [new, between, {**old, "later": "new"}]


def test_of_many_statements_about_one_thing_the_last_one_is_first() -> None:
    texts = [fact(str(n), f"The deploy port is 80{n}0 now.", n) for n in range(1, 9)]
    assert next(each["id"] for each in later_first(texts)) == "8"
    assert [each["id"] for each in later_first(texts[::-1])] == [str(n) for n in range(8, 0, -1)]
    assert len(later_first(texts)) == 8


def test_words_of_a_session_with_the_id_of_an_item_stay_where_they_are() -> None:
    said = {"id": "new", "content": "The deploy port is 9090 now.", "layer": "working", "match": 1.0}
    old, new = fact("old", "The deploy port is 8080.", 1), fact("new", "The deploy port is 9090 now.", 2)
    assert later_first([said, old, new]) == [said, new, {**old, "later": "new"}]


def test_an_answer_without_facts_is_as_it_was() -> None:
    results = [fact(str(n), f"note {n}", n, layer="plain") for n in range(30)]
    assert later_first(results) == results
    assert later_first([]) == []
