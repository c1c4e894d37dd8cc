"""What analysts asked for: what came of a recall, what changed, what is served and what stands there twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from kledger import LedgerClient
from kledger.contract.errors import IllegalQuery
from projections.analysts.quack import load_extensions
from tests.journeys.running_node import RunningNode, result_of, running, until


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running(tmp_path_factory.mktemp("views") / "data") as node:
        yield node


@pytest.fixture(scope="module")
def story(node: RunningNode) -> dict[str, object]:
    """An item that is served twice in one trace and then judged, a twin of it, and one that nobody was given."""
    with node.client() as ledger:
        scribe = ledger.acting_as(agent="scribe").within(trace_id="trace-1", message_id="m-1")
        first = scribe.save("Name a branch", "Use the  ticket's number.", ["tool"], scopes=["public"], id="branch")
        scribe.save("Name it", "use the ticket's number. ", ["tool"], scopes=["public"], id="twin")
        early = scribe.search("branch ticket", top_k=5)
        late = scribe.search("branch ticket", top_k=5)
        scribe.save("Alone", "Quite another matter.", ["tool"], id="alone")
        rated = scribe.rate("branch", "helpful", task="ticket 1")
        between = datetime.now(UTC)
        revised = scribe.revise("branch", content="Use the ticket's number and a word.")
        return {
            "first": first["position"],
            "early": early["recall_id"],
            "late": late["recall_id"],
            "rated": rated["position"],
            "between": between.isoformat(),
            "revised": revised["position"],
            "ended": datetime.now(UTC).isoformat(),
        }


def rows(ledger: LedgerClient, query: str, position: object) -> list[list[object]]:
    """What the view answers once it has this position."""
    until(lambda: ledger.sql("SELECT max(position) FROM checkpoints")["rows"][0][0] >= position, "it has caught up")
    return ledger.sql(query)["rows"]


def test_the_funnel_leads_from_a_recall_to_the_verdict_on_what_it_served(
    node: RunningNode, story: dict[str, object]
) -> None:
    with node.client() as ledger:
        query = (
            "SELECT recall_id, verdict, verdict_position FROM funnel "
            "WHERE item_id = 'branch' AND trace_id = 'trace-1' ORDER BY position"
        )
        found = rows(ledger, query, story["revised"])
        assert found == [[story["early"], None, None], [story["late"], "helpful", story["rated"]]]
        served = rows(ledger, "SELECT count(*) FROM recalls", 0)
        assert rows(ledger, "SELECT count(*) FROM funnel", 0) == served


@pytest.mark.parametrize("form", ["positions", "times"])
def test_changes_between_two_moments_are_the_versions_made_then(
    node: RunningNode, story: dict[str, object], form: str
) -> None:
    after = story["rated"] if form == "positions" else f"'{story['between']}'"
    until = story["revised"] if form == "positions" else f"TIMESTAMPTZ '{story['ended']}'"
    query = f"SELECT id, change, content_before, content_after FROM changes_between({after}, {until}) ORDER BY position"
    with node.client() as ledger:
        assert rows(ledger, query, story["revised"]) == [
            ["branch", "revised", "Use the  ticket's number.", "Use the ticket's number and a word."]
        ]
        assert rows(ledger, f"FROM changes_between({until}, {after})", 0) == []


@pytest.mark.parametrize("name", ["knowledge", "profiles", "resources", "goals"])
def test_every_macro_of_the_past_takes_a_position_or_a_time(
    node: RunningNode, story: dict[str, object], name: str
) -> None:
    with node.client() as ledger:
        ((last,),) = rows(ledger, "SELECT max(position) FROM checkpoints", story["revised"])
        for moment in (last, f"'{last}'", "now()"):
            now = rows(ledger, f"SELECT count(*) FROM {name}_as_of({moment})", story["revised"])
            assert now == rows(ledger, f"SELECT count(*) FROM {name}", 0), moment
        for moment in (0, "'2000-01-01'", "TIMESTAMPTZ '2000-01-01'"):
            assert rows(ledger, f"FROM {name}_as_of({moment})", 0) == []
        if name != "knowledge":  # without a row nothing looks at the moment
            return
        for wrong in ("'yesterday-ish'", "-1", "NULL", "1.5"):
            with pytest.raises(IllegalQuery, match="neither a log position nor a time"):
                ledger.sql(f"SELECT count(*) FROM {name}_as_of({wrong})")


def test_a_moment_that_has_not_come_is_refused_as_over_http(node: RunningNode, story: dict[str, object]) -> None:
    """It was answered with the present, without a word."""
    with node.client() as ledger:
        rows(ledger, "SELECT 1", story["revised"])
        head = ledger.status()["views"][0]["position"]
        for position in (head + 10**6, f"'{head + 10**6}'", 10**17):
            with pytest.raises(IllegalQuery, match=r"is beyond the last position that is folded, which is \d+"):
                ledger.sql(f"SELECT count(*) FROM knowledge_as_of({position})")
        for moment in ("'2100-01-01'", "DATE '2100-01-01'", "now() + INTERVAL 1 HOUR"):
            with pytest.raises(IllegalQuery, match="is yet to come"):
                ledger.sql(f"SELECT count(*) FROM knowledge_as_of({moment})")
        for asked in (f"position_of({head + 10**6})", "position_of('2100-01-01')"):
            with pytest.raises(IllegalQuery, match=r"beyond|yet to come"):
                ledger.sql(f"SELECT {asked}")
        with pytest.raises(IllegalQuery, match="yet to come"):
            ledger.sql("SELECT count(*) FROM changes_between(0, '2100-01-01')")


def test_an_item_is_as_it_was_at_a_time(node: RunningNode, story: dict[str, object]) -> None:
    with node.client() as ledger:
        then = rows(
            ledger, f"SELECT content FROM knowledge_as_of('{story['between']}') WHERE id = 'branch'", story["revised"]
        )
        assert then == [["Use the  ticket's number."]]


def test_last_served_has_every_item_and_nulls_where_it_never_was(node: RunningNode, story: dict[str, object]) -> None:
    with node.client() as ledger:
        query = "SELECT id, times_served, recall_id, query FROM last_served WHERE id IN ('branch', 'alone') ORDER BY id"
        found = rows(ledger, query, story["revised"])
        assert found[0] == ["alone", 0, None, None]
        assert found[1][1:] == [2, story["late"], "branch ticket"]


def test_duplicates_are_told_whatever_their_case_and_spaces(node: RunningNode, story: dict[str, object]) -> None:
    with node.client() as ledger:
        ledger.acting_as(agent="scribe").revise("twin", content="USE the ticket's\nnumber and a  word.")
        (found,) = rows(ledger, "SELECT ids, items FROM duplicates WHERE list_contains(ids, 'branch')", ledger.written)
        assert found == [["branch", "twin"], 2]


def test_items_that_were_erased_are_no_duplicates_of_each_other(node: RunningNode, story: dict[str, object]) -> None:
    with node.client() as ledger:
        ann = ledger.acting_as(user="ann")
        for name, content in (("fern", "Water it."), ("rose", "Prune it."), ("marked", "[erased]")):
            ann.save(name, content, ["tool"], id=name)
        for name in ("words-1", "words-2"):
            ledger.acting_as(agent="scribe").save(name, "[erased]", ["tool"], id=name)
        assert result_of(ledger, "forget", subject="user:ann")
        found = rows(ledger, "SELECT ids FROM duplicates WHERE content = '[erased]'", ledger.written)
        assert found == [[["words-1", "words-2"]]], "only those that somebody wrote so"


def test_a_client_sees_tables_views_and_their_comments(
    node: RunningNode, story: dict[str, object], tmp_path: Path
) -> None:
    with duckdb.connect() as analyst, node.client() as ledger:
        load_extensions(analyst)
        told = ledger.attach()
        analyst.execute(told["statement"])
        names = {name for (name,) in analyst.execute("FROM kl.query($$ SHOW TABLES $$)").fetchall()}
        assert {"knowledge", "events", "funnel", "last_served", "duplicates"} <= names
        comments = analyst.execute(
            "FROM kl.query($$ SELECT view_name, comment FROM duckdb_views() WHERE NOT internal $$)"
        ).fetchall()
        assert all(comment for _, comment in comments)
        assert analyst.execute("FROM kl.query($$ FROM funnel $$)").fetchall()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT knowledge_id FROM knowledge", "the id of an item is id in knowledge and knowledge_versions"),
        ("SELECT f.id FROM feedback f", "knowledge_id in feedback"),
        ("SELECT created FROM knowledge", "created_at in knowledge, valid_from_time in knowledge_versions"),
        ("SELECT trust FROM knowledge", "is confidence, helpful and harmful"),
        ("SELECT agent FROM knowledge", "owner in knowledge, and whoever said it is actor"),
        ("SELECT created_by FROM knowledge", "actor of knowledge_versions where version = 1"),
        ("SELECT tenant FROM knowledge", "the tenant is org"),
        ("SELECT quite_another FROM knowledge", "DESCRIBE VIEW lists the columns of a view"),
        ("SELECT * FROM agents", "SHOW TABLES lists the views"),
        ("SELECT * FROM knowledge WHERE types = 'tool'", "'tool' IN types"),
        ("SELECT * FROM knowledge_as_of('yesterday')", "'2026-03-05T12:00:00Z'"),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_the_one_that_is(
    node: RunningNode, story: dict[str, object], query: str, told: str
) -> None:
    with node.client() as ledger, pytest.raises(IllegalQuery) as refused:
        rows(ledger, query, story["revised"])
    assert told in refused.value.message


def test_how_the_confidence_of_an_item_moved_and_what_never_helped_whom_is_asked_as_the_page_says(
    node: RunningNode, story: dict[str, object]
) -> None:
    page = Path("docs/how-to/query-with-duckdb.md").read_text()
    moved, never = (sql_below(page, title) for title in ("How much an item was trusted", "What is recalled and never"))
    with node.client() as ledger:
        told = rows(ledger, moved.replace("sample-fixed-sleep", "branch"), story["revised"])
        assert [row[2] for row in told] == ["saved", "helpful", "revised"]
        before, after, revised = (float(str(row[3])) for row in told)
        assert before < after == revised
        helped_not = {row[0]: row[1] for row in rows(ledger, never, story["revised"])}
        assert helped_not == {"agent:scribe": 1}, "the twin was served and no trace said that it helped"


def sql_below(page: str, title: str) -> str:
    """The first query below the heading that begins so."""
    return page.split(f"## {title}", 1)[1].split("```sql\n", 1)[1].split("```", 1)[0]
