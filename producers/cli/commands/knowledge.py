"""Commands that change items: `kledger save`, `revise`, `rate`, `retire`, `restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from producers.cli import reading
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.commands import sharing
from producers.cli.screen import plain, waits
from producers.cli.session import Session
from producers.cli.usage.errors import one_of
from producers.cli.usage.plain_help import Command

Score = Annotated[int | None, typer.Option(min=1, max=5, help="1 (poor) to 5.")]
Resources = Annotated[reading.Many, typer.Option("--resource", help="The id of a resource; may be repeated.")]

Together = Annotated[
    Path | None,
    typer.Option(
        "--resources-file",
        metavar="FILE",
        help="A JSON list of resources to save with it, out of a file; - is stdin. Each may have a secure_body.",
        allow_dash=True,
    ),
]


def save(
    session: Session,
    content: Annotated[str, typer.Option(help="What is known; - for stdin.", show_default=False)],
    types: reading.NeededTypes,
    task: Annotated[str | None, typer.Option(help="In which situation, to do what; else the first sentence.")] = None,
    item_id: Annotated[str | None, typer.Option("--id", help="An id of your own.")] = None,
    tag: reading.Tags = None,
    scopes: reading.Scopes = None,
    owner: reading.NewOwner = None,
    reader: sharing.Readers = None,
    writer: sharing.Writers = None,
    score: Score = None,
    resource: Resources = None,
    resources_file: Together = None,
    source_name: Annotated[str | None, typer.Option(help="The tool, paper or talk it is from.")] = None,
    source_category: Annotated[str | None, typer.Option(help="paper, exp, skill, book, …")] = None,
    source_url: Annotated[reading.Many, typer.Option(help="Where to read more; may be repeated.")] = None,
    source_trace: Annotated[str | None, typer.Option(help="The trace of its source.  [as --trace]")] = None,
    source_message: Annotated[str | None, typer.Option(help="The message of its source.  [as --message]")] = None,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """Save a new item.

    Example: kledger save --types tool --task "Undo a commit" --content "git revert HEAD" --user ann
    """
    kinds = reading.several(types)
    if not kinds:
        raise typer.BadParameter("state at least one type, for example --types tool", param_hint="--types")
    if content == "-" and resources_file == Path("-"):
        raise typer.BadParameter(
            "stdin is read once: take the content or the resources from a file", param_hint="--resources-file"
        )
    source = _without_none(
        name=source_name,
        category=source_category,
        urls=source_url or None,
        trace_id=source_trace or trace,
        message_id=source_message or message,
    )
    saved = session.ledger.within(trace_id=trace, message_id=message).save(
        task,
        reading.text(content),
        kinds,
        id=item_id,
        tags=reading.tags(tag),
        scopes=reading.several(scopes),
        owner=owner,
        acl=sharing.acl(reader, writer) or None,
        source=source or None,
        resource_ids=reading.several(resource),
        resources=None if resources_file is None else reading.json_objects(resources_file, "--resources-file"),
        score=score,
    )
    if saved["duplicate"]:
        return Answer(saved, f"unchanged: {plain(saved['id'])} says this since position {saved['position']}")
    return Answer(saved, f"saved {plain(saved['id'])} at position {saved['position']}{waits(saved)}")


@one_of("a field such as --content", "task", "content", "types", "tag", "scopes", "owner", "resource")
def revise(
    session: Session,
    item_id: reading.ItemId,
    task: Annotated[str | None, typer.Option(help="The task anew.")] = None,
    content: Annotated[str | None, typer.Option(help="The content anew; - for stdin.")] = None,
    types: reading.Types = None,
    tag: reading.Tags = None,
    scopes: reading.Scopes = None,
    owner: reading.NewOwner = None,
    resource: Resources = None,
    expected_version: reading.ExpectedVersion = None,
    reason: reading.Reason = None,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """State fields of an item anew; the earlier version stays readable. Its owner may, and its writers.

    Example: kledger revise knowledge-20260305-a1b2 --content "git revert, then push" --user ann
    """
    fields = _without_none(
        task=task,
        content=None if content is None else reading.text(content),
        types=reading.several(types),
        tags=reading.tags(tag),
        scopes=reading.several(scopes),
        owner=owner,
        resource_ids=reading.several(resource),
    )
    if not fields:
        raise typer.BadParameter("state at least one field anew, for example --content TEXT")
    changed = session.ledger.within(trace_id=trace, message_id=message).revise(
        item_id, **fields, expected_version=expected_version, reason=reason
    )
    return Answer(changed, f"revised {plain(changed['id'])} at position {changed['position']}{waits(changed)}")


@one_of("--helpful, --harmful or --score", "helpful", "harmful", "score")
def rate(
    session: Session,
    item_id: reading.ItemId,
    helpful: Annotated[bool, typer.Option("--helpful", help="It helped.")] = False,
    harmful: Annotated[bool, typer.Option("--harmful", help="It did harm.")] = False,
    score: Score = None,
    task: Annotated[str | None, typer.Option(help="What it was used for.")] = None,
    query: Annotated[str | None, typer.Option(help="The query that found it.")] = None,
    outcome: Annotated[str | None, typer.Option(help="What came of it.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why.")] = None,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """Say that an item helped or harmed, with the case that shows it, or give it a new score.

    Example: kledger rate knowledge-20260305-a1b2 --helpful --outcome "build fixed" --trace t-7 --user ann
    """
    if helpful and harmful:
        raise typer.BadParameter("one use either helped or harmed: give --helpful or --harmful")
    case = _without_none(task=task, query=query, outcome=outcome, reason=reason)
    if not (helpful or harmful) and (score is None or case):
        raise typer.BadParameter("say --helpful or --harmful, or give a new --score")
    ledger = session.ledger.within(trace_id=trace, message_id=message)
    answers: list[Any] = []
    if helpful or harmful:
        where = _without_none(trace_id=trace, message_id=message)
        answers.append(ledger.rate(item_id, "helpful" if helpful else "harmful", **case, **where))
    if score is not None:
        answers.append(ledger.score(item_id, score))
    document = {
        **answers[-1],
        "events": [event for answer in answers for event in answer["events"]],
        "fields": {name: outcome for answer in answers for name, outcome in answer.get("fields", {}).items()},
    }
    verdict = "helpful" if helpful else "harmful" if harmful else ""
    summary = " and ".join(part for part in (verdict, f"score {score}" if score else "") if part)
    return Answer(document, f"rated {plain(item_id)} {summary} at position {document['position']}")


def retire(
    session: Session,
    item_id: reading.ItemId,
    expected_version: reading.ExpectedVersion = None,
    reason: reading.Reason = None,
) -> Answer:
    """Take an item out of recall; it stays readable with its history. Only its owner may.

    Example: kledger retire knowledge-20260305-a1b2 --reason "the tool is gone" --user ann
    """
    moved = session.ledger.retire(item_id, expected_version=expected_version, reason=reason)
    return Answer(moved, f"retired {plain(moved['id'])} at position {moved['position']}")


def restore(
    session: Session,
    item_id: reading.ItemId,
    expected_version: reading.ExpectedVersion = None,
    reason: reading.Reason = None,
) -> Answer:
    """Bring back what is retired, expired or superseded. Its owner may, or a coordinator of what projects share.

    Example: kledger restore knowledge-20260305-a1b2 --user ann
    """
    moved = session.ledger.restore(item_id, expected_version=expected_version, reason=reason)
    return Answer(moved, f"restored {plain(moved['id'])} at position {moved['position']}{waits(moved)}")


class RestoreItem(Command):
    """The parser of `kledger restore`: refuses the options of a backup, and names the command that has them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not {arg.partition("=")[0] for arg in args}.isdisjoint(("--data", "--nats", "--start-over", "--key")):
            raise typer.BadParameter("this restores one item; a backup is restored with kledger restore-backup", ctx)
        return super().parse_args(ctx, args)


def _without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


app = typer.Typer()
app.command("save", rich_help_panel=KNOWLEDGE)(as_caller(save))
app.command("revise", rich_help_panel=KNOWLEDGE)(as_caller(revise))
app.command("rate", rich_help_panel=KNOWLEDGE)(as_caller(rate))
app.command("retire", rich_help_panel=KNOWLEDGE)(as_caller(retire))
app.command("restore", rich_help_panel=KNOWLEDGE, cls=RestoreItem)(as_caller(restore))
