"""A session: what was said, in order and as text, where the work stands, and what came of it; its owner's alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kledger import LedgerClient
from producers.web.rendering import page_of
from tests.journeys.running_node import RunningNode
from tests.web.visitor import visitor, words


@pytest.fixture
def ledger(shared_node: RunningNode) -> Iterator[LedgerClient]:
    with shared_node.client() as client:
        yield client


def test_a_session_is_read_page_by_page_with_where_it_stands_and_what_came_of_it(
    ledger: LedgerClient, shared_node: RunningNode
) -> None:
    name = "sam's/session"
    owner = ledger.acting_as(user="sam")
    said = [{"id": f"sam-{n}", "role": "user", "content": f"word {n}. <script>alert(1)</script>"} for n in range(70)]
    owner.session(name).append(said)
    owner.session(name).scratchpad({"current_goal": "mend the roof", "decisions": [{"what": "slate", "why": "rain"}]})
    owner.within(trace_id=name).save("The roof of sam", "Slate.", ["tool"], id="sams-roof")
    owner.get("sams-roof")
    with visitor(shared_node.url, user="sam") as sam:
        first = sam.get(page_of("sessions", name)).text
        onward = re.search(r'rel="next" href="([^"]+)"', first)
        assert onward is not None
        second = sam.get(onward[1]).text
        assert re.findall(r"word (\d+)\.", first + second) == [str(n) for n in range(70)]
        assert "<script>alert" not in first
        assert all(text in words(first) for text in ("mend the roof", "slate", "rain", "The roof of sam"))
        assert 'href="/ui/items/sams-roof"' in first
        assert name in words(sam.get("/ui/sessions").text).replace("&#39;", "'")
    with visitor(shared_node.url, user="eve") as eve:
        assert eve.get(page_of("sessions", name)).status_code == 404
        assert eve.get(page_of("sessions", name), owner="user:sam").status_code == 404
        assert "sam" not in words(eve.get("/ui/sessions").text)


def test_a_long_message_is_shown_in_part_and_whole_where_it_is_asked_for(
    ledger: LedgerClient, shared_node: RunningNode
) -> None:
    ledger.acting_as(user="sam").session("long").append(
        [{"id": "all", "role": "user", "content": "字" * 30_000 + "end"}]
    )
    with visitor(shared_node.url, user="sam") as sam:
        page = sam.get("/ui/sessions/long").text
        assert "字end" not in page
        assert "30,003 characters" in page
        assert "字end" in sam.get("/ui/sessions/long", words="all").text


def test_nothing_is_summed_up_for_somebody_who_looks(ledger: LedgerClient) -> None:
    own = ledger.acting_as(user="sam").session("short-one")
    own.append([{"role": "user", "content": "hello"}])
    assert own.summaries() == {"session_id": "short-one", "summaries": [], "overview": None}


def test_what_was_saved_from_a_message_stands_under_it(ledger: LedgerClient, shared_node: RunningNode) -> None:
    owner = ledger.acting_as(user="suri")
    owner.session("suris-talk").append([{"id": f"suri-{n}", "role": "user", "content": f"word {n}"} for n in (1, 2)])
    owner.within(message_id="suri-2").save("The kiln of suri", "It is hot.", ["tool"], id="suris-kiln")
    owner.remember("Suri likes clay.", "semantic", id="suris-clay", session="suris-talk")
    owner.get("suris-clay")
    with visitor(shared_node.url, user="suri") as suri:
        page = suri.get("/ui/sessions/suris-talk").text
        said = words(page)
        assert said.index("word 2") < said.index("Saved from this message: The kiln of suri")
        assert "2 items were saved from this conversation. Of the whole session: Suri likes clay" in said
        assert 'href="/ui/traces/suris-talk"' not in page, "nothing is behind it"


def test_the_operator_sees_the_sessions_of_all_and_opens_them_by_their_id(
    ledger: LedgerClient, shared_node: RunningNode
) -> None:
    ledger.acting_as(user="saul").session("sauls-talk").append([{"role": "user", "content": "about the sea"}])
    with visitor(shared_node.url) as operator:
        for page in ("/ui/sessions", "/ui/traces"):
            assert "sauls-talk user:saul" in words(operator.get(page).text)
        assert "about the sea" in words(operator.get("/ui/sessions/sauls-talk").text)
        assert "user:nobody has no session." in words(operator.get("/ui/sessions", owner="user:nobody").text)
