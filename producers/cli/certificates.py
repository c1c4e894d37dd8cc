"""Comparison of two certificates: the part of `kledger verify` that reads files alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from kledger.contract.errors import InvalidPayload
from producers.cli.answer import Answer
from producers.cli.screen import equality, facts, plain, table, words


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
