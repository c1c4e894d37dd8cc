"""The schema version of a view file follows from the code that makes its tables and rows."""

from __future__ import annotations

import pytest

from projections.engine.duckdb import open_view, schema_version_of
from projections.engine.registry import VIEWS
from projections.engine.schema_version import SCHEMA_VERSION, SOURCES, version_of
from tests.house.project import imported_by

FILES = [("projections.views/a.py", b"one"), ("projections.views/b.py", b"two")]


def test_a_new_view_file_has_the_version_of_the_program() -> None:
    con = open_view(None)
    assert schema_version_of(con) == SCHEMA_VERSION > 0
    con.close()


@pytest.mark.parametrize(
    "files",
    [
        [FILES[0]],
        [FILES[0], ("projections.views/b.py", b"two ")],
        [FILES[0], ("projections.views/c.py", b"two")],
        [("projections.views/a.py", b""), ("projections.views/b.py", b"onetwo")],
    ],
    ids=["a file less", "another content", "another name", "the same bytes in other files"],
)
def test_every_change_of_the_code_is_another_version(files: list[tuple[str, bytes]]) -> None:
    assert version_of(files) != version_of(FILES)
    assert version_of(list(files)) == version_of(files)


def test_every_fold_is_part_of_it() -> None:
    folds = {fold.__module__ for view in VIEWS for fold in (view.fold, view.fold_few) if fold is not None}
    assert folds
    assert [fold for fold in folds if not fold.startswith(SOURCES)] == []


# What opens connections, files and keys, what seals before an append, and what cuts an answer: it decides nothing about
# a row.
WITHOUT_RULES = (
    "ledger.one_answer",
    "ledger.broker",
    "ledger.privacy.event_seal",
    "ledger.privacy.keyring",
    "ledger.privacy.vault",
    "ledger.runtime",
    "ledger.store",
)
PORT = "ledger.stream"


def test_whatever_its_modules_import_is_part_of_it_as_well_unless_it_only_opens_something() -> None:
    imported = imported_by(SOURCES)
    missing = {name for name in imported if not name.startswith((*SOURCES, *WITHOUT_RULES))}
    packages = {name for name in missing if imported[name].name == "__init__.py"}
    assert missing - packages == {PORT}
