"""Document frequencies: right after any history, and after a start that finds them in their file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kledger.contract.words import EVERYTHING
from projections.vectors.store import edge as edge_store
from projections.vectors.store.edge import EdgeStore
from projections.vectors.store.edge_points import frequencies_of
from projections.vectors.store.frequencies import Counted, Frequencies
from projections.vectors.store.kept_frequencies import keep, kept
from projections.vectors.store.port import Point
from projections.vectors.tokens import document_terms

WORDS = [f"word{number}" for number in range(40)]
READERS = ["public", "team:a", "user:ann", "user:bob"]


def plain(frequencies: Frequencies) -> dict[str, tuple[int, dict[int, int]]]:
    """By reader: the number of documents, and the frequency of each term."""
    return {
        reader: (documents, dict(zip(terms.tolist(), counts.tolist(), strict=True)))
        for reader, documents, terms, counts in frequencies.counts()
    }


def counted_anew(store: EdgeStore, folder: Path) -> dict[str, tuple[int, dict[int, int]]]:
    """What the points alone say."""
    return plain(frequencies_of(store._shard, folder / "without a file")[0])  # no other way to its points


def some_history(store: EdgeStore, random: Random, position: int, events: int) -> int:
    """Versions that begin, replace others, are retired, and items that are erased. Returns the last position."""
    for _ in range(events):
        position += 1
        item, version = f"item-{random.randrange(12)}", position
        if random.random() < 1 / 12:
            store.erase([item])
            continue
        if (before := random.choice([None, *range(max(1, position - 20), position)])) is not None:
            store.close_version(item, before, position)
        text = " ".join(random.sample(WORDS, random.randrange(1, 9)))
        readers = random.sample(READERS, random.randrange(1, 3))
        terms = document_terms(text, "")
        retired = random.random() < 1 / 6
        store.upsert([Point(item, version, position, readers, ["tool"], "user:ann", None, terms, retired=retired)])
    return position


@pytest.mark.parametrize("seed", range(2))
def test_frequencies_after_any_history_are_those_of_the_points(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    store = EdgeStore(tmp_path, "m", 8)
    some_history(store, random, 0, 120)
    assert plain(store._frequencies) == counted_anew(store, tmp_path)  # they show in no answer whole
    store.close()


@pytest.mark.parametrize("seed", range(4))
def test_frequencies_of_a_file_and_the_changes_since_are_those_of_the_points(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_store, "_LEAST_KEPT", 5)
    random = Random(seed)
    store = EdgeStore(tmp_path, "m", 8)
    (folder,) = tmp_path.iterdir()
    position, without_file = 0, 0
    for _ in range(5):
        position = some_history(store, random, position, random.randrange(1, 40))
        if random.random() < 3 / 4:
            store.set_checkpoint(position)
        file = folder / "frequencies"
        earlier = file.read_bytes() if file.exists() else None
        store.close()
        if random.random() < 1 / 2 and earlier is not None:  # as after a kill: the points are newer than the file
            file.write_bytes(earlier)
        without_file += not file.exists()
        store = EdgeStore(tmp_path, "m", 8)
        assert plain(store._frequencies) == counted_anew(store, tmp_path)  # they show in no answer whole
        position = max(position, store.checkpoint())
    assert without_file < 5, "no start found a file"
    store.close()


def test_a_start_reads_the_terms_of_no_point_that_the_file_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EdgeStore(tmp_path, "m", 8)
    store.set_checkpoint(some_history(store, Random(1), 0, 50))
    store.close()
    read = Counter[int]()
    inner = Frequencies.count

    def counting(self: Frequencies, changed: object) -> None:
        changes = list(changed)  # type: ignore[call-overload]  # an iterable of Counted
        read.update([len(changes)])
        inner(self, changes)

    monkeypatch.setattr(Frequencies, "count", counting)
    EdgeStore(tmp_path, "m", 8).close()
    assert sum(changes * times for changes, times in read.items()) == 0


def test_no_file_of_frequencies_outlives_an_erasure(tmp_path: Path) -> None:
    store = EdgeStore(tmp_path, "m", 8)
    terms = document_terms("her secret word", "")
    store.upsert([Point("hers", 1, 1, ["user:eve"], ["tool"], "user:eve", None, terms)])
    store.set_checkpoint(1)
    store.close()
    store = EdgeStore(tmp_path, "m", 8)
    (folder,) = tmp_path.iterdir()
    assert kept(folder) is not None
    store.erase(["hers"])
    assert kept(folder) is None
    store.close()
    found = kept(folder)
    assert found is None or plain(found[0]) == {}


def test_a_file_that_counts_other_readers_of_a_version_is_as_none(tmp_path: Path) -> None:
    store = EdgeStore(tmp_path, "m", 8)
    (folder,) = tmp_path.iterdir()
    terms = document_terms(WORDS[0], "")
    store.upsert([Point("one", 1, 1, ["team:a"], ["tool"], "user:ann", None, terms)])
    store.set_checkpoint(1)
    keep(folder, store._frequencies, 1)
    store.upsert([Point("one", 1, 2, ["public"], ["tool"], "user:ann", None, terms, valid_from=1)])
    store.set_checkpoint(2)
    # The process is killed here: what starts next has the points and the file.
    assert plain(frequencies_of(store._shard, folder)[0]) == counted_anew(store, tmp_path)
    store.close()


@pytest.mark.parametrize("damage", ["cut", "zeroed", "empty", "other"])
def test_a_damaged_file_of_frequencies_is_as_none(tmp_path: Path, damage: str) -> None:
    frequencies = Frequencies()
    frequencies.count([Counted(["public"], np.arange(200, dtype=np.uint32), 1)])
    keep(tmp_path, frequencies, 7)
    found = kept(tmp_path)
    assert found is not None
    assert (plain(found[0]), found[1]) == (plain(frequencies), 7)
    file = tmp_path / "frequencies"
    whole = file.read_bytes()
    half = len(whole) // 2
    bytes_of = {"cut": whole[:half], "empty": b"", "other": b"PK" + bytes(80)}
    file.write_bytes(bytes_of.get(damage, whole[: half - 40] + bytes(80) + whole[half + 40 :]))
    assert kept(tmp_path) is None


def test_a_query_counts_the_documents_that_are_not_sorted_in_yet() -> None:
    random = Random(3)
    frequencies = Frequencies()
    expected = Counter[int]()
    for _ in range(400):
        terms = np.array(sorted(random.sample(range(3_000), 60)), np.uint32)
        frequencies.count([Counted(["public"], terms, 1)])
        expected.update(terms.tolist())
        if random.random() < 1 / 40:
            ((reader, documents, all_terms, counts), _) = frequencies.counts()
            assert reader in ("public", EVERYTHING)
            assert dict(zip(all_terms.tolist(), counts.tolist(), strict=True)) == dict(expected)
            assert documents == frequencies.documents("public")
    wanted = np.array([5, 2_999, 1, 700], np.uint32)
    public = frequencies._readers["public"]  # weights alone show outside
    assert public.latest, "some are not sorted in"
    assert public.of(wanted).tolist() == [expected[term] for term in wanted.tolist()]
