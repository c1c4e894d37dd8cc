"""Which files are made from the code? Every page of the reference, and the first lines of the command's help.

`make docs` writes them again. A test compares what stands there with what this gives, so none can grow stale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docs.generators.command import command_page
from docs.generators.errors import errors_page
from docs.generators.events import events_page
from docs.generators.http import http_page, openapi_document
from docs.generators.settings import settings_page
from docs.generators.tools import tools_page
from docs.generators.views import views_page
from ledger.vocabulary.asyncapi import asyncapi_document
from ledger.vocabulary.schemas import event_schema, form_name, forms
from producers.cli.command_files import FIRST_LINES, first_lines

REFERENCE = Path(__file__).parent / "reference"


def pages() -> Mapping[str, str]:
    """Every generated file: its path below docs/reference, and its text."""
    return {
        "events.md": events_page(),
        "errors.md": errors_page(),
        "command.md": command_page(),
        "http.md": http_page(),
        "tools.md": tools_page(),
        "settings.md": settings_page(),
        "views.md": views_page(),
        "asyncapi.json": as_json(asyncapi_document()),
        "openapi.json": as_json(openapi_document()),
        **{
            f"schemas/{form_name(fact, version)}.json": as_json(event_schema(fact, version))
            for fact, version in forms()
        },
    }


def lines_of_help() -> str:
    """The text of producers/cli/first_lines.json, a line for each command."""
    lines = [json.dumps(line, ensure_ascii=False) for line in first_lines()]
    return "[\n  " + ",\n  ".join(lines) + "\n]\n"


def as_json(document: Mapping[str, Any]) -> str:
    """A document as a person and a diff read it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every page, and remove the schemas of events that are no more."""
    made = pages()
    for name, text in made.items():
        path = REFERENCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for left_over in (REFERENCE / "schemas").glob("*.json"):
        if f"schemas/{left_over.name}" not in made:
            left_over.unlink()
    FIRST_LINES.write_text(lines_of_help(), encoding="utf-8")
    sys.stdout.write(f"{len(made)} files written to docs/reference, and {FIRST_LINES.name}\n")


if __name__ == "__main__":
    main()
