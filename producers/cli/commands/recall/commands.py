"""Recall for an agent: `kledger startup`, `recall`, `focus`, `goal`, `prompt`."""

from __future__ import annotations

from typing import Annotated, Literal, cast, get_args

import typer
from rich.console import Group

from kledger.contract.words import RecallLayer
from producers.cli import reading
from producers.cli.answer import Answer, listed
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.screen import counted, facts, plain, short_time, snippet, table, verbatim, words
from producers.cli.session import Session

GoalId = Annotated[str, typer.Argument(metavar="GOAL", help="The id of the goal.", show_default=False)]
MinMatch = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Leave out what covers less of what is asked.  [the floor: what answers nothing]"),
]


def startup(
    session: Session,
    query: Annotated[str, typer.Argument(help="What the agent is about to do; may be left out.")] = "",
    top_k: Annotated[int, typer.Option(min=0, max=80, help="At most so many related items.")] = 5,
    profile_k: Annotated[int, typer.Option(min=0, max=100, help="At most so many items of the profile.")] = 20,
    min_score: reading.LeastScore = 3,
    min_match: MinMatch = None,
    types: reading.Types = None,
    record: reading.Record = True,
    language: reading.Language = None,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """What an agent has to know when it starts: the caller's profile first, then related knowledge, as a prompt.

    Example: kledger startup "fix the flaky test" --user ann --agent coder
    """
    answer = session.ledger.within(trace_id=trace, message_id=message).startup(
        query,
        top_k=top_k,
        profile_k=profile_k,
        min_score=min_score,
        min_match=min_match,
        types=reading.several(types),
        record=record,
        language=language,
    )
    return Answer(answer, verbatim(answer["prompt"] or "nothing is known yet that this caller may see"))


def recall(
    session: Session,
    message: Annotated[str, typer.Argument(help="What was said, or what you want to know.", show_default=False)],
    in_session: Annotated[
        str | None, typer.Option("--session", help="Leave out what the context of this session holds.")
    ] = None,
    target_agent: Annotated[str | None, typer.Option(help="Ask what this agent knows, and the project.")] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option(help="Read these alone: working, short, semantic, episodic, procedural, shared, document, plain."),
    ] = None,
    as_of: reading.AsOf = None,
    top_k: Annotated[int, typer.Option(min=1, max=100, help="At most so many results.")] = 5,
    min_match: MinMatch = None,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="At most so many tokens of text.")] = None,
    record: reading.Record = True,
    kind: Annotated[
        Literal["recall", "page"], typer.Option(help="Of the event: page, where a person looks.")
    ] = "recall",
    language: reading.Language = None,
    trace: reading.Trace = None,
    message_id: reading.Message = None,
) -> Answer:
    """What is known that answers a message, as the text that goes into a prompt.

    Which results it is made of is told on stderr.

    Example: kledger recall "how do we roll back a release" --user ann --project web
    """
    answer = session.ledger.within(trace_id=trace, message_id=message_id).recall(
        message,
        session=in_session,
        target_agent=target_agent,
        layers=cast("list[RecallLayer] | None", reading.chosen(layers, get_args(RecallLayer), "--layers")),
        as_of=reading.moment(as_of),
        top_k=top_k,
        min_match=min_match,
        budget_tokens=budget_tokens,
        language=language,
        record=record,
        kind=kind,
    )
    reasons = table("#", "match", "layer", "id", "knowledge", right=("#", "match"), whole=("id",))
    for rank, item in enumerate(answer["results"], 1):
        reasons.add_row(str(rank), f"{item['match']:.2f}", item["layer"], plain(item["id"]), snippet(item["content"]))
    said = "nothing is known that answers it; " if answer["nothing_known"] else ""
    summary = f"{said}intent {answer['intent']}, {counted(answer['count'], 'result')}"
    if not answer["results"]:
        return Answer(answer, summary)
    if budget_tokens is not None and answer["shown"] < answer["count"]:
        summary += f"; {answer['shown'] or 'none'} in the text: more is above --budget-tokens {budget_tokens}"
    return Answer(answer, verbatim(answer["text"]), beside=Group("", reasons, summary))


def focus(
    session: Session,
    goal_id: GoalId,
    description: Annotated[str, typer.Argument(help="What the goal is about.", show_default=False)],
    top_k: Annotated[int, typer.Option(min=1, max=100, help="At most so many items.")] = 3,
    min_score: reading.LeastScore = 3,
    min_match: MinMatch = None,
    language: reading.Language = None,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """Focus a goal: related knowledge is looked up, kept on the goal, and shown.

    Example: kledger focus goal-123 "migrate the database without downtime" --agent coder
    """
    answer = session.ledger.within(trace_id=trace, message_id=message).focus(
        goal_id, description, top_k=top_k, min_score=min_score, min_match=min_match, language=language
    )
    return Answer(answer, Group(words(answer["title"], "bold"), verbatim(answer["output"])))


def goal(
    session: Session,
    goal_id: GoalId,
    owner: Annotated[str | None, typer.Option(help="Whose goal, such as agent:coder; else the caller's.")] = None,
    language: reading.Language = None,
) -> Answer:
    """Show a goal with the knowledge that it was given, as far as the caller may see it now.

    Example: kledger goal goal-123 --agent coder
    """
    state = session.ledger.goal(goal_id, owner=owner, language=language)
    shown = facts(
        ("goal", state["goal_id"]),
        ("description", words(state["description"], "bold")),
        ("owner", state["owner"]),
        ("focused", f"{counted(state['focuses'], 'time')}, last {short_time(state['focused_at'])}"),
        ("trace", state["trace_id"] or "not stated"),
    )
    rest = [f"{state['left_out']} more were closed, retired or erased since"] if state["left_out"] else []
    return Answer(state, Group(shown, "", verbatim(state["section"]), *rest))


def goals(
    session: Session,
    owner: Annotated[str | None, typer.Option(help="Whose, such as agent:coder; else the caller's.")] = None,
    limit: reading.Limit = 20,
    offset: reading.Offset = 0,
) -> Answer:
    """List the caller's goals, the one that was focused last first; the operator's are those of all.

    Example: kledger goals --agent coder
    """
    page = session.ledger.goals(owner=owner, limit=limit, offset=offset)
    rows = table(
        "goal", "owner", "description", "items", "focused", "last", right=("items", "focused"), whole=("goal",)
    )
    for each in page["results"]:
        rows.add_row(
            plain(each["goal_id"]),
            plain(each["owner"]),
            snippet(each["description"], 60),
            str(each["items"]),
            str(each["focuses"]),
            short_time(each["focused_at"]),
        )
    return listed(page, rows, "no goal to list")


def prompt(
    session: Session,
    name: Annotated[str | None, typer.Argument(help="Which prompt; all are listed when not given.")] = None,
    language: reading.Language = None,
) -> Answer:
    """Print a prompt that ships with the ledger, or list them.

    Example: kledger prompt knowledge_management --language en
    """
    if name is not None:
        document = session.ledger.prompt(name, language=language)
        return Answer(document, verbatim(document["text"].rstrip()))
    listed = session.ledger.prompts(language=language)
    rows = table("name", "languages", "what for", whole=("name",))
    for each in listed:
        rows.add_row(plain(each["name"]), ", ".join(each["languages"]), plain(each["title"]))
    return Answer({"prompts": listed}, rows)


app = typer.Typer()
app.command("startup", rich_help_panel=KNOWLEDGE)(as_caller(startup))
app.command("recall", rich_help_panel=KNOWLEDGE)(as_caller(recall))
app.command("focus", rich_help_panel=KNOWLEDGE)(as_caller(focus))
app.command("goal", rich_help_panel=KNOWLEDGE)(as_caller(goal))
app.command("goals", rich_help_panel=KNOWLEDGE)(as_caller(goals))
app.command("prompt", rich_help_panel=KNOWLEDGE)(as_caller(prompt))
