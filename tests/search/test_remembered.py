"""What a search remembers of the items is what the view says of them, whatever happened meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.event import JsonObject, NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeRetired, KnowledgeRevised
from projections.engine.batch import fold_batch
from projections.engine.duckdb import open_view
from projections.engine.view import Instance, View
from projections.fold_kit.named_rows import named_rows
from projections.search import ask as search
from projections.search import remembered as remembered_items
from projections.search.ask import Searcher
from projections.search.asked import Asked
from projections.search.known import known, texts
from projections.search.match import Passages, passages_of
from projections.search.remembered import READ_AT_ONCE, RememberedItems
from projections.vectors.client import Answer
from projections.vectors.store.port import Found
from projections.views.knowledge.ask import ITEM_COLUMNS, item_of
from tests.examples import tries
from tests.patience import comes_true
from tests.projections.histories import histories, saved, stored

ORG = "default"


@contextmanager
def empty_view() -> Iterator[View]:
    view = View(Instance(open_view(None)))
    with closing(view):
        yield view


def fold(view: View, events: Sequence[StoredEvent]) -> None:
    folded = fold_batch(view.instance.bench, list(events))
    view.instance.folded(folded.position, events)


async def remembered(items: RememberedItems, positions: Sequence[int]) -> list[JsonObject]:
    known = await items.active(ORG, positions)
    assert [each.at for each in known] == [at for at in positions if at in {each.at for each in known}]
    shown = await items.shown(known)
    assert {*shown} == {each.at for each in known}
    return sorted(shown.values(), key=str)


async def told(view: View, positions: Sequence[int]) -> list[JsonObject]:
    def question(cursor: duckdb.DuckDBPyConnection) -> list[JsonObject]:
        return named_rows(
            cursor,
            f"""SELECT {ITEM_COLUMNS} FROM knowledge
                WHERE org = ? AND status = 'active' AND list_contains(?, version_position)""",
            [ORG, list(positions)],
        )

    return sorted(map(item_of, await view.ask(question)), key=str)


@settings(max_examples=tries(40), deadline=None)
@given(
    log=histories(max_size=20),
    steps=st.lists(st.integers(1, 6), min_size=1, max_size=6),
    most=st.integers(1, 30),
    ahead=st.sampled_from(["nothing", "everything", "later"]),
)
def test_what_is_remembered_is_what_the_view_says_after_every_batch(
    log: list[StoredEvent], steps: list[int], most: int, ahead: str
) -> None:
    async def check() -> None:
        with empty_view() as view:
            items = RememberedItems(view, most, 700 * most)
            at = 0
            for step in steps:
                if batch := log[at : at + step]:
                    fold(view, batch)
                at += len(batch)
                everything = list(range(1, at + 1))
                if ahead == "later":
                    items.put_off(at - step)
                if ahead != "nothing":
                    items.fill()
                if ahead == "everything":
                    await items.learn(at - step, at)
                assert await remembered(items, everything) == await told(view, everything)
                assert await remembered(items, everything[::2]) == await told(view, everything[::2])

    asyncio.run(check())


def about(item: str, fact: Any) -> NewEvent:
    return NewEvent(fact, item, "agent:a")


@pytest.mark.parametrize(("long", "questions"), [(False, [3, 3, 3, 3]), (True, [3, 12])], ids=["short", "long"])
def test_texts_are_read_ahead_a_few_at_once_and_long_ones_are_not(
    long: bool, questions: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counted(cursor: duckdb.DuckDBPyConnection, where: str) -> dict[int, bytes]:
        read = texts(cursor, where)
        asked.append(len(read))
        return read

    async def check() -> None:
        with empty_view() as view:
            fold(view, stored([saved(f"k{number}", content=f"said {number}") for number in range(12)]))
            items = RememberedItems(view)
            items.fill()
            ahead = questions[:1] if long else questions
            await comes_true(lambda: asked == ahead)
            everything = list(range(1, 13))
            assert await remembered(items, everything) == await told(view, everything)
        assert asked == questions

    monkeypatch.setattr(remembered_items, "texts", counted)
    monkeypatch.setattr(remembered_items, "TEXTS_AT_ONCE", 3)
    monkeypatch.setattr(remembered_items, "LONG_TEXTS", 100 if long else 1 << 20)
    asyncio.run(check())


def test_where_there_is_no_more_room_the_oldest_items_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(name: str, question: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*arguments: Any) -> Any:
            asked.append(name)
            return question(*arguments)

        return ask

    async def check() -> None:
        with empty_view() as view:
            fold(view, stored([saved(f"k{number}") for number in range(6)]))
            items = RememberedItems(view, 3)
            items.fill()
            await comes_true(lambda: asked == ["known", "texts"])
            fold(view, stored([saved(f"k{number}") for number in range(7)])[6:])
            await items.learn(6, 7)
            asked.clear()
            assert len(await remembered(items, [5, 6, 7])) == 3
            assert asked == []

    monkeypatch.setattr(remembered_items, "known", counted("known", known))
    monkeypatch.setattr(remembered_items, "texts", counted("texts", texts))
    asyncio.run(check())


def test_few_versions_of_a_long_log_are_read_as_many_are(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        with empty_view() as view:
            fold(view, stored([saved(f"k{number}", content=f"said {number}") for number in range(12)]))
            few = [2, 3, 11]
            many = [item for item in await remembered(RememberedItems(view), range(1, 13)) if item["position"] in few]
            monkeypatch.setattr(remembered_items, "LARGE", 0)
            assert await remembered(RememberedItems(view), few) == many
            assert len(many) == len(few)

    asyncio.run(check())


def test_a_version_that_gave_way_is_no_longer_found() -> None:
    async def check() -> None:
        with empty_view() as view:
            items = RememberedItems(view)
            fold(view, stored([saved("k1"), saved("k2")]))
            assert len(await remembered(items, [1, 2])) == 2
            fold(view, stored([about("k1", KnowledgeRevised(content="another")), about("k2", KnowledgeRetired())], 3))
            assert await remembered(items, [1, 2, 4]) == []
            assert [item["content"] for item in await remembered(items, [3])] == ["another"]

    asyncio.run(check())


def test_the_view_is_asked_nothing_while_nothing_happens_to_items() -> None:
    async def check() -> None:
        with empty_view() as view:
            items = RememberedItems(view)
            fold(view, stored([saved("k1"), saved("k2")]))
            found = await remembered(items, [1, 2])
            view.instance.con.execute("UPDATE knowledge_state SET helpful = 99")  # what it would read if it asked
            assert await remembered(items, [1, 2]) == found
            fold(view, stored([about("k1", KnowledgeRated(verdict="helpful"))], 3))
            assert [item["eval"]["helpful"] for item in await remembered(items, [1])] == [100]

    asyncio.run(check())


class OneFound:
    """A feed, and its searches, whose vectors find what was said at position 1."""

    vector_weight = 1.0
    fed: Callable[[int, int], Awaitable[None]] | None = None

    @property
    def searches(self) -> OneFound:
        return self

    async def answer(self, *_: object, **__: object) -> Answer:
        return Answer([Found("k1", 1, 1, 1.0, None)], None)


def test_what_a_file_said_is_found_no_more_once_another_one_has_its_place() -> None:
    """An erasure makes the file anew: what the one before said must not come back."""

    async def check() -> None:
        with empty_view() as view:
            fold(view, stored([saved("k1", content="a secret")]))
            searcher = Searcher(view, OneFound())  # type: ignore[arg-type]  # all of a feed that a search asks

            async def said() -> list[str]:
                found = await searcher.search(Asked(org=ORG, query="anything", visible=["public"], min_score=0))
                return [item["content"] for item in found]

            assert await said() == ["a secret"]
            await view.swap(Instance(open_view(None)))
            fold(view, stored([saved("k1", content="what is left")]))
            assert await said() == ["what is left"]

    asyncio.run(check())


def test_new_items_are_read_ahead_once_somebody_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def noted(cursor: duckdb.DuckDBPyConnection, where: str) -> dict[int, bytes]:
        found = texts(cursor, where)
        read.extend(found)
        return found

    async def check() -> None:
        with empty_view() as view:
            searcher = Searcher(view, feed := OneFound())  # type: ignore[arg-type]  # all of a feed that a search asks
            one = Asked(org=ORG, query="anything", visible=["public"], min_score=0)

            async def come(first: int, upto: int) -> None:
                fold(view, stored([saved(f"k{number}") for number in range(first, upto + 1)], first))
                assert feed.fed is not None
                await feed.fed(first - 1, upto)

            async def found(*positions: int) -> None:
                await comes_true(lambda: {*positions} <= {*read})

            await come(1, 3)
            assert read == []  # nobody has searched
            await searcher.search(one)
            await found(1, 2, 3)
            await come(4, 5)  # somebody has, just now
            assert {4, 5} <= {*read}
            monkeypatch.setattr(search, "LATELY_SECONDS", 0)
            await come(6, 7)
            await come(8, 9)
            assert not {6, 7, 8, 9} & {*read}  # nobody has lately
            await searcher.search(one)
            await found(6, 7, 8, 9)

    monkeypatch.setattr(remembered_items, "texts", noted)
    asyncio.run(check())


@pytest.mark.parametrize("asked", [{}, {"min_match": 0.1}, {"as_of": 1}], ids=["best", "all that match", "then"])
def test_long_texts_are_read_beside_the_event_loop(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    readers: set[str] = set()

    def reading(items: Iterable[tuple[str, str]]) -> list[Passages]:
        readers.add(threading.current_thread().name)
        return passages_of(items)

    async def check(content: str) -> set[str]:
        readers.clear()
        with empty_view() as view:
            fold(view, stored([saved("k1", content=content)]))
            searcher = Searcher(view, OneFound())  # type: ignore[arg-type]  # all of a feed that a search asks
            found = await searcher.search(Asked(org=ORG, query="lamp", visible=["public"], min_score=0, **asked))
        assert [(item["id"], item["match"]) for item in found] == [("k1", 1.0)]
        return set(readers)

    monkeypatch.setattr(remembered_items, "passages_of", reading)
    here = threading.current_thread().name
    assert asyncio.run(check("a short lamp")) == {here}
    assert here not in asyncio.run(check("a long lamp " * READ_AT_ONCE))
