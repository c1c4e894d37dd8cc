"""Files of tests go with the module that made them, but those of the session."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.project import ROOT
from tests.temporary_files import OF_THE_SESSION, remove_since


def test_what_a_module_made_is_removed_and_what_was_there_or_is_of_the_session_stays(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    before = set(tmp_path.iterdir())
    for name in ("made", f"{OF_THE_SESSION}node0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "current").symlink_to(tmp_path / "before")

    remove_since(before, tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == {"before", f"{OF_THE_SESSION}node0"}


def test_each_fixture_of_the_session_names_its_directories_as_the_sessions() -> None:
    wrong = []
    for file in (ROOT / "tests").rglob("*.py"):
        source = file.read_text("utf-8")
        for node in ast.walk(ast.parse(source)) if 'scope="session"' in source else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
                "session" in ast.unparse(each) for each in node.decorator_list
            ):
                wrong += [
                    f"{file.relative_to(ROOT)}:{call.lineno}"
                    for call in ast.walk(node)
                    if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(".mktemp")
                    if "OF_THE_SESSION" not in ast.unparse(call)
                ]
    assert wrong == []
