"""Recalls of before: `kledger recalls`, and `kledger served` for what one of them said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from kledger.contract.words import RecallKind
from producers.cli import reading
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.screen import counted, facts, plain, short_time, snippet, table, verbatim
from producers.cli.session import Session

if TYPE_CHECKING:
    from kledger.answers.recalls import RecallFields, RecallList, RecallOfItem, RecallsOfItem, ServedItem


def recalls(
    session: Session,
    item_id: Annotated[
        str | None, typer.Argument(metavar="ITEM", help="Only those that served this item.", show_default=False)
    ] = None,
    trace: Annotated[str | None, typer.Option(help="Only those of this trace.")] = None,
    actor: Annotated[str | None, typer.Option(help="Only those of this entity, such as agent:coder.")] = None,
    kind: Annotated[
        RecallKind | None, typer.Option(help="Only those of this kind, where page is a person who looked.")
    ] = None,
    counts: Annotated[
        bool | None, typer.Option("--counting/--looks", help="Without looks at pages, or these alone.")
    ] = None,
    since: Annotated[str | None, typer.Option(help="From this position or time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Before this position or time.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most so many.")] = 20,
    before: reading.Before = None,
) -> Answer:
    """The caller's recalls, newest first; the operator's are all. With an item, its place in each.

    Example: kledger recalls knowledge-20260305-a1b2 --user ann --limit 5
    """
    if item_id is not None and not any((trace, actor, kind, since, until)):
        found = session.ledger.recalls.of(item_id, limit=limit, before=before, counts=counts)
        rows = table("recall", "time", "kind", "by", "asked", "place", "match", "version", whole=("recall",))
        for each in found["results"]:
            rows.add_row(*_named(each), *_place(each))
        return Answer(found, _page(rows, found))
    page = session.ledger.recalls.list(
        item=item_id,
        trace=trace,
        actor=actor,
        kind=kind,
        since=reading.moment(since),
        until=reading.moment(until),
        limit=limit,
        before=before,
        counts=counts,
    )
    rows = table("recall", "time", "kind", "by", "asked", "items", right=("items",), whole=("recall",))
    for recall in page["results"]:
        rows.add_row(*_named(recall), str(recall["of"]))
    return Answer(page, _page(rows, page))


def served(
    session: Session,
    recall_id: Annotated[str, typer.Argument(metavar="RECALL", help="The id of the recall.", show_default=False)],
) -> Answer:
    """What a recall of the caller's served, word for word, as far as the caller may see it now.

    Example: kledger served recall-64522abb407741ff8169e119093d4ae1 --user ann
    """
    recall = session.ledger.recalls.get(recall_id)
    where = [f"{name} {recall[key]}" for name, key in _WHERE if recall[key] is not None]
    shown = facts(
        ("recall", recall["recall_id"]),
        ("kind", recall["kind"]),
        ("asked", recall["query"] or "nothing"),
        ("by", recall["actor"]),
        ("in", ", ".join(where) or "not stated"),
        ("time", f"{short_time(recall['time'])}, at position {recall['position']}"),
        ("knew", f"the log up to position {recall['view_position']}"),
    )
    parts: list[RenderableType] = [shown, "", *(_item(each) for each in recall["results"])]
    left = f"; {recall['left_out']} more may not be seen now" if recall["left_out"] else ""
    return Answer(recall, Group(*parts, f"{counted(recall['of'], 'item')} served{left}"))


_WHERE: tuple[tuple[str, Literal["trace_id", "message_id", "session"]], ...] = (
    ("trace", "trace_id"),
    ("message", "message_id"),
    ("session", "session"),
)


def _named(recall: RecallFields) -> list[str]:
    asked = snippet(recall["query"], 60) or "nothing"
    return [plain(recall["recall_id"]), short_time(recall["time"]), recall["kind"], plain(recall["actor"]), asked]


def _place(each: RecallOfItem) -> list[str]:
    match = "" if each["match"] is None else f"{each['match']:.2f}"
    return [f"{each['rank']} of {each['of']}", match, str(each["item_version"])]


def _page(rows: RenderableType, page: RecallsOfItem | RecallList) -> RenderableType:
    summary = f"{page['count']} of {counted(page['total'], 'recall')}, as of position {page['position']}"
    if older := page.get("past_retention"):
        summary += f"; the detail of {older:,} more is past its retention: kledger replay --into FILE"
    return Group(rows, summary) if page["results"] else f"no recall to show; {summary}"


def _item(each: ServedItem) -> Group:
    now = "" if each["version_now"] == each["item_version"] else f", which is at version {each['version_now']} now"
    if each["status_now"] != "active":
        now += f", {each['status_now']}"
    match = "" if each["match"] is None else f" · match {each['match']:.2f}"
    head = Text.assemble(f"{each['rank']}  ", (plain(each["task"]), "bold"), ("  " + plain(each["id"]), "cyan"))
    return Group(head, f"version {each['item_version']}{now}{match}", verbatim(each["content"]), "")


app = typer.Typer()
app.command("recalls", rich_help_panel=KNOWLEDGE)(as_caller(recalls))
app.command("served", rich_help_panel=KNOWLEDGE)(as_caller(served))
