"""Every row of the mission is walked through each door that it has, and does what the source says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.journeys.running_node import RunningNode, running
from tests.knowhub import (
    checks_answers,
    checks_knowledge,
    checks_memory,
    checks_models,
    checks_profiles,
    checks_recall,
    checks_resources,
    checks_scopes,
    checks_sessions,
)
from tests.knowhub.doors import NAMES, Name
from tests.knowhub.mission import ROWS
from tests.knowhub.walking import Walk
from tests.openai_chat import ChatEndpoint
from tests.openai_server import embedding_endpoint
from tests.reactors.conftest import models

FAMILIES = (
    checks_answers,
    checks_sessions,
    checks_memory,
    checks_knowledge,
    checks_models,
    checks_scopes,
    checks_profiles,
    checks_recall,
    checks_resources,
)
CHECKS: dict[str, Callable[[Walk], None]] = {
    row: getattr(family, row.lower()) for row in ROWS for family in FAMILIES if hasattr(family, row.lower())
}
STEPS = [(row, door) for row, doors in ROWS.items() for door in doors]


@pytest.fixture(scope="module")
def modelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningNode, ChatEndpoint]]:
    """A node with models, and what they say."""
    with (
        embedding_endpoint() as server,
        running(tmp_path_factory.mktemp("mission") / "data", env=models(server, KLEDGER_MODEL_REWRITE="small")) as node,
    ):
        yield node, server.chat


@pytest.fixture
def open_doors() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(("row", "door"), STEPS, ids=[f"{row} {door}" for row, door in STEPS])
def test_the_row_holds_through_the_door(
    modelled: tuple[RunningNode, ChatEndpoint], open_doors: ExitStack, row: str, door: Name
) -> None:
    node, chat = modelled
    CHECKS[row](Walk(node.url, door, open_doors, chat))


@pytest.mark.parametrize("door", NAMES)
@pytest.mark.parametrize("configured", [True, False], ids=["with models", "without"])
def test_a_slim_names_the_model_that_merges(
    modelled: tuple[RunningNode, ChatEndpoint],
    shared_node: RunningNode,
    open_doors: ExitStack,
    door: Name,
    configured: bool,
) -> None:
    node = modelled[0] if configured else shared_node
    checks_models.names_the_model(Walk(node.url, door, open_doors, modelled[1]), configured=configured)


def test_every_row_is_checked() -> None:
    assert CHECKS.keys() == ROWS.keys()
