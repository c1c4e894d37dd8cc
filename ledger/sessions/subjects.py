"""Subjects of the stream of words: `sessions.{org}.{owner}.{session}.{kind}[.{id}]`.

A message has a subject of its own, so the stream takes each message id once for good, and finds it by its id. The
owner's token is one subject level: all sessions of a person are removed with one filter.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from kledger.contract.errors import IllegalSubject
from ledger.wire.subjects import MAX_SUBJECT_BYTES, decode_token, encode_token

ROOT = "sessions"
Kind = Literal["said", "part", "summary"]


class SessionKey(NamedTuple):
    """One session: its tenant, its owner, and its id among the owner's."""

    org: str
    owner: str
    session_id: str

    @property
    def name(self) -> str:
        """The key as one text, in encoded tokens joined by dots."""
        return ".".join(map(encode_token, self))

    def all(self) -> str:
        """The filter of everything of the session."""
        return f"{ROOT}.{self.name}.>"

    def head(self) -> str:
        """The subject of what the session is."""
        return f"{ROOT}.{self.name}.head"

    def scratchpad(self) -> str:
        """The subject of its scratchpad."""
        return f"{ROOT}.{self.name}.scratchpad"

    def kind(self, kind: Kind) -> str:
        """The filter of its messages, their further parts, or its summaries."""
        return f"{ROOT}.{self.name}.{kind}.>"

    def one(self, kind: Kind, record_id: str, part: int | None = None) -> str:
        """The subject of one of these. Raises IllegalSubject when it would be too long."""
        subject = f"{ROOT}.{self.name}.{kind}.{encode_token(record_id)}{'' if part is None else f'.{part}'}"
        if len(subject) > MAX_SUBJECT_BYTES:
            raise IllegalSubject(
                f"the ids of the session {self.session_id[:60]!r} and of {record_id[:60]!r} are too long together: its "
                f"subject has {len(subject)} bytes, {MAX_SUBJECT_BYTES} are allowed; use shorter ids"
            )
        return subject


def of_owner(org: str, owner: str) -> str:
    """The filter of everything in all sessions of an owner."""
    return f"{ROOT}.{encode_token(org)}.{encode_token(owner)}.>"


def of_message(org: str, owner: str | None, message_id: str) -> str:
    """The filter of the messages of an id in all sessions of an owner, or of every owner."""
    whose = "*" if owner is None else encode_token(owner)
    return f"{ROOT}.{encode_token(org)}.{whose}.*.said.{encode_token(message_id)}"


def key_of(subject: str) -> SessionKey:
    """The session that a subject belongs to. Raises IllegalSubject."""
    tokens = subject.split(".")
    if len(tokens) < 5 or tokens[0] != ROOT:
        raise IllegalSubject(f"{subject[:200]!r} is not sessions.{{org}}.{{owner}}.{{session}}.{{kind}}")
    return SessionKey(*map(decode_token, tokens[1:4]))
