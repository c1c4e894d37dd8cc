"""Can every list of the command be read page by page, as the interface behind it can?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature

import pytest
import typer
import typer.core
from pydantic import BaseModel

from kledger.client import knowledge
from kledger.client.overview import reading as overview
from kledger.requests.knowledge import FocusRequest
from kledger.requests.recall import RecallRequest
from producers.cli.commands import knowledge_reading as commanded
from producers.cli.commands.overview import reading as commanded_overview
from producers.cli.main import app
from producers.http.parameters import SearchQuery
from tests.doors.scripted_node import commanded_node
from tests.doors.test_cli_knowledge import kledger

PAGED = {"offset", "before", "after", "since"}
AT_ONCE: set[str] = {"session context"}
"""Commands with a limit that are no list."""


def commands(group: typer.core.TyperGroup, path: str = "") -> Iterator[tuple[str, typer.core.TyperCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, f"{path}{name} ")
        elif isinstance(command, typer.core.TyperCommand):
            yield f"{path}{name}", command


def test_every_list_has_a_next_page() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    options = {path: {option.name for option in command.params} for path, command in commands(root)}
    lists = {path for path, names in options.items() if "limit" in names} - AT_ONCE
    assert len(lists) > 15
    assert {path for path in lists if not PAGED & options[path]} == set()


@pytest.mark.parametrize(
    ("method", "command"),
    [
        (knowledge.search, commanded.search),
        (knowledge.list_items, commanded.list_items),
        (overview.facets, commanded_overview.facets),
    ],
)
def test_a_command_takes_every_filter_that_its_method_takes(
    method: Callable[..., object], command: Callable[..., object]
) -> None:
    one_of_many = {"tags": "tag", "layers": "layer", **({"scopes": "scope"} if method is knowledge.search else {})}
    filters = {one_of_many.get(name, name) for name in signature(method).parameters} - {"wire", "before"}
    assert filters - set(signature(command).parameters) == set()


@pytest.mark.parametrize(
    ("command", "asked"), [("search", SearchQuery), ("focus", FocusRequest), ("recall", RecallRequest)]
)
def test_a_command_refuses_no_number_that_the_interface_takes(command: str, asked: type[BaseModel]) -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    options = {option.name: option for option in dict(commands(root))[command].params}
    compared = 0
    for name, field in asked.model_fields.items():
        least = [bound.ge for bound in field.metadata if hasattr(bound, "ge")]
        most = [bound.le for bound in field.metadata if hasattr(bound, "le")]
        if name in options and (least or most):
            taken = options[name]
            assert [taken.min] == least, name  # type: ignore[attr-defined]  # of numbers alone
            assert taken.max in (None, *most), name  # type: ignore[attr-defined]
            compared += 1
    assert compared


@pytest.mark.parametrize(
    ("command", "route"),
    [
        (("conflicts", "list"), "/api/conflicts"),
        (("extraction", "list"), "/api/extractions"),
        (("evolution", "list", "--status", "proposed"), "/api/evolutions"),
        (("slims", "--status", "applied"), "/api/slims"),
    ],
)
def test_a_page_is_asked_for_as_it_is_named(
    command: tuple[str, ...], route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with commanded_node(monkeypatch) as node:
        node.says(f"GET {route}", {"results": [], "count": 0, "total": 0, "position": 7})
        ran = kledger(*command, "--offset", "40", "--limit", "20", "--json")
    assert ran.exit_code == 0, ran.output
    (asked,) = node.asked
    assert (asked.query["offset"], asked.query["limit"]) == ("40", "20")
    assert asked.query.get("status") == (command[-1] if "--status" in command else asked.query.get("status"))


@pytest.mark.parametrize(
    ("command", "route"),
    [
        (("conflicts", "list"), "/api/conflicts"),
        (("extraction", "list"), "/api/extractions"),
        (("evolution", "list"), "/api/evolutions"),
        (("slims",), "/api/slims"),
        (("goals",), "/api/goals"),
        (("memory", "list"), "/api/memory"),
        (("memory", "held"), "/api/memory/held"),
        (("resource", "list"), "/api/resource"),
        (("session", "list"), "/api/sessions"),
    ],
)
def test_a_page_says_how_many_there_are_and_as_of_which_position(
    command: tuple[str, ...], route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with commanded_node(monkeypatch) as node:
        node.says(f"GET {route}", {"results": [], "count": 0, "total": 3, "next": None, "position": 7})
        ran = kledger(*command, "--offset", "3")
    assert ran.exit_code == 0, ran.output
    assert ran.output.endswith("; 0 of 3, as of position 7\n")
