"""Commands for backups of the log: `kledger backup`, `restore-backup`, `repair`.

A running node makes a backup; `--check` reads the files alone. Restoring and repairing need a data directory without a
running node, or a NATS server, and connect as the administrator of the stream.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Group

from kledger.contract.errors import InvalidPayload
from ledger.backup.address import SCHEME, is_in_store
from ledger.runtime.whole_file import check_directory_place
from producers.cli.commands import admin
from producers.cli.progress import Bar, bar
from producers.cli.screen import counted, facts, plain, with_paths, words
from producers.cli.session import AUDIT, Answer, Session, as_operator
from producers.cli.usage.errors import one_of
from producers.cli.usage.made_directory import made_directory

if TYPE_CHECKING:  # their imports take a good part of the time of `kledger --help`
    from ledger.backup.restoring import Restored
    from ledger.broker.access import BrokerAccess
    from ledger.event import JsonObject
    from ledger.integrity.found import Part
    from ledger.integrity.signing_keys import VerifyingKey
    from ledger.progress import Progress

T = TypeVar("T")
_TOKENS = (
    "are in no backup: until {data} has some, a node on it asks for none. Copy the backed-up node's tokens.json "
    "there, or make new ones with kledger token create, before others reach it"
)

Nats = Annotated[
    str | None, typer.Option(metavar="URL", help="The NATS server, with its administrator: nats://USER:PASSWORD@HOST.")
]
Key = Annotated[
    str | None, typer.Option(metavar="KEY", help="The public key (a file, or in base64) that must have signed it.")
]


def backup(
    session: Session,
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="A directory of the node's machine, or s3://BUCKET/PREFIX.")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Read the whole backup and look for damage; needs no node.")
    ] = False,
    key: Key = None,
) -> Answer:
    """Add what is new in the log to the backup in DIR: Parquet files that DuckDB reads as they are.

    For an object store the node needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in its environment, and where that is
    not AWS, AWS_ENDPOINT_URL_S3. With --check it exits with 1 when a byte of the backup was changed, or a file is
    missing.

    Example: kledger backup /backups/ledger
    """
    if check:
        return _check(directory, key)
    if key is not None:
        raise typer.BadParameter("the key is for --check", param_hint="--key")
    made_directory(
        directory,
        "kledger backup --check DIR reads a backup, kledger restore-backup DIR brings one back",
    )
    into = directory if is_in_store(directory) else str(Path(directory).absolute())
    outcome = admin.run_job(session, "backup", into=into)
    counts = (
        (
            "added",
            f"{counted(outcome['added'], 'event')} in {counted(outcome['files'], 'file')}, {outcome['seconds']:.2f} s",
        ),
        ("position", f"{outcome['position']:,} in {counted(outcome['segments'], 'file')}"),
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

    with bar("check", None) as moving, opened(where) as place:
        checked = check_backup(place, _moving(moving), key=_key(key))
    verdict = words("damaged", "bold red") if checked.problems else words("whole", "green")
    shown = facts(
        ("backup", verdict),
        *(("problem", problem) for problem in checked.problems),
        ("position", f"{checked.position:,} in {counted(checked.segments, 'file')}"),
        ("chain", checked.head),
        ("root", checked.root),
        ("signed", _signed(checked.signed)),
    )
    return Answer(asdict(checked), shown, ok=not checked.problems)


@one_of("--data or --nats", "data", "nats")
def restore_backup(
    session: Session,  # noqa: ARG001  # every command has one
    directory: Annotated[str, typer.Argument(metavar="DIR", help="The backup: a directory, or s3://BUCKET/PREFIX.")],
    data: Annotated[
        Path | None, typer.Option(help="The data directory to restore it into, on which no node runs.")
    ] = None,
    nats: Nats = None,
    start_over: Annotated[bool, typer.Option("--start-over", help="Remove what an interrupted restore left.")] = False,
    key: Key = None,
) -> Answer:
    """Restore a whole log from a backup, into a data directory or a NATS server whose stream is empty.

    Each event is compared with the backup, and the stream's chain is shown to be the backup's. The views are folded
    meanwhile into a data directory, where the master key of the node is in its place.

    Example: kledger restore-backup /backups/ledger --data ./.kledger
    """
    import asyncio

    from ledger.backup.fetching import brought_here
    from producers.access.tokens import tokens_file

    _check_one(data, nats)
    if data is not None:
        check_directory_place(data)
        _check_apart(directory, data)
    signed_by = _key(key)
    with bar("restore", None) as shown, brought_here(directory, data, _moving(shown)) as here, _warnings_on_stderr():
        restored, views = asyncio.run(_restored(here, data, nats, shown, start_over, signed_by))
    _is_intact(data, "log")
    lines = facts(
        (
            "restored",
            f"{counted(restored.position, 'event')} in {restored.seconds:.2f} s, each compared with the backup",
        ),
        *([("went on", f"after position {restored.continued_from:,}")] if restored.continued_from else []),
        ("chain", restored.head),
        ("root", restored.root),
        ("proof", words("the stream's chain is the backup's", "green")),
        ("signed", _signed(restored.signed)),
        *([("sessions", counted(restored.session_records, "record"))] if restored.session_records else []),
        *([("archive", f"{counted(restored.archived, 'file')} of the backup")] if restored.archived else []),
        *([("views", _of_views(views))] if views is not None else []),
        *([("keys", _of_keys(data, views))] if restored.keys else []),
        *([("tokens", _TOKENS.format(data=data))] if data is not None and not tokens_file(data).exists() else []),
    )
    return Answer({**asdict(restored), "views": views}, lines)


def _check_apart(directory: str, data: Path) -> None:
    """Raise InvalidPayload for a data directory in the backup: whoever copies that would copy the master key."""
    if not is_in_store(directory) and data.resolve().is_relative_to(Path(directory).resolve()):
        raise InvalidPayload(
            f"{data} is in the backup {directory}, which holds no master key and is copied as a whole: give a data "
            "directory elsewhere",
            errors=[{"field": "data", "reason": "is in the backup"}],
        )


async def _restored(
    here: Path, data: Path | None, nats: str | None, shown: Bar, start_over: bool, key: VerifyingKey | None
) -> tuple[Restored, JsonObject | None]:
    """Restore a backup, and fold its views beside it into a data directory; what became of these."""
    from ledger.backup.checking import found_intact
    from ledger.backup.restoring import restore
    from producers.operations.recording import detail_days_from_environment
    from projections.live.from_backup import NotFolded, views_of_backup

    moving, views = _moving(shown), None
    async with AsyncExitStack() as stack:
        if data is not None:
            views = await stack.enter_async_context(views_of_backup(here, data, detail_days_from_environment()))
        manifest = await found_intact(here, moving, key=key)  # before anything is created in a broker
        shown.step("restore")
        access = await stack.enter_async_context(_broker(data, nats))
        restored = await restore(access, here, moving, start_over=start_over, manifest=manifest, data=data)
        if views is None:
            return restored, None
        shown.step("views")
        try:
            await views.put_in_place(access, manifest, moving)
        except NotFolded as reason:
            return restored, {"folded": False, "why": str(reason)}
        return restored, {"folded": True}


def _of_views(views: JsonObject) -> str:
    if views["folded"]:
        return "folded up to there: a node answers from them at once"
    return f"left to the first start of a node: {views['why']}"


def _of_keys(data: Path | None, views: JsonObject | None) -> str:
    """What to do before a node starts: no backup has the master key."""
    if views is not None and views["folded"]:
        return "of persons came back, and the master key is the one that opens them"
    place = "the data directory's keys/master.key" if data is None else str(data / "keys" / "master.key")
    return f"of persons came back; before a node starts, copy the backed-up node's keys/master.key to {place}"


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
    from ledger.backup.repairing import spelled
    from ledger.backup.witnesses import SignedLog

    _check_one(data, nats)
    if data is not None and not (data / "broker" / "jetstream").is_dir():
        raise typer.BadParameter(f"{data} is not the data directory of a node", param_hint="--data")
    named = Path(source.removeprefix(SCHEME)) if is_in_store(source) else Path(source).absolute()
    beside = Path.cwd() if is_in_store(source) else named.parent
    kept_in = into or beside / f"{named.name}-repaired-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    check_directory_place(kept_in)
    with bar("repair", None) as shown, brought_here(source, None, _moving(shown)) as here:
        load(here)  # before a broker is started
        repaired = _on_broker(
            data,
            nats,
            lambda access: repair_stream(
                access,
                here,
                kept_in,
                signed=SignedLog.of_node(data) if data is not None else None,
                progress=_moving(shown),
                on_step=shown.step,
            ),
        )
    proof = repaired.restored
    brought = repaired.keys
    lost = 0 if brought.other_master else _vault_mended(data, brought.records)
    keys = [
        *([("keys", f"{counted(brought.records, 'record')} came back into the vault")] if brought.records else []),
        *([("beside", _of_beside(brought.beside))] if brought.beside else []),
        *([("keys", _OTHER_MASTER)] if brought.other_master else []),
        *([("still lost", _of_lost(lost))] if lost else []),
    ]
    whole = not brought.other_master and not lost
    if proof is None:
        if not keys:
            return Answer(
                asdict(repaired), "nothing to mend: every event of the backup stands in the stream as it is there"
            )
        ask = ["Start the node, and run kledger rebuild: what was refused without these keys counts then."]
        told = Group(facts(*keys), *(ask if brought.records else []))
        return Answer(asdict(repaired), told, ok=whole)
    _is_intact(data, "log")
    lines = facts(
        *keys,
        ("brought back", spelled(repaired.missing) or "nothing was missing"),
        ("put right", spelled(repaired.changed) or "nothing was changed"),
        ("position", f"{proof.position:,}"),
        ("chain", proof.head),
        ("root", proof.root),
        ("proof", words("the stream's chain is the new backup's", "green")),
        ("signed", _signed(proof.signed)),
        ("kept in", repaired.kept_in),
    )
    told = Group(lines, "Start the node, and see with kledger verify that its views agree.")
    return Answer(asdict(repaired), told, ok=whole)


def _of_beside(names: str) -> str:
    return f"those of {names}, which have others since: what was said before and what was said since opens"


_OTHER_MASTER = (
    "none came back: the vault is under another master key than the backup's. What was said before opens with that one "
    "alone: kledger restore-backup brings it back into a new data directory"
)


def _is_intact(data: Path | None, part: Part) -> None:
    """The log, or the vault, was compared with a backup: what the node found of it before is mended."""
    from ledger.integrity.found import is_intact
    from ledger.integrity.notary_start import NotaryFiles

    if data is not None:
        is_intact(NotaryFiles.of(data), part)


def _vault_mended(data: Path | None, records: int) -> int:
    """So many records came back into the vault: what the node found of it is mended. Returns how many are lacking."""
    from ledger.integrity.found import missing_from_vault, remember
    from ledger.integrity.notary_start import NotaryFiles
    from ledger.privacy.known_records import brought_back

    _is_intact(data, "keys")
    if data is None:
        return 0
    files = NotaryFiles.of(data)
    if lost := brought_back(files.keys, records):
        remember(files, missing_from_vault(lost))
    else:
        _is_intact(data, "vault")
    return lost


def _of_lost(records: int) -> str:
    return (
        f"{counted(records, 'record')} of the vault, which this backup does not have: repair from another one; where "
        "none has them, remove keys/vault-records and chain/found.json, and the node says it no more"
    )


def _signed(signed: dict[str, Any] | None) -> str:
    if signed is None:
        return "by nobody: the chain is compared with the manifest alone"
    return f"up to position {signed['position']:,} with the key {signed['key']}, {plain(signed['time'])}"


def _key(option: str | None) -> VerifyingKey | None:
    """The public key of --key, a file or the key itself. Raises InvalidPayload."""
    if option is None:
        return None
    from ledger.integrity.signing_keys import VerifyingKey

    file = Path(option)
    try:
        return VerifyingKey.from_text(file.read_text("ascii") if file.is_file() else option)
    except (OSError, ValueError, InvalidPayload) as error:
        raise InvalidPayload(
            f"{option!r} is neither a file with a public key nor a key in base64", errors=[]
        ) from error


def _moving(shown: Bar) -> Progress:
    """A progress callback that moves the bar."""
    return lambda done, total, rate: shown.moved(done, total, rate or None)


def _on_broker(data: Path | None, nats: str | None, work: Callable[[BrokerAccess], Awaitable[T]]) -> T:
    """Run `work` against the broker of a data directory, started for it, or against a running one.

    One of the two is given. Raises DataDirectoryInUse, and what `work` raises.
    """
    import asyncio

    async def run() -> T:
        async with _broker(data, nats) as access:
            return await work(access)

    with _warnings_on_stderr():
        return asyncio.run(run())


def _check_one(data: Path | None, nats: str | None) -> None:
    if (data is None) == (nats is None):
        raise typer.BadParameter("give either --data DIR or --nats URL")


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Log to stderr, warnings alone: stdout holds the answer, and the embedded broker's info lines are noise."""
    import logging

    import structlog

    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    try:
        yield
    finally:
        structlog.configure(**before)


@asynccontextmanager
async def _broker(data: Path | None, nats: str | None) -> AsyncIterator[BrokerAccess]:
    from ledger.broker.access import BrokerAccess
    from ledger.broker.server import EmbeddedServer
    from ledger.broker.server_config import RESTORE_PAYLOAD_BYTES

    if data is None:
        assert nats is not None  # one of them was given
        yield BrokerAccess.from_url(nats)
        return
    server = EmbeddedServer(data / "broker", max_payload=RESTORE_PAYLOAD_BYTES)
    try:
        yield await server.start()
    finally:
        await server.stop()


app = typer.Typer()
app.command("backup", rich_help_panel=AUDIT)(as_operator(backup))
app.command("restore-backup", rich_help_panel=AUDIT)(as_operator(restore_backup))
app.command("repair", rich_help_panel=AUDIT)(as_operator(repair))
