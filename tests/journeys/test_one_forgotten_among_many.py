"""What is asked of many items at once is done of all that may be done, whoever of their owners was forgotten."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kledger import LedgerClient
from tests.journeys.running_node import caught_up, result_of, running, until


@pytest.fixture(scope="module")
def op(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LedgerClient]:
    """The operator of a node that has items of mei, and of vera, who was forgotten."""
    with running(tmp_path_factory.mktemp("forgotten") / "data") as node, node.client() as op:
        for name in ("vera", "mei"):
            person = op.acting_as(user=name)
            for item in ("cleaned", "rated", "retired"):
                person.save("A task", f"{item} of {name}", ["tool"], id=f"{item}-{name}", scopes=["public"])
            person.remember(f"calm, says {name}", "short", kind="mood", lifetime=1, id=f"mood-{name}")
        until(lambda: caught_up(op) and op.memories(status="expired")["total"] == 2, "both are over")
        until(lambda: len(op.history("mood-mei")["versions"]) == 2, "and the node has stated it")
        result_of(op, "forget", subject="user:vera")
        yield op


def test_what_is_over_is_cleaned_of_those_who_were_forgotten_too(op: LedgerClient) -> None:
    cleaned = op.clean_memories(dry_run=False)
    assert set(cleaned["ids"]) == {"mood-vera", "mood-mei"}
    assert op.clean_memories()["ids"] == []
    assert op.memory("mood-mei")["status"] == "retired"
    assert op.history("mood-mei")["versions"][-1].get("reason") == "expired"
    assert op.history("mood-vera")["versions"][-1].get("reason") is None, "nothing more is said under that name"


def test_a_bulk_refuses_what_is_said_under_that_name_and_does_the_rest(op: LedgerClient) -> None:
    ids = ["retired-vera", "retired-mei"]
    done = op.bulk("retire", ids, dry_run=False, reason="nobody needs it", idempotency_key="bulk-1")
    told = {each["id"]: (each["outcome"], each["error"] and each["error"]["code"]) for each in done["results"]}
    assert told == {"retired-vera": ("refused", "subject_forgotten"), "retired-mei": ("done", None)}
    assert (done["done"], done["refused"]) == (1, 1)
    assert op.bulk("retire", ids[:1], dry_run=False)["done"] == 1, "without a word it is done"


def test_a_verdict_with_words_on_an_item_of_theirs_is_refused_alone(op: LedgerClient) -> None:
    zoe = op.acting_as(user="zoe")
    worded = [{"knowledge_id": f"rated-{name}", "is_helpful": True, "case": {"task": "t"}} for name in ("vera", "mei")]
    wordless = {"knowledge_id": "rated-vera", "is_helpful": False}
    traced = worded[0] | {"case": {"task": "t", "trace_id": "trace-1"}}
    told = zoe.rate_many([*worded, wordless, traced, traced])
    assert told["updated"] == 2
    assert [(each["index"], each["knowledge_id"]) for each in told["refused"]] == [
        (0, "rated-vera"), (3, "rated-vera"), (4, "rated-vera"),
    ]  # fmt: skip
    assert {each["error"]["code"] for each in told["refused"]} == {"subject_forgotten"}
    assert (op.get("rated-mei")["eval"]["helpful"]) == 2
