"""After a person is forgotten their id stays in some columns: those that the page names, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kledger import LedgerClient
from tests.house.project import ROOT
from tests.journeys.running_node import caught_up, result_of, running

PAGE = ROOT / "docs" / "how-to" / "forget-a-person.md"
NEED_A_MODEL = {"evolutions", "extractions", "conflicts", "model_usage"}
"""Views of the page that say nothing where no model is asked."""
NEED_MANY_RECALLS = {"packed_recalls", "recall_remains"}
"""Tables of recalls that have none while there are few, and none that is past its retention."""
PERSON = "user:x7f3a"
NAMES = r"(?:`[a-z_]+`(?:, )?)+"


def documented() -> set[tuple[str, str]]:
    """(view, column) of the first cells of the page's table, such as "`a`, `b`: `x`, `y`; `c`: `z`"."""
    found = set()
    for line in PAGE.read_text().splitlines():
        if not line.startswith("| `"):
            continue
        for pair in re.findall(rf"({NAMES}): ({NAMES})", line.split("|")[1]):
            views, columns = (re.findall(r"`([a-z_]+)`", part) for part in pair)
            found |= {(view, column) for view in views for column in columns}
    return found


def columns(op: LedgerClient) -> Iterator[tuple[str, list[str]]]:
    rows: Any = op.sql(
        """SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns()
           WHERE NOT internal GROUP BY table_name ORDER BY table_name"""
    )["rows"]
    yield from rows


def where_it_stands(op: LedgerClient) -> set[tuple[str, str]]:
    found = set()
    for table, names in columns(op):
        counts = ", ".join(f"count(*) FILTER (\"{name}\"::VARCHAR LIKE '%{PERSON}%')" for name in names)
        (row,) = op.sql(f'SELECT {counts} FROM "{table}"')["rows"]
        found |= {(table, name) for name, count in zip(names, row, strict=True) if count}
    return found


def does_everything(op: LedgerClient) -> None:
    """What a person can do on a node without a model, and what others do with them; no other id names the person."""
    them = op.acting_as(user=PERSON.partition(":")[2]).within(trace_id="t-1", message_id="m-1")
    bob = op.acting_as(user="bob")
    own = them.save("Water the fern", "On Mondays.", ["tool"], id="fern", scopes=["public"])
    them.save("Water the fern", "On Mondays.", ["tool"], id="fern-again", scopes=["public"])
    them.save("Keep", "Private.", ["tool"], id="private")
    them.share("private", [{"entity": "user:bob", "permission": "read"}])
    them.revise("fern", content="On Tuesdays.")
    acl = [{"entity": PERSON, "permission": "read_write"}]
    theirs = bob.save("Feed the cat", "At noon.", ["tool"], id="cat", scopes=["public", PERSON])
    bob.share(theirs["id"], acl)
    them.search("feed the cat")
    them.rate(theirs["id"], "helpful")
    them.rate(theirs["id"], "harmful", task="the cat", reason="it was asleep")
    them.score(theirs["id"], 2)
    bob.within(causation_id=own["event_id"]).rate(own["id"], "helpful")
    them.focus("g-1", "feed the cat")
    them.profiles.patch("user", {"custom_rules": ["ask first"]})
    them.resources.save("codes/door", "The door", body="1234", secure_body="5678", shared_with=["user:bob"])
    bob.resources.save("codes/bike", "The bike", body="42", shared_with=[PERSON])
    them.slim(scopes=[PERSON], dry_run=True)
    gone = them.save("Prune the rose", "The rose is pruned in March by hand.", ["tool"])["id"]
    them.retire(gone, reason="it died")
    again = {"task": "p", "content": "the rose is pruned in march by hand", "types": ["tool"]}
    held = them.save_many([again])["results"][0]
    them.drop_statement(held["held"]["id"], reason="it is dead")
    them.documents.ingest("plan", text="# Beds\n\nThe beds are dug in April.\n", scopes=[PERSON])
    them.remember("Likes tea.", kind="preference")
    shared = bob.remember("Bob likes coffee.", kind="preference", scopes=["user:bob", PERSON])
    bob.share(shared["id"], acl)
    them.session("s-1").append([{"role": "user", "content": "How deep?"}])
    op.appoint_coordinator("garden", PERSON)
    them.assign_roles("garden", "user:bob", ["tester"])
    caught_up(op)


def test_the_id_of_a_forgotten_person_stays_where_the_page_says_and_nowhere_else(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--quack", "off") as node, node.client() as op:
        does_everything(op)
        assert result_of(op, "forget", subject=PERSON)["receipt"]["left_in_clear"] == []
        found = where_it_stands(op)
    said = documented()
    assert found <= said, f"the page does not name {sorted(found - said)}"
    silent = {view for view, _ in said} - {view for view, _ in found} - NEED_A_MODEL - NEED_MANY_RECALLS
    assert not silent, f"the page names views that hold nothing of a person: {sorted(silent)}"
