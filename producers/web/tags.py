"""Tags of an item as people read them: each with the word by which a list is narrowed to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kledger.answers.knowledge import Item


class Tag(NamedTuple):
    """What is shown of a tag, and the word that finds it."""

    shown: str
    word: str


def tags_of(item: Item) -> list[Tag]:
    """The tags of an item, those of a memory among them, each once."""
    memory = item.get("memory")
    words = () if memory is None else memory.get("tags", ())
    return list(dict.fromkeys([*_stated(item["tags"]), *(Tag(word, word) for word in words)]))


def stated_tags(text: str) -> dict[str, str]:
    """`area=release, urgent` as an author writes tags into a form; a word without a value is a tag by its name."""
    parts = (part.strip().partition("=") for part in text.replace("，", ",").split(","))
    return {name.strip(): value.strip() for name, _, value in parts if name.strip()}


def _stated(tags: Mapping[str, object]) -> Iterator[Tag]:
    for name, value in tags.items():
        values = value if isinstance(value, list) else [value]
        texts = [each for each in values if isinstance(each, str) and each]
        yield from (Tag(f"{name}: {each}", each) for each in texts)
        numbers = [each for each in values if isinstance(each, int | float) and not isinstance(each, bool)]
        yield from (Tag(f"{name}: {each}", name) for each in numbers)
        if not texts and not numbers:
            yield Tag(name, name)
