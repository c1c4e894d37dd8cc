"""Metrics as Prometheus wants them: named by convention, labelled by what is bounded, and moving with what happens."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import httpx
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeRetired
from producers.node.otel import of_folding
from tests.doors.http_door import ALICE, Door, http_door
from tests.journeys.running_node import running
from tests.patience import PATIENCE

# https://prometheus.io/docs/practices/naming/
NAME = re.compile(r"kledger_[a-z][a-z_]*[a-z]")
LABELS = {"method", "route", "status", "type", "code", "view", "le"}


async def told(door: Door) -> dict[str, Metric]:
    text = (await door.get("/metrics")).text
    return {family.name: family for family in text_string_to_metric_families(text)}


def value(family: Metric, suffix: str = "", **labels: str) -> float:
    (found,) = [one.value for one in family.samples if one.name == family.name + suffix and one.labels == labels]
    return float(found)


async def test_names_follow_the_conventions_and_labels_are_bounded() -> None:
    async with http_door() as door:
        await door.saved(task="a secret task", id="an-id-of-somebody")
        await door.get("/api/knowledge/an-id-of-somebody", headers=ALICE)
        families = await told(door)
        text = (await door.get("/metrics")).text
    assert "an-id-of-somebody" not in text
    assert "alice" not in text
    for name, family in families.items():
        if name.startswith("process_"):  # named by the Prometheus project, the same for every program
            continue
        if name == "kledger_build_info":
            continue
        assert NAME.fullmatch(name), name
        assert len(family.documentation) > 10
        assert family.type in ("counter", "gauge", "histogram")
        assert not name.endswith(("_ms", "_milliseconds", "_count", "_sum", "_bucket")), name
        if family.type == "histogram":
            assert name.endswith("_seconds")
        for sample in family.samples:
            assert set(sample.labels) <= LABELS, sample
            if family.type == "counter":
                assert sample.name.endswith("_total")


async def test_a_scraper_sees_the_process_and_what_it_was_built_from_and_no_series_of_when_it_began() -> None:
    async with http_door() as door:
        await door.saved()
        families = await told(door)
        text = (await door.get("/metrics")).text
    for name in ("process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds"):
        assert value(families[name]) > 0
    assert "process_cpu_seconds" in families
    (build,) = families["kledger_build_info"].samples
    assert build.value == 1
    assert build.labels["version"] == version("knowledge-ledger")
    assert set(build.labels) == {"version", "python", "duckdb", "qdrant_edge"}
    assert "_created" not in text


async def test_appends_searches_and_folds_are_measured() -> None:
    async with http_door() as door:
        door.desk.projector.folded = of_folding(door.desk.tally)
        saved = await door.saved()
        await door.get(
            "/api/knowledge/search", params={"q": "content", "min_position": saved["position"]}, headers=ALICE
        )
        await door.desk.view.wait_for(2)
        await door.saved(id="one-more")  # its fold comes after those of what was before
        families = await told(door)
    assert value(families["kledger_append_seconds"], "_count") == 3
    assert value(families["kledger_append_seconds"], "_sum") > 0
    assert value(families["kledger_search_seconds"], "_count") == 1
    assert value(families["kledger_fold_batch_seconds"], "_count") >= 1
    assert value(families["kledger_events_folded"], "_total") >= 2


async def test_refused_events_are_told_by_code() -> None:
    async with http_door() as door:
        for item_id in ("nothing", "nobody"):
            kept = await door.desk.ledger.append(NewEvent(KnowledgeRetired(), item_id, "user:ada"))
        await door.desk.view.wait_for(kept.position)
        families = await told(door)
    assert value(families["kledger_refused_events"]) == 2
    assert value(families["kledger_refused_events_by_code"], code="unknown_knowledge") == 2


def test_a_running_node_is_ready_and_measures_what_it_does(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--quack", "off") as node, node.client() as ledger:
        saved = ledger.save("Measure", "what happens", ["tool"], scopes=["public"])
        ledger.seeing(saved["position"]).search("measure", record=False)
        assert httpx.get(f"{node.url}/health/ready", timeout=PATIENCE).json() == {"status": "ready", "reasons": []}
        text = httpx.get(f"{node.url}/metrics", timeout=PATIENCE).text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert value(families["kledger_ready"]) == value(families["kledger_healthy"]) == 1
    assert value(families["kledger_append_seconds"], "_count") >= 1
    assert value(families["kledger_search_seconds"], "_count") == 1
    assert value(families["kledger_fold_batch_seconds"], "_count") >= 1
    assert {one.labels["view"] for one in families["kledger_view_lag_seconds"].samples} == {"duckdb", "vectors"}
