"""Why this answer: a page that explains the very answer that a search gives its reader."""

from __future__ import annotations

import re

from tests.journeys.running_node import RunningNode
from tests.web.visitor import visitor, words


def test_the_page_explains_what_the_search_answered_and_links_its_items(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger:
        saved = [
            ledger.save(f"The kiln number {n}", f"Fire the quartzkiln at {n}00 degrees.", ["tool"], scopes=["public"])
            for n in range(3)
        ]
        answered = ledger.seeing(saved[-1]["position"]).search("quartzkiln", top_k=2, record=False)
    with visitor(shared_node.url) as person:
        answer = person.get("/ui/why", q="quartzkiln", top_k=2)
    assert answer.status_code == 200
    rows = re.findall(r'<tr data-item="([^"]+)"><td>(\d*)</td>', answer.text)
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


def test_a_message_is_answered_with_its_intent_and_the_text_for_a_prompt(shared_node: RunningNode) -> None:
    with visitor(shared_node.url) as person:
        said = words(person.get("/ui/why", q="how hot is the quartzkiln", tab="message").text)
    assert "intent" in said
    assert "The text for the prompt" in said


def test_what_is_no_share_or_no_moment_is_refused_beside_the_form(shared_node: RunningNode) -> None:
    with visitor(shared_node.url) as person:
        for wrong in ({"min_match": "2"}, {"as_of": "yesterday"}):
            answer = person.get("/ui/why", q="quartzkiln", **wrong)
            assert answer.status_code == 422
            assert 'name="q"' in answer.text
