"""`kledger repair`: what the stream lost, and lost keys of persons, out of a backup, on a node that is stopped.

It connects as the administrator of the stream.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType

from ledger.backup.address import SCHEME, is_in_store
from ledger.runtime.data_directory import check_data_place
from ledger.runtime.whole_file import check_directory_place
from producers.cli.answer import Answer
from producers.cli.as_command import AUDIT, as_operator
from producers.cli.commands.backup.broker import on_broker
from producers.cli.commands.backup.mended import note_mended
from producers.cli.commands.backup.options import Nats, check_one
from producers.cli.commands.backup.telling import moving, signed_by
from producers.cli.progress import bar
from producers.cli.screen import counted, facts, words
from producers.cli.session import Session
from producers.cli.usage.errors import one_of

if TYPE_CHECKING:  # their imports take a good part of the time of `kledger --help`
    from ledger.backup.keys import BroughtBack
    from ledger.backup.repairing import Repaired
    from ledger.backup.restoring import Restored


@one_of("--data or --nats", "data", "nats")
def repair(
    session: Session,  # noqa: ARG001  # every command has one
    source: Annotated[
        str,
        typer.Option(
            "--from", metavar="DIR", help="The backup: a directory, or s3://BUCKET/PREFIX.", show_default=False
        ),
    ],
    data: Annotated[Path | None, typer.Option(help="The data directory, on which no node runs.")] = None,
    nats: Nats = None,
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where the whole log is kept first.  [DIR-repaired-TIME, of a bucket in the current directory]",
        ),
    ] = None,
) -> Answer:
    """Bring back what the stream lost or what was changed in it, and lost keys of persons, from a backup.

    The whole log is written to a new backup and read back before the stream is touched. Refuses when the stream lost
    events that came after the backup. Exits with 1 where the vault is under another master key, or still lacks some.

    Example: kledger repair --from /backups/ledger --data ./.kledger
    """
    from ledger.backup.fetching import brought_here
    from ledger.backup.manifest import load
    from ledger.backup.repairing import repair as repair_stream
    from ledger.backup.witnesses import SignedLog

    check_one(data, nats)
    if data is not None and not (data / "broker" / "jetstream").is_dir():
        check_data_place(data)
        raise typer.BadParameter(f"{data} is not the data directory of a node", param_hint="--data")
    named = Path(source.removeprefix(SCHEME)) if is_in_store(source) else Path(source).absolute()
    beside = Path.cwd() if is_in_store(source) else named.parent
    kept_in = into or beside / f"{named.name}-repaired-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    check_directory_place(kept_in)
    with bar("repair", None) as shown, brought_here(source, None, moving(shown), columns=True) as here:
        load(here)  # before a broker is started
        repaired = on_broker(
            data,
            nats,
            lambda access: repair_stream(
                access,
                here,
                kept_in,
                signed=SignedLog.of_node(data) if data is not None else None,
                progress=moving(shown),
                on_step=shown.step,
            ),
        )
    return _told(data, repaired)


def _told(data: Path | None, repaired: Repaired) -> Answer:
    brought = repaired.keys
    lost = 0 if brought.other_master else _vault_mended(data, brought.records)
    keys = [
        *([("keys", f"{counted(brought.records, 'record')} came back into the vault")] if brought.records else []),
        *([("beside", _of_beside(brought.beside))] if brought.beside else []),
        *([("keys", _OTHER_MASTER)] if brought.other_master else []),
        *([("still lost", _of_lost(lost))] if lost else []),
    ]
    if repaired.restored is None:
        told = _of_keys(keys, brought)
    else:
        note_mended(data, "log")
        told = _of_log(keys, repaired, repaired.restored)
    return Answer(asdict(repaired), told, ok=not brought.other_master and not lost)


def _of_keys(keys: list[tuple[str, str]], brought: BroughtBack) -> RenderableType:
    """What is told where the stream itself is whole."""
    if not keys:
        return "nothing to mend: every event of the backup stands in the stream as it is there"
    ask = "Start the node, and run kledger rebuild: what was refused without these keys counts then."
    return Group(facts(*keys), *([ask] if brought.records else []))


def _of_log(keys: list[tuple[str, str]], repaired: Repaired, restored: Restored) -> RenderableType:
    from ledger.backup.repairing import spelled

    lines = facts(
        *keys,
        ("brought back", spelled(repaired.missing) or "nothing was missing"),
        ("put right", spelled(repaired.changed) or "nothing was changed"),
        ("position", f"{restored.position:,}"),
        ("chain", restored.head),
        ("root", restored.root),
        ("proof", words("the stream's chain is the new backup's", "green")),
        ("signed", signed_by(restored.signed)),
        ("kept in", repaired.kept_in),
    )
    return Group(lines, "Start the node, and see with kledger verify that its views agree.")


def _of_beside(names: str) -> str:
    return f"those of {names}, which have others since: what was said before and what was said since opens"


_OTHER_MASTER = (
    "none came back: the vault is under another master key than the backup's. What was said before opens with that one "
    "alone: kledger restore-backup brings it back into a new data directory"
)


def _of_lost(records: int) -> str:
    return (
        f"{counted(records, 'record')} of the vault, which this backup does not have: repair from another one; where "
        "none has them, remove keys/vault-records and chain/found.json, and the node says it no more"
    )


def _vault_mended(data: Path | None, records: int) -> int:
    """So many records came back into the vault: what the node found of it is mended. Returns how many are lacking."""
    from ledger.integrity.found import missing_from_vault, remember
    from ledger.integrity.notary_start import NotaryFiles
    from ledger.privacy.known_records import brought_back

    note_mended(data, "keys")
    if data is None:
        return 0
    files = NotaryFiles.of(data)
    if lost := brought_back(files.keys, records):
        remember(files, missing_from_vault(lost))
    else:
        note_mended(data, "vault")
    return lost


app = typer.Typer()
app.command("repair", rich_help_panel=AUDIT)(as_operator(repair))
