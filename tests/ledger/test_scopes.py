"""Who sees what: entities, scopes, priorities and the label of visibility (mission S1-S3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.entities import ENTITY_MAX_LENGTH
from kledger.contract.errors import IllegalScope
from kledger.contract.scopes import (
    ENTITY_TYPES,
    PUBLIC,
    Caller,
    check_entity,
    check_scope,
    further_types,
    visibility_of,
)


@pytest.mark.parametrize(
    "value", ["user:123", "project:知识账本", "agent:a b", "team:x:y", "org:ä@b.c", "user:*", "department:x"]
)
def test_an_entity_is_a_word_and_an_id(value: str) -> None:
    assert check_entity(value) == value
    assert check_scope(value) == value


@pytest.mark.parametrize(
    "value",
    ["", "user", "user:", "user: x", "user:x ", "User:x", "9x:x", "a-b:x", ":x", "user:a\nb", "user:\x00", " user:x"],
)
def test_anything_else_is_refused_and_the_message_says_what_to_write(value: str) -> None:
    with pytest.raises(IllegalScope, match=r"write \{type\}:\{id\}"):
        check_entity(value)
    with pytest.raises(IllegalScope):
        check_scope(value)


def test_public_is_a_scope_but_nobodys_name() -> None:
    assert check_scope(PUBLIC) == PUBLIC
    with pytest.raises(IllegalScope):
        check_entity(PUBLIC)


def test_an_entity_has_a_longest_form() -> None:
    longest = "user:" + "x" * (ENTITY_MAX_LENGTH - 5)
    assert check_entity(longest) == longest
    with pytest.raises(IllegalScope):
        check_entity(longest + "x")


@given(kind=st.sampled_from(ENTITY_TYPES), name=st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1))
def test_an_id_may_be_any_printable_text(kind: str, name: str) -> None:
    value = f"{kind}:{name}"
    if len(value) <= ENTITY_MAX_LENGTH:
        assert check_entity(value) == value
    else:
        with pytest.raises(IllegalScope):
            check_entity(value)


def test_a_caller_sees_their_own_scopes_and_what_is_public() -> None:
    caller = Caller(org="o", team="t", user="u", agent="a", project="p")
    assert caller.visible_scopes() == ["user:u", "agent:a", "project:p", "team:t", "org:o", "public"]
    assert Caller().visible_scopes() == ["user:local", "public"]


def test_only_the_owner_and_the_operator_may_act_for_an_owner() -> None:
    assert Caller(user="u").may_act_for("user:u")
    assert Caller(user="u", team="t").may_act_for("team:t")
    assert not Caller(user="u").may_act_for("user:v")
    assert Caller().is_operator
    assert Caller().may_act_for("user:anybody")


def test_a_caller_with_an_illegal_name_is_refused() -> None:
    with pytest.raises(IllegalScope):
        Caller(user="a\nb")


@pytest.mark.parametrize(
    ("scopes", "owner", "label"),
    [
        (["public"], "user:a", "public"),
        (["user:a", "public", "org:o"], "user:a", "public"),
        (["org:o", "user:a"], "user:a", "org"),
        (["user:a"], "user:a", "private"),
        (["user:b"], "agent:a", "private"),
        (["agent:a"], "agent:a", "private"),
        (["agent:b"], "agent:a", "shared"),
        (["team:t"], "user:a", "shared"),
        (["user:a", "user:b"], "user:a", "shared"),
    ],
)
def test_visibility_follows_from_the_scopes(scopes: list[str], owner: str, label: str) -> None:
    assert visibility_of(scopes, owner) == label


@pytest.mark.parametrize(
    ("scopes", "acl", "label"),
    [
        (["user:a"], ["user:a"], "private"),
        (["user:a"], ["user:b"], "shared"),
        (["user:a"], ["user:a", "project:p"], "shared"),
        (["user:a"], ["org:o"], "org"),
        (["public"], ["user:b"], "public"),
    ],
)
def test_visibility_follows_from_whom_the_acl_names_as_well(scopes: list[str], acl: list[str], label: str) -> None:
    assert visibility_of(scopes, "user:a", acl) == label


def test_a_caller_may_be_more_than_the_five_identities() -> None:
    caller = Caller.of({"user": "u", "department": "d"}, further=["team:t", "user:u"])
    assert caller == Caller(user="u", further=("department:d", "team:t", "user:u"))
    assert caller.visible_scopes() == ["user:u", "department:d", "team:t", "public"]
    assert not Caller(further=("department:d",)).is_operator


def test_only_types_that_are_not_built_in_have_to_be_registered() -> None:
    assert further_types(["user:a", "public", "department:x", "guild:y", "public:z"]) == {
        "department",
        "guild",
        "public",
    }
