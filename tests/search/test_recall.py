"""Whether search keeps its promise on real text: above plain BM25, and fused no worse than any path alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from bench.recall import ROWS, TOLERANCE, Engine, Quality, Query, Row, data_directory, evaluate, faults, read_queries

DATA = data_directory()
CHINESE = next(row for row in ROWS if row.corpus == "cmrc-trial")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    knowledge = DATA / CHINESE.corpus / "knowledge.jsonl"
    if not knowledge.exists():
        pytest.skip(f"no corpus at {knowledge}: set KLEDGER_BENCH_DATA to where the corpora lie")
    items = [orjson.loads(line) for line in knowledge.read_bytes().splitlines()]
    opened = Engine(tmp_path_factory.mktemp("engine"), items)
    yield opened
    opened.close()


def test_a_thousand_chinese_questions_are_answered_better_than_by_plain_keywords(engine: Engine) -> None:
    queries = read_queries(DATA, CHINESE)
    quality = {path: evaluate(engine.by(path), queries) for path in ("keyword", "vector", "fused")}
    for floor, keyword, vector, fused in zip(
        CHINESE.floor, *(quality[path].figures() for path in ("keyword", "vector", "fused")), strict=True
    ):
        assert fused >= floor - TOLERANCE
        assert fused >= max(keyword, vector)


def test_misspelt_words_are_found_by_their_fragments(engine: Engine, tmp_path: Path) -> None:
    tools = [
        {"id": name, "task": name, "content": text, "scopes": ["public"], "types": ["tool"], "owner": "org:x"}
        for name, text in (
            ("kubectl", "control kubernetes clusters"),
            ("ffmpeg", "convert audio and video"),
            ("pandoc", "convert documents between formats"),
        )
    ]
    small = Engine(tmp_path, tools)
    assert small.by("fused")("kuberentes clusetr")[0] == "kubectl"
    assert small.by("keyword")("kuberentes clusetr") == []
    small.close()


def test_quality_counts_where_the_first_relevant_item_stands() -> None:
    answers = {"first": ["a", "x"], "sixth": [*"vwxyz", "a"], "never": [*"vwxyz"]}
    queries = [Query(text, frozenset({"a"}), "en") for text in answers]
    quality = evaluate(lambda text: answers[text], queries)
    assert quality.figures() == pytest.approx((1 / 3, 2 / 3, (1 + 1 / 6) / 3))
    assert quality.queries == 3


def test_what_stands_behind_the_tenth_place_does_not_count() -> None:
    quality = evaluate(lambda _: [*"bcdefghijk", "a"], [Query("q", frozenset({"a"}), "en")])
    assert quality.figures() == (0, 0, 0)


def shifted(row: Row, by: float) -> Quality:
    """A quality this far from the row's floor."""
    r5, r10, mrr10 = row.floor
    return Quality(r5 + by, r10 + by, mrr10 + by, 1)


def test_a_table_below_its_floor_or_with_a_better_single_path_is_at_fault() -> None:
    good = {row.name: {path: Quality(*row.floor, 1) for path in ("keyword", "vector")} for row in ROWS}
    better = {row.name: shifted(row, 0.02) for row in ROWS}
    table = {name: {**paths, "fused": better[name]} for name, paths in good.items()}
    assert faults(table) == []
    table[ROWS[0].name]["keyword"] = Quality(0.99, 0.0, 0.0, 1)
    assert any("a single path has 0.990" in fault for fault in faults(table))
    for row in ROWS:
        table[row.name] = dict.fromkeys(table[row.name], shifted(row, -0.006))
    assert sum("below its floor" in fault for fault in faults(table)) == 9
    assert any("only 0 of nine" in fault for fault in faults(table))
