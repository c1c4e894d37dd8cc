"""Doors, desks and apps of one process share what took long to make, and nothing that a test does behind one."""

from __future__ import annotations

from contextlib import closing

from producers.http.app import create_app
from tests.doors.furnished import K, R, furnished_door
from tests.doors.http_door import ALICE, http_door
from tests.doors.one_app import app_of
from tests.parsers import ParserAgain


async def test_what_is_done_behind_a_furnished_door_is_not_behind_the_next_one() -> None:
    async with furnished_door() as door:
        made = await door.head()
        await door.saved(ALICE, id="of-the-first")
        secret = {"id": "secret", "title": "t", "secure_body": "s"}
        assert (await door.post(R, json=secret, headers=ALICE)).is_success
        keys = {*door.desk.keys._held}
    async with furnished_door() as door:
        assert await door.head() == made
        assert (await door.get(f"{K}/of-the-first", headers=ALICE)).status_code == 404
        assert (await door.get(f"{K}/older", headers=ALICE)).is_success
        assert {*door.desk.keys._held} < keys


async def test_apps_over_shared_routes_are_described_as_an_app_of_its_own_is() -> None:
    async with http_door() as door:
        assert app_of(door.desk).openapi() == create_app(door.desk).openapi()


def test_the_connection_of_a_parser_that_is_closed_twice_goes_to_one_other() -> None:
    with closing(ParserAgain()) as parser:
        con = parser.con
        parser.close()
    with closing(ParserAgain()) as one, closing(ParserAgain()) as another:
        assert con is one.con
        assert con is not another.con
