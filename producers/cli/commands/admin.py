"""Commands of a node that runs: `kledger status`, `rebuild`, `replay`, `verify`, `snapshot`, `sql`, `version`."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType

from ledger.installed import product_version
from producers.cli import reading
from producers.cli.answer import WRITTEN, Answer
from producers.cli.as_command import AUDIT, NODE, as_operator
from producers.cli.certificates import compared_certificates
from producers.cli.encoding import plain_json
from producers.cli.progress import bar
from producers.cli.query_files import Format, format_of
from producers.cli.result_files import Force, check_file, is_stdout, is_terminal, put
from producers.cli.screen import Result, cell, equality, exact, facts, plain, short_time, table, with_paths, words
from producers.cli.session import Session
from producers.operations.admin.table_files import FileForm, encoded, is_number

if TYPE_CHECKING:
    from kledger.answers.admin import ArchiveStatus, ChainStatus, Job, NodeSizes, Table
    from kledger.contract.words import StartableJob


_KEPT = (
    "The port is a free one at each start of the node, unless it is started with kledger up --quack PORT; the token "
    "is a new one, unless the node has tokens: kledger token create --role analyst makes one that stays."
)


def status(session: Session) -> Answer:
    """How the node is: stream head, position and lag of each view, refused events, versions.

    Exits with 1 when the node is not healthy.

    Example: kledger status
    """
    state = session.ledger.status()
    stream = state["stream"]
    views = table("view", "position", "lag, events", "lag, seconds", right=("position", "lag, events", "lag, seconds"))
    for view in state["views"]:
        lag = view.get("lag_seconds")
        views.add_row(
            plain(view["name"]),
            f"{view['position']:,}",
            f"{view['lag_events']:,}",
            "?" if lag is None else f"{lag:.3f}",
        )
    healthy = words("yes", "green") if state["healthy"] else words("NO", "bold red")
    heading = facts(
        ("healthy", healthy),
        *(("reason", reason) for reason in state["reasons"]),
        *(("attention", warning) for warning in state.get("warnings", [])),
        ("stream", f"head {stream['head']:,}, {stream['messages']:,} events, {stream['bytes']:,} bytes"),
        *(("bytes", each) for each in (_byte_counts(state["bytes"]) if "bytes" in state else ())),
        ("last event", stream.get("time") or "none yet"),
        ("broker", stream.get("url") or "unknown"),
        ("refused", f"{state['refused']:,}"),
        ("signed", _signed(state.get("chain"))),
        *(("archived", each) for each in _archived(state.get("archive"))),
        ("up for", f"{state['uptime_seconds']:.0f} s"),
        ("versions", ", ".join(f"{name} {number}" for name, number in state["versions"].items())),
    )
    return Answer(state, Group(heading, views), ok=bool(state["healthy"]))


def _byte_counts(sizes: NodeSizes) -> Iterator[str]:
    """The bytes on disk and in events by part, the largest first."""
    for label, parts in (("on disk", sizes["parts"]), ("said by events", sizes["events"])):
        if parts:
            largest_first = sorted(parts.items(), key=lambda each: -each[1])
            yield f"{label}: " + ", ".join(f"{plain(name)} {size:,}" for name, size in largest_first)


def models(
    session: Session,
    call: Annotated[bool, typer.Option("--try/--no-try", help="Call each model that is set once.")] = True,
) -> Answer:
    """Which model is set for which work, whether it answers, and what works without it.

    Each model that is set is called once with a few words, which may be billed. Exits with 1 when one does not answer.

    Example: kledger models
    """
    answer = session.ledger.try_models() if call else session.ledger.models()
    works = table("work", "model", "answers", "setting", whole=("work",))
    told: list[RenderableType] = [works]
    lacking = table("without", "what works", whole=("without",))
    well = True
    for each in answer["models"]:
        tried, trouble = each["tried"], each["trouble"]
        error = trouble if tried is None else tried["error"]
        well = well and error is None
        state = words("no", "bold red") if error else words("?" if tried is None else f"in {tried['seconds']:.2f} s")
        works.add_row(
            plain(each["work"]),
            words("none", "dim") if each["model"] is None else plain(each["model"]),
            words("") if each["model"] is None else state,
            plain(each["setting"]),
        )
        if error:
            told.append(facts((each["work"], error)))
        if each["model"] is None:
            lacking.add_row(plain(each["work"]), plain(each["without"]))
    if lacking.row_count:
        told.append(lacking)
    return Answer(answer, Group(*told), ok=well)


def rebuild(session: Session) -> Answer:
    """Fold all views anew from the log, beside the live ones, compare digests, and swap.

    Exits with 1 when the digests differ.

    Example: kledger rebuild
    """
    outcome = run_job(session, "rebuild")
    shown: list[RenderableType] = [
        with_paths(
            (
                ("events", f"{outcome['events']:,} in {outcome['seconds']:.2f} s ({outcome['rate']:,.0f} a second)"),
                ("position", f"{outcome['position']:,}"),
                ("live", _digest(outcome["live"])),
                ("rebuilt", _digest(outcome["rebuilt"])),
                ("digests", equality(outcome["equal"])),
                *_vectors(outcome),
                *_damage(outcome),
                ("swapped", "yes" if outcome["swapped"] else "no"),
            ),
            [("certificate", outcome.get("certificate") or "none")],
        )
    ]
    return Answer(outcome, Group(*shown, *_differences(outcome)), ok=bool(outcome["equal"]))


def verify(
    session: Session,
    certificates: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A B", help="Compare the certificates of two rebuilds instead.", show_default=False),
    ] = None,
    from_log: Annotated[
        bool, typer.Option("--from-log", help="Read the log alone, nothing of the archive.", show_default=False)
    ] = False,
) -> Answer:
    """Fold from zero and compare with the live views and vectors, naming what differs; changes nothing.

    Exits with 1 when they differ.

    Example: kledger verify
    """
    if certificates is not None:
        return compared_certificates(certificates)
    outcome = run_job(session, "verify", from_log=from_log)
    views = table("view", "rows", "live", "replayed", "", right=("rows",))
    for view in outcome["views"]:
        digests = (_digest(view["live"])[-16:], _digest(view["replayed"])[-16:])  # the leading digits are mostly zeros
        views.add_row(plain(view["view"]), plain(view["rows"]), *digests, equality(view["equal"]))
    equal = all(view["equal"] for view in outcome["views"])
    position = ("position", f"{outcome['position']:,}")
    verdict = facts(("views", equality(equal)), *_vectors(outcome), *_damage(outcome), position)
    return Answer(outcome, Group(views, verdict, *_differences(outcome)), ok=bool(outcome["equal"]))


def replay(
    session: Session,
    into: Annotated[
        Path,
        typer.Option(
            "--into", "--out", help="The DuckDB file to write, a new one, on the node's machine.", show_default=False
        ),
    ],
    to: Annotated[str | None, typer.Option(help="A position or time; the head when not given.")] = None,
) -> Answer:
    """Fold the log up to a moment into a file of its own, for an auditor.

    Example: kledger replay --to 2026-03-05T12:00:00Z --into audit.duckdb
    """
    outcome = run_job(session, "replay", to=reading.moment(to), into=into.absolute())
    counts = (("position", f"{outcome['position']:,}"), ("digest", _digest(outcome["digest"])))
    paths = (("file", outcome["into"]), ("certificate", outcome.get("certificate") or "none"))
    return Answer(outcome, with_paths(counts, paths))


def snapshot(session: Session) -> Answer:
    """Publish a frozen DuckDB file of the views, for heavy work and to hand out.

    Example: kledger snapshot
    """
    outcome = run_job(session, "snapshot")
    counts = (("position", f"{outcome['position']:,}"), ("bytes", f"{outcome['bytes']:,}"))
    shown = with_paths(counts, [("file", outcome["file"])])
    return Answer(outcome, shown)


def sql(
    session: Session,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="One SELECT, or - for stdin.", show_default=False)
    ] = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="How to write the rows.  [table, or by the name of --out]")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "--into", help="A file of this machine for the rows: .csv, .parquet, .json.", show_default=False
        ),
    ] = None,
    force: Force = False,
) -> Answer:
    """Query the live view, read-only; without a query, print how to attach from any DuckDB.

    Example: kledger sql "SELECT owner, count(*) FROM knowledge GROUP BY ALL ORDER BY 2 DESC" --out owners.parquet
    """
    form = format_of(form, out)
    if out is not None:
        if query is None:
            raise typer.BadParameter("which rows? Give a query, or - for stdin", param_hint="QUERY")
        check_file(out, force)
    if query is None:
        access = session.ledger.attach()
        lead = words("In any DuckDB of the same version (its shell, Python, R, …):", "bold")
        steps = [exact(access[name]) for name in ("prepare", "statement", "example") if access.get(name)]
        return Answer(access, Group(lead, "", *steps, "", _KEPT))
    text = typer.get_text_stream("stdin").read() if query == "-" else query
    result = session.ledger.sql(text)
    if out is not None:
        put(out, _content(result, FileForm(form), out), force)
        document = {"file": str(out), "rows": len(result["rows"]), "position": result["position"]}
        summary = f"{len(result['rows'])} rows in {out}, as of position {result['position']}"
        return Answer(document, WRITTEN if is_stdout(out) else summary)
    if form is not Format.TABLE:
        sys.stdout.buffer.write(_content(result, FileForm(form), None))
        sys.stdout.buffer.flush()
        return Answer(None, WRITTEN)
    numbers = [name for name, kind in zip(result["columns"], result["types"], strict=True) if is_number(kind)]
    values = [[cell(value) for value in row] for row in result["rows"]]
    rows = Result(result["columns"], values, numbers)
    count = f"{len(result['rows'])} row" + ("" if len(result["rows"]) == 1 else "s")
    cut = "; the node left the rest out: add a LIMIT or attach" if result["truncated"] else ""
    return Answer(result, Group(rows, f"{count}, as of position {result['position']}{cut}"))


def _content(result: Table, form: FileForm, out: Path | None) -> bytes:
    """The rows for a file or for stdout; a terminal gets escapes for what would steer it."""
    content = encoded(result, form)
    if form is FileForm.PARQUET or not is_terminal(out):
        return content
    text = content.decode()
    return (plain_json(text) if form is FileForm.JSON else plain(text)).encode()


def show_version(_session: Session) -> Answer:
    """The version of this command; `kledger status` tells those of a node.

    Example: kledger version
    """
    product = product_version()
    document = {"product": product, "python": platform.python_version()}
    return Answer(document, f"knowledge-ledger {product}, python {document['python']}")


def run_job(session: Session, kind: StartableJob, **arguments: Any) -> dict[str, Any]:
    """Start a job and show a bar until it is done; its result."""
    return until_done(session, session.ledger.start_job(kind, **arguments))


def until_done(session: Session, job: Job) -> dict[str, Any]:
    """Show a bar until a job is done; its result. Ctrl-C ends the looking alone, and says so."""
    try:
        with bar(job["kind"], None) as shown:
            done = session.ledger.wait_job(job["id"], lambda now: shown.moved(now["done"], now["total"], now["rate"]))
    except KeyboardInterrupt:
        sys.stderr.write(f"\nthe node goes on with it: kledger jobs {job['id']} says how far it is")
        raise
    return done["result"] or {}


def _signed(chain: ChainStatus | None) -> str:
    certified = chain["certified"] if chain else None
    return (
        f"up to position {certified['position']:,} at {short_time(certified['time'])}" if certified else "nothing yet"
    )


def _archived(archive: ArchiveStatus | None) -> Iterator[str]:
    """How far the archive is, and each trouble with it; nothing while it is empty."""
    if archive is None:
        return
    if archive["segments"]:
        yield f"up to position {archive['position']:,}, {archive['bytes']:,} bytes"
    yield from (f"made anew: {each['file']}: {each['reason']}" for each in archive["damaged"])
    if archive["trouble"]:
        yield f"not more: {archive['trouble']}"


def _damage(outcome: dict[str, Any]) -> Iterator[tuple[str, RenderableType]]:
    """What of the archive was left out, and is made anew."""
    for each in (outcome.get("archive") or {}).get("damaged", ()):
        yield "archive", words(f"{each['file']} is not read: {each['reason']}", "yellow")


def _digest(digest: Any) -> str:
    return plain(digest.get("digest", "") if isinstance(digest, dict) else digest)


def _vectors(outcome: dict[str, Any]) -> Iterator[tuple[str, RenderableType]]:
    """The result for the vectors, which have no digest of their own."""
    if (result := outcome.get("vectors")) is None:
        return
    yield "vectors", words("made anew", "yellow") if result.get("made_anew") else equality(result["equal"])
    yield from (("found", plain(each)) for each in result["differences"])


def _differences(outcome: dict[str, Any]) -> list[RenderableType]:
    if not outcome["differences"]:
        return []
    rows = table("view", "key", "what differs")
    for one in outcome["differences"]:
        rows.add_row(plain(one["view"]), plain(one["key"]), plain(one["what"]))
    return [rows]


app = typer.Typer()
app.command("status", rich_help_panel=NODE)(as_operator(status))
app.command("models", rich_help_panel=NODE)(as_operator(models))
app.command("version", rich_help_panel=NODE)(as_operator(show_version))
app.command("rebuild", rich_help_panel=AUDIT)(as_operator(rebuild))
app.command("verify", rich_help_panel=AUDIT)(as_operator(verify))
app.command("replay", rich_help_panel=AUDIT)(as_operator(replay))
app.command("snapshot", rich_help_panel=AUDIT)(as_operator(snapshot))
app.command("sql", rich_help_panel=AUDIT)(as_operator(sql))
