"""Words of an item's tags, in SQL: what its author wrote as tags, in whichever form.

Tags are a JSON object. Its keys are words, and so are the texts among its values and in its lists: of
`{"domain": "testing", "labels": ["db", "ci"]}` they are domain, testing, labels, db and ci. The tags of a memory,
which are a list, are words too.
"""

from __future__ import annotations

from collections.abc import Sequence

from projections.fold_kit.sql_text import text


def tagged_with(words: Sequence[str], table: str = "") -> str:
    """The predicate of rows of `knowledge` with any of these words among their tags."""
    names = f"[{', '.join(map(text, words))}]"
    texts = [f"to_json({text(word)})" for word in words]
    # JSON is parsed of those alone whose text has a word: the views keep one form of each text.
    hint = " OR ".join(f"contains({table}{column}, {each}::VARCHAR)" for each in texts for column in ("tags", "memory"))
    found = f"list_has_any(json_keys({table}tags), {names}) OR list_has_any({_values(table)}, [{', '.join(texts)}])"
    return f"(({hint}) AND ({found}))"


def words_in(table: str = "") -> str:
    """The list of the words of a row, each once."""
    texts = f"list_filter({_values(table)}, x -> json_type(x) = 'VARCHAR')"
    texts = f"list_transform({texts}, x -> json_extract_string(x, '$'))"
    return f"list_distinct(json_keys({table}tags) || {texts})"


def _values(table: str) -> str:
    """The values of the object, those in its lists, and the tags of a memory, as JSON."""
    values = f"json_extract({table}tags, '$.*') || json_extract({table}tags, '$.*[*]')"
    return f"({values} || coalesce(json_extract({table}memory, '$.tags[*]'), []))"
