"""Commands about all that the caller sees: `kledger overview`, `facets`, `changes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group

from kledger.contract.words import MOST_CHANGES, MOST_DAYS, ItemFilter
from ledger.new_item import helped_and_harmed
from producers.cli import reading
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, NODE, as_caller
from producers.cli.screen import counted, facts, plain, short_time, snippet, table, words
from producers.cli.session import Session

if TYPE_CHECKING:
    from rich.table import Table

    from kledger.answers.overview import Facets, ItemInBrief


def overview(
    session: Session,
    days: Annotated[int, typer.Option(min=1, max=MOST_DAYS, help="So many days, today included.")] = 30,
) -> Answer:
    """The knowledge that the caller may see in numbers, what happened lately, and what asks for a look.

    Example: kledger overview --days 7 --user ann
    """
    found = session.ledger.overview(days=days)
    layers = ", ".join(f"{name} {number}" for name, number in found["by_layer"].items() if number)
    mean = found["mean_confidence"]
    numbers = facts(
        ("in recall", f"{found['total']:,}" + (f" ({layers})" if layers else "")),
        ("mean confidence", "none yet" if mean is None else f"{mean:.2f}"),
        ("never recalled", found["never_recalled"]),
        ("in conflict", found["conflicting"]),
        ("proposed", found["proposed"]),
        ("expired", found["expired"]),
    )
    lately = table(
        *("day", "saved", "revised", "recalled", "helpful", "harmful"),
        right=("saved", "revised", "recalled", "helpful", "harmful"),
    )
    for day in found["days"]:
        did = (day["saved"], day["revised"], day["recalled"], day["helpful"], day["harmful"])
        if any(did):
            lately.add_row(day["day"], *map(str, did))
    parts = [numbers, lately]
    for title, items in (
        ("helped most", found["most_helpful"]),
        ("turned harmful", found["turned_harmful"]),
        ("never recalled", found["never_recalled_items"]),
    ):
        parts += _brief(title, items)
    return Answer(found, Group(*parts))


def _brief(title: str, items: list[ItemInBrief]) -> list[Table]:
    rows = table(title, "task", "+/-", "confidence", "updated", right=("confidence",), whole=(title,))
    for item in items:
        helped, harmed = helped_and_harmed({**item})
        verdicts, confidence = f"+{helped} -{harmed}", f"{item['confidence']:.2f}"
        rows.add_row(
            plain(item["id"]), snippet(item["task"], 100), verdicts, confidence, short_time(item["updated_at"])
        )
    return [rows] if items else []


def facets(
    session: Session,
    types: reading.Types = None,
    scopes: reading.Scopes = None,
    owner: reading.Owner = None,
    visibility: reading.Labels = None,
    status: Annotated[ItemFilter, typer.Option(help="Which items.")] = "active",
    tag: reading.TagWords = None,
    layer: reading.Layers = None,
    min_score: reading.MinScore = None,
    max_score: reading.MaxScore = None,
    since: reading.Since = None,
    until: reading.Until = None,
    created_by: reading.CreatedBy = None,
    concern: reading.Concern = None,
    as_of: reading.AsOf = None,
) -> Answer:
    """How many of the items that the caller may see have which type, tag, scope, owner, layer and status.

    Example: kledger facets --types tool --user ann
    """
    found = session.ledger.facets(
        types=reading.several(types),
        scopes=reading.several(scopes),
        owner=owner,
        visibility=reading.several(visibility),
        status=status,
        tags=reading.several(tag),
        layers=reading.layers(layer),
        min_score=min_score,
        max_score=max_score,
        since=since,
        until=until,
        created_by=created_by,
        concern=concern,
        as_of=reading.moment(as_of),
    )
    summary = "; ".join(
        (f"of {counted(found['total'], 'item')}, as of position {found['position']}", *reading.unmatched(found))
    )
    return Answer(found, Group(_values(found), summary))


def _values(found: Facets) -> Table:
    rows = table("of", "value", "items", right=("items",))
    for name, values in (
        *(("types", found["types"]), ("tags", found["tags"]), ("scopes", found["scopes"])),
        *(("owners", found["owners"]), ("layers", found["layers"]), ("statuses", found["statuses"])),
    ):
        for number, each in enumerate(values):
            rows.add_row(words(name, "bold") if not number else "", plain(each["value"]), f"{each['count']:,}")
    return rows


def changes(
    session: Session,
    after: Annotated[int, typer.Option(min=0, help="Only what changed after this position.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=MOST_CHANGES, help="At most so many changes.")] = 100,
    change: Annotated[
        reading.Many, typer.Option(help="saved, revised, rated, retired, …; comma-separated or repeated.")
    ] = None,
    id: Annotated[reading.Many, typer.Option(help="Only these items; comma-separated or repeated.")] = None,
    types: reading.Types = None,
    scopes: reading.Scopes = None,
    owner: reading.Owner = None,
) -> Answer:
    """What changed after a position of the items that the caller may see, verdicts included, oldest first.

    Example: kledger changes --after 1200 --user ann
    """
    found = session.ledger.changes(
        after=after,
        limit=limit,
        change=reading.several(change),
        ids=reading.several(id),
        types=reading.several(types),
        scopes=reading.several(scopes),
        owner=owner,
    )
    rows = table("position", "time", "change", "by", "id", "version", "task", right=("position", "version"))
    for each in found["changes"]:
        rows.add_row(
            str(each["position"]),
            short_time(each["time"]),
            each["change"],
            plain(each["actor"]),
            plain(each["id"]),
            str(each["version"]),
            snippet(each["task"], 80),
        )
    summary = f"{counted(len(found['changes']), 'change')}; go on with --after {found['next']}"
    return Answer(found, Group(rows, summary) if found["changes"] else "; ".join((*reading.unmatched(found), summary)))


def whoami(session: Session) -> Answer:
    """As whom the node takes the caller: entities, token and role.

    Example: kledger whoami --user ann
    """
    found = session.ledger.whoami()
    names = ", ".join(map(plain, found["entities"])) or "nobody yet: name somebody that the token is bound to"
    return Answer(
        found,
        facts(
            (
                "you are",
                "the operator" if found["operator"] else names,
            ),
            ("token", plain(found["token"] or "none asked for")),
            ("role", found["role"] or "none"),
            ("bound to", ", ".join(map(plain, found["bound"])) or "nobody"),
        ),
    )


app = typer.Typer()
app.command("whoami", rich_help_panel=NODE)(as_caller(whoami))
app.command("overview", rich_help_panel=KNOWLEDGE)(as_caller(overview))
app.command("facets", rich_help_panel=KNOWLEDGE)(as_caller(facets))
app.command("changes", rich_help_panel=KNOWLEDGE)(as_caller(changes))
