"""`kledger memory …`: saving and reading memories, items with a layer."""

from __future__ import annotations

from typing import Annotated, Any, cast, get_args

import typer
from rich.console import Group

from kledger.contract.words import ItemFilter, MemoryLayer, ProjectRole
from producers.cli import reading
from producers.cli.answer import Answer, listed
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.commands.memory import held
from producers.cli.screen import Rows, facts, plain, short_time, snippet, table, verbatim, words
from producers.cli.session import Session

Layer = Annotated[MemoryLayer, typer.Option(help="How it is remembered.")]
Layers = Annotated[reading.Many, typer.Option("--layer", help="Only these layers; comma-separated or repeated.")]
Kind = Annotated[str | None, typer.Option(help="preference, decision, follow_up, mood; project_context, adr, …")]
Kinds = Annotated[reading.Many, typer.Option("--kind", help="Only these kinds; comma-separated or repeated.")]
Version = Annotated[int | None, typer.Option("--version", min=1, help="The version that you read.")]
Share = Annotated[float | None, typer.Option(min=0, max=1, help="0 to 1.")]


def save(
    session: Session,
    content: Annotated[str | None, typer.Argument(help="What to remember; - for stdin.")] = None,
    layer: Layer = "semantic",
    kind: Kind = None,
    task: Annotated[str | None, typer.Option(help="In which situation it helps; else the first sentence.")] = None,
    item_id: Annotated[str | None, typer.Option("--id", help="An id of your own.")] = None,
    importance: Share = None,
    confidence: Share = None,
    lifetime: Annotated[int | None, typer.Option(min=1, help="Seconds that a short memory lives.")] = None,
    category: Annotated[str | None, typer.Option(help="Of a semantic memory.")] = None,
    related: Annotated[reading.Many, typer.Option(help="The id of a related memory; may be repeated.")] = None,
    tag: Annotated[reading.Many, typer.Option("--tag", help="A word; may be repeated.")] = None,
    in_session: Annotated[str | None, typer.Option("--session", help="The session that it is from.")] = None,
    event: Annotated[str | None, typer.Option(help="Of an episodic memory: what happened.")] = None,
    participant: Annotated[reading.Many, typer.Option(help="Who took part; may be repeated.")] = None,
    outcome: Annotated[str | None, typer.Option(help="How it ended.")] = None,
    artifact: Annotated[reading.Many, typer.Option(help="What came of it, such as a commit; may be repeated.")] = None,
    happened_at: Annotated[str | None, typer.Option(help="When, such as 2026-03-05T12:00:00Z.")] = None,
    name: Annotated[str | None, typer.Option(help="Of a procedural memory.")] = None,
    trigger: Annotated[str | None, typer.Option(help="When the procedure is due.")] = None,
    step: Annotated[reading.Many, typer.Option(help="A step of it; may be repeated.")] = None,
    scopes: reading.Scopes = None,
    owner: reading.NewOwner = None,
    supersedes: Annotated[
        str | None, typer.Option(help="The id of the memory that this is a later version of.")
    ] = None,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """Remember something: for a while, as a fact, as an event, or as a way to do it.

    Example: kledger memory save "Ann prefers short answers" --layer short --kind preference --user ann
    """
    saved = session.ledger.within(trace_id=trace, message_id=message).remember(
        None if content is None else reading.text(content),
        layer,
        task=task,
        kind=kind,
        importance=importance,
        confidence=confidence,
        lifetime=lifetime,
        category=category,
        related=related or None,
        tags=tag or None,
        session=in_session,
        event=event,
        participants=participant or None,
        outcome=outcome,
        artifacts=artifact or None,
        happened_at=happened_at,
        name=name,
        trigger=trigger,
        steps=step or None,
        id=item_id,
        scopes=reading.several(scopes),
        owner=owner,
        supersedes=supersedes,
    )
    if saved["duplicate"]:
        status = "" if saved["status"] == "active" else f", and is {saved['status']}: revise or restore it"
        return Answer(saved, f"unchanged: {plain(saved['id'])} says this since position {saved['position']}{status}")
    done = f"{plain(saved['id'])} ({saved['layer']}) at position {saved['position']}"
    if saved["status"] == "proposed":
        return Answer(saved, f"proposed {done}: a coordinator of its project decides (kledger memory approve)")
    return Answer(saved, f"remembered {done}")


_SAID = {"supersedes": "supersedes", "superseded_by": "superseded by", "reason": "rejected because"}


def list_memories(
    session: Session,
    layer: Layers = None,
    kind: Kinds = None,
    tag: reading.TagWords = None,
    owner: reading.Owner = None,
    since: Annotated[str | None, typer.Option(help="Only what happened at or after this time.")] = None,
    until: Annotated[str | None, typer.Option(help="Only what happened before this time.")] = None,
    status: Annotated[ItemFilter, typer.Option(help="Which ones.")] = "active",
    concern: reading.Concern = None,
    role: Annotated[
        ProjectRole | None, typer.Option(help="Of what projects share, only what is meant for this role.")
    ] = None,
    limit: reading.Limit = 10,
    offset: reading.Offset = 0,
    as_of: reading.AsOf = None,
) -> Answer:
    """List memories by when they happened, the latest first.

    Example: kledger memory list --layer episodic --since 2026-03-01T00:00:00Z --user ann
    """
    layers = cast("list[MemoryLayer] | None", reading.chosen(layer, get_args(MemoryLayer), "--layer"))
    page = session.ledger.memories(
        layers=layers,
        kinds=reading.several(kind),
        tags=reading.several(tag),
        owner=owner,
        since=since,
        until=until,
        status=status,
        concern=concern,
        role=role,
        limit=limit,
        offset=offset,
        as_of=reading.moment(as_of),
    )
    wide = table("id", "layer", "kind", "whose", "when", "sure", "status", "what", right=("sure",), whole=("id",))
    narrow = []
    for each in page["results"]:
        when = short_time(each.get("timestamp") or each["created_at"])
        of_it = (each["layer"], plain(each["kind"] or ""), plain(each["owner"]), when, f"{each['confidence']:.0%}")
        what = snippet(each["content"], 80)
        wide.add_row(plain(each["id"]), *of_it, each["status"], what)
        told = "  ".join(filter(None, (plain(each["id"]), *of_it, each["status"])))
        narrow.append((words(told, "bold"), words(what)))
    return listed(page, Rows(wide, narrow), "; ".join(("no memory to list", *reading.unmatched(page))))


def show(session: Session, item_id: reading.ItemId, as_of: reading.AsOf = None) -> Answer:
    """Show one memory with the fields of its layer.

    Example: kledger memory show knowledge-20260305-a1b2 --user ann
    """
    found: Any = session.ledger.memory(item_id, as_of=reading.moment(as_of))
    used = f"{found['usage_count']} times"
    if found["success_rate"] is not None:
        used += f", {found['success_rate']:.0%} with success"
    rows = [
        ("id", plain(found["id"])),
        ("task", words(found["task"], "bold")),
        ("layer", found["layer"]),
        ("kind", found["kind"] or "not stated"),
        ("status", f"{found['status']}, version {found['version']}, at position {found['position']}"),
        *((label, plain(found[name])) for name, label in _SAID.items() if found.get(name)),
        ("confidence", f"{found['confidence']:.0%}, evidence {found['evidence_count']}"),
        ("last confirmed", found["last_confirmed"] or "never"),
        ("used", used),
        ("owner", found["owner"]),
        ("scopes", f"{', '.join(found['scopes'])} ({found['visibility']})"),
    ]
    rows += [(name, plain(str(found[name]))) for name in ("category", "trigger", "expires_at") if found.get(name)]
    return Answer(found, Group(facts(*rows), "", verbatim(found["content"])))


def confirm(
    session: Session,
    item_id: reading.ItemId,
    reason: reading.Reason = None,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """Say that a memory holds: evidence for it, and a short memory stays for good.

    Example: kledger memory confirm knowledge-20260305-a1b2 --reason "asked again" --user ann
    """
    ledger = session.ledger.within(trace_id=trace, message_id=message)
    confirmed = ledger.confirm(item_id, case=None if reason is None else {"reason": reason})
    became = ", and is semantic now" if confirmed["promoted"] else ""
    return Answer(confirmed, f"confirmed {plain(confirmed['id'])}{became}, at position {confirmed['position']}")


def approve(
    session: Session, item_id: reading.ItemId, reason: reading.Reason = None, version: Version = None
) -> Answer:
    """Take a proposal into what its project shares, as a coordinator of the project.

    Example: kledger memory approve knowledge-20260305-a1b2 --agent lead --project ledger
    """
    decided = session.ledger.approve(item_id, reason=reason, expected_version=version)
    came = ""
    if decided["superseded"]:
        came = f"; {plain(decided['superseded'])} is superseded"
    elif decided["conflict"]:
        came = f"; in conflict with the version before (kledger conflicts show {plain(decided['conflict'])})"
    return Answer(decided, f"approved {plain(decided['id'])} at position {decided['position']}{came}")


def reject(session: Session, item_id: reading.ItemId, reason: reading.Reason = None, version: Version = None) -> Answer:
    """Decline a proposal, as a coordinator of its project. A revision proposes it anew.

    Example: kledger memory reject knowledge-20260305-a1b2 --reason "one service only" --agent lead --project ledger
    """
    decided = session.ledger.reject(item_id, reason=reason, expected_version=version)
    return Answer(decided, f"rejected {plain(decided['id'])} at position {decided['position']}")


def health(session: Session) -> Answer:
    """How the memories are that the caller sees, and which need a look.

    Example: kledger memory health --user ann
    """
    found = session.ledger.memory_health()
    mean = "none yet" if found["mean_confidence"] is None else f"{found['mean_confidence']:.0%}"
    by_layer: Any = found["by_layer"]
    shown = facts(
        ("memories", f"{found['total']:,}"),
        *((layer, f"{count:,}") for layer, count in by_layer.items()),
        ("confidence", mean),
        ("expired", f"{found['expired']:,} (kledger memory list --status expired; kledger memory clean)"),
        ("proposed", f"{found['proposed']:,} (kledger memory list --status proposed)"),
        ("conflicting", f"{found['conflicting']:,} (kledger memory list --concern conflicting)"),
        ("promoted", f"{found['promoted']:,} (kledger memory list --concern promoted)"),
        ("never recalled", f"{found['never_recalled']:,} (kledger memory list --concern never_recalled)"),
    )
    return Answer(found, shown)


def clean(
    session: Session,
    apply: Annotated[bool, typer.Option("--apply", help="Retire them; without it they are only named.")] = False,
) -> Answer:
    """Retire the caller's expired memories. `kledger restore` brings one back.

    Example: kledger memory clean --apply --user ann
    """
    cleaned = session.ledger.clean_memories(dry_run=not apply)
    verb = "retired" if apply else "would retire"
    more = "; there are more, ask again" if cleaned["more"] else ""
    hint = "" if apply or not cleaned["count"] else "; do it with --apply"
    return Answer(cleaned, "\n".join([*map(plain, cleaned["ids"]), f"{verb} {cleaned['count']}{more}{hint}"]))


app = typer.Typer()

memory = typer.Typer(no_args_is_help=True, help="Memories: items with a layer, for a while or for good.")
memory.command("save")(as_caller(save))
memory.command("list")(as_caller(list_memories))
memory.command("show")(as_caller(show))
memory.command("confirm")(as_caller(confirm))
memory.command("approve")(as_caller(approve))
memory.command("reject")(as_caller(reject))
memory.command("held")(as_caller(held.held))
memory.command("release")(as_caller(held.release))
memory.command("drop")(as_caller(held.drop))
memory.command("health")(as_caller(health))
memory.command("clean")(as_caller(clean))
app.add_typer(memory, name="memory", rich_help_panel=KNOWLEDGE)
