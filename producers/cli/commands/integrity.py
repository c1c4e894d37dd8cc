"""Commands for the integrity of the log: `kledger audit`, `prove`, `check-proof`, `key`, `chain`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Group, RenderableType

from kledger.contract.errors import InvalidPayload, LedgerError
from ledger.runtime.data_directory import check_data_place
from ledger.runtime.default_data import DATA
from producers.cli.answer import WRITTEN, Answer, print_refusal
from producers.cli.as_command import AUDIT, as_operator, files_named
from producers.cli.certificates import read_document, told_proof, told_receipt
from producers.cli.commands.admin import run_job
from producers.cli.commands.backup.repairing import repair
from producers.cli.on_files import PublicKey, public_key, require_node, warnings_on_stderr
from producers.cli.progress import bar
from producers.cli.result_files import Force, check_file, is_stdout, put
from producers.cli.screen import counted, facts, plain, short_time, table, words
from producers.cli.session import Session

CANNOT_RUN = 2

Data = Annotated[
    Path,
    typer.Option(envvar="KLEDGER_DATA", help="The node's data directory, whether it runs or not."),
]


def audit(
    session: Session,
    data: Annotated[
        Path | None, typer.Option(help="Audit this data directory yourself instead of asking the node.")
    ] = None,
    nats: Annotated[
        str | None, typer.Option(metavar="URL", help="With --data: the broker, where the node does not run its own.")
    ] = None,
    checkpoints: Annotated[
        list[Path] | None, typer.Option(help="With --data: checkpoints that were copied elsewhere. Repeatable.")
    ] = None,
    key: PublicKey = None,
    repair_from: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="With --data, on which no node runs: what is not intact is brought back from this backup, a directory "
            "or s3://BUCKET/PREFIX.",
        ),
    ] = None,
) -> Answer:
    """Read the log from its start and say what was changed, is missing or was moved, and what cannot be seen.

    Exits with 0 when it is intact (with --repair-from: when it is so after the repair), 1 when it is not, 2 when the
    audit cannot run.

    Example: kledger audit --data ./.kledger --key node.pem --checkpoints /mnt/copy/checkpoints.jsonl
    """
    try:
        if data is None:
            if nats or checkpoints or key or repair_from:
                raise InvalidPayload(
                    "--nats, --checkpoints, --key and --repair-from go with --data: a node audits by its own", errors=[]
                )
            return _report(run_job(session, "audit"))
        with files_named():  # an audit that cannot read a file has found nothing
            _require_readable(checkpoints or (), repair_from)
            report = _audit_files(data, nats, checkpoints or [], key)
            if report["intact"] or repair_from is None:
                return _report(report)
            repaired = repair(session, repair_from, data, nats)
            after = _audit_files(data, nats, checkpoints or [], key)
    except LedgerError as error:
        _exit_unable(session, error)
    earlier, now = _report(report), _report(after)
    shown = Group("before:", earlier.shown, "", "repaired:", repaired.shown, "", "after:", now.shown)
    return Answer({**after, "before": report, "repaired": repaired.document}, shown, ok=now.ok)


def _require_readable(checkpoints: Iterable[Path], backup: str | None) -> None:
    """Check that the inputs of an audit can be read, before a broker is started.

    Raises OSError, BackupDamaged, InvalidPayload, ObjectStoreFailed.
    """
    from ledger.backup.manifest import load
    from ledger.backup.opening import opened

    for file in checkpoints:
        file.read_bytes()
    if backup is not None:
        with opened(backup) as place:
            load(place)


def _report(report: dict[str, Any]) -> Answer:
    """The answer for the report of an audit."""
    verdict = words("intact", "green") if report["intact"] else words("NOT INTACT", "bold red")
    shown: list[RenderableType] = [
        facts(
            ("log", verdict),
            ("intact up to", f"position {report['intact_up_to']:,}"),
            ("signed", f"up to position {report['certified']:,}"),
            ("end", f"position {report['head']:,}"),
        )
    ]
    if report["findings"]:
        rows = table("what", "first", "last", "finding", right=("first", "last"))
        for one in report["findings"]:
            first, last = ("" if one[name] is None else f"{one[name]:,}" for name in ("first", "last"))
            rows.add_row(plain(one["kind"]), first, last, plain(one["message"]))
        shown.append(rows)
    shown += ["not seen by this audit:", *(f"  - {plain(one)}" for one in report["unseen"])]
    return Answer(report, Group(*shown), ok=bool(report["intact"]))


def prove(
    session: Session,
    item: Annotated[str, typer.Argument(help="The item's id.", show_default=False)],
    into: Annotated[
        Path | None, typer.Option("--into", "--out", help="The file to write.  [proof-ITEM.json]", show_default=False)
    ] = None,
    force: Force = False,
) -> Answer:
    """Write a proof that the events behind an item stand in the log; check-proof needs no ledger to check it.

    Example: kledger prove seed-tldr-rename --into proof.json
    """
    import orjson

    from ledger.wire.subjects import encode_token

    file = into or Path(f"proof-{encode_token(item)}.json")
    check_file(file, force)
    proof = session.ledger.prove(item)
    put(file, orjson.dumps(proof, option=orjson.OPT_INDENT_2) + b"\n", force)
    document: dict[str, Any] = {
        "file": str(file),
        "events": len(proof["events"]),
        "position": proof["checkpoint"]["position"],
        "key": proof["checkpoint"]["key"],
    }
    shown = facts(
        ("file", document["file"]),
        ("events", f"{document['events']:,}"),
        ("signed", f"log of {counted(document['position'], 'event')} at {short_time(proof['checkpoint']['time'])}"),
        ("key", document["key"]),
    )
    return Answer(document, WRITTEN if is_stdout(file) else shown)


def check_proof(
    session: Session,
    file: Annotated[
        Path,
        typer.Argument(help="A proof, as kledger prove writes it, or a receipt of kledger forget.", show_default=False),
    ],
    key: PublicKey = None,
) -> Answer:
    """Check a proof or a receipt with a public key alone; no node and no log is needed.

    Shows what the events of a proof say. Exits with 1 when it does not hold, 2 when the file is neither.

    Example: kledger check-proof proof.json --key node.pem
    """
    from ledger.integrity.proof import check_proof as check
    from ledger.integrity.receipt import check_receipt, is_receipt

    try:
        said = read_document(file)
        if is_receipt(said):
            return told_receipt(check_receipt(said, public_key(key)))
        checked = check(said, public_key(key))
    except LedgerError as error:
        _exit_unable(session, error)
    return told_proof(checked)


def show_key(_session: Session, data: Data = DATA) -> Answer:
    """Print the public keys of a node: the one in use, and those that it used before.

    Example: kledger key show
    """
    from ledger.integrity.signing_keys import SigningKeys, public_keys

    require_node(data)
    current = SigningKeys(data / "keys").current()
    keys = public_keys(data / "keys")
    document = {"current": current.id, "keys": {name: key.pem() for name, key in keys.items()}}
    earlier = [name for name in keys if name != current.id]
    shown = facts(("in use", current.id), *(("earlier", name) for name in earlier))
    return Answer(document, Group(shown, "", current.pem().rstrip()))


def rotate_key(_session: Session, data: Data = DATA) -> Answer:
    """Sign with a new key from now on; what the old one signed stays valid. A running node notices by itself.

    Example: kledger key rotate
    """
    from ledger.integrity.signing_keys import SigningKeys

    require_node(data)
    before, after = SigningKeys(data / "keys").rotate()
    document = {"old": before.id, "new": after.id, "key": after.pem()}
    return Answer(document, Group(facts(("old", before.id), ("new", after.id)), "", after.pem().rstrip()))


def accept_chain(
    _session: Session,
    reason: Annotated[str, typer.Option(help="Why it is right, for whoever audits this log.", show_default=False)],
    new: Annotated[
        bool, typer.Option("--new", help="Begin the data directory, for a node that has yet to start.")
    ] = False,
    data: Data = DATA,
) -> Answer:
    """Accept that the node's chain begins where it does, though events stood there before.

    For a node that starts on a log of others, with --new before its first start; and after its chain was lost, once
    the log was compared with checkpoints that were copied elsewhere. Health is degraded until then.

    Example: kledger chain accept --data ./.kledger --reason "a second node on the log of the first"
    """
    from ledger.integrity.chain_start import accept
    from ledger.integrity.notary_start import NotaryFiles

    if not reason.strip():
        raise typer.BadParameter("say why it is right", param_hint="--reason")
    check_data_place(data)
    if not new:
        require_node(data, "; or give --new, for a node that has yet to start")
    beginning = accept(NotaryFiles.of(data), reason.strip()).to_json()
    begins = (
        "with whatever the first start finds"
        if beginning["position"] is None
        else f"behind position {beginning['position']:,}"
    )
    return Answer(beginning, facts(("chain", f"begins {begins}"), ("accepted", beginning["accepted"])))


def _audit_files(data: Path, nats: str | None, checkpoints: list[Path], key: str | None) -> dict[str, Any]:
    """Audit a data directory in this process."""
    import asyncio

    from producers.operations.admin.auditing import audit_directory

    require_node(data)
    with bar("audit", None) as shown, warnings_on_stderr():
        audited = audit_directory(data, shown.moved, nats=nats, outside=checkpoints, key=public_key(key))
        report = asyncio.run(audited)
    return report.to_json()


def _exit_unable(session: Session, error: LedgerError) -> NoReturn:
    print_refusal(error, as_json=session.as_json)
    raise typer.Exit(CANNOT_RUN) from error


app = typer.Typer()
app.command("audit", rich_help_panel=AUDIT)(as_operator(audit))
app.command("prove", rich_help_panel=AUDIT)(as_operator(prove))
app.command("check-proof", rich_help_panel=AUDIT)(as_operator(check_proof))

key = typer.Typer(no_args_is_help=True, help="The keys with which the node signs.")
key.command("show")(as_operator(show_key))
key.command("rotate")(as_operator(rotate_key))
app.add_typer(key, name="key", rich_help_panel=AUDIT)

chain = typer.Typer(no_args_is_help=True, help="What the node signs of its log: where that begins.")
chain.command("accept")(as_operator(accept_chain))
app.add_typer(chain, name="chain", rich_help_panel=AUDIT)
