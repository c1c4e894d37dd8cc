"""Commands for models' work: `kledger evolve`, `evolution`, `revert`, `extract`, `extraction`, `conflicts`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Group

from kledger.contract.json_text import Unfit, loads
from kledger.contract.words import EvolutionStatus, ExtractionKind
from producers.cli import reading
from producers.cli.answer import Answer, listed
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.screen import facts, plain, short_time, snippet, table, waits
from producers.cli.session import Session

EvolutionId = Annotated[str, typer.Argument(metavar="ID", help="The id of the evolution.", show_default=False)]
ExtractionId = Annotated[str, typer.Argument(metavar="ID", help="The id of the extraction.", show_default=False)]
ConflictId = Annotated[str, typer.Argument(metavar="ID", help="The id of the conflict.", show_default=False)]
Wait = Annotated[float, typer.Option(min=0, max=300, help="Seconds to wait for the model's work.")]
Model = Annotated[str | None, typer.Option(help="Another model than the one of the node's settings.")]


def evolve(
    session: Session,
    item_id: reading.ItemId,
    feedback: Annotated[str, typer.Argument(help="What is to be better about it.", show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Leave the rewrite a proposal.")] = False,
    model: Model = None,
    wait: Wait = 25.0,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """Have a model rewrite an item; the earlier version stays readable. Only its owner may.

    Example: kledger evolve knowledge-20260305-a1b2 "say what to do on Windows" --dry-run --user ann
    """
    done = session.ledger.within(trace_id=trace, message_id=message).evolve(
        item_id, feedback, dry_run=dry_run, model=model, wait=wait
    )
    return _evolution(done["evolution"], done)


def show_evolution(session: Session, evolution_id: EvolutionId) -> Answer:
    """Show one evolution: what was asked, what the model proposed, what became of it.

    Example: kledger evolution show evolution-4fc09c01a1a05344 --user ann
    """
    evolution = session.ledger.evolution(evolution_id)
    return _evolution(evolution, evolution)


def list_evolutions(
    session: Session,
    item_id: Annotated[str | None, typer.Option("--item", help="Only those of this item.")] = None,
    status: Annotated[EvolutionStatus | None, typer.Option(help="Only those with this status.")] = None,
    limit: reading.Limit = 20,
    offset: reading.Offset = 0,
) -> Answer:
    """List evolutions, newest first.

    Example: kledger evolution list --item knowledge-20260305-a1b2 --user ann
    """
    page = session.ledger.evolutions(item_id=item_id, status=status, limit=limit, offset=offset)
    rows = table("id", "item", "status", "feedback", "asked", whole=("id",))
    for each in page["results"]:
        rows.add_row(
            plain(each["id"]),
            plain(each["item_id"]),
            plain(each["status"]),
            snippet(each["feedback"], 60),
            short_time(each["requested_at"]),
        )
    return listed(page, rows, "no evolutions")


def apply_evolution(session: Session, evolution_id: EvolutionId) -> Answer:
    """Make a proposal the item's content.

    Example: kledger evolution apply evolution-4fc09c01a1a05344 --user ann
    """
    return _decided(session.ledger.apply_evolution(evolution_id))


def reject_evolution(session: Session, evolution_id: EvolutionId, reason: reading.Reason = None) -> Answer:
    """Keep the item as it is.

    Example: kledger evolution reject evolution-4fc09c01a1a05344 --reason "it was right before" --user ann
    """
    return _decided(session.ledger.reject_evolution(evolution_id, reason=reason))


def revert_evolution(session: Session, evolution_id: EvolutionId) -> Answer:
    """Make the item again what it was before an evolution.

    Example: kledger evolution revert evolution-4fc09c01a1a05344 --user ann
    """
    return _decided(session.ledger.revert_evolution(evolution_id))


def revert(
    session: Session,
    item_id: reading.ItemId,
    to_version: Annotated[int, typer.Argument(metavar="VERSION", min=1, help="The version.", show_default=False)],
    expected_version: reading.ExpectedVersion = None,
) -> Answer:
    """Make an item again what it was at an earlier version. Only its owner may.

    Example: kledger revert knowledge-20260305-a1b2 3 --user ann
    """
    done = session.ledger.revert(item_id, to_version, expected_version=expected_version)
    again = f"{plain(done['id'])} is again what it was at version {to_version}, as version {done['version']}"
    return Answer(done, f"{again}{waits(done)}")


def extract(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="A text, or messages as JSON.", show_default=False)],
    kind: Annotated[ExtractionKind, typer.Option(help="What this is.")] = "statement",
    scopes: reading.Scopes = None,
    owner: Annotated[str | None, typer.Option(help="The owner, such as agent:scribe.")] = None,
    model: Model = None,
    wait: Wait = 25.0,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """Have a model find the knowledge in a text (or a JSON list of messages with id, role, content) and keep it.

    Example: kledger extract conversation.json --kind conversation --user ann --trace t-7
    """
    material = _material(file)
    done = session.ledger.within(trace_id=trace, message_id=message).extract(
        **material, kind=kind, scopes=reading.several(scopes), owner=owner, model=model, wait=wait
    )
    return _extraction(done)


def show_extraction(session: Session, extraction_id: ExtractionId) -> Answer:
    """Show one extraction: what became of each piece of knowledge that was found.

    Example: kledger extraction show extraction-6055a197fa3e5847 --user ann
    """
    return _extraction(session.ledger.extraction(extraction_id))


def list_extractions(
    session: Session,
    status: Annotated[
        str | None, typer.Option(help="Only those with this status: requested, started, completed or failed.")
    ] = None,
    limit: reading.Limit = 20,
    offset: reading.Offset = 0,
) -> Answer:
    """List extractions, those of sessions included, newest first.

    Example: kledger extraction list --status failed --user ann
    """
    page = session.ledger.extractions(status=status, limit=limit, offset=offset)
    rows = table("id", "kind", "status", "messages", "found", "asked", whole=("id",))
    for each in page["results"]:
        rows.add_row(
            plain(each["id"]),
            plain(each["kind"]),
            plain(each["status"]),
            str(each["messages"]),
            str(len(each["items"])),
            short_time(each["requested_at"]),
        )
    return listed(page, rows, "no extractions")


def show_conflict(session: Session, conflict_id: ConflictId) -> Answer:
    """Show one conflict: its two sides, why they contradict, and what was decided.

    Example: kledger conflicts show conflict-91b5 --user ann
    """
    found = session.ledger.conflict(conflict_id)
    pairs: list[tuple[str, object]] = [
        ("conflict", found["id"]),
        ("first", f"{found['first']}, version {found['first_version']}"),
        ("second", f"{found['second']}, version {found['second_version']}"),
        ("why", found["reason"]),
        ("status", found["status"]),
    ]
    decided = (("winner", found["winner"]), ("decision", found["decision"]), ("extraction", found["extraction"]))
    pairs += [(name, value) for name, value in decided if value]
    return Answer(found, facts(*pairs))


def list_conflicts(
    session: Session,
    every: Annotated[bool, typer.Option("--all", help="Those that were decided as well.")] = False,
    limit: reading.Limit = 20,
    offset: reading.Offset = 0,
) -> Answer:
    """List what contradicts what, newest first.

    Example: kledger conflicts list --user ann
    """
    page = session.ledger.conflicts(status=None if every else "recorded", limit=limit, offset=offset)
    rows = table("id", "first", "second", "status", "why", whole=("id",))
    for each in page["results"]:
        rows.add_row(
            plain(each["id"]),
            plain(each["first"]),
            plain(each["second"]),
            plain(each["status"]),
            snippet(each["reason"], 80),
        )
    return listed(page, rows, "no conflicts")


def resolve_conflict(
    session: Session,
    conflict_id: ConflictId,
    winner: Annotated[str | None, typer.Option(help="The item that holds; the other one is retired.")] = None,
    merge: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the winner says from now on: both in one; - for stdin.")
    ] = None,
    reason: reading.Reason = None,
) -> Answer:
    """Decide which side of a conflict holds; without --winner both do.

    Example: kledger conflicts resolve conflict-91b5 --winner knowledge-20260305-a1b2 --user ann
    """
    merged = None if merge is None else {"content": reading.text(merge)}
    done = session.ledger.resolve_conflict(conflict_id, winner, merge=merged, reason=reason)
    gone = f"; {plain(done['retired'])} is retired" if done["retired"] else ""
    return Answer(done, f"{plain(done['id'])} is resolved: {plain(winner or 'both')} holds{gone}")


def _material(file: str) -> dict[str, Any]:
    """A file or standard input as the arguments `text` or, for JSON messages, `messages`."""
    text = reading.text_in(Path(file))
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"text": text}
    messages = document.get("messages") if isinstance(document, dict) else document
    if not isinstance(messages, list):
        return {"text": text}
    try:
        return {"messages": loads(text) and messages}
    except Unfit as error:
        raise typer.BadParameter(str(error)) from error


def _evolution(evolution: Any, document: Any) -> Answer:
    usage = evolution["usage"] or {}
    pairs: list[tuple[str, object]] = [
        ("evolution", evolution["id"]),
        ("item", f"{evolution['item_id']}, version {evolution['base_version']}"),
        ("status", evolution["status"]),
        ("feedback", evolution["feedback"]),
    ]
    pairs += [(name, evolution[name]) for name in ("task", "content", "reason", "code") if evolution[name]]
    if usage:
        cost = "unknown cost" if usage["cost_usd"] is None else f"{usage['cost_usd']:.6f} US dollars"
        tokens = f"{usage['input_tokens']} + {usage['output_tokens']} tokens"
        pairs.append(("model", f"{usage['model']} ({usage['prompt_version']}): {tokens}, {cost}"))
    return Answer(document, facts(*pairs), evolution["status"] != "failed")


def _extraction(done: Any) -> Answer:
    summary = f"{plain(done['id'])} is {plain(done['status'])}" + (
        f": {plain(done['reason'])}" if done["reason"] else ""
    )
    if not done["items"]:
        return Answer(done, summary, done["status"] != "failed")
    rows = table("knowledge", "became", whole=("knowledge",))
    for item in done["items"]:
        rows.add_row(plain(item["knowledge_id"]), plain(item["action"]))
    return Answer(done, Group(rows, summary))


def _decided(done: Any) -> Answer:
    summary = f"{plain(done['id'])} is {plain(done['status'])}, at position {done['position']}"
    return Answer(done, summary)


app = typer.Typer()
app.command("revert", rich_help_panel=KNOWLEDGE)(as_caller(revert))
app.command("evolve", rich_help_panel=KNOWLEDGE)(as_caller(evolve))
app.command("extract", rich_help_panel=KNOWLEDGE)(as_caller(extract))

evolution = typer.Typer(no_args_is_help=True, help="What a model made of items, and what was decided on it.")
evolution.command("show")(as_caller(show_evolution))
evolution.command("list")(as_caller(list_evolutions))
evolution.command("apply")(as_caller(apply_evolution))
evolution.command("reject")(as_caller(reject_evolution))
evolution.command("revert")(as_caller(revert_evolution))
app.add_typer(evolution, name="evolution", rich_help_panel=KNOWLEDGE)

extraction = typer.Typer(no_args_is_help=True, help="What a model found in what was said, and what became of it.")
extraction.command("show")(as_caller(show_extraction))
extraction.command("list")(as_caller(list_extractions))
app.add_typer(extraction, name="extraction", rich_help_panel=KNOWLEDGE)

conflicts = typer.Typer(no_args_is_help=True, help="Items that contradict each other, and which of them holds.")
conflicts.command("show")(as_caller(show_conflict))
conflicts.command("list")(as_caller(list_conflicts))
conflicts.command("resolve")(as_caller(resolve_conflict))
app.add_typer(conflicts, name="conflicts", rich_help_panel=KNOWLEDGE)
