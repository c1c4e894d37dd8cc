"""`kledger memory held`, `release`, `drop`: what was said again although a person had retired or corrected it."""

from __future__ import annotations

from typing import Annotated

import typer

from kledger.contract.words import HeldStatus
from producers.cli import reading
from producers.cli.answer import Answer, listed
from producers.cli.screen import Rows, plain, short_time, snippet, table, words
from producers.cli.session import Session

HeldId = Annotated[str, typer.Argument(metavar="ID", help="Of the held statement, as kledger memory held shows it.")]
_ERASED = "(erased with the person it belonged to)"


def held(
    session: Session,
    status: Annotated[HeldStatus, typer.Option(help="Which ones.")] = "held",
    limit: reading.Limit = 20,
    offset: reading.Offset = 0,
) -> Answer:
    """What imports, extractions and documents said again although a person had retired or corrected it.

    It is not saved until somebody releases it.

    Example: kledger memory held --user ann
    """
    page = session.ledger.held_statements(status=status, limit=limit, offset=offset)
    wide = table("id", "whose", "when", "what", "said before by", "why it was given up", whole=("id",))
    narrow = []
    for each in page["results"]:
        what = _ERASED if each["content"] is None else each["content"]
        why = ": ".join(filter(None, (each["cause"], each["reason"])))
        when = short_time(each["held_at"])
        before = plain(each["item_id"])
        wide.add_row(plain(each["id"]), plain(each["owner"]), when, snippet(what, 80), before, snippet(why, 60))
        told = "  ".join((plain(each["id"]), plain(each["owner"]), when))
        narrow.append((words(told, "bold"), words(what), words(f"{before}  {plain(why)}")))
    return listed(page, Rows(wide, narrow), f"nothing is {status}")


def release(session: Session, held_id: HeldId, reason: reading.Reason = None) -> Answer:
    """Save a held statement as it was stated, in its owner's name.

    Example: kledger memory release held-0123456789abcdef0123 --reason "it holds again" --user ann
    """
    decided = session.ledger.release_statement(held_id, reason=reason)
    saved = plain(decided["knowledge_id"] or "")
    return Answer(decided, f"released {plain(decided['id'])}: saved as {saved}, at position {decided['position']}")


def drop(session: Session, held_id: HeldId, reason: reading.Reason = None) -> Answer:
    """Do not save a held statement. Said again, it is not held once more.

    Example: kledger memory drop held-0123456789abcdef0123 --reason "still wrong" --user ann
    """
    decided = session.ledger.drop_statement(held_id, reason=reason)
    return Answer(decided, f"dropped {plain(decided['id'])} at position {decided['position']}")
