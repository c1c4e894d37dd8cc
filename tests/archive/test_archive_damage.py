"""Whatever happens to a file of the archive, a rebuild names it, ends with the right views, and it is made anew."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.archive.segments import segment_of, set_aside
from ledger.event import StoredEvent
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys
from projections.archive import reading, writing
from projections.archive.reading import Archive
from projections.archive.writing import is_due, write_due
from projections.engine.digest import RelationDigest
from tests.archive.archives import archived, files_of, folded, sign
from tests.conftest import LoopThread
from tests.integrity.logs import ListedLedger
from tests.projections.histories import saved, stored

SIZE, COUNT = 4, 10
LOG = stored([saved(f"k{at}", content=f"said {at} 次") for at in range(COUNT)])


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data, loop = tmp_path_factory.mktemp("original"), LoopThread()
    loop.run(archived(data, LOG, SIZE))
    loop.close()
    return data


@pytest.fixture
def data(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture(scope="module")
def right(loop: LoopThread) -> dict[str, RelationDigest]:
    return loop.run(folded(LOG, None))


def a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[random.Random(path.name).randrange(len(content))] ^= 0x10
    path.write_bytes(content)


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("damage", [a_byte, half, Path.unlink])
async def test_damage_to_any_file_is_named_and_the_views_are_right_and_it_is_made_anew(
    data: Path, damage: Callable[[Path], None], right: dict[str, RelationDigest]
) -> None:
    whole = [path.relative_to(data) for path in files_of(data)]
    assert len(whole) == 2 * (2 + 2), "two segments, each with events and columns, and a manifest of each"
    for name in whole:
        damage(data / name)
        archive = Archive.of_node(data)
        assert await folded(LOG, archive) == right
        (named,) = archive.damaged
        assert named["file"].startswith(name.relative_to("archive").parent.as_posix())
        assert named["segment"] == name.parent.name
        set_aside(data / "archive", segment_of(named["segment"]), named["file"])
        assert is_due(data, COUNT, SIZE)
        await write_due(ListedLedger(LOG), data, COUNT, SIZE)
        again = Archive.of_node(data)
        assert await folded(LOG, again) == right
        assert (again.damaged, again.events) == ([], 8)
        assert [path.relative_to(data) for path in files_of(data)] == whole


async def test_a_segment_of_which_half_the_files_are_gone_is_read_from_the_log(
    data: Path, right: dict[str, RelationDigest]
) -> None:
    shutil.rmtree(data / "archive" / "events" / segment_of("000000000000001-000000000000004").name)
    archive = Archive.of_node(data)
    assert await folded(LOG, archive) == right
    assert archive.events == 4
    await write_due(ListedLedger(LOG), data, COUNT, SIZE)
    again = Archive.of_node(data)
    assert await folded(LOG, again) == right
    assert again.events == 8


@pytest.mark.parametrize("part", ["events", "columns"])
async def test_a_segment_with_an_empty_directory_is_named_and_made_anew(
    part: str, data: Path, right: dict[str, RelationDigest]
) -> None:
    directory = data / "archive" / part / segment_of("000000000000005-000000000000008").name
    for path in directory.iterdir():
        path.unlink()
    archive = Archive.of_node(data)
    assert await folded(LOG, archive) == right
    (named,) = archive.damaged
    assert named["file"].startswith(f"{part}/{directory.name}")
    set_aside(data / "archive", segment_of(named["segment"]), named["file"])
    await write_due(ListedLedger(LOG), data, COUNT, SIZE)
    again = Archive.of_node(data)
    assert await folded(LOG, again) == right
    assert (again.damaged, again.events) == ([], 8)


async def test_what_another_key_signed_is_not_believed(
    data: Path, tmp_path: Path, right: dict[str, RelationDigest]
) -> None:
    forged = [event._replace(body=event.body.replace(b"said 2", b"lied 2")) for event in LOG]
    await archived(tmp_path / "forger", forged, SIZE)
    shutil.rmtree(data / "archive")
    shutil.copytree(tmp_path / "forger" / "archive", data / "archive")
    archive = Archive.of_node(data)
    assert await folded(LOG, archive) == right
    assert [each["reason"] for each in archive.damaged] == ["it is not signed by a key of this node"] * 2


async def test_what_this_key_signed_of_another_log_is_not_believed(
    data: Path, right: dict[str, RelationDigest]
) -> None:
    sign(data, [event._replace(message_id="other") for event in LOG[:4]] + LOG[4:])
    archive = Archive.of_node(data)
    assert await folded(LOG, archive) == right
    assert [each["segment"] for each in archive.damaged] == ["000000000000001-000000000000004"]


async def test_an_archive_beside_another_log_is_not_read(data: Path) -> None:
    other = stored([saved(f"other{at}") for at in range(COUNT)])
    archive = Archive.of_node(data)
    assert await folded(other, archive) == await folded(other, None)
    assert (archive.events, archive.damaged) == (0, [])


async def test_columns_that_another_version_of_the_decoder_made_are_not_read_and_are_made_anew(
    data: Path, right: dict[str, RelationDigest], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (reading, writing):
        monkeypatch.setattr(module, "DECODER_VERSION", "another")
    archive = Archive.of_node(data)
    read = 0

    def counted(*arguments: object) -> dict[object, object]:
        nonlocal read
        read += 1
        return {}

    monkeypatch.setattr(reading, "read_columns", counted)
    assert await folded(LOG, archive) == right, "the events are decoded from the archive's own bodies"
    assert (read, archive.events, archive.damaged) == (0, 8, [])
    assert is_due(data, COUNT, SIZE)
    assert (await write_due(ListedLedger(LOG), data, COUNT, SIZE)).columns == 2
    assert not is_due(data, COUNT, SIZE)


async def test_an_event_that_the_log_has_otherwise_than_it_was_signed_is_not_archived(tmp_path: Path) -> None:
    sign(tmp_path, LOG)
    changed: list[StoredEvent] = [*LOG[:2], LOG[2]._replace(body=b"{}"), *LOG[3:]]
    with pytest.raises(Exception, match="other events there than those that were signed"):
        await write_due(ListedLedger(changed), tmp_path, COUNT, SIZE)
    assert files_of(tmp_path) == []


def test_the_key_that_signs_the_archive_is_the_one_that_signs_the_log(original: Path) -> None:
    key = SigningKeys(NotaryFiles.of(original).keys).current().id
    assert all(f'"key": "{key}"'.encode() in path.read_bytes() for path in files_of(original) if path.suffix == ".json")
