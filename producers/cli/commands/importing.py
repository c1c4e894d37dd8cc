"""`kledger import`: save the payloads of a JSON Lines file, and report each refused line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import orjson
import typer
from rich.console import Group

from kledger.contract.errors import BadJson, InvalidPayload, LedgerError
from kledger.contract.json_text import Unfit, loads
from producers.cli.advice import advised_row
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.progress import SEARCHABLE_WITHIN, Bar, Wait, bar, until_searchable
from producers.cli.screen import counted, plain, table
from producers.cli.session import Session
from producers.requests.chunks import Chunk, send
from producers.requests.encoding import BYTE_ORDER_MARK, not_utf8

if TYPE_CHECKING:
    from kledger import LedgerClient
    from kledger.answers.knowledge import SavedMany
    from producers.requests.chunks import Outcome

IN_FLIGHT = 2  # requests at a time: the node folds one chunk while the next is sent
SHOWN_ERRORS = 20
AGAIN = "import the same file again, what is there already is left as it is"
SAMPLE = Path(__file__).parents[2] / "sample" / "knowledge.jsonl"


def import_file(
    session: Session,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="One save payload a line; - for stdin.", show_default=False),
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Import the sample that ships with this.")] = False,
    wait: Wait = SEARCHABLE_WITHIN,
) -> Answer:
    """Save the payloads of a JSON Lines file; what is there already is left as it is.

    It ends when every search finds what was saved, or after --wait seconds with how far that is.

    Example: kledger import knowledge.jsonl
    """
    if sample == (file is not None):
        raise typer.BadParameter("give one FILE (or - for stdin), or --sample")
    began = time.monotonic()
    tally = Tally()
    name = str(SAMPLE) if file is None else file
    try:
        with _opened(name) as source, bar("import", _size(name)) as shown:
            _import(session.ledger, _chunks(source, tally), tally, shown)
            _require_lines(name, tally)
            document = tally.document(began)
            if tally.lines:
                document |= until_searchable(session.ledger, wait, shown)
            else:  # a node was not even asked
                document |= {"searchable": True, "searchable_to": 0}
            session.settled = True
    except LedgerError as error:
        if tally.saved:
            error.message += f" - at least {tally.saved_already()} saved before this; {AGAIN}"
        error.details |= tally.document(began)
        raise
    except KeyboardInterrupt:
        if tally.saved:
            sys.stderr.write(f"\nat least {tally.saved_already()} saved; {AGAIN}")
        raise
    return _answer(tally, document)


def _require_lines(name: str, tally: Tally) -> None:
    """Raise BadJson where no line holds a JSON object: then the file is something else, and nothing was sent."""
    if tally.lines and tally.unread == tally.lines:
        first = tally.errors[0]
        raise BadJson(
            f"{'standard input' if name == '-' else name} is not JSON Lines, line {first['line']} is "
            f"{first['message']}: write one save payload, a JSON object, on each line; nothing was saved"
        )


@dataclass
class Tally:
    """Counts and errors of the lines so far."""

    lines: int = 0
    unread: int = 0  # lines without a JSON object
    saved: int = 0
    unchanged: int = 0
    held: int = 0
    position: int = 0
    proposed: set[str] = field(default_factory=set)  # ids of the items that wait, each once however many lines say it
    errors: list[dict[str, Any]] = field(default_factory=list)

    @property
    def items(self) -> int:
        """The number of lines with an outcome."""
        return self.saved + self.unchanged + self.held + len(self.errors)

    def refuse(self, line: int, error: dict[str, Any]) -> None:
        """Record why a line was refused."""
        self.errors.append(advised_row({"line": line, "code": error.get("code"), "message": error.get("message")}))

    def count(self, chunk: Chunk, outcome: SavedMany | LedgerError) -> None:
        """Add the outcome of a chunk; a LedgerError is that of its only line."""
        if isinstance(outcome, LedgerError):
            self.refuse(chunk.lines[0], {"code": outcome.code, "message": outcome.message})
            return
        self.saved += outcome["saved"]
        self.unchanged += outcome["unchanged"]
        self.held += outcome.get("held", 0)  # an older node holds nothing
        self.position = max(self.position, outcome["position"])
        for one in outcome["results"]:
            if one.get("status") == "proposed" and one["id"] is not None:
                self.proposed.add(one["id"])
            if one["outcome"] == "refused":
                self.refuse(chunk.lines[one["index"]], dict(one["error"] or {}))

    def saved_already(self) -> str:
        """How many items were saved, with the verb."""
        return f"{counted(self.saved, 'item')} {'was' if self.saved == 1 else 'were'}"

    def document(self, began: float) -> dict[str, Any]:
        """The document for --json."""
        seconds = time.monotonic() - began
        return {
            "lines": self.lines,
            "saved": self.saved,
            "proposed": len(self.proposed),
            "unchanged": self.unchanged,
            "held": self.held,
            "refused": len(self.errors),
            "errors": sorted(self.errors, key=lambda error: int(error["line"])),
            "seconds": round(seconds, 3),
            "rate": round(self.items / seconds, 1),
            "position": self.position,
        }


def _opened(name: str) -> AbstractContextManager[BinaryIO]:
    if name == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise typer.BadParameter(f"{name} cannot be read: {error.strerror}") from error


def _size(name: str) -> int | None:
    """Bytes of the file; None for stdin."""
    return None if name == "-" else Path(name).stat().st_size


def _chunks(source: BinaryIO, tally: Tally) -> Iterator[Chunk]:
    """Read lines into chunks; a line that holds no JSON object is refused at once and stops nothing."""
    chunk = Chunk()
    end = 0
    for number, raw in enumerate(source, 1):
        end += len(raw)
        line = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
        if not line.strip():
            continue
        tally.lines += 1
        try:
            payload = loads(line)
        except Unfit as error:
            tally.refuse(number, {"code": InvalidPayload.code, "message": f"the payload does not fit: {error}"})
            continue
        except orjson.JSONDecodeError as error:
            tally.unread += 1
            # The reader of one line calls it line 1, which would be taken for that of the file.
            why = not_utf8(line) or f"{error.msg}, at character {error.pos + 1}"
            tally.refuse(number, {"code": BadJson.code, "message": f"not JSON: {why}"})
            continue
        if not isinstance(payload, dict):
            tally.unread += 1
            tally.refuse(number, {"code": InvalidPayload.code, "message": "no JSON object"})
            continue
        chunk.add(number, payload, len(line))
        chunk.end = end
        if chunk.full:
            yield chunk
            chunk = Chunk()
    if chunk.payloads:
        yield chunk


def _import(ledger: LedgerClient, chunks: Iterator[Chunk], tally: Tally, shown: Bar) -> None:
    """Send the chunks, a few at a time; the first error that is not of one payload ends it."""
    in_flight: set[Future[list[Outcome]]] = set()

    def land(at_most: int) -> None:
        nonlocal in_flight
        while len(in_flight) > at_most:
            done, in_flight = wait(in_flight, return_when=FIRST_COMPLETED)
            for sent in done:
                for chunk, outcome in sent.result():
                    tally.count(chunk, outcome)
                    shown.read(chunk.end)
                shown.at(tally.items)

    with ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="import") as pool:
        for chunk in chunks:
            land(IN_FLIGHT - 1)
            in_flight.add(pool.submit(send, ledger, chunk))
        land(0)


def proposed_hint(proposed: int) -> str:
    """What an import says of what it saved as proposals, which are out of recall until a coordinator approves them."""
    return f"; {proposed} proposed (kledger memory list --status proposed)" if proposed else ""


def held_hint(held: int) -> str:
    """What an import says of what it did not save, as a person had retired or corrected it."""
    return f"; {held} held (kledger memory held)" if held else ""


def _answer(tally: Tally, document: dict[str, Any]) -> Answer:
    counts = (
        f"{document['saved']} saved, {document['unchanged']} unchanged, {document['refused']} refused"
        f" of {document['lines']} in {document['seconds']:.1f} s ({document['rate']:,.0f} items/s),"
        f" at position {document['position']}"
    )
    counts += proposed_hint(document["proposed"]) + held_hint(document["held"])
    if not tally.lines:
        return Answer(document, "nothing to import: there is no line with a save payload")
    if not document["searchable"]:
        counts += f"; searches have position {document['searchable_to']}, the rest follows"
    if not tally.errors:
        return Answer(document, counts)
    rows = table("line", "code", "message", right=("line",))
    for error in document["errors"][:SHOWN_ERRORS]:
        rows.add_row(str(error["line"]), plain(error["code"]), plain(error["message"]))
    more = len(tally.errors) - SHOWN_ERRORS
    rest = [f"and {more} more: --json has them all"] if more > 0 else []
    return Answer(document, Group(counts, rows, *rest), ok=False)


app = typer.Typer()
app.command("import", rich_help_panel=KNOWLEDGE)(as_caller(import_file))
