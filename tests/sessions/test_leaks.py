"""Through no interface does anybody learn of another's session, scratchpad or summary, or that there is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kledger import LedgerClient
from kledger.contract.errors import LedgerError
from tests.attacks.leak_doors import Ask, Doors, Told
from tests.journeys.running_node import RunningNode

ADA, MALLORY = {"user": "leak-ada"}, {"user": "leak-mallory"}
WORD = "the-word-that-nobody-else-may-read"
S = "/api/sessions"


@pytest.fixture(scope="module")
def sdk(shared_node: RunningNode) -> Iterator[LedgerClient]:
    with shared_node.client() as client:
        yield client


@pytest.fixture(scope="module")
def doors(shared_node: RunningNode) -> Iterator[Doors]:
    with shared_node.client() as op:
        session = op.acting_as(**ADA).session("leak-1")
        session.append([{"id": "m-1", "role": "user", "content": WORD}])
        session.scratchpad({"current_goal": WORD})
    opened = Doors(shared_node.url)
    yield opened
    opened.close()


def asks(session: str) -> dict[str, Ask]:
    """Every question about one session, in the words of each interface."""
    path, about = f"{S}/{session}", {"session_id": session}
    return {
        "messages": Ask(f"GET {path}/messages", ("session.messages", (), {}), ["session", "messages", session]),
        "context": Ask(
            f"GET {path}/context", ("session.context", (1_000,), {}), ["session", "context", session],
            {"max_tokens": 1_000}, tool=("session_context", {**about, "max_tokens": 1_000}),
        ),
        "expand": Ask(
            f"GET {path}/expand/m-1", ("session.expand", ("m-1",), {}), ["session", "expand", session, "m-1"],
        ),
        "scratchpad": Ask(
            f"GET {path}/scratchpad", ("session.scratchpad", (), {}), ["session", "scratchpad", session],
            tool=("session_scratchpad", about),
        ),
        "note": Ask(
            f"PATCH {path}/scratchpad", ("session.scratchpad", ({"current_step": "x"},), {}),
            ["session", "scratchpad", session, "--patch", '{"current_step": "x"}'],
            body={"scratchpad": {"current_step": "x"}},
            tool=("session_scratchpad", {**about, "patch": {"current_step": "x"}}),
        ),
        "close": Ask(f"POST {path}/close", ("session.close", (), {}), ["session", "close", session]),
        "remove": Ask(f"DELETE {path}", ("session.remove", (), {}), ["session", "remove", session]),
    }  # fmt: skip


def told_by(doors: Doors, sdk: LedgerClient, door: str, who: dict[str, str], session: str, what: str) -> Told:
    ask = asks(session)[what]
    if door == "sdk":  # the method is one of `client.session(id)`
        name, args, given = ask.sdk
        try:
            client = sdk.acting_as(**who).session(session)
            return Told(None, "", getattr(client, name.partition(".")[2])(*args, **given))
        except LedgerError as error:
            return Told(error.code, error.message, error.details)
    return doors.all[door](who, ask)


@pytest.mark.parametrize("what", asks("x"))
def test_another_s_session_is_told_apart_from_none_by_nobody(doors: Doors, sdk: LedgerClient, what: str) -> None:
    for door in doors.of(asks("leak-1")[what]):
        there = told_by(doors, sdk, door, MALLORY, "leak-1", what)
        none = told_by(doors, sdk, door, MALLORY, "leak-2", what)
        assert there.code == none.code == "unknown_session", (door, there)
        assert there.text.replace("leak-1", "leak-2") == none.text, door
        assert WORD not in there.text


def test_lists_searches_and_lineage_have_no_word_of_it(doors: Doors) -> None:
    listed = Ask(f"GET {S}", ("sessions", (), {}), ["session", "list"])
    for door in ("http", "sdk", "command"):
        assert doors.all[door](MALLORY, listed).document["results"] == []
        assert [each["session_id"] for each in doors.all[door](ADA, listed).document["results"]] == ["leak-1"]
    for who in (MALLORY, ADA):
        found = doors.http(who, Ask("GET /api/knowledge/search", ("", (), {}), [], {"q": WORD, "record": "false"}))
        assert WORD not in str(found.document["results"])


def test_ada_reads_all_of_it_in_the_end(doors: Doors, sdk: LedgerClient) -> None:
    for door in ("http", "sdk", "command"):
        assert WORD in told_by(doors, sdk, door, ADA, "leak-1", "messages").text
        assert told_by(doors, sdk, door, ADA, "leak-1", "scratchpad").document["scratchpad"] == {"current_goal": WORD}
