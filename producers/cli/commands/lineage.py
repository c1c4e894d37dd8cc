"""`kledger lineage`: which events made something what it is, where do they come from, and what came of them?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text
from rich.tree import Tree

from producers.cli.screen import plain, short_time, snippet, words
from producers.cli.session import Answer, Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kledger.answers.lineage import LineageEvent, LineageOf

SHOWN = 20
"""Lines of one branch; the rest is counted. An item that is used every day has thousands."""
_OWN = {"origin", "change", "verdict"}
_PREFIXES = ("trace:", "message:", "event:", "correlation:", "resource:")


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
    told = session.ledger.lineage(ref)
    tree = Tree(words(told["ref"], "bold"))
    causes = [event for event in told["events"] if event["role"] == "cause"]
    _branch(tree, "came from", [*_sources(told), *(_line(event, ref) for event in causes)])
    if not ref.startswith(_PREFIXES):
        own = [event for event in told["events"] if event["role"] in _OWN]
        _branch(tree, "its own events", [_line(event, ref) for event in own])
    else:
        own = []
    rest = [event for event in told["events"] if event not in causes and event not in own]
    _branch(tree, "led to", [_line(event, ref) for event in rest])
    return Answer(told, tree)


def _sources(told: LineageOf) -> list[Text]:
    """What the events named as where they come from, each once, and in which part of them."""
    parts: dict[str, dict[str, None]] = {}
    for edge in told["edges"]:
        if edge["direction"] == "from" and not edge["ref"].startswith("event:"):
            stated = (part for part in edge.get("stated_in", ()) if part != "envelope")
            parts.setdefault(edge["ref"], {}).update(dict.fromkeys(stated))
    return [
        Text.assemble((plain(ref), "cyan"), (plain(f"  of its {', '.join(stated)}") if stated else plain(""), "dim"))
        for ref, stated in parts.items()
    ]


def _branch(tree: Tree, heading: str, lines: Sequence[Text]) -> None:
    branch = tree.add(words(f"{heading} ({len(lines)})", "bold"))
    for line in lines[:SHOWN]:
        branch.add(line)
    if len(lines) > SHOWN:
        branch.add(words(f"and {len(lines) - SHOWN} more, which --json shows", "dim"))


def _line(event: LineageEvent, ref: str) -> Text:
    """`rated helpful by user:mei: release 45  in trace:t  at 63, 2026-03-05T12:00:00Z`."""
    done = event["event_type"].partition(".")[2].replace("_", " ")
    subject = "" if event["entity_id"] == ref else f"{event['entity']} {event['entity_id']} "
    verdict = f" {event['verdict']}" if done == "rated" else f" {event['score']}" if "score" in event else ""
    case = "; ".join(str(said) for said in event.get("case", {}).values())
    where = [
        f"{kind}:{told}" for kind, told in (("trace", event["trace_id"]), ("message", event["message_id"])) if told
    ]
    within = ", ".join(name for name in where if name != ref)
    return Text.assemble(
        (plain(f"{subject}{done}{verdict}"), "cyan"),
        plain(f" by {event['actor']}"),
        f": {snippet(case)}" if case else "",
        plain(f"  in {within}") if within else "",
        (plain(f"  at {event['position']}, {short_time(event['time'])}"), "dim"),
    )
