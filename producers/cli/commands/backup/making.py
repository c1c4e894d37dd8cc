"""`kledger backup`: a running node makes a backup of its log; with `--check` the files of one are read alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ledger.backup.address import is_in_store
from producers.cli.answer import Answer
from producers.cli.as_command import AUDIT, as_operator
from producers.cli.commands import admin
from producers.cli.commands.backup.telling import moving, signed_by
from producers.cli.on_files import PublicKey, public_key
from producers.cli.progress import bar
from producers.cli.screen import counted, facts, with_paths, words
from producers.cli.session import Session
from producers.cli.usage.made_directory import made_directory


def backup(
    session: Session,
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="A directory of the node's machine, or s3://BUCKET/PREFIX.")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Read the whole backup and look for damage; needs no node.")
    ] = False,
    columns: Annotated[
        bool | None,
        typer.Option(
            "--columns/--no-columns",
            help="Keep the archive's decoded columns as well, which take nearly as many bytes as the events: a restore "
            "with --key folds its views from them. Later runs go on as the last one that said it.",
            show_default=False,
        ),
    ] = None,
    key: PublicKey = None,
) -> Answer:
    """Add what is new in the log to the backup in DIR: Parquet files that DuckDB reads as they are.

    For an object store the node needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in its environment, and where that is
    not AWS, AWS_ENDPOINT_URL_S3. With --check it exits with 1 when a byte of the backup was changed, or a file is
    missing.

    Example: kledger backup /backups/ledger
    """
    if check:
        if columns is not None:
            raise typer.BadParameter("a check reads what is there, and keeps nothing", param_hint="--columns")
        return _check(directory, key)
    if key is not None:
        raise typer.BadParameter("the key is for --check", param_hint="--key")
    made_directory(
        directory,
        "kledger backup --check DIR reads a backup, kledger restore-backup DIR brings one back",
    )
    into = directory if is_in_store(directory) else str(Path(directory).absolute())
    outcome = admin.run_job(session, "backup", into=into, columns=columns)
    counts = (
        (
            "added",
            f"{counted(outcome['added'], 'event')} in {counted(outcome['files'], 'file')}, {outcome['seconds']:.2f} s",
        ),
        ("position", f"{outcome['position']:,} in {counted(outcome['segments'], 'file')}"),
        *_of_columns(outcome.get("columns"), "none yet: the node's archive has none of these events"),
        ("chain", outcome["head"]),
        ("root", outcome["root"]),
        (
            "signed",
            f"up to position {outcome['signed']:,}" if outcome["signed"] else "not yet: the node signs as events come",
        ),
    )
    return Answer(outcome, with_paths(counts, [("in", outcome["directory"])]))


def _check(where: str, key: str | None) -> Answer:
    from ledger.backup.checking import check_backup
    from ledger.backup.opening import opened

    trusted = public_key(key)
    with bar("check", None) as shown, opened(where) as place:
        checked = check_backup(place, moving(shown), key=trusted)
    verdict = words("damaged", "bold red") if checked.problems else words("whole", "green")
    told = facts(
        ("backup", verdict),
        *(("problem", problem) for problem in checked.problems),
        ("position", f"{checked.position:,} in {counted(checked.segments, 'file')}"),
        *_of_columns(checked.columns, "none yet"),
        ("chain", checked.head),
        ("root", checked.root),
        ("signed", signed_by(checked.signed, damaged=bool(checked.problems))),
    )
    return Answer(asdict(checked), told, ok=not checked.problems)


def _of_columns(number: int | None, none: str) -> list[tuple[str, str]]:
    """What to say of the decoded columns of a backup: nothing where it keeps none."""
    return [] if number is None else [("columns", f"of {counted(number, 'file')}" if number else none)]


app = typer.Typer()
app.command("backup", rich_help_panel=AUDIT)(as_operator(backup))
