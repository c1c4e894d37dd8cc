"""Slim benchmark: near-duplicates found, near-misses left alone, and growth of the time.

The real items with 2,000 near-duplicates and 2,000 near-misses planted among them, then 1,000, 4,000 and 16,000
items of the same kind. `ours` is the product; `raw` is what n log n would take, scaled from the first size.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.near_duplicates import Planted, near_duplicates, near_misses
from bench.recall import data_directory
from bench.search import absent
from projections.similar.groups import Found, Item, similar
from projections.similar.rewordings import meaning
from projections.similar.statements import tokens_of

PLANTED = 2_000
SIZES = (1_000, 4_000, 16_000)
ROUNDS = 2

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Quality:
    """Results for planted and original items. Wrong merges are those of near-misses and of originals."""

    found: int
    planted: int
    merged_misses: int
    misses: int
    merged_originals: int
    originals: int
    not_found: tuple[Planted, ...] = ()
    wrongly_merged: tuple[Planted, ...] = ()


def texts_of(file: Path) -> list[str]:
    """The text of each item of a corpus: its task and content."""
    with file.open(encoding="utf-8") as lines:
        items = [json.loads(line) for line in lines]
    return [f"{item['task']}\n{item['content']}" for item in items]


def items_of(texts: Sequence[str], kind: str, after: int = 0) -> list[Item]:
    """Items with these texts and equal quality, created in this order after `after` others."""
    return [Item(f"{kind}-{at}", text, ("tool",), 4.0, 0.5, after + at) for at, text in enumerate(texts)]


def quality(texts: Sequence[str], planted: int, seed: int = 1) -> Quality:
    """Plant near-duplicates and near-misses of `texts` among them, and search for groups."""
    copies, misses = near_duplicates(texts, planted, seed), near_misses(texts, planted, seed + 1)
    items = items_of(texts, "item")
    items += items_of([each.text for each in copies], "copy", len(items))
    items += items_of([each.text for each in misses], "miss", len(items))
    group_of = _groups(similar(items))
    found = [at for at, copy in enumerate(copies) if _together(group_of, f"copy-{at}", f"item-{copy.origin}")]
    wrong = [at for at in range(len(misses)) if f"miss-{at}" in group_of]
    originals = [name for name in group_of if name.startswith("item-")]
    originals = [name for name in originals if group_of[name] != name]  # the eldest of equals survives: an original
    lost = sorted(set(range(len(copies))) - set(found))
    return Quality(
        len(found),
        len(copies),
        len(wrong),
        len(misses),
        len(originals),
        len(texts),
        tuple(copies[at] for at in lost),
        tuple(misses[at] for at in wrong),
    )


def seconds(texts: Sequence[str], sizes: Sequence[int] = SIZES) -> list[float]:
    """Seconds of processor time for each number of items, the best of ROUNDS, with cold caches."""
    copies = near_duplicates(texts, max(0, max(sizes) - len(texts)), seed=3)
    items = items_of([*texts, *(copy.text for copy in copies)], "item")
    # every size has the same share of copies, so that only the number of items differs
    spread = sorted(items, key=lambda item: hash((7, item.created_position)))
    taken = []
    for size in sizes:
        best = math.inf
        for _ in range(ROUNDS):
            meaning.cache_clear()
            tokens_of.cache_clear()
            began = time.process_time()
            similar(spread[:size])
            best = min(best, time.process_time() - began)
        taken.append(best)
    return taken


def run() -> list[Row]:
    """The rows of this benchmark; one that says why when the corpus is not there."""
    file = data_directory() / "tldr" / "knowledge.jsonl"
    if not file.exists():
        return [absent("near-duplicates")]
    texts = texts_of(file)
    return [*_quality_rows(quality(texts, PLANTED)), *_time_rows(seconds(texts))]


def _quality_rows(result: Quality) -> list[Row]:
    wrong = result.merged_misses + result.merged_originals
    others = result.misses + result.originals
    note = f"{result.merged_misses} of {result.misses} near-misses"
    note += f", {result.merged_originals} of {result.originals} real items"
    rows = [
        (
            "near-duplicates found",
            result.found / result.planted,
            ">= 0.95",
            f"{result.found} of {result.planted} planted",
        ),
        ("merged that is none", wrong / others, "< 0.01", note),
    ]
    return [
        {"row": name, "ours": share, "raw": None, "unit": "share", "ratio": None, "target": target, "note": note}
        for name, share, target, note in rows
    ]


def _time_rows(taken: Sequence[float]) -> list[Row]:
    first = taken[0] / (SIZES[0] * math.log(SIZES[0]))
    return [
        {
            "row": f"groups among {size:,} items",
            "ours": ours,
            "raw": first * size * math.log(size),
            "unit": "s of processor time",
            "ratio": ours / (first * size * math.log(size)),
            "target": "<= 1: no faster than n log n",
            "note": f"{ours / size * 1e6:.0f} µs an item",
        }
        for size, ours in zip(SIZES, taken, strict=True)
    ]


def _groups(result: Found) -> dict[str, str]:
    """The survivor of each item in a group; for a survivor its own name."""
    return {name: group.survivor for group in result.groups for name in (group.survivor, *(m.id for m in group.merged))}


def _together(group_of: dict[str, str], one: str, other: str) -> bool:
    return one in group_of and group_of[one] == group_of.get(other)
