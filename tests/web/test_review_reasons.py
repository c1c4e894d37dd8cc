"""Reasons that the node gives are told in the language of the reader."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

import consumers.reactors.merging
import producers.operations.models.slims
from kledger.contract.words import ModelWork
from producers.web.pages.review.reasons import REASONS, reason_told
from producers.web.words import chinese, words_of
from projections.similar.ask import Proposed, Standing
from projections.similar.outdated import outdated

GROUP = Proposed(0, "kept", 1, [("gone", 1, 0.9)], None, None, None, None, None)
THEN = Standing("user:ann", 1, "active", None, 1, [], erased=False)


@pytest.mark.parametrize(
    "changed", [replace(THEN, owner="user:ben"), replace(THEN, version=2), replace(THEN, erased=True)]
)
def test_why_a_group_is_left_is_told_in_chinese_with_the_item(changed: Standing) -> None:
    reason = outdated("user:ann", GROUP, {"kept": THEN, "gone": changed})
    told = reason_told(reason, words_of("zh"))
    assert told.startswith("gone ")
    assert not re.search(r"[A-Za-z]{2,}", told.removeprefix("gone"))


def test_why_a_group_of_too_many_resources_is_left_is_told_in_chinese() -> None:
    many = {
        name: Standing("user:ann", 1, "active", None, 1, [f"{name}-{n}" for n in range(600)], erased=False)
        for name in ("kept", "gone")
    }
    told = reason_told(outdated("user:ann", GROUP, many), words_of("zh"))
    assert not re.search(r"[A-Za-z]", told)
    assert "1,000" in told


def test_every_reason_is_one_that_the_node_gives_and_has_a_chinese_form() -> None:
    assert {text for _, text in REASONS} <= set(chinese())
    modules = (consumers.reactors.merging, producers.operations.models.slims)
    code = " ".join(Path(str(each.__file__)).read_text("utf-8") for each in modules)
    for said in (
        "others kept writing to its items",
        "has another owner now",
        "has changed since it took the others in",
        "said before was erased",
        "all its items say the same word for word",
        "no model is configured",
    ):
        assert said in code
        assert any(said in form for form, _ in REASONS)


@pytest.mark.parametrize("why", ["and is less sure by 0.30", "which user:ben owns"])
def test_why_a_later_version_is_a_conflict_is_told_in_chinese(why: str) -> None:
    told = reason_told(f"k-2 is to take the place of k-1, {why}", words_of("zh"))
    assert told.startswith("k-2 要取代")
    assert "k-1" in told


def test_another_reason_is_told_as_it_is() -> None:
    assert reason_told("oil or electric", words_of("zh")) == "oil or electric"


def test_every_work_of_a_model_has_words() -> None:
    named = (Path(__file__).parents[2] / "producers" / "web" / "templates" / "audit" / "names.html").read_text("utf-8")
    assert all(f'"{work}": _(' in named.partition("work_name")[2] for work in get_args(ModelWork))
