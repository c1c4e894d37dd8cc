"""`kledger session …`: what is said in a session, and its end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import uuid4

import typer
from rich.console import Group

from kledger.contract.words import SessionFilter
from producers.cli import reading
from producers.cli.answer import Answer, listed
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.screen import counted, facts, plain, short_time, snippet, table, verbatim, words
from producers.cli.session import Session
from producers.cli.usage.errors import one_of

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The id of the session.", show_default=False)]
Owner = Annotated[str | None, typer.Option(help="As the operator: whose session, such as agent:coder.")]
Role = Literal["system", "developer", "user", "assistant", "tool"]


@one_of("CONTENT or --file", "content", "file")
def append(
    session: Session,
    session_id: SessionId,
    content: Annotated[str | None, typer.Argument(help="What is said; - for stdin.")] = None,
    role: Annotated[Role, typer.Option(help="Who says it.")] = "user",
    message_id: Annotated[str | None, typer.Option("--id", help="The message's id; else a random one.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Messages instead, one JSON object a line; - is stdin.", allow_dash=True),
    ] = None,
    trace: reading.Trace = None,
) -> Answer:
    """Append a message to a session, or many; the session opens with its first one.

    Example: kledger session append sess-1 "How do I roll back?" --user ann
    """
    if (file is None) == (content is None):
        raise typer.BadParameter("give a text or --file, and not both", param_hint="CONTENT")
    if content == "":  # as a variable of a script that nobody has set
        raise typer.BadParameter("the text is empty: say what was said", param_hint="CONTENT")
    if file is not None:
        messages = _messages_in(file)
    else:
        messages = [
            {
                "id": uuid4().hex if message_id is None else message_id,
                "role": role,
                "content": reading.text(content or ""),
            }
        ]
    kept = session.ledger.within(trace_id=trace).session(session_id).append(messages)
    known = f", {counted(kept['duplicates'], 'message')} known before" if kept["duplicates"] else ""
    return Answer(
        kept,
        f"{counted(kept['appended'], 'message')} appended{known}; {plain(kept['session_id'])} has {kept['count']:,}",
    )


def messages(
    session: Session,
    session_id: SessionId,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Those after the message with this id.")] = None,
    limit: reading.Limit = 100,
    owner: Owner = None,
) -> Answer:
    """Print the messages of a session, in order.

    Example: kledger session messages sess-1 --user ann
    """
    page = session.ledger.session(session_id).messages(after=after, limit=limit, owner=owner)
    summary = f"{page['count']} of {page['total']:,}"
    if page["next"] is not None:
        summary += f"; go on with --after {plain(page['next'])}"
    return Answer(page, Group(*map(_said, page["messages"]), summary))


def context(
    session: Session,
    session_id: SessionId,
    max_tokens: Annotated[int, typer.Option(min=200, help="Tokens of the model's window.")] = 128_000,
    model: Annotated[str | None, typer.Option(help="The model, by whose tokens is counted.")] = None,
    owner: Owner = None,
) -> Answer:
    """Print what of a session fits a model's window.

    Example: kledger session context sess-1 --max-tokens 8000 --user ann
    """
    cut = session.ledger.session(session_id).context(max_tokens, model=model, owner=owner)
    parts: list[Any] = [_said(message) for message in cut["messages"]]
    if cut["overview"] is not None:
        parts.insert(0, verbatim(cut["overview"]["content"]))
    parts[:0] = [verbatim(summary["content"]) for summary in cut["summaries"]]
    left = "; ".join(f"{counted(each['messages'], 'message')} left out by {each['by']}" for each in cut["left_out"])
    summary = f"{cut['used']:,} of {cut['budget']:,} tokens ({cut['counter']}), level {cut['level']}"
    pending = [f"level {cut['pending']['level']} waits: {plain(cut['pending']['reason'])}"] if cut["pending"] else []
    return Answer(cut, Group(*parts, f"{summary}; {left}" if left else summary, *pending))


def expand(
    session: Session,
    session_id: SessionId,
    record_id: Annotated[str, typer.Argument(metavar="ID", help="Of a message or a summary.", show_default=False)],
    owner: Owner = None,
) -> Answer:
    """Print the words behind an id, whole: of a message, or of those that a summary stands for.

    Example: kledger session expand sess-1 msg-17 --user ann
    """
    found = session.ledger.session(session_id).expand(record_id, owner=owner)
    return Answer(found, Group(*map(_said, found["messages"])))


def knowledge(
    session: Session,
    session_id: SessionId,
    after: Annotated[str | None, typer.Option(metavar="ID", help="Of messages after the one with this id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Of at most so many messages.")] = 100,
    owner: Owner = None,
) -> Answer:
    """List the items that came of a session: of its messages, or of the session as a whole.

    Example: kledger session knowledge sess-1 --user ann
    """
    found = session.ledger.session(session_id).knowledge(after=after, limit=limit, owner=owner)
    rows = table("id", "about", "message", "saved", whole=("id",))
    for each in found["results"]:
        rows.add_row(
            plain(each["id"]), snippet(each["task"]), plain(each["message_id"] or ""), short_time(each["time"])
        )
    return Answer(found, rows if found["results"] else "nothing came of it that may be seen")


def said(
    session: Session,
    message_id: Annotated[str, typer.Argument(metavar="ID", help="Of the message.", show_default=False)],
    owner: Owner = None,
) -> Answer:
    """Print a message by its id, with the session in which it was said.

    Example: kledger session said msg-17 --user ann
    """
    found = session.ledger.said(message_id, owner=owner)
    parts = [
        Group(f"in {plain(each['session_id'])} of {plain(each['owner'])}", _said(each["message"]))
        for each in found["results"]
    ]
    return Answer(found, Group(*parts) if parts else "no session of yours has this message")


def scratchpad(
    session: Session,
    session_id: SessionId,
    patch: Annotated[
        str | None, typer.Option(metavar="JSON", help="What to change; null removes a field. - for stdin.")
    ] = None,
    owner: Owner = None,
) -> Answer:
    """Show where the work of a session stands, or note it as a merge patch.

    Example: kledger session scratchpad sess-1 --patch '{"current_step": "test it"}' --user ann
    """
    import orjson

    from kledger.contract.json_text import loads

    try:
        change = None if patch is None else loads(reading.text(patch))
    except ValueError as error:
        raise typer.BadParameter(f"is not JSON: {error}", param_hint="--patch") from error
    if change is not None and not isinstance(change, dict):
        raise typer.BadParameter("is not an object: write {…}", param_hint="--patch")
    noted = session.ledger.session(session_id).scratchpad(change, owner=owner)
    rows = [(name, plain(orjson.dumps(value).decode())) for name, value in noted["scratchpad"].items()]
    return Answer(noted, facts(*rows) if rows else "nothing is noted")


def close(session: Session, session_id: SessionId, owner: Owner = None) -> Answer:
    """Close a session; a further message opens it again.

    Example: kledger session close sess-1 --user ann
    """
    moved = session.ledger.session(session_id).close(owner=owner)
    return Answer(moved, f"closed {plain(moved['session_id'])} at position {moved['position']}")


def remove(session: Session, session_id: SessionId, owner: Owner = None) -> Answer:
    """Remove the words of a session for good; the log keeps that there was one.

    Example: kledger session remove sess-1 --user ann
    """
    moved = session.ledger.session(session_id).remove(owner=owner)
    return Answer(moved, f"removed {plain(moved['session_id'])} at position {moved['position']}")


def list_sessions(
    session: Session,
    status: Annotated[SessionFilter | None, typer.Option(help="Those that have words, or only these.")] = None,
    limit: reading.Limit = 20,
    offset: reading.Offset = 0,
    owner: Owner = None,
) -> Answer:
    """List the caller's sessions, the one that was opened or closed last first; the operator's are those of all.

    Example: kledger session list --user ann
    """
    page = session.ledger.sessions(status=status, limit=limit, offset=offset, owner=owner)
    rows = table("id", "owner", "status", "messages", "opened", "last message", right=("messages",), whole=("id",))
    for each in page["results"]:
        count = "" if each["messages"] is None else f"{each['messages']:,}"
        last = "" if each["last_at"] is None else short_time(each["last_at"])
        opened = short_time(each["opened_at"])
        rows.add_row(plain(each["session_id"]), plain(each["owner"]), each["status"], count, opened, last)
    return listed(page, rows, "no session to list")


def _said(message: Any) -> Group:
    calls = [f"  calls {snippet(_called(call))}" for call in message.get("tool_calls", ())]
    return Group(words(f"{message['role']} {message['id']}", "bold"), verbatim(message["content"]), *calls)


def _called(call: dict[str, Any]) -> str:
    """`read_log({"of": "api"})`, where a call states a name and arguments as models do; else the call as it is."""
    function = call["function"] if isinstance(call.get("function"), dict) else call
    arguments = next((function[each] for each in ("arguments", "input", "args") if each in function), "")
    return f"{function['name']}({plain(arguments)})" if isinstance(function.get("name"), str) else plain(call)


def _messages_in(file: Path) -> list[Any]:
    """The messages of a file of JSON lines."""
    from kledger.contract.json_text import loads

    lines = reading.text_in(file, "--file").split("\n")  # U+2028 may stand within a message
    try:
        return [loads(line) for line in lines if line.strip()]
    except ValueError as error:
        raise typer.BadParameter(f"{file} is not JSON, one object a line: {error}", param_hint="--file") from error


app = typer.Typer()

session = typer.Typer(no_args_is_help=True, help="What is said in a session, and what fits a model's window.")
session.command("append")(as_caller(append))
session.command("messages")(as_caller(messages))
session.command("context")(as_caller(context))
session.command("expand")(as_caller(expand))
session.command("knowledge")(as_caller(knowledge))
session.command("said")(as_caller(said))
session.command("scratchpad")(as_caller(scratchpad))
session.command("list")(as_caller(list_sessions))
session.command("close")(as_caller(close))
session.command("remove")(as_caller(remove))
app.add_typer(session, name="session", rich_help_panel=KNOWLEDGE)
