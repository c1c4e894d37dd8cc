"""Any id is one subject token, one id has one spelling, and nothing else is taken for a subject of ours."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.errors import IllegalSubject
from ledger.wire.subjects import (
    MAX_SUBJECT_BYTES,
    decode_token,
    encode_token,
    event_subject,
    history_filter,
    parse_subject,
)

texts = st.text(st.characters(codec="utf-8"), max_size=60)


@given(value=texts)
def test_a_token_is_plain_ascii_and_decodes_to_what_it_was(value: str) -> None:
    token = encode_token(value)
    assert re.fullmatch(r"[A-Za-z0-9_=-]+", token)
    assert decode_token(token) == value


@given(one=texts, other=texts)
def test_two_ids_never_share_a_token(one: str, other: str) -> None:
    assert (encode_token(one) == encode_token(other)) == (one == other)


@given(token=st.text("=0123456789ABCDEFabxyz_-.*> ", max_size=12))
def test_a_token_that_decodes_is_the_only_spelling_of_its_value(token: str) -> None:
    try:
        value = decode_token(token)
    except IllegalSubject:
        return
    assert encode_token(value) == token


@pytest.mark.parametrize(
    "token", ["", "a.b", "*", ">", "=4", "=4g", "=41", "=e7", "==", "a=", "=C3", "=FF=FE", "é", "a b", "a\n", "=0a"]
)
def test_what_encode_token_cannot_have_written_is_refused(token: str) -> None:
    with pytest.raises(IllegalSubject):
        decode_token(token)


@given(org=texts, entity_id=texts, actor_id=texts)
def test_a_subject_taken_apart_is_what_it_was_made_of(org: str, entity_id: str, actor_id: str) -> None:
    subject = event_subject(org, "knowledge", entity_id, "saved", f"user:{actor_id}")
    parts = parse_subject(subject)
    assert (parts.org, parts.entity, parts.entity_id, parts.event) == (org, "knowledge", entity_id, "saved")
    assert parts.actor == f"user:{actor_id}"
    assert subject.startswith(history_filter(org, "knowledge", entity_id).removesuffix(">"))


def test_a_plain_id_stays_readable() -> None:
    subject = event_subject("default", "knowledge", "knowledge-20260305-a1b2", "saved", "agent:research_agent")
    assert subject == "ledger.default.knowledge.knowledge-20260305-a1b2.saved.agent.research_agent"
    assert history_filter("default", "profile", "user:1/work") == "ledger.default.profile.user=3A1=2Fwork.>"
    assert encode_token("知") == "=E7=9F=A5"
    assert encode_token("") == "="


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "ledger",
        "ledger.o.knowledge.i.saved.user",
        "ledger.o.knowledge.i.saved.user.a.b",
        "other.o.knowledge.i.saved.user.a",
        "ledger.o.knowledge..saved.user.a",
        "ledger.o.knowledge.*.saved.user.a",
        "ledger.o.knowledge.i.saved.user.>",
        "ledger.o.knowledge.=41.saved.user.a",
        "ledger.o.knowledge.i\x00.saved.user.a",
    ],
)
def test_a_subject_that_event_subject_does_not_write_is_refused(subject: str) -> None:
    with pytest.raises(IllegalSubject):
        parse_subject(subject)


def test_a_subject_may_be_long_but_not_longer_than_the_broker_takes() -> None:
    longest = MAX_SUBJECT_BYTES - len(event_subject("o", "knowledge", "x", "saved", "user:a")) + 1
    assert len(event_subject("o", "knowledge", "x" * longest, "saved", "user:a")) == MAX_SUBJECT_BYTES
    with pytest.raises(IllegalSubject, match="too long"):
        event_subject("o", "knowledge", "x" * (longest + 1), "saved", "user:a")
