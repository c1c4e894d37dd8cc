"""Several nodes of one log: a request is worked on by one of those that ask models, whichever door it came through."""

from __future__ import annotations

from pathlib import Path

from tests.journeys.running_node import caught_up, running, until
from tests.openai_server import embedding_endpoint
from tests.reactors.conftest import models

MASTER_KEY = {"KLEDGER_MASTER_KEY": "ab" * 32}


def test_each_request_is_worked_on_once_by_a_node_that_asks_models(tmp_path: Path) -> None:
    with embedding_endpoint() as endpoint:
        endpoint.chat.says({"content": "Rewritten.", "task": None, "reason": "r"}, to="<feedback>")
        env = models(endpoint, **MASTER_KEY)
        with running(tmp_path / "one", env=env) as one:
            nats = ("--nats", one.access.url_for("admin"))
            with (
                running(tmp_path / "two", *nats, env=env) as two,
                running(tmp_path / "three", *nats, "--roles", "api,vectors", env=MASTER_KEY) as three,
                one.client() as op,
                two.client() as beside,
                three.client() as without_models,
            ):
                doors = [each.acting_as(user="ana") for each in (op, beside, without_models)]
                items = [doors[0].save(f"t{n}", "As it was.", ["tool"])["id"] for n in range(9)]
                for number, item in enumerate(items):
                    doors[number % 3].evolve(item, "better", wait=0)
                applied = "SELECT count(*) FROM evolutions WHERE status = 'applied'"
                until(lambda: op.sql(applied)["rows"] == [[9]], "all are rewritten")
                caught_up(without_models)
                assert endpoint.chat.billed == endpoint.chat.calls == 9
                started = "SELECT count(*), count(DISTINCT entity_id) FROM events WHERE type = 'evolution.started'"
                assert op.sql(started)["rows"] == [[9, 9]]
                assert without_models.sql(applied)["rows"] == [[9]]
