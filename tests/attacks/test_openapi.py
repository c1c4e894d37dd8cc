"""Whatever fits the OpenAPI document, or nearly fits it: the node answers below 500, as it documents.

The tests are named by the reference (docs/reference/openapi.json), and drawn from the document once they run: to draw
them takes seconds, which every worker would spend as it collects.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from hypothesis import HealthCheck, Phase, settings

from producers.http.app import create_app
from tests.doors.live_desk import live_desk
from tests.house.project import ROOT
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from schemathesis import Case

# A request that fits and ones that do not, for every operation; FUZZ_EXAMPLES=100 looks longer.
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "3"))
# What the node says on purpose: that this build has no such feature, and that a position is yet to come.
SAYS_NO = {501: "not_available", 503: "view_behind"}
HEADERS = {"X-Ledger-User": "schemathesis"}
PATHS = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text("utf-8"))["paths"]
OPERATIONS = [(path, method) for path, methods in PATHS.items() for method in methods]


class Served:
    """The door over a desk in memory, on a port of its own, in a thread of its own."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.server: uvicorn.Server | None = None
        self.ready = threading.Event()

    async def run(self) -> None:
        async with live_desk() as desk:
            self.server = uvicorn.Server(uvicorn.Config(create_app(desk), log_config=None, lifespan="off"))
            self.ready.set()
            await self.server.serve([self.socket])


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    served = Served()
    thread = threading.Thread(target=lambda: asyncio.run(served.run()), daemon=True)
    thread.start()
    assert served.ready.wait(PATIENCE)
    yield served.url
    assert served.server is not None
    served.server.should_exit = True
    thread.join(30)


@pytest.fixture(scope="module")
def drawn() -> Callable[[str, str], Callable[..., None]]:
    """Makes the test of an operation, as schemathesis' own plugin does while it collects."""
    import schemathesis
    from schemathesis.checks import load_all_checks
    from schemathesis.generation.feedback import FeedbackSources
    from schemathesis.pytest._test_builder import build_operation_test
    from schemathesis.python._constants.orchestrator import make_constants_value_source

    from docs.generators.http import openapi_document

    load_all_checks()
    schema = schemathesis.openapi.from_dict(openapi_document())
    feedback = FeedbackSources(constants_value_source=make_constants_value_source(schema))

    def of(path: str, method: str) -> Callable[..., None]:
        return build_operation_test(
            config=schema.config,
            operation=schema[path][method.upper()],
            test_func=answers,
            given_kwargs={},
            feedback=feedback,
        )

    return of


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def answers(case: Case[Any], served: str) -> None:
    from schemathesis.checks import not_a_server_error

    if case.query and "wait" in case.query:
        case.query["wait"] = 0  # for a position that nobody will write
    elif case.query and "min_position" in case.query:
        case.query["min_position"] = 0
    answer = case.call(base_url=served, headers=HEADERS if case.path.startswith("/api/v1") else {})
    if answer.status_code in SAYS_NO:
        assert answer.json()["error"]["code"] == SAYS_NO[answer.status_code]
        return
    case.validate_response(answer, checks=[not_a_server_error])
    if answer.status_code >= 400:
        assert set(answer.json()) == {"error"}, answer.text


@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=[f"{method} {path}" for path, method in OPERATIONS])
def test_no_request_makes_the_node_fail(
    path: str, method: str, drawn: Callable[[str, str], Callable[..., None]], served: str
) -> None:
    drawn(path, method)(served=served)
