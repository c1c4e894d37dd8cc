"""Subjects and message ids of foreign clients as text, no longer than what a restore can publish again.

The broker takes any bytes in a subject but blanks and ends of lines, and nearly as many in both as it takes in one line
and in one block of headers. A byte that is no text becomes U+FFFD, of three bytes, and a restore writes a message id in
base64 where it has to. So the longest are cut, with the digest of the whole in place of the middle. No event of ours
has such a subject or id.
"""

from __future__ import annotations

from hashlib import sha256

MOST_SUBJECT, MOST_ID = 3_900, 45_000
"""Bytes in UTF-8: with the reply subject and the sizes a line has 4,096, and a block of headers 65,535."""
_KEPT = 300


def subject_text(raw: bytes) -> str:
    """A subject as text."""
    return bounded_subject(raw.decode("utf-8", "replace"))


def bounded_subject(text: str) -> str:
    """A subject, cut where it is longer than any that can be published again."""
    return text if len(text) * 3 <= MOST_SUBJECT else _cut(text, MOST_SUBJECT)


def bounded_id(text: str) -> str:
    """A message id, cut where it is longer than any that can be published again."""
    return text if len(text) * 3 <= MOST_ID else _cut(text, MOST_ID)


def _cut(text: str, most: int) -> str:
    raw = text.encode("utf-8", "surrogateescape")
    if len(raw) <= most:
        return text
    return f"{text[:_KEPT]}~{sha256(raw).hexdigest()}~{text[-_KEPT:]}"
