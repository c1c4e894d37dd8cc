"""Words of an item's tags, in SQL: what its author wrote as tags, in whichever form.

Tags are a JSON object. Its keys are words, and so are the texts among its values and in its lists: of
`{"domain": "testing", "labels": ["db", "ci"], "rank": 5}` they are domain, testing, labels, db, ci and rank. A word
`name=value` is of what has this value under this name, as `domain=testing`, `labels=ci` or `rank=5`. The tags of a
memory, which are a list, are words too, where the item has no tags beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

from projections.fold_kit.sql_text import text


def tagged_with(words: Sequence[str], table: str = "") -> str:
    """The predicate of rows of `knowledge` with any of these words among their tags."""
    names = f"[{', '.join(map(text, words))}]"
    texts = [f"to_json({text(word)})" for word in words]
    values = _values(table, words_hold(table))
    found = f"list_has_any(json_keys({table}tags), {names}) OR list_has_any({values}, [{', '.join(texts)}])"
    # JSON is parsed of those alone whose text has a word: the views keep one form of each text.
    hint = " OR ".join(f"contains({table}{column}, {each}::VARCHAR)" for each in texts for column in ("tags", "memory"))
    pairs = [_pair(table, name, value) for name, equals, value in (word.partition("=") for word in words) if equals]
    return f"({' OR '.join([f'(({hint}) AND ({found}))', *pairs])})"


def words_in(table: str = "") -> str:
    """The list of the words of a row, each once; its `memory` is null where `words_hold` is not so."""
    texts = f"list_filter({_values(table)}, x -> json_type(x) = 'VARCHAR' AND x <> to_json(''))"
    texts = f"list_transform({texts}, x -> json_extract_string(x, '$'))"
    return f"list_distinct(json_keys({table}tags) || {texts})"


def hold_words(tags: object) -> bool:
    """Whether the words of a memory's save are its tags: `tags` of its present version say it otherwise."""
    return not tags


def words_hold(table: str = "") -> str:
    """`hold_words`, in SQL."""
    return f"({table}tags = '{{}}')"


def _pair(table: str, name: str, value: str) -> str:
    """The predicate of a name with this value: a text, a number or a truth, or a list that holds it."""
    at = text(f"/{name.replace('~', '~0').replace('/', '~1')}")
    held = f"list_contains(TRY_CAST(json_extract({table}tags, {at}) AS VARCHAR[]), {text(value)})"
    is_one = f"json_extract_string({table}tags, {at}) = {text(value)}"
    return f"(contains({table}tags, to_json({text(name)})::VARCHAR) AND ({is_one} OR coalesce({held}, FALSE)))"


def _values(table: str, where_words_hold: str = "TRUE") -> str:
    """The values of the object, those in its lists, and the tags of a memory where they hold, as JSON."""
    values = f"json_extract({table}tags, '$.*') || json_extract({table}tags, '$.*[*]')"
    words = f"CASE WHEN {where_words_hold} THEN json_extract({table}memory, '$.tags[*]') END"
    return f"({values} || coalesce({words}, []))"
