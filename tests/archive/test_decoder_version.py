"""Columns are read by the version of the decoder that made them: whatever they follow from is part of it."""

from __future__ import annotations

from projections.archive.decoder_version import DECODER_VERSION, SOURCES
from projections.engine.schema_version import files_of, version_of
from tests.house.project import imported_by

# They open keys, for events that are not decoded ahead; or say what follows from the columns once they are read, or how
# much an answer holds.
WITHOUT_COLUMNS = (
    *("ledger.privacy.keyring", "ledger.privacy.vault", "ledger.privacy.event_seal"),
    *("projections.views.as_sets", "projections.views.lineage.links", "ledger.one_answer"),
)
# What writes and reads files: the columns that it handles are compared when they are written.
FILES = ("ledger.archive", "ledger.broker", "ledger.integrity")


def test_whatever_the_decoder_imports_is_part_of_its_version() -> None:
    imported = imported_by(SOURCES)
    missing = {name for name in imported if not name.startswith((*SOURCES, *WITHOUT_COLUMNS, *FILES))}
    assert sorted(name for name in missing if imported[name].name != "__init__.py") == []


def test_a_change_of_its_code_or_of_its_libraries_is_another_version() -> None:
    number = f"{version_of(files_of(SOURCES)):08x}"
    assert DECODER_VERSION.startswith(f"{number}/duckdb ")
    assert version_of([("a.py", b"one")]) != version_of([("a.py", b"two")])
    assert "pyarrow" in DECODER_VERSION
