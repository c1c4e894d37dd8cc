"""Whether recall knows that it knows nothing: `python -m bench.nothing_known`.

Real queries of each corpus against questions that nothing there answers (bench/unanswered.py) and the queries of the
other corpus. Prints the AUC of the best `match` of five results. The floor is chosen on one half of the questions: the
highest at which 96 % of the real ones whose answer is among the five keep it. On the other half: the share of the real
ones that keep the floor of the product, and the share of the others that are `nothing_known`; the same for stores of 1,
10 and 100 items.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import orjson

from bench.recall import ROWS, Embedding, Engine, Query, Row, data_directory, read_queries
from bench.unanswered import questions
from kledger.contract.recall import floor_of
from projections.search.match import Passages, covered, joined, passages, weighed

LEAST_KEPT = 0.96
SMALL = {1: 280, 10: 280, 100: 100}
"""Sizes of small stores, and how many there are of each."""
_RESULTS = 5
_POLITELY: Mapping[str, Sequence[str]] = {
    "en": (
        *("Please tell me: {}", "Could you please tell me {}", "Can you help me find out {}", "Do you know {}"),
        *("I would like to know {}", "I was wondering {}", "Hi, quick question: {} Thanks!"),
    ),
    "zh": (
        *("请问{}", "请问一下，{}", "能不能告诉我{}", "帮我查一下{}", "你知道{}吗？", "麻烦帮我看看{}，谢谢"),
        *("我想知道{}", "可以跟我讲讲{}吗", "请你告诉我一下{}好吗"),
    ),
}
_AMONG_OTHERS: Mapping[str, Sequence[str]] = {
    "en": (
        "I had a long day at work and finally got home. {}?",
        "We are preparing the talk for tomorrow and my boss is in a hurry. By the way, {}?",
        "{}? I could not figure it out, and nobody in the office had an answer yesterday.",
    ),
    "zh": (
        *("今天天气不错，我刚吃完早饭。{}？", "我正在准备明天的汇报，领导催得很急。对了，{}？"),
        "{}？我一直没想明白，昨天跟同事讨论了半天也没有结果。",
    ),
}


@dataclass(frozen=True, slots=True)
class Best:
    """The best match of the first results of one query, and whether an answer is among them."""

    match: float
    answered: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """One corpus in one language: its own queries, and those that nothing there answers."""

    real: Sequence[Best]
    others: Sequence[Best]
    visible: int

    def auc(self) -> float:
        """The chance that a real query has a better match than another one; equal ones count half."""
        real = np.array([each.match for each in self.real])
        others = np.sort([each.match for each in self.others])
        below, upto = np.searchsorted(others, real, "left"), np.searchsorted(others, real, "right")
        return float((below + upto).mean() / 2 / len(others))

    def kept(self) -> float:
        """The share of the answered real queries whose best match reaches the floor."""
        return statistics.fmean(each.match >= floor_of(self.visible) for each in self.real if each.answered)

    def nothing_known(self) -> float:
        """The share of the others of which nothing reaches the floor."""
        return statistics.fmean(each.match < floor_of(self.visible) for each in self.others)

    def answered(self) -> float:
        """The share of the real queries whose answer is among the first results."""
        return statistics.fmean(each.answered for each in self.real)

    def half(self, number: int) -> Measured:
        """Every other query."""
        return Measured(self.real[number::2], self.others[number::2], self.visible)


def measure(data: Path, rows_of: Sequence[Row] = ROWS, embedder: Embedding | None = None) -> dict[str, Measured]:
    """Rows of bench/recall.py on their whole corpus, and on small stores made of it."""
    measured: dict[str, Measured] = {}
    for corpus in dict.fromkeys(row.corpus for row in rows_of):
        items = [orjson.loads(line) for line in (data / corpus / "knowledge.jsonl").read_bytes().splitlines()]
        rows = [row for row in rows_of if row.corpus == corpus]
        strangers = [query for row in ROWS if row.corpus != corpus for query in read_queries(data, row)]
        for row in rows:
            real = [query for query in read_queries(data, row) if query.text.strip()]
            unanswered = [Query(text, frozenset(), row.lang) for text in (*questions("en"), *questions("zh"))]
            shuffled = Random(1).sample(strangers, min(len(strangers), len(real)))
            others = [*unanswered, *shuffled]
            measured[row.name] = _in_one_store(items, real, others, embedder)
            for name, phrases in (("politely", _POLITELY), ("among others", _AMONG_OTHERS)):
                asked, not_known = (within(each, phrases[row.lang]) for each in (real, others))
                measured[f"{row.name}, {name}"] = _in_one_store(items, asked, not_known, embedder)
            for size in SMALL:
                measured[f"{row.name}, {size} items"] = _in_small_stores(items, real, others, size, embedder)
    return measured


def within(queries: Sequence[Query], phrases: Sequence[str]) -> list[Query]:
    """The queries within phrases and sentences, each of these in its turn."""
    each_in_turn = itertools.cycle(phrases)
    return [replace(query, text=next(each_in_turn).format(query.text.rstrip(".?。？"))) for query in queries]


def kept_at(half: Measured) -> float:
    """The highest floor at which LEAST_KEPT of the answered queries keep it."""
    return float(np.quantile([each.match for each in half.real if each.answered], 1 - LEAST_KEPT))


def _in_one_store(
    items: Sequence[Mapping[str, Any]], real: Sequence[Query], others: Sequence[Query], embedder: Embedding | None
) -> Measured:
    known = {item["id"]: passages(item["task"], item["content"]) for item in items}
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder), items, embedder)
        try:
            of_real, of_others = ([best(engine, known, each) for each in asked] for asked in (real, others))
            return Measured(of_real, of_others, len(items))
        finally:
            engine.close()


def _in_small_stores(
    items: Sequence[Mapping[str, Any]],
    real: Sequence[Query],
    others: Sequence[Query],
    size: int,
    embedder: Embedding | None,
) -> Measured:
    """Stores of so many items, each asked what one of them answers, and four questions that none does.

    All are in one engine, each in a scope of its own.
    """
    random = Random(size)
    by_id = {item["id"]: item for item in items}
    stores: list[tuple[str, Query, list[Query]]] = []
    stored: list[Mapping[str, Any]] = []
    answered = [each for each in real if each.relevant & by_id.keys()]
    for number, query in enumerate(random.sample(answered, SMALL[size])):
        answer = by_id[min(query.relevant & by_id.keys())]
        chosen = [answer, *random.sample([item for item in items if item is not answer], size - 1)]
        stored += [{**item, "id": f"{number}/{item['id']}", "scopes": [f"project:{number}"]} for item in chosen]
        own = Query(query.text, frozenset({f"{number}/{answer['id']}"}), query.lang)
        stores.append((f"project:{number}", own, random.sample(list(others), 4)))
    known = {item["id"]: passages(item["task"], item["content"]) for item in stored}
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder), stored, embedder)
        try:
            return Measured(
                [best(engine, known, query, scope) for scope, query, _ in stores],
                [best(engine, known, other, scope) for scope, _, asked in stores for other in asked],
                size,
            )
        finally:
            engine.close()


def best(engine: Engine, known: Mapping[str, Passages], query: Query, scope: str = "public") -> Best:
    """The best match of the first results: by words, and by the cosine of the engine's model where it has one."""
    found = engine.found(query.text, scope=scope)
    results = engine.ordered(found)[:_RESULTS]
    cosines = {each.item_id: each.vector for each in found}
    weight = weighed(query.text)
    matches = [joined(covered(weight, known[each]), cosines[each], engine.meaning) for each in results]
    return Best(max(matches, default=0.0), not query.relevant.isdisjoint(results))


def run() -> list[dict[str, Any]]:
    """The rows of `python -m bench`; none without the corpora."""
    data = data_directory()
    if not (data / "tldr" / "queries.jsonl").exists():
        return []
    rows = []
    for name, measured in measure(data).items():
        half = measured.half(1)
        for figure, value, target in (
            ("AUC", measured.auc(), 0.97),
            ("kept", half.kept(), 0.95),
            ("nothing known", half.nothing_known(), 0.85),
        ):
            row = {"row": f"{name}: {figure}", "ours": value, "raw": None, "unit": "", "ratio": None}
            note = f"floor {floor_of(half.visible)}; {len(half.real)} queries, {len(half.others)} that nothing answers"
            rows.append({**row, "target": f">= {target}", "note": note})
    return rows


def main() -> None:
    """Print the table."""
    table = measure(data_directory())
    print(f"{'corpus':<24} {'AUC':>6} {'R@5':>6} | {'96 % keep':>9} | {'floor':>6} {'kept':>6} {'nothing known':>14}")
    print(f"{'':<24} {'all':>6} {'all':>6} | {'one half':>9} | {'the other half':>20}")
    for name, measured in table.items():
        first, half = measured.half(0), measured.half(1)
        floor = floor_of(measured.visible)
        figures = f"{floor:6.3f} {half.kept():6.3f} {half.nothing_known():14.3f}"
        print(f"{name:<24} {measured.auc():6.3f} {measured.answered():6.3f} | {kept_at(first):9.3f} | {figures}")


if __name__ == "__main__":
    main()
