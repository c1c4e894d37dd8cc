"""`kledger ingest` and `kledger document …`: documents whose chunks are items."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group

from kledger.contract.errors import BrokerUnavailable, LedgerError, NodeUnreachable
from kledger.contract.words import DocumentFilter
from producers.cli import reading
from producers.cli.advice import advised_row
from producers.cli.progress import SEARCHABLE_WITHIN, Wait, bar, until_searchable
from producers.cli.screen import counted, facts, plain, snippet, table, words
from producers.cli.session import KNOWLEDGE, Answer, Session, as_caller

DocumentId = Annotated[str, typer.Argument(metavar="ID", help="Such as handbook/setup.md.", show_default=False)]


def ingest(
    session: Session,
    paths: Annotated[
        list[Path], typer.Argument(metavar="FILE|DIR…", help="Files, and directories of them.", show_default=False)
    ],
    under: Annotated[str, typer.Option(metavar="PATH", help="Put this before every id: PATH/NAME.")] = "",
    title: Annotated[str | None, typer.Option(help="The title, of one file.")] = None,
    from_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where one file is from; nothing fetches it.")
    ] = None,
    scopes: reading.Scopes = None,
    owner: Annotated[str | None, typer.Option(help="The owner, such as team:web.")] = None,
    wait: Wait = SEARCHABLE_WITHIN,
) -> Answer:
    """Ingest Markdown, text, HTML, PDF and Word files: what they say becomes items; again, and only changes are kept.

    The id of a file is its name, in a directory its path from there with the name of the directory before it. It ends
    when every search finds what was ingested, or after --wait seconds with how far that is.

    Example: kledger ingest handbook --scope project:ledger
    """
    files = list(dict.fromkeys(_files(paths)))
    if not files:
        raise typer.BadParameter(
            "there is no file that is read: text, Markdown, HTML, PDF, Word", param_hint="FILE|DIR…"
        )
    if len(files) > 1 and (title or from_url):
        raise typer.BadParameter("give it with one file", param_hint="--title" if title else "--from-url")
    done: list[dict[str, Any]] = []
    with bar("ingest", len(files)) as shown:
        for number, (path, name) in enumerate(files, 1):
            stated = {"title": title, "url": from_url, "scopes": reading.several(scopes), "owner": owner}
            done.append(_ingested(session, path, f"{under.strip('/')}/{name}" if under else name, stated))
            shown.moved(number, len(files))
        answer: dict[str, Any] = {
            "documents": done,
            **{name: sum(each.get(name, 0) for each in done) for name in ("saved", "held", "unchanged", "retired")},
            "refused": sum("error" in each for each in done),
        }
        answer |= until_searchable(session.ledger, wait, shown)
        session.settled = True
    return _told(answer)


def _files(paths: list[Path]) -> Iterator[tuple[Path, str]]:
    """(file, id) of each file; of directories those that are read, hidden ones left out. Raises typer.BadParameter."""
    from kledger.contract.documents import ENDINGS  # it loads pydantic, which --help does without

    for path in paths:
        try:
            is_file = not stat.S_ISDIR(path.stat().st_mode)
        except OSError as error:
            raise typer.BadParameter(f"{path} cannot be read: {error.strerror}", param_hint="FILE|DIR…") from error
        if is_file:
            yield path, path.name
            continue
        top = path.resolve().name
        for each in sorted(path.rglob("*")):
            inner = each.relative_to(path)
            if each.suffix.lower() in ENDINGS and each.is_file() and not any(p.startswith(".") for p in inner.parts):
                yield each, f"{top}/{inner.as_posix()}"


def _ingested(session: Session, path: Path, document_id: str, stated: dict[str, Any]) -> dict[str, Any]:
    """The answer about one file, or its `error`. Raises where the node is not there to ask further."""
    from kledger.contract.documents import LONGEST_ID

    try:
        content = path.read_bytes()
    except OSError as error:
        return {"id": document_id, "error": {"code": "unreadable_file", "message": f"{path}: {error.strerror}"}}
    try:
        done: Any = session.ledger.documents.ingest(document_id[:LONGEST_ID], content=content, name=path.name, **stated)
    except (NodeUnreachable, BrokerUnavailable):
        raise
    except LedgerError as error:
        return {"id": document_id, "error": advised_row({"code": error.code, "message": error.message})}
    return dict(done)


def _told(answer: dict[str, Any]) -> Answer:
    rows = table("document", "saved", "unchanged", "retired", "", right=("saved", "unchanged", "retired"))
    for each in answer["documents"]:
        counts = ["", "", ""] if "error" in each else [str(each[name]) for name in ("saved", "unchanged", "retired")]
        rows.add_row(plain(each["id"]), *counts, plain(each["error"]["message"]) if "error" in each else "")
    said = (
        f"{counted(len(answer['documents']) - answer['refused'], 'document')}: {answer['saved']} chunks saved, "
        f"{answer['unchanged']} unchanged, {answer['retired']} retired"
    )
    if answer["held"]:
        said += f"; {answer['held']} held, as a person had retired or corrected them: see kledger memory held"
    if answer["refused"]:
        said += f"; {answer['refused']} refused"
    if not answer["searchable"]:
        said += f"; searches have position {answer['searchable_to']}, the rest follows"
    return Answer(answer, Group(rows, said), ok=not answer["refused"])


def list_documents(
    session: Session,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 10,
    offset: Annotated[int, typer.Option(min=0, help="How many to skip.")] = 0,
    status: Annotated[str, typer.Option(help="active, removed or all.")] = "active",
) -> Answer:
    """The documents that you may see, newest first.

    Example: kledger document list --project ledger
    """
    wanted: Any = status  # the node says which words it takes
    chosen: DocumentFilter = wanted
    found = session.ledger.documents.list(limit=limit, offset=offset, status=chosen)
    rows = table("id", "title", "type", "characters", "owner", right=("characters",), whole=("id",))
    for each in found["results"]:
        kind = each["content_type"].rpartition("/")[2].rpartition(".")[2]
        rows.add_row(
            plain(each["id"]), snippet(each["title"], 60), plain(kind), f"{each['characters']:,}", plain(each["owner"])
        )
    return Answer(found, Group(rows, f"{found['count']} of {found['total']}"))


def show(
    session: Session,
    document_id: DocumentId,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many of its chunks.")] = 100,
    offset: Annotated[int, typer.Option(min=0, help="How many of its chunks to skip.")] = 0,
) -> Answer:
    """Show a document: its sections, and its chunks in their order.

    Example: kledger document show handbook/setup.md
    """
    found = session.ledger.documents.get(document_id, limit=limit, offset=offset)
    about = facts(
        ("id", found["id"]),
        ("title", words(found["title"], "bold")),
        ("type", found["content_type"]),
        ("url", found["url"] or "none"),
        ("status", found["status"]),
        ("version", f"{found['version']}, at position {found['position']}"),
        ("owner", found["owner"]),
        ("scopes", f"{', '.join(found['scopes'])} ({found['visibility']})"),
        ("original", ", ".join(found["resource_ids"]) or "none"),
        ("summary", found["summary"]),
    )
    rows = table("section", "chunk", "says", whole=("chunk",))
    for chunk in found["chunks"]:
        heading = found["sections"][chunk["section"]]["heading"]
        rows.add_row(snippet(heading, 40), plain(chunk["id"]), snippet(chunk["content"], 100))
    return Answer(found, Group(about, "", rows, f"{found['count']} of {found['total']} chunks"))


def delete(session: Session, document_id: DocumentId, reason: reading.Reason = None) -> Answer:
    """Remove a document with its chunks; its history stays. Only its owner may.

    Example: kledger document delete handbook/setup.md --reason "we use another database now"
    """
    moved = session.ledger.documents.delete(document_id, reason=reason)
    return Answer(moved, f"removed {plain(moved['id'])} at position {moved['position']}")


app = typer.Typer()
app.command("ingest", rich_help_panel=KNOWLEDGE)(as_caller(ingest))

document = typer.Typer(no_args_is_help=True, help="Documents, each of whose chunks is an item.")
document.command("list")(as_caller(list_documents))
document.command("show")(as_caller(show))
document.command("delete")(as_caller(delete))
app.add_typer(document, name="document", rich_help_panel=KNOWLEDGE)
