"""No test may fail because a machine is slow: what a test waits for is given long."""

from __future__ import annotations

import ast

from tests.house.project import ROOT, modules

ASKING = {"get", "post", "put", "patch", "delete", "options", "head", "request", "stream", "Client", "AsyncClient"}


def test_every_request_of_a_test_says_how_long_it_waits() -> None:
    # Five seconds, which httpx gives a request, are less than a busy machine may stand still for.
    impatient = [
        f"{path.relative_to(ROOT).as_posix()}:{call.lineno}"
        for path in modules(("tests", "bench"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and (call.func.value.id, call.func.attr in ASKING) == ("httpx", True)
        and not {"timeout", "transport"} & {keyword.arg for keyword in call.keywords}
    ]
    assert impatient == []
