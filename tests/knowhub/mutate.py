"""Does the test of a line fail when its sentence is broken? Run by hand: `python -m tests.knowhub.mutate`.

Each edit of `mutations.toml` is made in a copy of the project, where the test that the line names is run. A test that
passes in spite of the edit shows nothing: it is named, and the exit code is 1. `--seed N` names twenty lines to write
further edits for.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.knowhub.checklist import Line, lines

ROOT = Path(__file__).parents[2]
MUTATIONS = Path(__file__).with_name("mutations.toml")
COPIED = ("kledger", "ledger", "projections", "producers", "consumers", "tests", "pyproject.toml", "README.md", "docs")
PASSED, NOT_RUN = 0, {4: "pytest was used wrongly", 5: "no such test"}


def main() -> int:
    """Run every edit, or those of the lines that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="name twenty lines by this seed, and run nothing")
    parser.add_argument("only", nargs="*", help="ids of lines")
    asked = parser.parse_args()
    by_id = {line.id: line for line in lines() if not line.is_open}
    edits = tomllib.loads(MUTATIONS.read_text("utf-8"))
    if asked.seed is not None:
        for name in random.Random(asked.seed).sample(sorted(by_id), 20):
            print(name, "has an edit" if name in edits else "has none", by_id[name].says, sep="\t")  # noqa: T201
        return 0
    survived = [name for name in asked.only or edits if not _fails(by_id[name], **edits[name])]
    print(f"{len(survived)} of {len(asked.only or edits)} tests passed in spite of the edit: {survived}")  # noqa: T201
    return 1 if survived else 0


def _fails(line: Line, file: str, old: str, new: str) -> bool:
    """Whether the line's test fails once the edit is made. ValueError when there is nothing to edit."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / name)
        text = (copy / file).read_text("utf-8")
        if old not in text:
            raise ValueError(f"{line.id}: {file} does not hold {old!r} any more")
        (copy / file).write_text(text.replace(old, new), "utf-8")
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n0", "--tb=line", line.test],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode in NOT_RUN:
        raise ValueError(f"{line.id}: {NOT_RUN[ran.returncode]}: {line.test}\n{ran.stdout[-1000:]}{ran.stderr[-1000:]}")
    last = ran.stdout.strip().splitlines()[-1:] or [""]
    print(line.id, "passed in spite of it" if ran.returncode == PASSED else "failed", last[0], sep="\t", flush=True)  # noqa: T201
    return ran.returncode != PASSED


if __name__ == "__main__":
    sys.exit(main())
