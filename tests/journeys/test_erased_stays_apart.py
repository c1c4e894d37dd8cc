"""What was erased with a person is nobody's to judge or to merge: whoever decides reads what they decide on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kledger.contract.errors import Erased, VersionConflict
from tests.journeys.running_node import caught_up, result_of, running


def test_no_erased_memory_is_confirmed_and_no_erased_group_is_merged(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node, node.client() as op:
        vera = op.acting_as(user="vera")
        short = vera.remember("The dentist is on Monday.", "short", kind="follow_up")["id"]
        lasting = vera.remember("Prefers green tea.")["id"]
        for item in ("first", "second"):
            vera.save("Deploy at night", "Deploy on Friday night.", ["tool"], id=item)
        caught_up(op)
        proposed = vera.slim(dry_run=True)
        assert proposed["merged"] == 1
        result_of(op, "forget", subject="user:vera")
        caught_up(op)
        for memory in (short, lasting):
            with pytest.raises(Erased):
                op.confirm(memory)
        with pytest.raises(VersionConflict, match="was erased with the person it belonged to"):
            op.slim_apply(proposed["id"])
        left = op.slim_get(proposed["id"])
        assert left["status"] == "reported"
        assert [group["skipped"] for group in left["groups"]] == ["first was erased with the person it belonged to"]
        assert op.sql("SELECT count(*) FROM knowledge WHERE status = 'merged'")["rows"] == [[0]]
        told = result_of(op, "verify")
        assert told["equal"], told["differences"]
