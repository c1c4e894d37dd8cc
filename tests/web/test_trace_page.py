"""A trace, a message, an event: everything that it caused, in order, as far as the reader may see it."""

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


def test_a_trace_shows_what_it_caused_in_order_with_links(ledger: LedgerClient, shared_node: RunningNode) -> None:
    owner = ledger.acting_as(user="tara").within(trace_id="tara/trace 1", message_id="tara-message")
    owner.save("The bridge of tara", "It opens at six.", ["tool"], id="taras-bridge")
    recalled = owner.search("bridge of tara")["recall_id"]
    owner.rate("taras-bridge", "harmful", task="crossing", outcome="wet feet")
    owner.get("taras-bridge")
    with visitor(shared_node.url, user="tara") as tara:
        page = tara.get(page_of("traces", "tara/trace 1")).text
        assert 'href="/ui/items/taras-bridge"' in page
        assert f'href="/ui/recalls/{recalled}"' in page
        said = words(page)
        assert said.index("was saved") < said.index("a recall was served") < said.index("was judged")
        assert "wet feet" in said
        message = tara.get(re.findall(r'href="(/ui/messages/[^"]+)"', page)[0]).text
        assert "The bridge of tara" in words(message)
        event = tara.get(re.findall(r'href="(/ui/events/[^"]+)"', page)[0])
        assert event.status_code == 200


def test_a_long_trace_is_read_page_by_page(ledger: LedgerClient, shared_node: RunningNode) -> None:
    owner = ledger.acting_as(user="tara").within(trace_id="long-trace")
    owner.save_many({"task": f"stone {n}", "content": "grey", "types": ["tool"]} for n in range(130))
    owner.list(limit=1)
    with visitor(shared_node.url, user="tara") as tara:
        first = tara.get("/ui/traces/long-trace").text
        onward = re.search(r'rel="next" href="([^"]+)"', first)
        assert onward is not None
        second = tara.get(onward[1]).text
    both = re.findall(r"stone (\d+)<", first + second)
    assert both == [str(n) for n in range(130)]


def test_an_outsider_sees_no_trace_and_nothing_of_its_items(ledger: LedgerClient, shared_node: RunningNode) -> None:
    owner = ledger.acting_as(user="tara").within(trace_id="secret-trace", message_id="secret-message")
    owner.save("only tara knows", "the tide", ["tool"], id="secret-tide")
    owner.get("secret-tide")
    with visitor(shared_node.url, user="eve") as eve:
        for kind, name in (("traces", "secret-trace"), ("messages", "secret-message"), ("events", "nothing")):
            answer = eve.get(page_of(kind, name))
            assert answer.status_code == 404
            assert "only tara knows" not in answer.text


def test_what_is_looked_up_has_its_page_and_the_latest_recalls_and_sessions_are_listed(
    ledger: LedgerClient, shared_node: RunningNode
) -> None:
    owner = ledger.acting_as(user="tilda").within(trace_id="a/b?c")
    owner.save("The well of tilda", "It is deep.", ["tool"])
    owner.search("the well of tilda")
    owner.session("tildas-session").append([{"role": "user", "content": "how deep?"}])
    owner.list(limit=1)
    with visitor(shared_node.url, user="tilda") as tilda:
        page = tilda.get("/ui/traces").text
        assert "the well of tilda" in words(page)
        assert "tildas-session" in words(page)
        assert tilda.get("/ui/traces", kind="trace", find="a/b?c").url.raw_path == b"/ui/traces/a%2Fb%3Fc"
    with visitor(shared_node.url, user="eve") as eve:
        assert "tilda" not in words(eve.get("/ui/traces").text)


def test_a_message_shows_its_words_and_its_session_also_where_nothing_came_of_it(
    ledger: LedgerClient, shared_node: RunningNode
) -> None:
    owner = ledger.acting_as(user="theo")
    owner.session("theos-talk").append(
        [
            {"id": "theo-1", "role": "user", "content": "The mill <b>stands</b> still."},
            {"id": "theo-2", "role": "user", "content": "Why?"},
        ]
    )
    owner.within(message_id="theo-1").save("The mill of theo", "It stands.", ["tool"])
    owner.list(limit=1)
    with visitor(shared_node.url, user="theo") as theo:
        page = theo.get("/ui/messages/theo-1").text
        assert "The mill &lt;b&gt;stands&lt;/b&gt; still." in page
        assert 'href="/ui/sessions/theos-talk?owner=user%3Atheo"' in page
        assert page.count('href="/ui/messages/theo-1"') == 0, "no row leads to where one is"
        alone = theo.get("/ui/messages/theo-2")
        assert alone.status_code == 200
        assert "Why?" in words(alone.text)
        for link in re.findall(r'href="(/ui/messages/[^"]+)"', theo.get("/ui/sessions/theos-talk").text):
            assert theo.get(link).status_code == 200
    with visitor(shared_node.url, user="eve") as eve:
        assert eve.get("/ui/messages/theo-1").status_code == 404
        assert "theo-1" not in words(eve.get("/ui/traces").text)


def test_a_trace_leads_to_the_session_of_its_id_where_there_is_one(
    ledger: LedgerClient, shared_node: RunningNode
) -> None:
    owner = ledger.acting_as(user="thea")
    owner.within(trace_id="thea-alone").save("The oar of thea", "Ash.", ["tool"])
    owner.within(trace_id="thea-talks").save("The sail of thea", "Red.", ["tool"])
    owner.session("thea-talks").append([{"role": "user", "content": "red or white?"}])
    owner.list(limit=1)
    with visitor(shared_node.url, user="thea") as thea:
        assert "/ui/sessions/thea-alone" not in thea.get("/ui/traces/thea-alone").text
        assert 'href="/ui/sessions/thea-talks"' in thea.get("/ui/traces/thea-talks").text
        latest = thea.get("/ui/traces").text
        assert latest.index('href="/ui/traces/thea-talks"') < latest.index('href="/ui/traces/thea-alone"')


def test_a_timeline_names_the_question_of_a_recall(ledger: LedgerClient, shared_node: RunningNode) -> None:
    owner = ledger.acting_as(user="tove").within(trace_id="trace-of-tove")
    owner.save("The hull of tove", "Oak.", ["tool"], id="toves-hull")
    recalled = owner.search("what is the hull made of")["recall_id"]
    owner.get("toves-hull")
    with visitor(shared_node.url, user="tove") as tove:
        page = tove.get("/ui/traces/trace-of-tove").text
        assert "what is the hull made of a recall was served" in words(page)
        assert f">{recalled}<" not in page
        assert "trace trace" not in words(page)
