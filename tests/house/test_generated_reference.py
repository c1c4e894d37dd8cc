"""Does docs/reference say what the code says now?"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from docs.generate import REFERENCE, lines_of_help, pages
from docs.generators.http import http_page
from producers.cli.command_files import FIRST_LINES

# By what is there: to make the pages takes seconds, which only the process that compares them need spend.
THERE = sorted(path.relative_to(REFERENCE).as_posix() for path in REFERENCE.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def made() -> Mapping[str, str]:
    """Every page as its generator gives it."""
    return pages()


@pytest.mark.parametrize("name", THERE)
def test_the_page_is_what_its_generator_gives(name: str, made: Mapping[str, str]) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == made[name], "stale: run `make docs`"


def test_every_object_within_a_body_is_told_where_the_body_is() -> None:
    bodies = http_page().split("Body, `application/json`:")[1:]
    missing = {
        name
        for body in (each.split("\n## ")[0] for each in bodies)
        for row in re.findall(r"^\| `\w+` \| (?:yes)? \| (.+?) \| ", body, re.MULTILINE)
        for name in re.findall(r"\b(?!True|False)[A-Z][a-z]\w*", row)
        if f"| `{name}` | " not in body
    }
    assert (len(bodies) > 20, missing) == (True, set())


def test_every_page_is_there_and_none_is_left_of_what_is_no_more(made: Mapping[str, str]) -> None:
    assert {*THERE} == {*made}


def test_the_help_of_all_commands_shows_the_first_lines_of_their_own_help() -> None:
    assert FIRST_LINES.read_text(encoding="utf-8") == lines_of_help(), "stale: run `make docs`"
