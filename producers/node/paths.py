"""Paths that operator jobs may write: anywhere on the node's machine except its data directory."""

from __future__ import annotations

from pathlib import Path

from kledger.contract.errors import InvalidPayload


def outside(data: Path, into: str) -> Path:
    """The path of `into`, which a job writes. Raises InvalidPayload where it is in the data directory."""
    path = Path(into)
    if path.resolve().is_relative_to(data.resolve()):  # links are followed
        raise InvalidPayload(
            f"into {into!r} is in the node's data directory, among the files that it lives of: give a path elsewhere",
            errors=[{"field": "into", "reason": "is in the data directory of the node"}],
        )
    return path
