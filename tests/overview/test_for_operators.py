"""What does an operator see of the jobs, the certificates and the columns of a node, and nobody else?"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from kledger.contract.errors import Forbidden
from ledger.event import utc_now
from ledger.integrity.chain import Chain
from ledger.integrity.checkpoints import append_checkpoints, from_the_last, sign
from ledger.integrity.signing_keys import SigningKeys
from producers.access.principal import Principal
from producers.node.jobs import Jobs
from tests.doors.http_door import ALICE, http_door, refusal

ADMIN = "/api/admin"


async def test_the_operator_alone_sees_them() -> None:
    async with http_door() as door:
        for name in ("jobs", "certificates", "columns"):
            refusal(await door.get(f"{ADMIN}/{name}", headers=ALICE), 403, "not_owner")
        assert (await door.get(f"{ADMIN}/jobs")).json() == {"jobs": []}
        started = [(await door.post(f"{ADMIN}/verify")).json()["id"] for _ in range(2)]
        jobs = (await door.get(f"{ADMIN}/jobs")).json()["jobs"]
        assert [job["id"] for job in jobs] == started[::-1]
        assert (await door.get(f"{ADMIN}/certificates")).json() == {"checkpoints": [], "certificates": []}


async def test_columns_are_those_of_the_documented_relations_with_their_comments() -> None:
    async with http_door() as door:
        relations = (await door.get(f"{ADMIN}/columns")).json()["relations"]
    by_name = {each["name"]: each for each in relations}
    assert {"knowledge", "events", "recalls", "memory_health"} <= by_name.keys()
    assert not {"knowledge_state", "event_keys"} & by_name.keys()
    task = next(each for each in by_name["knowledge"]["columns"] if each["name"] == "task")
    assert task == {"name": "task", "type": "VARCHAR", "comment": "In which situation it helps"}


def test_an_analyst_may_ask_for_the_columns_and_not_for_jobs_or_certificates() -> None:
    analyst = Principal("t", "analyst", {})
    analyst.require_path(f"{ADMIN}/columns")
    for name in ("jobs", "certificates"):
        with pytest.raises(Forbidden):
            analyst.require_path(f"{ADMIN}/{name}")


async def test_a_node_knows_its_jobs_newest_first() -> None:
    jobs = Jobs()

    async def work(_: object) -> dict[str, object]:
        return {}

    started = [jobs.start("verify", work).id for _ in range(3)]
    assert [job.id for job in jobs.newest_first()] == started[::-1]
    await jobs.close()


def test_the_last_checkpoints_come_latest_first_and_what_is_no_checkpoint_is_left_out(tmp_path: Path) -> None:
    file, keys, chain = tmp_path / "checkpoints.jsonl", SigningKeys.open(tmp_path / "keys"), Chain.empty()
    assert list(islice(from_the_last(file), 3)) == []
    signed = [sign(chain, keys, utc_now()) for _ in range(5)]
    append_checkpoints(file, signed)
    with file.open("ab") as out:
        out.write(b'{"position": 6')
    assert list(islice(from_the_last(file), 3)) == signed[:1:-1]
    assert list(from_the_last(file)) == signed[::-1]
