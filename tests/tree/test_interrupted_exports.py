"""An export that is killed, or finds no room, at whatever step: the next one goes on, and nothing else is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kledger.contract.errors import IllegalTree
from producers.tree.writing import export_tree
from tests.patience import PATIENCE
from tests.tree.in_process import in_process

ROOT = Path(__file__).parents[2]
EARLIER, LATER = ["ann", "bob", "eve"], ["ann", "eve", "zoe"]


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where answers of a list lie as JSON: `earlier` and `later`, for some of which another person owns items."""
    directory = tmp_path_factory.mktemp("listed")
    with in_process() as ledger:
        for user in sorted({*EARLIER, *LATER}):
            ledger.acting_as(user=user).save("Tea", f"{user} drinks tea", ["user_profile"], scopes=[f"user:{user}"])
        answer: Any = ledger.list(limit=100, status="all")
    for name, owners in (("earlier", EARLIER), ("later", LATER)):
        kept = [each for each in answer["results"] if each["owner"].removeprefix("user:") in owners]
        (directory / name).write_text(json.dumps({**answer, "results": kept, "next": None}))
    return directory


def interrupted(how: str, earlier: str, later: Path, into: Path) -> list[dict[str, Any]]:
    words = [sys.executable, "-m", "tests.tree.interrupted_exports", how, earlier, str(later), str(into)]
    into.mkdir()
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("how", ["kill", "fail"])
@pytest.mark.parametrize("before", ["nothing", "an earlier export"])
def test_an_export_that_is_interrupted_at_any_step_is_made_whole_by_the_next_one(
    how: str, before: str, listed: Path, tmp_path: Path
) -> None:
    earlier = "-" if before == "nothing" else str(listed / "earlier")
    steps = interrupted(how, earlier, listed / "later", tmp_path / "trees")
    whole = steps[-1]["left"]
    assert len(whole) == len(LATER) + 2, "a file for each owner, the memories and the manifest"
    assert len(steps) > 20
    assert [step for step in steps if step["error"] is not None or step["files"] != whole] == []
    if how == "fail":
        known = {*whole, *(f"users/{user}/profile.json" for user in EARLIER if earlier != "-")}
        assert {name for step in steps for name in step["left"]} <= known, "what a failure left"


def test_a_directory_with_files_of_somebody_else_is_refused_though_an_export_was_killed_there(
    listed: Path, tmp_path: Path
) -> None:
    into = tmp_path / "trees"
    steps = interrupted("kill", "-", listed / "later", into)
    killed = next(step for step in reversed(steps) if "manifest.json" not in step["left"])
    directory = into / "own"
    for name in killed["left"]:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("{}")
    assert {name.split("/")[0] for name in killed["left"]} > {"users"}, "files, and the parts that name them"
    (directory / "own.txt").write_text("mine")
    with in_process() as ledger, pytest.raises(IllegalTree, match="is no export of before"):
        export_tree(ledger, directory)
    (directory / "own.txt").unlink()
    with in_process() as ledger:
        export_tree(ledger, directory)
    assert [path.name for path in directory.iterdir()] == ["manifest.json"], "of an empty ledger"
