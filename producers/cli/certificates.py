"""What is told of signed documents that are files: two certificates that `kledger verify` compares, and a proof or a
receipt that `kledger check-proof` checks: who signed it, what it says, and what is sealed in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from kledger.contract.errors import InvalidPayload
from kledger.contract.seal_mark import MARK
from producers.cli.answer import Answer
from producers.cli.screen import counted, equality, exact, facts, plain, short_time, table, words

if TYPE_CHECKING:  # their imports take a good part of the time of `kledger --help`
    from ledger.integrity.proof import Checked
    from ledger.integrity.receipt import CheckedReceipt

_SEALED = "[sealed]"


def compared_certificates(files: tuple[Path, Path]) -> Answer:
    """Whether two certificates attest the same state, for `kledger verify --certificates A B`."""
    from ledger.integrity.certificate import compare_certificates

    comparison = compare_certificates(read_document(files[0]), read_document(files[1]))
    positions = comparison["positions"]
    log = "the same" if comparison["same_log"] else "DIFFERENT"
    if not comparison["same_position"]:
        log = (
            f"at position {positions['a']:,} and at {positions['b']:,}: replay both --to the same one and compare those"
        )
    shown: list[RenderableType] = [
        facts(
            (
                "state",
                equality(comparison["equal"]) if comparison["same_position"] else words("not comparable", "bold red"),
            ),
            ("log", log),
            ("position", f"{positions['a']:,}"),
            *(("fault", fault) for fault in comparison["faults"]),
            *(("program differs in", name) for name in comparison["program_differs"]),
            ("signed by", f"{comparison['keys']['a']} and {comparison['keys']['b']}"),
        )
    ]
    if comparison["views"]:
        rows = table("view", "rows in A", "rows in B", "", right=("rows in A", "rows in B"))
        for view in comparison["views"]:
            counts = [f"{one['rows']:,}" if one else "none" for one in (view["a"], view["b"])]
            rows.add_row(plain(view["view"]), *counts, equality(view["equal"]))
        shown.append(rows)
    return Answer(comparison, Group(*shown), ok=bool(comparison["equal"]))


def read_document(file: Path) -> Any:
    """A file of JSON. Raises InvalidPayload."""
    import orjson

    try:
        return orjson.loads(file.read_bytes())
    except OSError as error:
        raise InvalidPayload(f"{file} cannot be read: {error.strerror}", errors=[]) from error
    except ValueError as error:
        raise InvalidPayload(f"{file} is not JSON: {error}", errors=[]) from error


def told_proof(checked: Checked) -> Answer:
    document = checked.to_json()
    rows = table("position", "event", "by", "when", "", right=("position",))
    for one in document["events"]:
        labels = [plain(one.get(name) or "?") for name in ("type", "actor")]
        verdict = words("proved", "green") if one["fault"] is None else words(one["fault"], "bold red")
        rows.add_row(f"{one['position']:,}", *labels, short_time(one.get("time") or "?"), verdict)
    shown = facts(
        ("proof", _verdict(checked.holds)),
        *(("because", fault) for fault in checked.faults),
        ("about", " ".join(f"{name}={value}" for name, value in sorted(checked.about.items()) if name != "positions")),
        (
            "signed",
            f"log of {counted(checked.checkpoint.position, 'event')} at {short_time(document['checkpoint']['time'])}",
        ),
        ("key", f"{checked.key.id}, {_origin(checked.trusted)}"),
        *_sealed(document["events"]),
    )
    says = [exact(f"{one['position']:,} says {_said(one['data'])}") for one in document["events"] if "data" in one]
    return Answer(document, Group(shown, rows, *says), ok=checked.holds)


def told_receipt(checked: CheckedReceipt) -> Answer:
    import orjson

    shown = facts(
        ("receipt", _verdict(checked.holds)),
        *(("because", fault) for fault in checked.faults),
        *([] if checked.key is None else [("signed by", f"{checked.key.id}, {_origin(checked.trusted)}")]),
    )
    says = exact(orjson.dumps(checked.receipt, option=orjson.OPT_INDENT_2).decode())
    return Answer(checked.to_json(), Group(shown, says), ok=checked.holds)


def _verdict(holds: bool) -> Text:
    return words("holds", "green") if holds else words("DOES NOT HOLD", "bold red")


def _origin(given: bool) -> str:
    return "given" if given else "taken from the file itself: compare it with the node's (kledger key show)"


def _sealed(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    whose = sorted({plain(name) for one in events for name in one.get("sealed_for", ())})
    if not whose:
        return []
    return [("sealed", f"words of {', '.join(whose)}: a proof shows that they were said, and not what they are")]


def _said(data: object) -> str:
    """What an event says, as JSON; in the place of what is sealed stands that it is."""
    import orjson

    return orjson.dumps(_without_ciphertext(data)).decode()


def _without_ciphertext(value: object) -> object:
    if isinstance(value, dict):
        if list(value) == ["$sealed"]:
            return _SEALED
        return {name: _without_ciphertext(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_ciphertext(inner) for inner in value]
    return _SEALED if isinstance(value, str) and value.startswith(MARK) else value
