"""What changes is told to whoever looks and may see it, and streams end when they have to."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import httpx
import orjson
import pytest

from kledger.contract.errors import RateLimited
from producers.access.tokens import create_token, revoke_token
from producers.web.live.followers import MOST_OF_A_SESSION, MOST_OF_ONE, Followers
from producers.web.sessions import IDLE, Session, Sessions
from tests.journeys.running_node import RunningNode, running, until
from tests.patience import PATIENCE
from tests.web.visitor import Visitor, visitor


class Watched:
    """A stream, read on a thread of its own."""

    def __init__(self, stream: httpx.Response) -> None:
        self.text, self.over = "", False
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: httpx.Response) -> None:
        try:
            for part in stream.iter_text():
                self.text += part
        except httpx.HTTPError:
            pass
        self.over = True

    @property
    def told(self) -> list[dict[str, object]]:
        lines = self.text.splitlines()
        return [
            orjson.loads(following.removeprefix("data: "))
            for line, following in pairwise(lines)
            if line == "event: changed" and following
        ]


@contextmanager
def watching(person: Visitor) -> Iterator[Watched]:
    with person.http.stream("GET", "/ui/live", timeout=None) as stream:
        assert stream.status_code == 200, stream.read()
        watched = Watched(stream)
        until(lambda: ": open" in watched.text, "the stream opens")
        yield watched


def test_a_change_is_told_to_who_may_see_it_and_to_nobody_else(shared_node: RunningNode) -> None:
    with (
        visitor(shared_node.url, user="wilma") as wilma,
        visitor(shared_node.url, user="fred") as fred,
        watching(wilma) as hers,
        watching(fred) as his,
        shared_node.client() as ledger,
    ):
        ledger.acting_as(user="wilma").save("live", "hers alone", ["tool"], id="live-hers")
        until(lambda: hers.told, "she is told")
        assert hers.told[0]["ids"] == ["live-hers"]
        assert hers.told[0]["count"] == 1
        ledger.acting_as(user="fred").save("live", "his alone", ["tool"], id="live-his")
        until(lambda: his.told, "he is told of his own")
        assert [each["ids"] for each in his.told] == [["live-his"]]
        assert "live-hers" not in his.text


def test_a_stream_ends_on_signing_out_and_tells_nothing_more(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, user="wilma") as wilma, watching(wilma) as hers, shared_node.client() as ledger:
        wilma.get("/ui/sign-in")
        with httpx.Client(base_url=shared_node.url, cookies=wilma.http.cookies, timeout=PATIENCE) as same:
            same.post("/ui/sign-out", data={"csrf": wilma.csrf})
        ledger.acting_as(user="wilma").save("live", "after she left", ["tool"], id="live-after")
        until(lambda: hers.over, "the stream ends")
        assert "live-after" not in hers.text


def test_a_stream_ends_with_its_token(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    record, token = create_token(data, {"user": ["ida"]}, "agent")
    _, other = create_token(data, {}, "operator")
    with running(data) as node, visitor(node.url, token) as ida, watching(ida) as hers:
        revoke_token(data, record.id)
        with node.client(token=other) as ledger:
            ledger.save("live", "when ida is gone", ["tool"], id="live-gone", owner="user:ida", scopes=["public"])
        until(lambda: hers.over, "the stream ends")
        assert "live-gone" not in hers.text


def test_so_many_pages_of_a_session_are_told_and_no_more(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, user="wilma") as wilma, ExitStack() as stack:
        for _ in range(MOST_OF_A_SESSION):
            stack.enter_context(watching(wilma))
        assert wilma.http.get("/ui/live").status_code == 429


def test_who_is_signed_out_gets_no_stream(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, signed_in=False) as person:
        assert person.http.get("/ui/live").status_code == 401


def test_a_node_with_open_streams_stops_as_soon_as_one_without(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node, ExitStack() as stack:
        watched = []
        for number in range(10):
            person = stack.enter_context(visitor(node.url, user=f"u{number}"))
            watched.append(stack.enter_context(watching(person)))
        began = time.monotonic()
        assert node.stop() == 0
        # uvicorn would wait its whole ten seconds for a stream that goes on.
        assert "timeout graceful shutdown exceeded" not in node.said()
        assert time.monotonic() - began < 60
        until(lambda: all(each.over for each in watched), "the streams end")


def test_watching_keeps_no_idle_session_alive() -> None:
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    named = sessions.begin(_session())
    now[0] = IDLE - 1
    assert sessions.of(named, renewed=False) is not None
    now[0] = IDLE + 1
    assert sessions.of(named, renewed=False) is None


async def test_nobody_takes_the_streams_of_others_by_signing_in_often() -> None:
    followers = Followers(Still(), Sessions())
    try:
        for _ in range(MOST_OF_ONE // MOST_OF_A_SESSION):
            session = _session("token of ann")
            for _ in range(MOST_OF_A_SESSION):
                followers.open(session, 0)
        with pytest.raises(RateLimited):
            followers.open(_session("token of ann"), 0)
        followers.open(_session("token of bob"), 0)
    finally:
        followers.close()


class Still:
    """A view that does not move."""

    position = items_position = 0


def _session(of: str = "") -> Session:
    from kledger.client.clients import AsyncLedgerClient
    from kledger.client.connection import Connection
    from kledger.client.wire import Wire
    from kledger.contract.scopes import Caller

    return Session(
        Caller(), AsyncLedgerClient.over(Wire(Connection("http://127.0.0.1", token=""))), False, True, True, of=of
    )


@pytest.mark.parametrize("path", ["/ui/knowledge"])
def test_a_page_that_shows_items_follows_from_what_it_shows(shared_node: RunningNode, path: str) -> None:
    with visitor(shared_node.url) as person:
        assert "/ui/live?after=" in person.get(path).text
        assert "/ui/live?after=" not in person.get("/ui/knowledge?as_of=1").text
        assert "/ui/live?after=" not in person.get("/ui/sql").text
