"""Where may a job of the operator write? Anywhere on the node's machine but among the node's own files."""

from __future__ import annotations

from pathlib import Path

from kledger.contract.errors import InvalidPayload


def outside(data: Path, into: str) -> Path:
    """`into`, which a job is to write, as a path. Raises InvalidPayload when it is in the data directory."""
    path = Path(into)
    if path.resolve().is_relative_to(data.resolve()):  # wherever links lead
        raise InvalidPayload(
            f"into {into!r} is in the node's data directory, among the files that it lives of: give a path elsewhere",
            errors=[{"field": "into", "reason": "is in the data directory of the node"}],
        )
    return path
