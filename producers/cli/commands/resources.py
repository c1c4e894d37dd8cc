"""`kledger resource …`: code, credentials and cookies that items refer to, and their secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from kledger.contract.words import ResourceFilter
from producers.cli import reading
from producers.cli.answer import Answer, listed
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.screen import Rows, earlier, facts, plain, short_time, snippet, table, verbatim, words
from producers.cli.session import Session

ResourceId = Annotated[str, typer.Argument(metavar="ID", help="Such as credentials/website_a.", show_default=False)]
HIDDEN = "[there is one: show it with --reveal]"


def save(
    session: Session,
    resource_id: ResourceId,
    title: Annotated[str, typer.Option(help="What it is.", show_default=False)],
    body: Annotated[str, typer.Option(help="What everybody who sees it may read; - for stdin.")] = "",
    body_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The body out of a file; - is stdin.", allow_dash=True)
    ] = None,
    secure_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The secret out of a file; - is stdin. Never an argument: other processes can read those.",
            allow_dash=True,
        ),
    ] = None,
    content_type: Annotated[str, typer.Option("--type", help="code, credential, cookie, text, …")] = "text",
    meta: Annotated[
        reading.Many, typer.Option("--meta", help="As name=value, such as expires_at=2026-03-07T10:00:00Z.")
    ] = None,
    scopes: reading.Scopes = None,
    owner: Annotated[str | None, typer.Option(help="The owner, such as agent:scribe.")] = None,
    share_with: Annotated[reading.Many, typer.Option(help="Who may read the secret, such as team:web.")] = None,
    expected_version: Annotated[int | None, typer.Option(min=1, help="Refuse when it is at another version.")] = None,
    trace: reading.Trace = None,
    message: reading.Message = None,
) -> Answer:
    """Save a resource, whole: a new one, or the next version of your own.

    Example: kledger resource save credentials/website_a --title "Test account" --type credential --secure-file -
    """
    if body and body_file is not None:
        raise typer.BadParameter("give --body or --body-file, not both", param_hint="--body-file")
    if secure_file == Path("-") and (body == "-" or body_file == Path("-")):
        raise typer.BadParameter(
            "stdin is read once: take the body or the secret from a file", param_hint="--body-file"
        )
    saved = session.ledger.within(trace_id=trace, message_id=message).resources.save(
        resource_id,
        title,
        body=reading.text(body) if body_file is None else reading.text_in(body_file, "--body-file"),
        secure_body=None if secure_file is None else reading.text_in(secure_file, "--secure-file").rstrip("\r\n"),
        content_type=content_type,
        metadata=reading.metadata(meta),
        scopes=reading.several(scopes),
        owner=owner,
        shared_with=reading.several(share_with),
        expected_version=expected_version,
    )
    at = f"version {saved['version']} at position {saved['position']}"
    if saved["duplicate"]:
        return Answer(saved, f"unchanged: {plain(saved['id'])} says this already, {at}")
    return Answer(saved, f"{plain(saved['id'])} saved, {at}")


def show(
    session: Session,
    resource_id: ResourceId,
    reveal: Annotated[bool, typer.Option("--reveal", help="Print the secret, if it is for you.")] = False,
    include_expired: Annotated[
        bool, typer.Option("--include-expired", help="As the owner, also a secret that is no longer valid.")
    ] = False,
    as_of: reading.AsOf = None,
) -> Answer:
    """Show one resource; its secret only with --reveal.

    Example: kledger resource show credentials/website_a --reveal --user ann
    """
    document: dict[str, Any] = dict(
        session.ledger.resources.get(resource_id, as_of=reading.moment(as_of), include_expired=include_expired)
    )
    if document["secure_body"] is not None and not reveal:
        document["secure_body"] = HIDDEN
    secret = f"({document['secure']})" if document["secure_body"] is None else plain(document["secure_body"])
    shown = facts(
        ("id", document["id"]),
        ("title", words(document["title"], "bold")),
        ("type", document["content_type"]),
        ("status", f"{document['status']}, {'valid' if document['valid'] else 'not valid'}{_expired(document)}"),
        ("version", f"{document['version']}, at position {document['position']}"),
        ("owner", document["owner"]),
        ("scopes", f"{', '.join(document['scopes'])} ({document['visibility']})"),
        ("shared with", ", ".join(document["shared_with"]) or "nobody"),
        ("metadata", ", ".join(f"{name}={value}" for name, value in document["metadata"].items()) or "none"),
        ("updated", document["updated_at"]),
        ("secret", secret),
    )
    return Answer(document, Group(shown, "", verbatim(document["body"])))


def list_resources(
    session: Session,
    content_type: Annotated[str | None, typer.Option("--type", help="Only these, such as cookie.")] = None,
    limit: reading.Limit = 10,
    offset: reading.Offset = 0,
    status: Annotated[ResourceFilter, typer.Option(help="Which ones.")] = "active",
    as_of: reading.AsOf = None,
) -> Answer:
    """List resources that the caller may see, without their secrets.

    Example: kledger resource list --type credential --user ann
    """
    page = session.ledger.resources.list(
        content_type=content_type, limit=limit, offset=offset, status=status, as_of=reading.moment(as_of)
    )
    wide = table("id", "title", "type", "owner", "secret", "status", "version", right=("version",), whole=("id",))
    narrow = []
    for each in page["results"]:
        names = plain(each["content_type"]), plain(each["owner"])
        state = plain(f"{each['status']}{_expired(each)}")
        secret = "yes" if each["has_secure"] else "no"
        wide.add_row(plain(each["id"]), snippet(each["title"], 80), *names, secret, state, str(each["version"]))
        about = f"  {snippet(each['title'], 80)}  {', '.join((*names, state))}"
        narrow.append([Text.assemble((plain(each["id"]), "cyan"), about)])
    return listed(page, Rows(wide, narrow), "no resource to list")


def history(session: Session, resource_id: ResourceId, before: reading.BeforeVersion = None) -> Answer:
    """Every version of a resource, oldest first, without its secret; the latest where all do not fit.

    Example: kledger resource history credentials/website_a --user ann
    """
    life = session.ledger.resources.history(resource_id, before=before)
    rows = table("version", "position", "time", "change", "by", "title", right=("version", "position"))
    for version in life["versions"]:
        moment, by = short_time(version["valid_from_time"]), plain(version["actor"])
        numbers = str(version["version"]), str(version["valid_from"])
        rows.add_row(*numbers, moment, plain(version["change"]), by, snippet(version["title"], 80))
    return Answer(life, Group(words(life["id"], "bold"), rows, *earlier(life.get("next"))))


def retire(
    session: Session,
    resource_id: ResourceId,
    reason: reading.Reason = None,
    destroy_secret: Annotated[
        bool, typer.Option("--destroy-secret", help="Destroy its key: no version's secret can be read any more.")
    ] = False,
) -> Answer:
    """Take a resource out of use; it stays readable with its history. Only its owner may.

    Example: kledger resource retire credentials/website_a --destroy-secret --user ann
    """
    moved = session.ledger.resources.retire(resource_id, reason=reason, destroy_secret=destroy_secret)
    also = "; its secret is destroyed" if destroy_secret else ""
    return Answer(moved, f"retired {plain(moved['id'])} at position {moved['position']}{also}")


def restore(session: Session, resource_id: ResourceId, reason: reading.Reason = None) -> Answer:
    """Bring a retired resource back. Only its owner may.

    Example: kledger resource restore credentials/website_a --user ann
    """
    moved = session.ledger.resources.restore(resource_id, reason=reason)
    return Answer(moved, f"restored {plain(moved['id'])} at position {moved['position']}")


def _expired(row: Any) -> str:
    return ", expired" if row["expired"] else ""


app = typer.Typer()

resource = typer.Typer(no_args_is_help=True, help="Code, credentials and cookies that knowledge refers to.")
resource.command("save")(as_caller(save))
resource.command("show")(as_caller(show))
resource.command("list")(as_caller(list_resources))
resource.command("history")(as_caller(history))
resource.command("retire")(as_caller(retire))
resource.command("restore")(as_caller(restore))
app.add_typer(resource, name="resource", rich_help_panel=KNOWLEDGE)
