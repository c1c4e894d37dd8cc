"""`kledger restore-backup`: a whole log out of a backup, into a data directory without a node or a NATS server.

It connects as the administrator of the stream.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kledger.contract.errors import InvalidPayload
from ledger.backup.address import is_in_store
from ledger.runtime.data_directory import check_data_place
from producers.cli.answer import Answer
from producers.cli.as_command import AUDIT, as_operator
from producers.cli.commands.backup.broker import own_broker
from producers.cli.commands.backup.mended import note_mended
from producers.cli.commands.backup.options import Nats, check_one
from producers.cli.commands.backup.telling import moving, signed_by
from producers.cli.on_files import PublicKey, public_key, warnings_on_stderr
from producers.cli.progress import Bar, bar
from producers.cli.screen import counted, facts, words
from producers.cli.session import Session
from producers.cli.usage.errors import one_of

if TYPE_CHECKING:  # their imports take a good part of the time of `kledger --help`
    from ledger.backup.restoring import Restored
    from ledger.event import JsonObject
    from ledger.integrity.signing_keys import VerifyingKey

_TOKENS = (
    "are in no backup: until {data} has some, a node on it asks for none. Copy the backed-up node's tokens.json "
    "there, or make new ones with kledger token create, before others reach it"
)
_ASKED_FOR = (
    "are in no backup: a node on {data} asks for them, as the backed-up one did, and has none. Copy that one's "
    "tokens.json there, or make new ones with kledger token create --data {data}"
)


@one_of("--data or --nats", "data", "nats")
def restore_backup(
    session: Session,  # noqa: ARG001  # every command has one
    directory: Annotated[str, typer.Argument(metavar="DIR", help="The backup: a directory, or s3://BUCKET/PREFIX.")],
    data: Annotated[
        Path | None, typer.Option(help="The data directory to restore it into, on which no node runs.")
    ] = None,
    nats: Nats = None,
    start_over: Annotated[bool, typer.Option("--start-over", help="Remove what an interrupted restore left.")] = False,
    key: PublicKey = None,
) -> Answer:
    """Restore a whole log from a backup, into a data directory or a NATS server whose stream is empty.

    Each event is compared with the backup, and the stream's chain is shown to be the backup's. The views are folded
    meanwhile into a data directory, where the master key of the node is in its place; with --key from the decoded
    columns of a backup that has them.

    Example: kledger restore-backup /backups/ledger --data ./.kledger
    """
    import asyncio

    from ledger.backup.fetching import brought_here
    from producers.access.tokens import read_records, tokens_file

    check_one(data, nats)
    if data is not None:
        _check_apart(directory, data)
        check_data_place(data)
    trusted = public_key(key)
    with (
        bar("restore", None) as shown,
        brought_here(directory, data, moving(shown), columns=data is not None and trusted is not None) as here,
        warnings_on_stderr(),
    ):
        restored, views = asyncio.run(_restored(here, data, nats, shown, start_over, trusted))
    note_mended(data, "log")
    asks = data is not None and tokens_file(data).exists()
    known = data is not None and read_records(tokens_file(data))
    lines = facts(
        (
            "restored",
            f"{counted(restored.position, 'event')} in {restored.seconds:.2f} s, each compared with the backup",
        ),
        *([("went on", f"after position {restored.continued_from:,}")] if restored.continued_from else []),
        ("chain", restored.head),
        ("root", restored.root),
        ("proof", words("the stream's chain is the backup's", "green")),
        ("signed", signed_by(restored.signed)),
        *([("sessions", counted(restored.session_records, "record"))] if restored.session_records else []),
        *([("archive", f"{counted(restored.archived, 'file')} of the backup")] if restored.archived else []),
        *([("views", _of_views(views))] if views is not None else []),
        *([("keys", _of_keys(data, views))] if restored.keys else []),
        *([("tokens", (_ASKED_FOR if asks else _TOKENS).format(data=data))] if data is not None and not known else []),
    )
    return Answer({**asdict(restored), "views": views, "asks_for_tokens": asks}, lines)


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
    from ledger.broker.access import BrokerAccess
    from producers.access.tokens import ask_for_tokens
    from producers.operations.recording import detail_days_from_environment
    from projections.live.files import has_served
    from projections.live.from_backup import NotFolded, views_of_backup

    progress, views = moving(shown), None
    goes_on = data is None or not has_served(data / "views")
    async with AsyncExitStack() as stack:
        if data is not None:
            views = await stack.enter_async_context(views_of_backup(here, data, detail_days_from_environment(), key))
        manifest = await found_intact(here, progress, key=key)  # before anything is created in a broker
        shown.step("restore")
        server = await stack.enter_async_context(own_broker(data, sync=False)) if data is not None else None
        access = server.access if server is not None else BrokerAccess.from_url(str(nats))
        if data is not None and manifest.tokens:  # before any of it can be read there
            ask_for_tokens(data)
        restored = await restore(
            access,
            here,
            progress,
            key=key,
            start_over=start_over,
            manifest=manifest,
            data=data,
            server=server,
            goes_on=goes_on,
        )
        if server is not None:  # it was started anew
            access = server.access
        if views is None:
            return restored, None
        shown.step("views")
        try:
            await views.put_in_place(access, manifest, progress)
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


app = typer.Typer()
app.command("restore-backup", rich_help_panel=AUDIT)(as_operator(restore_backup))
