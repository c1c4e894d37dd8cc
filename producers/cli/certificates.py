"""What do two certificates of one log have in common? The part of `kledger verify` that reads files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from kledger.contract.errors import InvalidPayload
from producers.cli.screen import facts, plain, table, words
from producers.cli.session import Answer


def compared_certificates(files: tuple[Path, Path]) -> Answer:
    """What two certificates have in common, for `kledger verify --certificates A B`."""
    from ledger.integrity.certificate import compare_certificates

    told = compare_certificates(read_document(files[0]), read_document(files[1]))
    positions = told["positions"]
    log = "the same" if told["same_log"] else "DIFFERENT"
    if not told["same_position"]:
        log = (
            f"at position {positions['a']:,} and at {positions['b']:,}: replay both --to the same one and compare those"
        )
    shown: list[RenderableType] = [
        facts(
            ("state", _equal(told["equal"]) if told["same_position"] else words("not comparable", "bold red")),
            ("log", log),
            ("position", f"{positions['a']:,}"),
            *(("fault", fault) for fault in told["faults"]),
            *(("program differs in", name) for name in told["program_differs"]),
            ("signed by", f"{told['keys']['a']} and {told['keys']['b']}"),
        )
    ]
    if told["views"]:
        rows = table("view", "rows in A", "rows in B", "", right=("rows in A", "rows in B"))
        for view in told["views"]:
            counts = [f"{one['rows']:,}" if one else "none" for one in (view["a"], view["b"])]
            rows.add_row(plain(view["view"]), *counts, _equal(view["equal"]))
        shown.append(rows)
    return Answer(told, Group(*shown), ok=bool(told["equal"]))


def _equal(equal: bool) -> RenderableType:
    return words("equal", "green") if equal else words("DIFFERENT", "bold red")


def read_document(file: Path) -> Any:
    """A file of JSON. Raises InvalidPayload."""
    import orjson

    try:
        return orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidPayload(f"{file} cannot be read as JSON: {error}", errors=[]) from error
