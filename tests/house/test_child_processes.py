"""Every process that a node starts is given an environment on purpose: without the master key."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.project import PACKAGES, ROOT, modules

STARTS = {"create_subprocess_exec", "create_subprocess_shell", "Popen"}
# The demo starts a node, which needs what a node needs; a look at the process table starts nothing of ours.
FREE = {"producers/cli/demo.py"}


def starts() -> Iterator[tuple[str, ast.Call]]:
    """Where a process is started, and by which call."""
    for path in modules(PACKAGES):
        place = path.relative_to(ROOT).as_posix()
        calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        for call in calls if place not in FREE else ():
            if isinstance(call.func, ast.Attribute) and call.func.attr in STARTS:
                yield f"{place}:{call.lineno}", call


def test_every_child_process_gets_the_environment_without_the_master_key() -> None:
    found = dict(starts())
    assert len(found) >= 4, "the broker, the vector process, jobs, the checkpoint hook"
    named = {place: [ast.unparse(k.value) for k in call.keywords if k.arg == "env"] for place, call in found.items()}
    # A job's environment has a name of its own beside the call.
    wrong = {p: said for p, said in named.items() if not any("environment" in each for each in said)}
    assert not wrong


def test_every_child_that_is_a_module_of_ours_imports_nothing_from_the_current_directory() -> None:
    modules_run = {place for place, call in starts() if "'-m'" in ast.unparse(call)}
    assert len(modules_run) >= 3, "the vector process, jobs, the reader of files"
    files = {place.split(":")[0] for place in modules_run}
    assert {file for file in files if "module_environment()" not in (ROOT / file).read_text("utf-8")} == set()
