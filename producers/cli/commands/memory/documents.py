"""`kledger ingest` and `kledger document …`: documents whose chunks are items."""

from __future__ import annotations

import hashlib
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
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.progress import SEARCHABLE_WITHIN, Wait, bar, until_searchable
from producers.cli.screen import counted, facts, plain, snippet, table, words
from producers.cli.session import Session

SHOWN_SKIPPED = 20

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
    content_type: Annotated[
        str | None, typer.Option(help="What one file is, where its name does not say it: text, markdown, html, …")
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
    _require_known(content_type)
    skipped: list[dict[str, str]] = []
    files = list(dict.fromkeys(_files(paths, skipped)))
    skipped = [*{each["id"]: each for each in skipped}.values()]  # a path may be given twice
    if not files:
        left = "; left out: " + ", ".join(f"{each['id']} ({each['reason']})" for each in skipped[:5]) if skipped else ""
        more = f", and {len(skipped) - 5} more" if len(skipped) > 5 else ""
        raise typer.BadParameter(
            f"there is no file that is read: text, Markdown, HTML, PDF, Word{left}{more}", param_hint="FILE|DIR…"
        )
    for option, value in (("--title", title), ("--from-url", from_url), ("--content-type", content_type)):
        if value and len(files) > 1:
            raise typer.BadParameter("give it with one file", param_hint=option)
    done: list[dict[str, Any]] = []
    with bar("ingest", len(files)) as shown:
        for number, (path, name) in enumerate(files, 1):
            stated = {
                **{"title": title, "url": from_url, "content_type": content_type},
                **{"scopes": reading.several(scopes), "owner": owner},
            }
            done.append(_ingested(session, path, f"{under.strip('/')}/{name}" if under else name, stated))
            shown.moved(number, len(files))
        answer: dict[str, Any] = {
            "documents": done,
            **{name: sum(each.get(name, 0) for each in done) for name in ("saved", "held", "unchanged", "retired")},
            "refused": sum("error" in each for each in done),
            "skipped": skipped,
        }
        answer |= until_searchable(session.ledger, wait, shown)
        session.settled = True
    return _told(answer)


def _require_known(content_type: str | None) -> None:
    """Raise typer.BadParameter for a type that is not read."""
    from kledger.contract.documents import MEDIA_TYPES  # it loads pydantic, which --help does without

    known = [*MEDIA_TYPES, *MEDIA_TYPES.values()]
    if content_type is not None and content_type.partition(";")[0].strip().lower() not in known:
        raise typer.BadParameter(
            f"{content_type!r} is not read: write one of {', '.join(known)}", param_hint="--content-type"
        )


def _files(paths: list[Path], skipped: list[dict[str, str]]) -> Iterator[tuple[Path, str]]:
    """(file, id) of each file; of directories those that are read, hidden ones left out. Raises typer.BadParameter.

    What is empty, or in a directory a link or of no type that is read, is added to `skipped` with the reason.
    """
    for path in paths:
        try:
            about = path.stat()
        except OSError as error:
            raise typer.BadParameter(f"{path} cannot be read: {error.strerror}", param_hint="FILE|DIR…") from error
        if stat.S_ISDIR(about.st_mode):
            found = [(each, name, _why_skipped(each)) for each, name in _inside(path)]
        else:
            found = [(path, path.name, "empty" if stat.S_ISREG(about.st_mode) and not about.st_size else None)]
        for file, name, reason in found:
            if reason is None:
                yield file, name
            else:
                skipped.append({"id": name, "reason": reason})


def _inside(directory: Path) -> Iterator[tuple[Path, str]]:
    """What is in a directory, at any depth, and not hidden; with its id."""
    top = directory.resolve().name
    for path in sorted(directory.rglob("*")):
        inner = path.relative_to(directory)
        hidden = any(part.startswith(".") for part in inner.parts)
        if not hidden and (path.is_symlink() or not path.is_dir()):
            yield path, f"{top}/{inner.as_posix()}"


def _why_skipped(file: Path) -> str | None:
    """Why something in a directory is not read; None where it is."""
    from kledger.contract.documents import ENDINGS

    if file.is_symlink():  # it could lead to any file of the reader's, which would then be sent to the node
        return "a link: name the file itself"
    try:
        about = file.stat()
    except OSError as error:
        return error.strerror or "unreadable"
    if not stat.S_ISREG(about.st_mode) or file.suffix.lower() not in ENDINGS:
        return "not a type that is read"
    return None if about.st_size else "empty"


def _ingested(session: Session, path: Path, document_id: str, stated: dict[str, Any]) -> dict[str, Any]:
    """The answer about one file, or its `error`. Raises where the node is not there to ask further."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return {"id": document_id, "error": {"code": "unreadable_file", "message": f"{path}: {error.strerror}"}}
    try:
        done: Any = session.ledger.documents.ingest(_fitting(document_id), content=content, name=path.name, **stated)
    except (NodeUnreachable, BrokerUnavailable):
        raise
    except LedgerError as error:
        from kledger.client.slips.own_names import retold  # for what is refused alone

        message = retold(error, lambda field: "--content-type" if field == "content_type" else field)
        return {"id": document_id, "error": advised_row({"code": error.code, "message": message})}
    return dict(done)


def _fitting(document_id: str) -> str:
    """The id, or as much of it as an id may be long, made unique by its hash: cut alone, two files would be one."""
    from kledger.contract.documents import LONGEST_ID

    if len(document_id) <= LONGEST_ID:
        return document_id
    ending = f"~{hashlib.sha256(document_id.encode(errors='surrogateescape')).hexdigest()[:32]}"
    return document_id[: LONGEST_ID - len(ending)] + ending


def _told(answer: dict[str, Any]) -> Answer:
    rows = table("document", "saved", "unchanged", "retired", "", right=("saved", "unchanged", "retired"))
    for each in answer["documents"]:
        counts = ["", "", ""] if "error" in each else [str(each[name]) for name in ("saved", "unchanged", "retired")]
        rows.add_row(plain(each["id"]), *counts, plain(each["error"]["message"]) if "error" in each else "")
    for each in answer["skipped"][:SHOWN_SKIPPED]:
        rows.add_row(plain(each["id"]), "", "", "", f"left out: {plain(each['reason'])}")
    read, saved = len(answer["documents"]) - answer["refused"], answer["saved"]
    said = f"{counted(read, 'document')}: {counted(saved, 'chunk')} saved, {answer['unchanged']} unchanged, "
    said += f"{answer['retired']} retired"
    if answer["held"]:
        said += f"; {answer['held']} held, as a person had retired or corrected them: see kledger memory held"
    if answer["refused"]:
        said += f"; {answer['refused']} refused"
    if answer["skipped"]:
        more = f" ({SHOWN_SKIPPED} of them are named: --json has them all)"
        said += f"; {counted(len(answer['skipped']), 'file')} left out"
        said += more if len(answer["skipped"]) > SHOWN_SKIPPED else ""
    if not answer["searchable"]:
        said += f"; searches have position {answer['searchable_to']}, the rest follows"
    return Answer(answer, Group(rows, said), ok=not answer["refused"])


def list_documents(
    session: Session,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 10,
    offset: reading.Offset = 0,
    status: Annotated[DocumentFilter, typer.Option(help="Which ones.")] = "active",
) -> Answer:
    """The documents that you may see, newest first.

    Example: kledger document list --project ledger
    """
    found = session.ledger.documents.list(limit=limit, offset=offset, status=status)
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
