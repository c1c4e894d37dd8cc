"""Columns of sealed events: read without opening one, unreadable once a key is destroyed, believed only whole."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.archive.segments import Segment, segment_of, set_aside
from ledger.event import StoredEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import DataKey, Held, Tombstone, new_secret
from ledger.privacy.whose_text import has_text
from ledger.vocabulary.examples import EXAMPLES
from projections.archive.columns import decoded_ahead
from projections.archive.reading import Archive
from projections.archive.writing import write_due
from projections.engine.digest import RelationDigest
from projections.fold_kit.parser import Parser
from tests.archive.archives import archived, decoded_by_readers, files_of, folded
from tests.conftest import LoopThread
from tests.integrity.logs import ListedLedger
from tests.projections.histories import saved, stored
from tests.sealed_events import sealed_event

ADA, BOB = "user:ada", "user:bob"
SECRET = "ada-was-here-7f3a"
KEYS = {name: DataKey(name, new_secret()) for name in (ADA, BOB)}
SIZE, SMALL = 70, 4
# A resource's secret is not opened by anybody who folds: such an event is left to the log.
PERSONAL = [event for event in EXAMPLES.values() if has_text(event.fact) and not event.fact.sealed_only]


def sealed(*persons: str) -> list[StoredEvent]:
    """Every kind of event that holds words, and one that says SECRET, as a node seals them for these persons."""
    saved = EXAMPLES["knowledge.saved"]
    assert isinstance(saved.fact, KnowledgeSaved)
    told = replace(saved, entity_id="k-secret", fact=saved.fact.model_copy(update={"task": SECRET, "content": SECRET}))
    events = [
        replace(event, id=f"{'-'.join(persons)}-{at}", org="default") for at, event in enumerate([told, *PERSONAL])
    ]
    return stored([sealed_event(event, [KEYS[person] for person in persons]) for event in events])


def log_of(*parts: Sequence[StoredEvent], size: int = SIZE) -> list[StoredEvent]:
    """The parts one after another, as far as they fill segments."""
    whole = [event for part in parts for event in part]
    whole = whole[: len(whole) // size * size]
    return [event._replace(position=at, message_id=f"m{at}") for at, event in enumerate(whole, 1)]


LOG = log_of(sealed(ADA), sealed(BOB), sealed(ADA, BOB), sealed(BOB, ADA), sealed())


def keyring(held: Mapping[str, Held]) -> Keyring:
    return Keyring(lambda names: {name: held[name] for name in names if name in held})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, loop: LoopThread) -> Path:
    """LOG in an archive with the columns of all that KEYS open; no test changes it."""
    data = tmp_path_factory.mktemp("written")
    loop.run(archived(data, LOG, SIZE, keyring(KEYS)))
    return data


@pytest.fixture(scope="module")
def right(loop: LoopThread) -> dict[str, RelationDigest]:
    """What the log gives to whom all KEYS are known."""
    return loop.run(folded(LOG, None, keyring=keyring(KEYS)))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The positions of the events that a reader had to decode."""
    return decoded_by_readers(monkeypatch)


async def test_every_kind_of_sealed_event_is_read_without_being_opened_or_parsed(
    written: Path, right: dict[str, RelationDigest], decoded: list[int]
) -> None:
    archive = Archive.of_node(written)
    assert await folded(LOG, archive, keyring=keyring(KEYS)) == right
    assert (archive.events, archive.damaged, decoded) == (len(LOG), [], [])


@pytest.mark.parametrize("person", [ADA, BOB])
async def test_words_are_unreadable_once_one_of_the_keys_that_sealed_them_is_destroyed(
    written: Path, right: dict[str, RelationDigest], person: str, decoded: list[int]
) -> None:
    gone: dict[str, Held] = {**KEYS, person: Tombstone(person, "user:local", "", "r", KEYS[person].witness)}
    ours = await folded(LOG, Archive.of_node(written), keyring=keyring(gone))
    assert ours == await folded(LOG, None, keyring=keyring(gone))
    assert ours != right
    assert decoded == [event.position for event in LOG if f":{person}:".encode() in event.body or _inside(event)]


def _inside(event: StoredEvent) -> bool:
    """Whether the event is sealed for both persons: the outer seal alone shows whose it is."""
    return f"{ADA}-{BOB}".encode() in event.body or f"{BOB}-{ADA}".encode() in event.body


async def test_another_key_of_the_same_person_opens_nothing(written: Path) -> None:
    other = keyring({**KEYS, ADA: DataKey(ADA, new_secret())})
    assert await folded(LOG, Archive.of_node(written), keyring=other) == await folded(LOG, None, keyring=other)


async def test_without_keys_sealed_events_are_archived_and_decoded_when_they_are_read(
    tmp_path: Path, right: dict[str, RelationDigest], decoded: list[int]
) -> None:
    await archived(tmp_path, LOG, SIZE)
    assert await folded(LOG, Archive.of_node(tmp_path), keyring=keyring(KEYS)) == right
    assert decoded == [event.position for event in LOG if b'"sealed:v1:' in event.body]


async def test_what_is_sealed_in_the_log_stands_in_no_file_in_clear(tmp_path: Path) -> None:
    size = len(PERSONAL)
    clear, secret = log_of(sealed(), size=size), log_of(sealed(ADA), sealed(ADA, BOB), size=size)
    await archived(tmp_path / "clear", clear, size, keyring(KEYS))
    await archived(tmp_path / "sealed", secret, size, keyring(KEYS))
    assert any(map(_says, files_of(tmp_path / "clear"))), "else this test would see nothing"
    assert [path for path in files_of(tmp_path / "sealed") if _says(path)] == []


def _says(path: Path) -> bool:
    """Whether a file has the words, in any column of it where it is a table."""
    if path.suffix != ".parquet":
        return SECRET.encode() in path.read_bytes()
    import pyarrow.parquet as pq

    return SECRET.encode() in path.read_bytes() or SECRET in str(pq.read_table(path).to_pylist())


async def test_a_byte_that_was_changed_in_any_file_is_named_and_the_views_are_right(tmp_path: Path) -> None:
    log = log_of(sealed(ADA), size=SMALL)[:SMALL]
    await archived(tmp_path / "whole", log, SMALL, keyring(KEYS))
    right = await folded(log, None, keyring=keyring(KEYS))
    names = [path.relative_to(tmp_path / "whole") for path in files_of(tmp_path / "whole")]
    assert any(name.stem == "words" for name in names)
    for name in names:
        data = tmp_path / "-".join(name.parts)
        shutil.copytree(tmp_path / "whole", data)
        content = bytearray((data / name).read_bytes())
        content[len(content) // 2] ^= 0x10
        (data / name).write_bytes(content)
        archive = Archive.of_node(data)
        assert await folded(log, archive, keyring=keyring(KEYS)) == right
        (damage,) = archive.damaged
        assert damage["file"].startswith(name.relative_to("archive").parent.as_posix())
        set_aside(data / "archive", segment_of(str(damage["segment"])), str(damage["file"]))
        await write_due(ListedLedger(log), data, len(log), SMALL, keyring(KEYS))
        again = Archive.of_node(data)
        assert await folded(log, again, keyring=keyring(KEYS)) == right
        assert again.damaged == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(b":goal.focused:1", b":goal.focused:9"), (b'"time":"20', b'"time":"x0')],
    ids=["of a later version", "with a time that is none"],
)
async def test_a_sealed_event_that_is_refused_takes_no_columns_from_others(
    tmp_path: Path, right: bytes, wrong: bytes
) -> None:
    """Its MAC is true, which does not cover these, and it is the only one of its kind in the segment."""
    focused = sealed_event(replace(EXAMPLES["goal.focused"], org="default"), [KEYS[ADA]])
    log = stored([saved("k1"), focused, *(saved(f"k{number}") for number in range(2, 12))])
    log[1] = log[1]._replace(body=log[1].body.replace(right, wrong, 1))
    await archived(tmp_path, log, 4, keyring(KEYS))
    assert len(list((tmp_path / "archive" / "columns").glob("*-*"))) == 3
    from_archive = await folded(log, Archive.of_node(tmp_path), keyring=keyring(KEYS))
    assert from_archive == await folded(log, None, keyring=keyring(KEYS))


async def test_what_makes_no_columns_of_one_segment_leaves_the_others_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_at_the_first(parser: Parser, held: Keyring, segment: Segment, events: list[StoredEvent]) -> object:
        if segment.first == 1:
            raise ValueError("of this segment")
        return decoded_ahead(parser, held, segment, events)

    log = stored([saved(f"k{number}") for number in range(12)])
    monkeypatch.setattr("projections.archive.writing.decoded_ahead", fails_at_the_first)
    with pytest.raises(ValueError, match="of this segment"):
        await archived(tmp_path, log, 4)
    assert len(list((tmp_path / "archive" / "columns").glob("*-*"))) == 2
