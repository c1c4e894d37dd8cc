"""A recall tells what is said of who asks before what is said of others, unless it is asked about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from kledger import LedgerClient
from kledger.answers.recall import RecalledItem
from kledger.contract.documents import ITEM_TYPE
from kledger.contract.words import RecallLayer
from projections.search.asking import asks_of_its_user
from projections.search.prompt.memory_text import is_of_another
from projections.search.prompt.section import speaker
from tests.journeys.running_node import RunningNode, caught_up
from tests.recall.people import new_number


@pytest.fixture
def two(node: RunningNode) -> Iterator[tuple[LedgerClient, LedgerClient]]:
    """Two people of one project, who each prefer something."""
    number = new_number()
    with node.client() as client:
        ann, bob = (client.acting_as(user=f"{name}{number}", project=f"web{number}") for name in ("ann", "bob"))
        everybody = [f"project:web{number}"]
        bob.remember("Prefers an editor with a dark theme.", "semantic", category="preference", scopes=everybody)
        ann.remember("Prefers her editor with a light theme.", "semantic", category="preference", scopes=everybody)
        yield ann, bob


def recalled(client: LedgerClient, message: str) -> list[RecalledItem]:
    """What is recalled of themes, without what other tests say to everybody."""
    return [each for each in client.recall(message, min_match=0.01)["results"] if each["content"].endswith("theme.")]


def test_ones_own_preference_comes_before_anothers(two: tuple[LedgerClient, LedgerClient]) -> None:
    for client, own in zip(two, ("light", "dark"), strict=True):
        first, second = recalled(client, "Which theme should the editor have?")
        assert own in first["content"]
        assert "whose" not in first["why"]
        assert second["why"]["whose"] == -1


def test_who_is_asked_about_comes_first(two: tuple[LedgerClient, LedgerClient]) -> None:
    ann, bob = two
    owner = recalled(bob, "dark theme")[0]["owner"]
    first, _ = recalled(ann, f"Which theme has {owner.removeprefix('user:').title()} in the editor?")
    assert first["owner"] == owner
    assert "whose" not in first["why"]


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("What does Al like?", True),
        ("Is this also true?", False),
        ("al喜欢什么", True),
        ("Al's theme", True),
        ("normal", False),
    ],
)
def test_a_person_is_named_by_a_word_of_the_message(message: str, named: bool) -> None:
    item = {"owner": "user:al", "scopes": ["user:al"], "types": ["user_profile"]}
    assert is_of_another(item, "plain", message, "user:ann") is not named
    assert not is_of_another(item, "plain", message, "user:al")


@pytest.mark.parametrize(
    ("user", "message"),
    [("小华", "小華喜歡喝什麼"), ("小華", "小华喜欢喝什么"), ("Zoë", "What does Zoe like?"), ("bo", "Ｂｏ喜欢什么")],
)
def test_a_person_is_named_however_the_name_is_written(user: str, message: str) -> None:
    item = {"owner": f"user:{user}", "scopes": [f"user:{user}"], "types": ["user_profile"]}
    assert not is_of_another(item, "plain", message, "user:ann")


def test_who_asks_as_nobody_in_particular_is_told_of_all_alike(node: RunningNode, two: object) -> None:
    with node.client() as client:
        caught_up(client)  # others said it, through other clients
        told = recalled(client, "Which theme should the editor have?")
    assert len(told) > 1
    assert all("whose" not in each["why"] for each in told)


OF_THEMSELVES = [
    ("My locker number is {}.", "What is my locker number?", "Tell me the locker number of the crew"),
    ("我的储物柜号码是{}。", "请问我的储物柜号码是多少？", "储物柜号码有哪些"),
]


@pytest.mark.parametrize(("said", "asked", "of_all"), OF_THEMSELVES, ids=["en", "zh"])
@pytest.mark.parametrize("people", [6, 45])
def test_who_asks_of_themselves_is_told_what_they_said_of_themselves_first_however_many_said_so(
    node: RunningNode, said: str, asked: str, of_all: str, people: int
) -> None:
    """More than are ranked, so that what others said takes the places of all that is found by its words alone."""
    number = new_number()
    with node.client() as client:
        crew = [client.acting_as(user=f"crew{n}of{number}", project=f"ship{number}") for n in range(people)]
        for n, one in enumerate(crew):
            one.remember(said.format(100 + n), "semantic", scopes=[f"project:ship{number}"])
        for n in (0, people // 2, people - 1):
            first, *others = crew[n].recall(asked)["results"]
            assert first["content"] == said.format(100 + n)
            assert "whose" not in first["why"]
            assert {each["why"]["whose"] for each in others} == {-1}
        asked_of_all = crew[0].recall(of_all)["results"]
        assert len(asked_of_all) > 1
        assert not any("whose" in each["why"] for each in asked_of_all)


@pytest.mark.parametrize(
    ("message", "own"),
    [
        ("What is my number?", True),
        ("where do i live", True),
        ("我住哪里", True),
        ("Please tell me my number", True),
        ("Show me the logs", False),
        ("告诉我一下端口", False),
        ("How does it work, i.e. by what?", False),
        ("Who is it?", False),
    ],
)
def test_a_message_asks_of_its_user_where_it_says_so_beside_phrases_that_only_ask(message: str, own: bool) -> None:
    assert asks_of_its_user(message) is own


@pytest.mark.parametrize("layer", get_args(RecallLayer))
def test_we_of_a_strategy_of_a_procedure_or_of_a_document_is_no_other_persons(layer: RecallLayer) -> None:
    item = {"owner": "user:bo", "scopes": ["public"], "types": ["t"], "task": "t", "content": "We deploy at noon."}
    of_ones_life = layer in ("semantic", "short", "episodic")
    in_a_project = item | {"scopes": ["project:web"]}
    assert is_of_another(in_a_project, layer, "When do we deploy?", "user:ann") is of_ones_life
    assert not is_of_another(in_a_project, layer, "Show me when the shop is deployed", "user:ann")
    assert not is_of_another(in_a_project, layer, "When do we deploy, Bo?", "user:ann")
    assert not is_of_another(in_a_project, layer, "When do we deploy?", "user:bo")


def test_a_document_names_nobody_who_says_something_in_it() -> None:
    said = {"owner": "user:bo", "task": "Handbook", "content": "We deploy at noon."}
    assert speaker(said | {"types": ["plan"]}, "user:ann") == "user:bo"
    assert speaker(said | {"types": [ITEM_TYPE]}, "user:ann") is None
