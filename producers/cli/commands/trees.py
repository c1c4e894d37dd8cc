"""`kledger export-tree`, `import-tree`: knowledge as a tree of JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from producers.cli.advice import advised_row
from producers.cli.answer import Answer
from producers.cli.as_command import KNOWLEDGE, as_caller
from producers.cli.commands.importing import held_hint, proposed_hint
from producers.cli.progress import SEARCHABLE_WITHIN, Wait, bar, until_searchable
from producers.cli.screen import counted, facts, plain, table
from producers.cli.session import Session
from producers.cli.usage.made_directory import made_directory

SHOWN = 20
_MEANING = {
    "earlier_versions": "items whose earlier versions are not in it",
    "feedback_cases": "items whose cases are not in it; their counts are",
    "merges": "items that were merged: they come back as retired ones",
    "resource_bodies": "references to resources, whose bodies are not in it",
    "erased": "items that were erased with the person whom they belonged to",
}


def export(
    session: Session,
    directory: Annotated[str, typer.Argument(metavar="DIR", help="An empty directory, or an earlier export.")],
) -> Answer:
    """Write what the caller sees into DIR: global/, agents/, users/, shared/, retired.json and manifest.json.

    Example: kledger export-tree knowledge --user ann --project web
    """
    from producers.tree.writing import export_tree, not_held

    into = Path(made_directory(directory))
    with bar("export", None) as shown:
        written = export_tree(session.ledger, into, user=session.caller.get("user"), progress=shown.at)
    missing = not_held(written)
    document = {
        "directory": str(into.absolute()),
        "items": written.items,
        "files": dict(sorted(written.files.items())),
        "not_held": missing,
        "position": written.position,
    }
    counts = (
        f"{counted(written.items, 'item')} in {counted(len(written.files), 'file')}, as of position {written.position}"
    )
    rows = table("file", "entries", right=("entries",))
    for name, count in sorted(written.files.items())[:SHOWN]:
        rows.add_row(plain(name), str(count))
    parts: list[RenderableType] = [counts, rows]
    if len(written.files) > SHOWN:
        parts.append(f"and {counted(len(written.files) - SHOWN, 'more file')}")
    if missing:
        parts += ["not held by this form:", facts(*((f"{n:,}", _MEANING[kind]) for kind, n in missing.items()))]
    return Answer(document, Group(*parts))


def import_files(
    session: Session,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A tree as export-tree writes it, or by hand.")],
    wait: Wait = SEARCHABLE_WITHIN,
) -> Answer:
    """Save what stands in the tree DIR; what is there already is left as it is.

    It ends when every search finds what was saved, or after --wait seconds with how far that is.

    Example: kledger import-tree knowledge --user ann --project web
    """
    from producers.tree.importing import import_tree

    with bar("import", None) as shown:
        imported = import_tree(session.ledger, directory, user=session.caller.get("user"), progress=shown.moved)
        searchable = until_searchable(session.ledger, wait, shown)
        session.settled = True
    tree = imported.tree
    refused = [advised_row(each) for each in tree.refused]
    document = {
        "directory": str(directory.absolute()),
        "entries": len(tree.entries),
        "saved": imported.saved,
        "proposed": len(imported.proposed),
        "unchanged": imported.unchanged,
        "held": imported.held,
        "retired": imported.retired,
        "memories": imported.memories,
        "refused": refused,
        "skipped": tree.skipped,
        **searchable,
    }
    counts = (
        f"{imported.saved} saved, {imported.unchanged} unchanged, {len(tree.refused)} refused of {len(tree.entries)} "
        f"entries; {imported.retired} retired, {imported.memories} memories stated"
    )
    counts += proposed_hint(len(imported.proposed)) + held_hint(imported.held)
    if not searchable["searchable"]:
        counts += f"; searches have position {searchable['searchable_to']}, the rest follows"
    rows = table("file", "entry", "code", "message", right=("entry",))
    for each in refused[:SHOWN]:
        rows.add_row(*(plain(each[name] or "") for name in ("file", "number", "code", "message")))
    parts: list[RenderableType] = [counts, *([rows] if tree.refused else [])]
    if len(tree.refused) > SHOWN:
        parts.append(f"and {len(tree.refused) - SHOWN} more: --json has them all")
    if tree.skipped:
        parts.append(f"skipped: {plain(', '.join(tree.skipped[:SHOWN]))}")
    return Answer(document, Group(*parts), ok=not tree.refused)


app = typer.Typer()
app.command("export-tree", rich_help_panel=KNOWLEDGE)(as_caller(export))
app.command("import-tree", rich_help_panel=KNOWLEDGE)(as_caller(import_files))
