"""The checklists of the sources, read: one line a sentence, with the test that fails when the sentence is broken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LISTS = sorted((Path(__file__).parent / "letters").glob("*.md"))
OPEN = "open: "


@dataclass(frozen=True)
class Line:
    """One sentence of a source. `test` is a pytest node id, or `open: ` and what the product does not keep yet."""

    id: str
    place: str
    says: str
    test: str

    @property
    def is_open(self) -> bool:
        return self.test.startswith(OPEN)


def lines() -> list[Line]:
    """Every line of every list, in order. ValueError names a row that is no line."""
    found = []
    for path in LISTS:
        for row in path.read_text("utf-8").splitlines():
            if not row.startswith(f"| {path.stem}-"):
                continue
            parts = [part.strip() for part in row.strip("|").split("|")]
            if len(parts) != 4 or not all(parts):
                raise ValueError(f"{path.name}: {row}")
            found.append(Line(*parts))
    return found
