"""Checkpoints read from the end of their file, which grows as long as a node lives: what is needed, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.backup.witnesses import SignedLog
from ledger.event import JsonObject, utc_now
from ledger.integrity import checkpoints
from ledger.integrity.chain import Chain
from ledger.integrity.checkpoints import SignedCheckpoint, append_checkpoints, from_the_last, read_checkpoints, sign
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys


def signed_node(data: Path, positions: int, times: int = 1) -> list[SignedCheckpoint]:
    """The checkpoints of a node that signed each of its first positions, so many times each."""
    files = NotaryFiles.of(data)
    files.directory.mkdir(parents=True)
    keys, chain, signed = SigningKeys.open(files.keys), Chain.empty(), list[SignedCheckpoint]()
    for _ in range(positions):
        chain = chain.extended([bytes(32)])
        signed += [sign(chain, keys, utc_now())] * times
    append_checkpoints(files.checkpoints, signed)
    return signed


@pytest.mark.parametrize("block", [1, 349, 700, 701, 1 << 16])
def test_wherever_a_block_is_cut_every_checkpoint_is_read_once(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed, file = signed_node(tmp_path, 20), NotaryFiles.of(tmp_path).checkpoints
    with file.open("ab") as more:
        more.write(b"no checkpoint\n\n" + b'{"position": 21')
    monkeypatch.setattr(checkpoints, "_BLOCK_BYTES", max(block, 1))
    monkeypatch.setattr(checkpoints, "_LONGEST_LINE", 4_096)
    assert list(from_the_last(file)) == signed[::-1] == read_checkpoints(file)[::-1]


def test_a_line_without_an_end_is_not_kept_in_memory(tmp_path: Path) -> None:
    signed, file = signed_node(tmp_path, 3), NotaryFiles.of(tmp_path).checkpoints
    with file.open("ab") as more:
        more.write(bytes(5_000_000))
    assert next(from_the_last(file)) == signed[-1]


def test_a_backup_of_a_node_that_signed_for_a_year_reads_its_last_checkpoints_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed, read, from_json = signed_node(tmp_path, 4, times=5_000), list[object](), SignedCheckpoint.from_json

    def counted(document: JsonObject) -> SignedCheckpoint:
        read.append(document)
        return from_json(document)

    monkeypatch.setattr(SignedCheckpoint, "from_json", counted)
    latest = SignedLog.of_node(tmp_path).latest()
    assert latest is not None
    assert latest.checkpoint == signed[-1]
    assert len(read) == 1


def test_the_last_checkpoint_before_a_position_is_one_that_a_key_of_the_node_signed(tmp_path: Path) -> None:
    signed = signed_node(tmp_path / "ours", 6)
    theirs = signed_node(tmp_path / "theirs", 5)
    append_checkpoints(NotaryFiles.of(tmp_path / "ours").checkpoints, theirs)
    log = SignedLog.of_node(tmp_path / "ours")
    assert [found.checkpoint if (found := log.latest(up_to)) else None for up_to in (None, 4, 0)] == [
        signed[-1],
        signed[3],
        None,
    ]
    assert SignedLog.of_node(tmp_path / "nowhere").latest() is None
