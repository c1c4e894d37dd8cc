"""Commands that read items: `kledger search`, `list`, `show`, `history`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from kledger.contract.words import ItemFilter, ItemSort, RecallPath
from ledger.new_item import CONFIDENCE, SCORE, helped_and_harmed
from producers.cli import reading
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.explained import explanation
from producers.cli.screen import Rows, counted, earlier, facts, plain, short_time, snippet, table, verbatim, words
from producers.cli.session import Session

if TYPE_CHECKING:
    from kledger.answers.knowledge import Eval, Hit, SearchResults, WholeEval, WholeItem


def search(
    session: Session,
    query: Annotated[str, typer.Argument(help="What you want to know.", show_default=False)],
    top_k: Annotated[int, typer.Option(min=1, max=100, help="At most so many items.")] = 5,
    min_score: reading.LeastScore = 3,
    min_match: Annotated[float, typer.Option(min=0, max=1, help="Leave out what covers less of the query.")] = 0.0,
    types: reading.Types = None,
    owner: reading.Owner = None,
    visibility: reading.Labels = None,
    scope: reading.Scopes = None,
    tag: reading.TagWords = None,
    layer: reading.Layers = None,
    since: reading.Since = None,
    until: reading.Until = None,
    concern: reading.Concern = None,
    as_of: reading.AsOf = None,
    path: Annotated[RecallPath, typer.Option(help="Ask one path of recall alone.")] = "fused",
    record: reading.Record = True,
    kind: Annotated[
        Literal["search", "page"], typer.Option(help="Of the event: page, where a person looks.")
    ] = "search",
    route: Annotated[bool | None, typer.Option(help="Have a model choose first.  [as the node is set up]")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each item stands where it does.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show each content whole.")] = False,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """Find knowledge, best first, among what the caller may see.

    Example: kledger search "how do we roll back a release" --user ann --top-k 3
    """
    answer = session.ledger.within(trace_id=trace, message_id=message).search(
        query,
        top_k=top_k,
        min_score=min_score,
        min_match=min_match,
        types=reading.several(types),
        owner=owner,
        visibility=reading.several(visibility),
        scopes=reading.several(scope),
        tags=reading.several(tag),
        layers=reading.layers(layer),
        since=since,
        until=until,
        concern=concern,
        as_of=reading.moment(as_of),
        path=path,
        record=record,
        kind=kind,
        route=route,
        explain=explain,
    )
    shown = Group(*(_whole(rank, item) for rank, item in enumerate(answer["results"], 1))) if full else _hits(answer)
    summary = f"{counted(answer['count'], 'item')}, as of position {answer['position']}"
    if "routed" in answer:
        summary += (
            "; chosen by a model" if answer["routed"] else f"; not chosen by a model: {plain(answer.get('reason'))}"
        )
    nothing = "; ".join(("nothing found", *reading.unmatched(answer), summary))
    said: list[RenderableType] = [shown, summary] if answer["results"] else [nothing]
    if "explained" in answer:
        said.append(explanation(answer["explained"]))
    return Answer(answer, Group(*said))


def _hits(answer: SearchResults) -> Rows:
    """Search results: a table, or on a narrow screen two lines each."""
    wide = table("#", "id", "knowledge", "types", "match", "score", "+/-", right=("#", "match"), whole=("id",))
    narrow = []
    for rank, item in enumerate(answer["results"], 1):
        score, verdicts = _evaluation(item["eval"])
        types, match = plain(", ".join(item["types"])), f"{item.get('match', 0.0):.2f}"
        knowledge = Text.assemble((plain(item["task"]), "bold"), "\n", snippet(item["content"]), (_placed(item), "dim"))
        wide.add_row(str(rank), plain(item["id"]), knowledge, types, match, score, verdicts)
        head = Text.assemble(f"{rank}  {match}  ", (snippet(item["task"]), "bold"))
        about = Text.assemble(
            ("   " + plain(item["id"]), "cyan"), f"  {snippet(item['content'], 400)}", (_placed(item), "dim")
        )
        narrow.append((head, about))
    return Rows(wide, narrow)


def _whole(rank: int, item: Hit) -> Group:
    score, verdicts = _evaluation(item["eval"])
    about = f"{', '.join(item['types'])} · match {item.get('match', 0.0):.2f} · score {score} · verdicts {verdicts}"
    head = Text.assemble(f"{rank}  ", (plain(item["task"]), "bold"), ("  " + plain(item["id"]), "cyan"))
    return Group(head, plain(about + _placed(item)), verbatim(item["content"]), "")


def _placed(item: Hit) -> str:
    """Why the item is placed before a more relevant one; empty where it is not."""
    return f"\n{plain(item['why'])}" if "why" in item else ""


def list_items(
    session: Session,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many items.")] = 10,
    offset: reading.Offset = 0,
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
    sort: Annotated[ItemSort, typer.Option(help="The order.")] = "newest",
    as_of: reading.AsOf = None,
) -> Answer:
    """List items that the caller may see.

    Example: kledger list --types tool,plan --owner team:platform --limit 20
    """
    page = session.ledger.list(
        limit=limit,
        offset=offset,
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
        sort=sort,
        as_of=reading.moment(as_of),
    )
    wide = table("id", "task", "types", "owner", "score", "+/-", "version", right=("version",), whole=("id",))
    narrow = []
    for item in page["results"]:
        kinds, owner = plain(", ".join(item["types"])), plain(item["owner"])
        wide.add_row(
            plain(item["id"]),
            snippet(item["task"], 100),
            kinds,
            owner,
            *_evaluation(item["eval"]),
            str(item["version"]),
        )
        narrow.append([Text.assemble((plain(item["id"]), "cyan"), "  ", snippet(item["task"], 100), f"  {owner}")])
    rows = Rows(wide, narrow)
    summary = f"{len(page['results'])} of {counted(page['total'], 'item')}, as of position {page['position']}"
    nothing = "; ".join(("nothing to list", *reading.unmatched(page), summary))
    return Answer(page, Group(rows, summary) if page["results"] else nothing)


def show(session: Session, item_id: reading.ItemId, as_of: reading.AsOf = None) -> Answer:
    """Show one item whole, now or as of a moment.

    Example: kledger show knowledge-20260305-a1b2 --as-of 1200
    """
    item = session.ledger.get(item_id, as_of=reading.moment(as_of))
    evaluation = item["eval"]
    source = {name: value for name, value in item["source"].items() if value}
    shown = facts(
        ("id", item["id"]),
        ("task", words(item["task"], "bold")),
        ("types", ", ".join(item["types"])),
        ("status", _status(item)),
        ("version", item["version"]),
        ("owner", item["owner"]),
        ("scopes", f"{', '.join(item['scopes'])} ({item['visibility']})"),
        (
            "shared with",
            ", ".join(f"{each['entity']} ({each['permission']})" for each in item.get("acl", [])) or "nobody else",
        ),
        ("tags", ", ".join(f"{name}={value}" for name, value in item["tags"].items()) or "none"),
        *_verdicts(evaluation),
        ("source", ", ".join(f"{name} {_joined(value)}" for name, value in source.items()) or "not stated"),
        ("resources", ", ".join(item["resource_ids"]) or "none"),
        ("created", item["created_at"]),
        ("updated", f"{item['updated_at']}, by the last version or verdict, at position {item['position']}"),
    )
    return Answer(item, Group(shown, "", verbatim(item["content"])))


def _verdicts(evaluation: WholeEval) -> list[tuple[str, object]]:
    """Score, confidence and verdicts of an item; initial values are marked as such."""
    helped, harmed = helped_and_harmed(evaluation)
    initial = (evaluation["score"], evaluation["confidence"]) == (SCORE, CONFIDENCE) and not helped and not harmed
    score = f"{evaluation['score']}, confidence {evaluation['confidence']:g}"
    if initial:
        score += ", as every item begins"
    if not helped and not harmed:
        return [("score", score), ("verdicts", "none yet")]
    cases = (len(evaluation.get("helpful_history", [])), len(evaluation.get("harmful_history", [])))
    return [
        ("score", score),
        ("helped", _times(helped, cases[0])),
        ("harmed", _times(harmed, cases[1])),
    ]


def _times(number: int, cases: int) -> str:
    return f"{counted(number, 'time')}, with {counted(cases, 'case')}" if number or cases else "never"


def _status(item: WholeItem) -> str:
    into = item.get("merged_into")
    return f"merged into {into}, which is found in its place" if into else item.get("status", "active")


def history(session: Session, item_id: reading.ItemId, before: reading.BeforeVersion = None) -> Answer:
    """Every version of an item and every verdict on it, oldest first; the latest where all do not fit.

    Example: kledger history knowledge-20260305-a1b2
    """
    life = session.ledger.history(item_id, before=before)
    versions = table("version", "position", "time", "change", "by", "content", right=("version", "position"))
    for version in life["versions"]:
        versions.add_row(
            plain(version["version"]),
            plain(version["valid_from"]),
            short_time(version["valid_from_time"]),
            plain(version["change"]),
            plain(version["actor"]),
            snippet(version["content"], 120),
        )
    feedback = table("position", "time", "verdict", "by", "case", right=("position",))
    for case in life["feedback"]:
        feedback.add_row(
            plain(case["position"]),
            short_time(case["time"]),
            plain(case["verdict"]),
            plain(case["actor"]),
            snippet(", ".join(f"{name} {case[name]}" for name in _CASE if case.get(name))),
        )
    parts: list[RenderableType] = [words(life["id"], "bold"), versions]
    parts += [feedback] if life["feedback"] else ["no feedback yet"]
    return Answer(life, Group(*parts, *earlier(life.get("next"))))


_CASE: tuple[Literal["task", "query", "outcome", "reason", "trace_id", "message_id"], ...] = (
    *("task", "query", "outcome", "reason"),
    *("trace_id", "message_id"),
)


def _evaluation(evaluation: Eval) -> tuple[str, str]:
    helped, harmed = helped_and_harmed(evaluation)
    return str(evaluation["score"]), f"+{helped} -{harmed}" if helped or harmed else "none"


def _joined(value: object) -> str:
    return " ".join(map(plain, value)) if isinstance(value, list) else plain(value)


app = typer.Typer()
app.command("search", rich_help_panel=KNOWLEDGE)(as_caller(search))
app.command("show", rich_help_panel=KNOWLEDGE)(as_caller(show))
app.command("list", rich_help_panel=KNOWLEDGE)(as_caller(list_items))
app.command("history", rich_help_panel=KNOWLEDGE)(as_caller(history))
