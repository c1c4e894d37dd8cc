"""Through no interface does anybody learn of another's session, scratchpad or summary, or that there is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kledger import LedgerClient
from kledger.contract.errors import LedgerError
from tests.attacks.leak_doors import Ask, Doors, Told, Who
from tests.journeys.running_node import caught_up, head, running, until
from tests.openai_server import embedding_endpoint
from tests.reactors.conftest import models

ADA: Who = {"user": "leak-ada", "team": "web"}
OTHERS: dict[str, Who] = {
    "a stranger": {"user": "leak-mallory"},
    "one of her team": {"user": "leak-bob", "team": "web"},
    "an agent of her team": {"agent": "leak-scribe", "team": "web"},
}
OPENERS: list[Who] = [
    {"user": "leak-eve"},
    {"user": "leak-eric", "team": "web"},
    {"agent": "leak-clerk", "team": "web"},
]
"""Who has had a session of that id: whoever asks for hers may not, as what they removed is answered as removed."""
HER_AGENT: Who = {"user": "leak-ada", "agent": "leak-scribe"}
WORD = "the-word-that-nobody-else-may-read"
SUMMARY = "summary-2-1-10"
S = "/api/sessions"


@pytest.fixture(scope="module")
def sdk(doors: Doors) -> Iterator[LedgerClient]:
    with LedgerClient(doors.url) as client:
        yield client


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """A node on which Ada has a session with words, notes, and summaries of them."""
    data: Path = tmp_path_factory.mktemp("sessions") / "data"
    with embedding_endpoint() as server:
        server.chat.says({"discussed": WORD, "decided": WORD, "concluded": WORD}, to="<said by=")
        environment = models(server, KLEDGER_MODEL_SUMMARISE="small", KLEDGER_SESSION_EXTRACT="false")
        with running(data, env=environment) as node, node.client() as op:
            session = op.acting_as(**ADA).session("leak-1")
            session.append([{"id": f"m-{n}", "role": "user", "content": f"{n} {WORD} " * 20} for n in range(1, 41)])
            session.scratchpad({"current_goal": WORD})
            until(lambda: len(session.context(5_000)["summaries"]) == 3, "three segments are summed up")
            caught_up(op)
            opened = Doors(node.url)
            yield opened
            opened.close()


def asks(session: str, **owner: str) -> dict[str, Ask]:
    """Every question about one session, in the words of each interface; `owner` says whose is meant."""
    path, about = f"{S}/{session}", {"session_id": session}
    tool: dict[str, Any] = {} if owner else {"tool": ("session_context", {**about, "max_tokens": 1_000})}
    read = {} if owner else {"tool": ("session_scratchpad", about)}
    note = {} if owner else {"tool": ("session_scratchpad", {**about, "patch": {"current_step": "x"}})}
    more = [part for name, value in owner.items() for part in (f"--{name}", value)]

    def command(*words: str) -> list[str]:
        return ["session", *words, *more]

    def words_of(record: str) -> dict[str, Any]:
        return {} if owner else {"tool": ("session_expand", {**about, "record_id": record})}

    return {
        "messages": Ask(
            f"GET {path}/messages", ("session.messages", (), owner), command("messages", session), owner
        ),
        "context": Ask(
            f"GET {path}/context", ("session.context", (1_000,), owner), command("context", session),
            {"max_tokens": 1_000, **owner}, **tool,
        ),
        "expand": Ask(
            f"GET {path}/expand/m-1", ("session.expand", ("m-1",), owner), command("expand", session, "m-1"), owner,
            **words_of("m-1"),
        ),
        "expand a summary": Ask(
            f"GET {path}/expand/{SUMMARY}", ("session.expand", (SUMMARY,), owner),
            command("expand", session, SUMMARY), owner, **words_of(SUMMARY),
        ),
        "scratchpad": Ask(
            f"GET {path}/scratchpad", ("session.scratchpad", (), owner), command("scratchpad", session), owner, **read
        ),
        "note": Ask(
            f"PATCH {path}/scratchpad", ("session.scratchpad", ({"current_step": "x"},), owner),
            command("scratchpad", session, "--patch", '{"current_step": "x"}'), owner,
            body={"scratchpad": {"current_step": "x"}}, **note,
        ),
        "close": Ask(f"POST {path}/close", ("session.close", (), owner), command("close", session), owner),
        "remove": Ask(f"DELETE {path}", ("session.remove", (), owner), command("remove", session), owner),
    }  # fmt: skip


def told_by(doors: Doors, sdk: LedgerClient, door: str, who: Who, session: str, ask: Ask) -> Told:
    if door == "sdk":  # the method is one of `client.session(id)`
        name, args, given = ask.sdk
        try:
            client = sdk.acting_as(**who).session(session)
            return Told(None, "", getattr(client, name.partition(".")[2])(*args, **given))
        except LedgerError as error:
            return Told(error.code, error.message, error.details)
    return doors.all[door](who, ask)


@pytest.mark.parametrize("owner", [{}, {"owner": "user:leak-ada"}], ids=["unnamed", "named as hers"])
@pytest.mark.parametrize("what", asks("x"))
def test_another_s_session_is_told_apart_from_none_by_nobody(
    doors: Doors, sdk: LedgerClient, what: str, owner: dict[str, str]
) -> None:
    before = head(sdk)
    hers, none = asks("leak-1", **owner)[what], asks("leak-2", **owner)[what]
    for number, (principal, who) in enumerate(OTHERS.items()):
        for door in doors.of(hers):
            if door == "command" and number != len(what) % len(OTHERS):  # which takes ten times as long
                continue
            there = told_by(doors, sdk, door, who, "leak-1", hers)
            nothing = told_by(doors, sdk, door, who, "leak-2", none)
            assert there.code == nothing.code == "unknown_session", (door, principal, there)
            assert there.text.replace("leak-1", "leak-2") == nothing.text, (door, principal)
            assert WORD not in there.text, (door, principal)
    assert head(sdk) == before


def test_who_appends_under_the_id_of_another_s_session_opens_one_of_their_own(doors: Doors, sdk: LedgerClient) -> None:
    said = [{"id": "m-1", "role": "user", "content": "mine"}]
    for who in OPENERS:
        opened = {"session_id": "leak-1", "messages": said}
        for door, told in (
            ("sdk", sdk.acting_as(**who).session("leak-1").append(said)),
            ("mcp", doors.mcp(who, Ask("", ("", (), {}), [], tool=("session_append", opened))).document),
        ):
            assert (told["count"], WORD in str(told)) == (1, False), door
        mine = sdk.acting_as(**who).session("leak-1")
        assert [each["content"] for each in mine.messages()["messages"]] == ["mine"]
        assert WORD not in str([mine.context(5_000), mine.expand("m-1"), mine.scratchpad()])
        assert mine.remove()["status"] == "removed"
    hers = sdk.acting_as(**ADA).session("leak-1")
    assert (hers.messages()["total"], hers.messages()["messages"][0]["content"]) == (40, f"1 {WORD} " * 20)


def test_lists_searches_and_lineage_have_no_word_of_it(doors: Doors) -> None:
    for more in ({}, {"owner": "user:leak-ada"}, {"status": "all"}):
        words = [part for name, value in more.items() for part in (f"--{name}", value)]
        listed = Ask(f"GET {S}", ("sessions", (), more), ["session", "list", *words], more)
        for door in ("http", "sdk", "command"):
            for who in OTHERS.values():
                told = doors.all[door](who, listed)
                assert "leak-ada" not in str(told.document["results"]), (door, more)
                assert WORD not in told.text
            own = doors.all[door](ADA, listed).document["results"]
            assert [each["session_id"] for each in own] == ["leak-1"], (door, more)
    for who in (*OTHERS.values(), ADA):
        found = doors.http(who, Ask("GET /api/knowledge/search", ("", (), {}), [], {"q": WORD, "record": "false"}))
        assert WORD not in str(found.document["results"])
        lineage = doors.http(who, Ask("GET /api/lineage", ("", (), {}), [], {"ref": SUMMARY}))
        assert WORD not in lineage.text.replace(SUMMARY, "")


def test_ada_and_who_works_for_her_read_all_of_it_in_the_end(doors: Doors, sdk: LedgerClient) -> None:
    for who in (ADA, HER_AGENT):
        for door in ("http", "sdk", "command"):
            for what in ("messages", "context", "expand", "expand a summary"):
                assert WORD in told_by(doors, sdk, door, who, "leak-1", asks("leak-1")[what]).text, (door, what)
            noted = told_by(doors, sdk, door, who, "leak-1", asks("leak-1")["scratchpad"]).document
            assert noted["scratchpad"] == {"current_goal": WORD}
    summaries = sdk.acting_as(**ADA).session("leak-1").context(5_000)["summaries"]
    assert [WORD in each["content"] for each in summaries] == [True] * 3
