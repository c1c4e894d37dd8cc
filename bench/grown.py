"""Corpus of any size for the benchmarks of growth: the pages of tldr, recombined, with a vocabulary of 30,000 words.

The first items are the pages themselves. Each later one has a task and some lines of other pages, and words that are
made up and as unevenly frequent as those of a language: so posting lists grow as they do in a real store.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import orjson

from ledger.event import JsonObject

_WORDS = 30_000
_EVENNESS = 0.6  # of a Pareto distribution: the most frequent word is in one text of two
_SYLLABLES = [first + last for first in "bcdfghklmnprstvz" for last in ("a", "e", "i", "o", "u", "ar", "en", "il")]


def grown(data: Path, count: int, seed: int = 1) -> Iterator[JsonObject]:
    """`count` different save payloads, the same for one seed."""
    random = Random(seed)
    pages = [orjson.loads(line) for line in (data / "tldr" / "knowledge.jsonl").read_bytes().splitlines()]
    lines = [line for page in pages for line in page["content"].split("\n")]
    words = ["".join(random.choices(_SYLLABLES, k=random.randint(2, 4))) for _ in range(_WORDS)]
    for number in range(count):
        page = pages[number % len(pages)]
        if number >= len(pages):
            chosen = [
                words[min(int(random.paretovariate(_EVENNESS)), _WORDS) - 1] for _ in range(random.randint(4, 12))
            ]
            page = page | {
                "task": f"{page['task']} {chosen[0]}",
                "content": "\n".join([*random.sample(lines, random.randint(2, 6)), " ".join(chosen)]),
            }
        yield page | {"id": f"grown-{number}"}


def queries_of(data: Path) -> list[str]:
    """The queries of tldr."""
    return [str(orjson.loads(line)["query"]) for line in (data / "tldr" / "queries.jsonl").read_bytes().splitlines()]
