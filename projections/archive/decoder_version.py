"""Version of the decoder: a hash of the code from which the columns of an event follow, and of the libraries.

Columns that another version made are not read: the events are decoded again. It covers less than the version of the
views (projections/engine/schema_version.py), so most changes of a view leave the archive as it is.
"""

from __future__ import annotations

from importlib.metadata import version

from projections.engine.schema_version import files_of, version_of

SOURCES = (
    *("kledger.contract", "ledger.event", "ledger.events", "ledger.item_status", "ledger.new_item", "ledger.readers"),
    *(
        "ledger.wire",
        "ledger.privacy.personal",
        "ledger.privacy.sealed",
        "ledger.privacy.sealed_as_written",
        "projections.archive.columns",
        "projections.archive.sealed_columns",
        "projections.archive.texts",
        "projections.engine.decode",
    ),
    *("projections.engine.canonical_check", "projections.engine.model_check", "projections.engine.unsealing"),
    *("projections.engine.forgotten", "projections.fold_kit"),
)
"""The modules and packages (whole) that decide which columns an event has, and whether it is decoded ahead at all."""

DECODER_VERSION = f"{version_of(files_of(SOURCES)):08x}/duckdb {version('duckdb')}/pyarrow {version('pyarrow')}"
