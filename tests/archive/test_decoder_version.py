"""Columns are read by the version of the decoder that made them: whatever they follow from is part of it."""

from __future__ import annotations

import ast

from projections.archive.decoder_version import DECODER_VERSION, SOURCES
from projections.engine.schema_version import files_of, version_of
from tests.house.project import PACKAGES, ROOT, modules

# They open keys, for events that are not decoded ahead; or say what follows from the columns once they are read.
WITHOUT_COLUMNS = (
    *("ledger.privacy.keyring", "ledger.privacy.vault", "ledger.privacy.event_seal"),
    *("projections.views.as_sets", "projections.views.lineage.links"),
)
# What writes and reads files: the columns that it handles are compared when they are written.
FILES = ("ledger.archive", "ledger.broker", "ledger.integrity")


def test_whatever_the_decoder_imports_is_part_of_its_version() -> None:
    sources = [path.relative_to(ROOT).with_suffix("") for path in modules(PACKAGES)]
    names = {".".join(path.parts).removesuffix(".__init__"): ROOT / path.with_suffix(".py") for path in sources}
    missing = set()
    for name, path in names.items():
        if not name.startswith(SOURCES):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported = {f"{node.module}.{one.name}" for one in node.names} | {node.module}
                known = (*SOURCES, *WITHOUT_COLUMNS, *FILES)
                missing |= {each for each in imported & names.keys() if not each.startswith(known)}
    assert sorted(name for name in missing if names[name].name != "__init__.py") == []


def test_a_change_of_its_code_or_of_its_libraries_is_another_version() -> None:
    number = f"{version_of(files_of(SOURCES)):08x}"
    assert DECODER_VERSION.startswith(f"{number}/duckdb ")
    assert version_of([("a.py", b"one")]) != version_of([("a.py", b"two")])
    assert "pyarrow" in DECODER_VERSION
