"""The grammar of an entity, `{type}:{id}`: as a pattern for whoever checks one, in Python, SQL or a schema."""

from __future__ import annotations

import re

TYPE_PATTERN = r"^[a-z][a-z0-9_]{0,31}$"
ENTITY_PATTERN = r"^[a-z][a-z0-9_]{0,31}:[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$"
ENTITY_MAX_LENGTH = 200
# ASCII: `\s` then means the same here as in the SQL that checks whole batches.
_ENTITY = re.compile(ENTITY_PATTERN, re.ASCII)
# Bytes of a command line that are no text; in JSON, and so in the log, they cannot stand.
_NO_TEXT = re.compile("[\ud800-\udfff]")


def is_entity(value: str) -> bool:
    """Whether `value` is a legal entity."""
    return (
        len(value) <= ENTITY_MAX_LENGTH
        and _ENTITY.fullmatch(value) is not None
        and (value.isascii() or _NO_TEXT.search(value) is None)
    )
