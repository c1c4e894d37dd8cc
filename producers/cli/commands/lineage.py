"""`kledger lineage`: the events of an item, trace or message, their sources, and their effects, as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text
from rich.tree import Tree

from producers.cli import reading
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.screen import counted, plain, short_time, snippet, table, words
from producers.cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kledger.answers.lineage import LineageEvent, LineageOf

SHOWN = 20
"""Lines shown of one branch; the rest is counted, because a busy item has thousands."""
_OWN = {"origin", "change", "verdict"}


def lineage(
    session: Session,
    ref: Annotated[
        str,
        typer.Argument(metavar="REF", help="An item's id, trace:ID, message:ID or event:ID.", show_default=False),
    ],
) -> Answer:
    """Where something came from, the events that made it what it is, and what came of it.

    Example: kledger lineage trace:release-42
    """
    graph = session.ledger.lineage(ref)
    tree = Tree(words(graph["ref"], "bold"))
    causes = [event for event in graph["events"] if event["role"] == "cause"]
    _branch(tree, "came from", [*_sources(graph), *(_line(event, ref) for event in causes)])
    own = [event for event in graph["events"] if event["role"] in _OWN and event["entity_id"] == ref]
    if own:  # of an item
        _branch(tree, "its own events", [_line(event, ref) for event in own])
    rest = [event for event in graph["events"] if event not in causes and event not in own]
    _branch(tree, "led to", [_line(event, ref) for event in rest])
    if graph.get("more"):
        tree.add(
            words(f"there may be more than these {len(graph['events']):,} events: ask for event:ID of one", "yellow")
        )
    if older := graph.get("past_retention"):
        tree.add(
            words(
                f"and {counted(older, 'recall')} whose detail is past its retention: kledger replay --into FILE", "dim"
            )
        )
    return Answer(graph, tree)


def _sources(graph: LineageOf) -> list[Text]:
    """The sources that the events name, each once, with the parts of an event that name it."""
    parts: dict[str, dict[str, None]] = {}
    for edge in graph["edges"]:
        if edge["direction"] == "from" and not edge["ref"].startswith("event:"):
            places = (part for part in edge.get("stated_in", ()) if part != "envelope")
            parts.setdefault(edge["ref"], {}).update(dict.fromkeys(places))
    return [
        Text.assemble((plain(ref), "cyan"), (plain(f"  of its {', '.join(places)}") if places else plain(""), "dim"))
        for ref, places in parts.items()
    ]


def traces(
    session: Session,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most so many.")] = 20,
    before: reading.Before = None,
) -> Answer:
    """List the latest traces: how many events each caused, by whom, and when.

    Example: kledger traces --limit 5
    """
    page = session.ledger.traces(limit=limit, before=before)
    rows = table("trace", "events", "by", "began", "ended", right=("events",), whole=("trace",))
    for each in page["results"]:
        when = (short_time(each["began"]), short_time(each["ended"]))
        rows.add_row(plain(each["trace_id"]), f"{each['events']:,}", plain(", ".join(each["actors"])), *when)
    return Answer(page, rows if page["results"] else "no trace to show")


def _branch(tree: Tree, heading: str, lines: Sequence[Text]) -> None:
    branch = tree.add(words(f"{heading} ({len(lines)})", "bold"))
    for line in lines[:SHOWN]:
        branch.add(line)
    if len(lines) > SHOWN:
        branch.add(words(f"and {len(lines) - SHOWN} more, which --json shows", "dim"))


def _line(event: LineageEvent, ref: str) -> Text:
    """`rated helpful by user:mei: release 45  in trace:t  at 63, 2026-03-05T12:00:00Z`."""
    verb = event["event_type"].partition(".")[2].replace("_", " ")
    subject = "" if event["entity_id"] == ref else f"{event['entity']} {event['entity_id']} "
    verdict = f" {event['verdict']}" if verb == "rated" else f" {event['score']}" if "score" in event else ""
    case = "; ".join(plain(value) for value in event.get("case", {}).values())
    where = [
        f"{kind}:{name}" for kind, name in (("trace", event["trace_id"]), ("message", event["message_id"])) if name
    ]
    within = ", ".join(name for name in where if name != ref)
    return Text.assemble(
        (plain(f"{subject}{verb}{verdict}"), "cyan"),
        plain(f" by {event['actor']}"),
        f": {snippet(case)}" if case else "",
        plain(f"  in {within}") if within else "",
        (plain(f"  at {event['position']}, {short_time(event['time'])}"), "dim"),
    )


app = typer.Typer()
app.command("lineage", rich_help_panel=KNOWLEDGE)(as_caller(lineage))
app.command("traces", rich_help_panel=KNOWLEDGE)(as_caller(traces))
