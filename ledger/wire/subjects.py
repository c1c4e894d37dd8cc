"""Subjects of events: `ledger.{org}.{entity}.{entity_id}.{event}.{actor_kind}.{actor_id}`.

The broker's publish permissions on the last two tokens make the actor unforgeable. Tokens are encoded so that any id
is legal: `[A-Za-z0-9_-]` are literal, every other byte of the UTF-8 form is `=XX`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kledger.contract.errors import IllegalSubject

ROOT = "ledger"
STREAM_SUBJECTS = f"{ROOT}.>"
# The server accepts about 3.9 kB; a lower limit of ours gives a clear error.
MAX_SUBJECT_BYTES = 3_000
_is_plain = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_TOKEN = re.compile(r"(?:[A-Za-z0-9_-]|=[0-9A-F]{2})+|=")
_UNSAFE = re.compile(rb"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class SubjectParts:
    """A parsed and decoded subject; `actor` is `{actor_kind}:{actor_id}`."""

    org: str
    entity: str
    entity_id: str
    event: str
    actor: str


def encode_token(value: str) -> str:
    """Encode any string as one subject token; the empty string is a single `=`."""
    if _is_plain(value):
        return value
    if not value:
        return "="
    return _UNSAFE.sub(lambda m: b"=%02X" % m.group()[0], value.encode()).decode("ascii")


def decode_token(token: str) -> str:
    """Decode a token. Raises IllegalSubject for one that encode_token cannot have written."""
    if _is_plain(token):
        return token
    if not _TOKEN.fullmatch(token):
        raise IllegalSubject(f"{token!r} is not an encoded subject token")
    if token == "=":
        return ""
    raw = re.sub(rb"=([0-9A-F]{2})", lambda m: bytes([int(m.group(1), 16)]), token.encode())
    try:
        value = raw.decode()
    except UnicodeDecodeError as error:
        raise IllegalSubject(f"{token!r} does not decode to UTF-8") from error
    if encode_token(value) != token:  # only the canonical encoding, or two subjects would mean one entity
        raise IllegalSubject(f"{token!r} is not the canonical encoding of {value!r}")
    return value


def event_subject(org: str, entity: str, entity_id: str, event: str, actor: str) -> str:
    """The subject of one event. Raises IllegalSubject when it would be too long."""
    subject = f"{ROOT}.{_kept(org)}.{_kept(entity)}.{encode_token(entity_id)}.{_kept(event)}.{_tokens_of(actor)}"
    if len(subject) > MAX_SUBJECT_BYTES:
        raise IllegalSubject(
            f"the id of {entity} {entity_id[:60]!r}… is too long: its subject has {len(subject)} "
            f"bytes, {MAX_SUBJECT_BYTES} are allowed; use a shorter id"
        )
    return subject


@lru_cache(maxsize=1024)
def _kept(value: str) -> str:
    """The token of what most events of a writer share. With one argument a cache answers in half the time."""
    return encode_token(value)


@lru_cache(maxsize=4096)
def _tokens_of(actor: str) -> str:
    kind, _, actor_id = actor.partition(":")
    return f"{encode_token(kind)}.{encode_token(actor_id)}"


def history_filter(org: str, entity: str, entity_id: str) -> str:
    """The subject filter for one entity's whole history, also the scope of optimistic concurrency."""
    return ".".join((ROOT, *map(encode_token, (org, entity, entity_id)), ">"))


@lru_cache(maxsize=4096)
def stated_by(org: str, actor: str) -> str:
    """Tenant and actor as one string: their encoded tokens, joined by dots."""
    return f"{encode_token(org)}.{_tokens_of(actor)}"


def stated_by_in(subject: str) -> str:
    """The same, taken from a subject; empty for a subject that is not one of the ledger's."""
    tokens = subject.split(".")
    return ".".join((tokens[1], *tokens[5:])) if len(tokens) == 7 and tokens[0] == ROOT else ""


def entity_of(subject: str) -> str:
    """The entity token of a subject, which need not be a legal one."""
    return subject.partition(".")[2].partition(".")[2].partition(".")[0]


def parse_subject(subject: str) -> SubjectParts:
    """Parse and decode a subject. Raises IllegalSubject unless event_subject could have written it."""
    tokens = subject.split(".")
    if len(tokens) != 7 or tokens[0] != ROOT:
        raise IllegalSubject(
            f"{subject!r} is not ledger.{{org}}.{{entity}}.{{id}}.{{event}}.{{actor_kind}}.{{actor_id}}"
        )
    org, entity, entity_id, event, kind, actor_id = map(decode_token, tokens[1:])
    return SubjectParts(org, entity, entity_id, event, f"{kind}:{actor_id}")
