"""View files that are gone, damaged or of another version: they follow from the log, and are made from it anew."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from structlog.testing import capture_logs

from kledger.contract.errors import ServiceFailed
from projections.engine.digest import digests
from projections.engine.duckdb import spilled_of
from projections.engine.view import Instance, View
from projections.live.files import live_file
from projections.live.view_file import LiveFiles
from tests.journeys.running_node import assert_found, caught_up, head, items, result_of, running, until

COUNT = 300
BLOCK = 256 * 1024


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a node that was stopped, with COUNT items in it."""
    data = tmp_path_factory.mktemp("kept") / "data"
    with running(data) as node, node.client() as ledger:
        assert ledger.save_many(items(COUNT))["saved"] == COUNT
        caught_up(ledger)
    return data


def the_file(views: Path) -> Path:
    file = live_file(views)
    assert file is not None
    return file


def overwrite(views: Path, at: int, length: int) -> None:
    with the_file(views).open("r+b") as file:
        file.seek(at)
        file.write(b"\xa5" * length)


def cut(views: Path) -> None:
    with the_file(views).open("r+b") as file:
        file.truncate(the_file(views).stat().st_size // 2)


def spoil_every_data_block(views: Path) -> None:
    size = the_file(views).stat().st_size
    for start in range(3 * 4096 + 8, size, BLOCK):
        overwrite(views, start + BLOCK // 2, 64)


def make_older(views: Path) -> None:
    with duckdb.connect(str(the_file(views))) as con:
        con.execute("UPDATE checkpoints SET schema_version = schema_version - 1")


def forget_the_checkpoint(views: Path) -> None:
    with duckdb.connect(str(the_file(views))) as con:
        con.execute("DELETE FROM checkpoints")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "the file is gone": lambda views: the_file(views).unlink(),
    "the directory is gone": shutil.rmtree,
    "the pointer is gone": lambda views: (views / "current").unlink(),
    "the pointer is empty": lambda views: (views / "current").write_text(""),
    "the pointer is no text": lambda views: (views / "current").write_bytes(b"\xff\xfe\x00"),
    "the file is empty": lambda views: the_file(views).write_bytes(b""),
    "the file is something else": lambda views: the_file(views).write_text("not a database" * 1000),
    "the file is cut": cut,
    "its first block is spoilt": lambda views: overwrite(views, 0, 4096),
    "its headers are spoilt": lambda views: overwrite(views, 4096, 2 * 4096),
    "its data is spoilt": spoil_every_data_block,
    "its schema is older": make_older,
    "its checkpoint is gone": forget_the_checkpoint,
}


@contextmanager
def opened(views: Path) -> Iterator[Instance]:
    instance = LiveFiles(views, None).open_live()
    yield instance
    instance.close()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_cannot_be_used_is_set_aside_for_a_new_one(damage: str, kept: Path, tmp_path: Path) -> None:
    views = tmp_path / "views"
    shutil.copytree(kept / "views", views)
    DAMAGES[damage](views)
    with opened(views) as instance:
        assert instance.position == 0
        assert {part.rows for part in digests(instance.con).values()} == {0}
        assert instance.path == live_file(views)
    left = sorted(file.name for file in views.iterdir() if not file.name.endswith(".wal"))
    assert left == ["current", the_file(views).name]


@pytest.mark.parametrize("damage", ["its data is spoilt", "its schema is older", "its checkpoint is gone"])
def test_a_file_of_another_version_is_no_error_and_a_damaged_one_is(damage: str, kept: Path, tmp_path: Path) -> None:
    views = tmp_path / "views"
    shutil.copytree(kept / "views", views)
    DAMAGES[damage](views)
    with capture_logs() as logged, opened(views):
        pass
    (line,) = logged
    if damage == "its schema is older":  # as at each upgrade
        assert (line["log_level"], line["event"]) == ("warning", "the views are made anew from the log")
        assert line["why"].startswith("another version of the program made them: ")
    else:
        assert (line["log_level"], line["file"]) == ("error", str(the_file(views).with_name("view-000001.duckdb")))


@pytest.mark.parametrize(
    "damage", ["the file is gone", "the pointer is gone", "the pointer is empty", "the pointer is no text"]
)
def test_a_file_that_is_missed_is_told(damage: str, kept: Path, tmp_path: Path) -> None:
    views = tmp_path / "views"
    with capture_logs() as first, opened(views):
        assert first == [], "a first start misses nothing"
    shutil.rmtree(views)
    shutil.copytree(kept / "views", views)
    DAMAGES[damage](views)
    with capture_logs() as logged, opened(views):
        pass
    (line,) = logged
    assert (line["log_level"], line["event"]) == ("warning", "the views are made anew from the log")
    assert line["why"] == "the file that was served is gone, or not named"


def test_a_file_that_keeps_recalls_for_another_time_is_no_error(kept: Path, tmp_path: Path) -> None:
    views = tmp_path / "views"
    shutil.copytree(kept / "views", views)
    with capture_logs() as logged:
        LiveFiles(views, None, recall_days=30).open_live().close()
    (line,) = logged
    assert (line["log_level"], line["event"]) == ("warning", "the views are made anew from the log")
    assert line["why"] == "they keep the detail of recalls for all days, this node for 30"


def test_a_file_that_is_whole_is_used_as_it_is(kept: Path, tmp_path: Path) -> None:
    views = tmp_path / "views"
    shutil.copytree(kept / "views", views)
    (views / "view-000099.duckdb").write_text("a rebuild that did not end")
    Path(f"{the_file(views)}.wal").write_text("the torn end of a write-ahead log")
    left = [spilled_of(the_file(views)), spilled_of(views / "view-000099.duckdb")]
    for directory in left:
        directory.mkdir()
        (directory / "duckdb_temp_storage_DEFAULT-0.tmp").write_text("in clear, as whoever was killed left it")
    with opened(views) as instance:
        assert instance.position == COUNT
    assert not any(path.exists() for path in (views / "view-000099.duckdb", *left))


@pytest.mark.parametrize("damage", ["the directory is gone", "its schema is older"])
def test_a_node_answers_as_before_from_a_view_that_it_made_anew(damage: str, kept: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(kept, data)
    DAMAGES[damage](data / "views")
    if damage == "the directory is gone":
        shutil.rmtree(data / "vectors")
    with running(data) as node, node.client() as ledger:
        assert ("the views are made anew from the log" in node.said()) == (damage != "the directory is gone")
        assert "the views are folded from the start of the log" in node.said()
        assert ("the vectors are made from the log" in node.said()) == (damage == "the directory is gone")
        assert caught_up(ledger)["stream"]["head"] == COUNT
        assert_found(ledger, [0, 150, COUNT - 1])
        assert ledger.save_many(items(COUNT))["unchanged"] == COUNT
        assert head(ledger) == COUNT
        assert result_of(ledger, "verify")["equal"] is True


def test_a_log_that_was_cut_is_never_folded_past_and_never_healthy(kept: Path, tmp_path: Path) -> None:
    """The views say position COUNT, the log begins anew: whatever comes now must not vanish behind them."""
    data = tmp_path / "data"
    shutil.copytree(kept, data)
    shutil.rmtree(data / "broker" / "jetstream")
    with running(data) as node, node.client() as ledger:
        until(lambda: any("ends at position 0" in each for each in ledger.status()["reasons"]), "the node says it")
        assert not ledger.status()["healthy"]
        assert ledger.health()["status"] == "unhealthy"


def spoil_block(views: Path, number: int) -> None:
    overwrite(views, 3 * 4096 + number * BLOCK + BLOCK // 2, 64)


async def found_late(kept: Path, scratch: Path) -> list[int]:
    """The blocks of the view file that are read neither as it is opened nor never: the others are damaged unseen."""
    late = []
    for number in range((the_file(kept / "views").stat().st_size - 3 * 4096) // BLOCK):
        views = scratch / str(number) / "views"
        shutil.copytree(kept / "views", views)
        spoil_block(views, number)
        view = View(LiveFiles(views, None).open_live())
        if not view.position:  # it was made anew
            view.close()
            continue
        with contextlib.suppress(ServiceFailed):
            await view.ask(digests)
        if view.instance.damage:
            late.append(number)
            with pytest.raises(ServiceFailed, match="kledger rebuild makes it anew"):
                await view.ask(digests)
        view.close()
        with opened(views) as again:
            assert (again.position == 0) == (number in late), "what was found damaged is made anew, and nothing else"
    return late


async def test_a_damaged_block_that_is_read_late_is_told_and_the_next_start_makes_the_file_anew(
    kept: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    shutil.copytree(kept, data)
    with running(data) as node, node.client() as ledger:
        ledger.save_many([{**one, "content": f"{n} {'word ' * n}"} for n, one in enumerate(items(COUNT, "more"))])
        caught_up(ledger)
        assert result_of(ledger, "rebuild")["swapped"]
    late = await found_late(data, tmp_path / "scratch")
    assert late, "some blocks are read by questions alone"
    spoil_block(data / "views", late[0])
    with running(data) as node, node.client() as ledger:
        assert not result_of(ledger, "verify")["equal"]
        until(lambda: any("file is damaged" in reason for reason in ledger.status()["reasons"]), "health says so")
        assert ledger.health()["status"] == "unhealthy"
        assert result_of(ledger, "rebuild")["swapped"]
        until(lambda: ledger.status()["healthy"], "the node is well", instead=ledger.status()["reasons"])
        assert result_of(ledger, "verify")["equal"]
        assert_found(ledger, range(0, COUNT, 50))
    assert not list(data.rglob("*.damaged"))
