"""Logs with an archive beside them, without a broker, and views that are folded from both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ledger.event import StoredEvent
from ledger.integrity.chain import leaf_hashes
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys
from ledger.privacy.keyring import Keyring
from ledger.store.parked import NONE_PARKED, Parked
from projections.archive import reading
from projections.archive.reading import Archive
from projections.archive.writing import write_due
from projections.engine.decode import parse
from projections.engine.digest import RelationDigest
from projections.engine.view import Instance, View
from projections.fold_kit.parser import Parser
from projections.fold_kit.workbench import Workbench
from projections.live.catch_up import catch_up
from tests.integrity.logs import ListedLedger
from tests.projections.empty_views import kept_view
from tests.projections.histories import state


def sign(data: Path, log: Sequence[StoredEvent]) -> None:
    """What a notary keeps of a log, as far as the archive looks at it: key and leaves."""
    files = NotaryFiles.of(data)
    files.directory.mkdir(parents=True, exist_ok=True)
    SigningKeys.open(files.keys)
    files.leaves.append(leaf_hashes(log), 0)


async def archived(data: Path, log: Sequence[StoredEvent], size: int, keyring: Keyring | None = None) -> None:
    """Sign a log and archive it in segments of `size`; what `keyring` opens has columns."""
    sign(data, log)
    await write_due(ListedLedger(log), data, len(log), size, keyring)


async def folded(
    log: Sequence[StoredEvent],
    archive: Archive | None,
    stops: Sequence[int] = (),
    keyring: Keyring | None = None,
    parked: Parked = NONE_PARKED,
) -> dict[str, RelationDigest]:
    """The digests of a view that catches up with a log, and stops at each of `stops` in between."""
    with kept_view() as kept:
        view = View(Instance(kept.cursor(), keyring=keyring))
        try:
            for to in (*sorted({stop for stop in stops if 0 < stop < len(log)}), len(log)):
                await catch_up(ListedLedger(log), view, to, parked=parked, archive=archive)
            return state(Workbench(kept))  # where the queries of the digests are planned
        finally:
            view.close()


def files_of(data: Path) -> list[Path]:
    """Every file of the archive."""
    return sorted(path for path in (data / "archive").rglob("*") if path.is_file() and path.name != "lock")


def decoded_by_readers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the positions of the events that a reader of an archive has to decode."""
    positions: list[int] = []

    def noted(parser: Parser, events: Sequence[StoredEvent]) -> object:
        positions.extend(event.position for event in events)
        return parse(parser, events)

    monkeypatch.setattr(reading, "parse", noted)
    return positions
