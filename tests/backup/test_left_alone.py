"""A job whose parent is gone, such as the fold of a killed restore, ends without a word: nobody is there to be told."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.house.project import ROOT

MODULE = "tests.backup.left_job"


def ended(module: str, order: bytes, *, alone: bool) -> bytes:
    """What a job says on standard error that goes on behind its first report, `alone` without its parent."""
    with subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as job:
        assert job.stdin is not None
        assert job.stdout is not None
        assert job.stderr is not None
        job.stdin.write(order)
        job.stdin.flush()
        assert job.stdout.readline()
        if alone:
            job.stdout.close()
        job.stdin.write(b"go on\n")
        job.stdin.close()
        if not alone:
            job.stdout.read()
        return job.stderr.read()


@pytest.mark.parametrize("ends_by", ["progress", "progress that counts as a full disk", "an error", "a result"])
def test_a_job_that_reports_to_nobody_ends_quietly(ends_by: str) -> None:
    assert ended(MODULE, b'{"ends_by": "%s"}\n' % ends_by.encode(), alone=True) == b""


@pytest.mark.parametrize("ends_by", ["a fault", "a pipe of its own"])
@pytest.mark.parametrize("alone", [True, False])
def test_a_fault_of_a_job_is_told_whoever_is_there(ends_by: str, alone: bool) -> None:
    said = ended(MODULE, b'{"ends_by": "%s"}\n' % ends_by.encode(), alone=alone)
    assert {"a fault": b"ValueError", "a pipe of its own": b"BrokenPipeError"}[ends_by] in said


@pytest.mark.parametrize("order", [b"", b'{"ends_'])
def test_a_job_whose_parent_is_gone_before_its_order_is_whole_ends_quietly(order: bytes) -> None:
    ran = subprocess.run([sys.executable, "-m", MODULE], input=order, capture_output=True, cwd=ROOT, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
