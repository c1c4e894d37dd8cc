"""What publishers state of recalls opens nothing: a claimed id, a version that they never read, an item named twice."""

from __future__ import annotations

import duckdb

from kledger.contract.scopes import Caller
from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeRevised
from ledger.events.recall import RecallServed, ServedItem
from projections.fold_kit.page import Window
from projections.views.recalls import ask
from tests.projections.histories import saved, stored, view_of

ANN, EVE = Caller(user="ann"), Caller(user="eve")
OPERATOR = Caller()
ALL = Window(20)


def recalled(name: str, actor: str, *served: tuple[str, int]) -> NewEvent:
    items = [ServedItem(id=item, version=version, relevance=1.0) for item, version in served]
    return NewEvent(
        RecallServed(query=f"of {actor}", visible_scopes=[actor], items=items, view_position=1), name, actor
    )


def view(*recalls: NewEvent) -> duckdb.DuckDBPyConnection:
    """An item of ann's that she closed at first and opened then, and recalls."""
    return view_of(
        stored(
            [
                saved("k1", "user:ann", scopes=["user:ann"], content="the secret"),
                NewEvent(KnowledgeRevised(scopes=["public"], content="for all"), "k1", "user:ann"),
                *recalls,
            ]
        )
    ).con


def test_a_version_that_the_actor_never_read_is_left_out_whatever_the_recall_claims() -> None:
    con = view(recalled("r1", "user:eve", ("k1", 1), ("k1", 2), ("k1", 9), ("not-there", 1)))
    shown = ask.recall(con, "default", EVE, "r1")
    assert shown is not None
    assert [(each["content"], each["version_now"]) for each in shown["results"]] == [("for all", 2)]
    assert (shown["of"], shown["left_out"]) == (4, 3)
    whole = ask.recall(con, "default", OPERATOR, "r1")
    assert whole is not None
    assert [each["content"] for each in whole["results"]] == ["the secret", "for all"]


def test_an_id_that_somebody_else_claims_takes_nobodys_recall() -> None:
    con = view(recalled("r1", "user:ann", ("k1", 2)), recalled("r1", "user:eve", ("not-there", 1)))
    queries = {
        who: (ask.recall(con, "default", caller, "r1") or {})["query"]
        for who, caller in (("ann", ANN), ("eve", EVE), ("operator", OPERATOR))
    }
    assert queries == {"ann": "of user:ann", "eve": "of user:eve", "operator": "of user:ann"}


def test_an_item_that_a_recall_names_twice_is_told_once_at_its_best_place() -> None:
    con = view(
        *(recalled(f"r{n}", "user:ann", ("other", 1), ("k1", 2), ("k1", 1)) for n in range(3)),
    )
    found = ask.of_item(con, "default", ANN, "k1", ALL)
    assert [(each["recall_id"], each["rank"], each["of"]) for each in found.results] == [
        (f"r{n}", 2, 3) for n in (2, 1, 0)
    ]
    assert found.total == 3
    told, before = list[str](), None
    for _ in range(9):
        page = ask.of_item(con, "default", ANN, "k1", Window(1, before=before))
        assert page.total == 3
        told += [each["recall_id"] for each in page.results]
        if (before := page.next) is None:
            break
    assert told == ["r2", "r1", "r0"]
    assert ask.recalls(con, "default", ANN, ask.Wanted(item="k1"), ALL).total == 3


def test_a_recall_without_items_is_one_of_none() -> None:
    con = view(recalled("r1", "user:ann"))
    (listed,) = ask.recalls(con, "default", ANN, ask.Wanted(), ALL).results
    shown = ask.recall(con, "default", ANN, "r1")
    assert shown is not None
    assert (listed["of"], shown["of"], shown["results"], shown["left_out"]) == (0, 0, [], 0)
    assert ask.recalls(con, "elsewhere", OPERATOR, ask.Wanted(), ALL).results == []
    assert ask.recall(con, "elsewhere", OPERATOR, "r1") is None
