"""Why this answer: a page that explains the very answer that a search gives its reader."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.journeys.running_node import RunningNode, caught_up
from tests.web.visitor import visitor, words


@pytest.fixture(scope="module")
def kilns(shared_node: RunningNode) -> RunningNode:
    """A node that knows of three kilns."""
    with shared_node.client() as ledger:
        for n in range(3):
            ledger.save(f"The kiln number {n}", f"Fire the quartzkiln at {n}00 degrees.", ["tool"], scopes=["public"])
        caught_up(ledger)
    return shared_node


def test_the_page_explains_what_the_search_answered_and_links_its_items(kilns: RunningNode) -> None:
    with kilns.client() as ledger, visitor(kilns.url) as person:
        answered = ledger.search("quartzkiln", top_k=2, record=False)
        answer = person.get("/ui/why", q="quartzkiln", top_k=2)
    assert answer.status_code == 200
    rows = re.findall(r'<tr data-item="([^"]+)"><td>(\d*)–?</td>', answer.text)
    ranked = [each for each, rank in sorted(rows, key=lambda row: int(row[1] or 99)) if rank or False]
    assert [each for each in ranked if dict(rows)[each]] == [item["id"] for item in answered["results"]]
    assert "others are better" in words(answer.text)
    assert f'href="/ui/items/{answered["results"][0]["id"]}"' in answer.text
    assert 'class="of-keyword"' in answer.text


def test_nothing_of_what_the_reader_may_not_see_is_explained(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger:
        ledger.acting_as(user="wilma").save("The vault", "The vaultzebra stands open.", ["tool"], id="vaultzebra-1")
    with visitor(shared_node.url, user="wilma") as wilma, visitor(shared_node.url, user="fred") as fred:
        assert "vaultzebra-1" in wilma.get("/ui/why", q="vaultzebra").text
        assert "vaultzebra-1" not in fred.get("/ui/why", q="vaultzebra").text


def test_a_message_is_answered_with_its_intent_and_the_text_for_a_prompt(kilns: RunningNode) -> None:
    with visitor(kilns.url) as person:
        said = words(person.get("/ui/why", q="how hot is the quartzkiln", tab="message").text)
    assert "intent" in said
    assert "The text for the prompt" in said


def test_what_is_no_share_or_no_moment_is_refused_beside_the_form(shared_node: RunningNode) -> None:
    with visitor(shared_node.url) as person:
        for wrong in ({"min_match": "2"}, {"as_of": "yesterday"}):
            answer = person.get("/ui/why", q="quartzkiln", **wrong)
            assert answer.status_code == 422
            assert 'name="q"' in answer.text


def test_the_candidates_beyond_the_next_best_are_a_click_away(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger:
        nora = ledger.acting_as(user="wy-nora")
        last = [nora.save(f"The oven {n}", f"Fire the claywombat at {n} degrees.", ["tool"]) for n in range(30)][-1]
        nora.seeing(last["position"]).search("claywombat", record=False)
    with visitor(shared_node.url, user="wy-nora") as person:
        page = person.get("/ui/why", q="claywombat", top_k=2).text
        assert page.count("<tr data-item=") == 12
        link = re.search(r'href="(/ui/why[^"]+all=1)"', page)
        assert link is not None
        assert person.get(unescape(link[1])).text.count("<tr data-item=") > 12


def test_numbers_of_a_message_have_words_and_a_bar_in_the_language_of_the_reader(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger:
        remembered = ledger.acting_as(user="wy-ole").remember("The glazegnu is fired twice.", "semantic")
        caught_up(ledger)
    with visitor(shared_node.url, user="wy-ole") as person:
        page = person.get("/ui/why", q="how often is the glazegnu fired", tab="message").text
        assert f'<tr data-item="{remembered["id"]}">' in page
        assert '<rect class="of-vector"' in page
        assert "the relevance, moved a little by each of the others" in words(page)
        person.http.headers["Accept-Language"] = "zh-CN"
        page = person.get("/ui/why", q="how often is the glazegnu fired", tab="message").text
        shown = words(re.sub(r"<pre.*?</pre>", "", page.partition('<h2 id="recalled">')[2], flags=re.DOTALL))
        assert "new_task" not in shown
        assert not re.search(r"relevance|confidence|intent", shown)


def test_where_nothing_is_known_no_empty_table_and_no_empty_heading_is_shown(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, user="wy-nobody") as person:
        page = person.get("/ui/why", q="zzyzx", types="nosuchtype").text
        assert "<table" not in page
        assert "Nothing that could be ranked is here" in words(page)
        page = person.get("/ui/why", q="zzyzx qwerty", tab="message", min_match="1").text
        assert "<pre" not in page
        assert "<table" not in page
