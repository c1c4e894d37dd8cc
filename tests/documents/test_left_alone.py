"""The process that reads a file ends without a word where whoever asked is gone: nobody is there to be told."""

from __future__ import annotations

import subprocess
import sys

import orjson
import pytest

from tests.house.project import ROOT

MODULE = [sys.executable, "-m", "producers.documents.child"]
ORDER = orjson.dumps({"content_type": "text/plain", "memory": 2**32, "seconds": 60}) + b"\n"


@pytest.mark.parametrize("order", [b"", ORDER[:10], ORDER[:-1]])
def test_an_order_that_was_cut_is_not_carried_out(order: bytes) -> None:
    ran = subprocess.run(MODULE, input=order, capture_output=True, cwd=ROOT, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


@pytest.mark.parametrize("file", [b"A few words.", b"Many words. " * 20_000])
def test_what_a_file_says_is_told_to_nobody_quietly(file: bytes) -> None:
    with subprocess.Popen(MODULE, stdin=-1, stdout=-1, stderr=-1, cwd=ROOT) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        child.stdin.write(ORDER + file)
        child.stdin.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0
