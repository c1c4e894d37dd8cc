"""What is refused is told in words for persons, in their language, and nothing that they wrote is lost."""

from __future__ import annotations

import re
from html import unescape

import pytest

from docs.generators.errors import errors_page
from producers.web.errors.codes import CODES
from producers.web.errors.own import OWN
from producers.web.errors.telling import FIELDS, UNKNOWN
from producers.web.words import chinese
from tests.journeys.running_node import RunningNode
from tests.web.visitor import visitor, words

IN_CHINESE = {"Accept-Language": "zh-CN"}
DETAIL = re.compile(r"<details.*?</details>", re.DOTALL)


def said(page: str) -> str:
    """The words of the errors of a page, without their details."""
    found = re.findall(r'<div class="notice bad refusal".*?</details>', page, re.DOTALL)
    assert found
    return words(DETAIL.sub("", " ".join(found)))


def test_every_code_has_words_for_persons_in_both_languages() -> None:
    codes = set(re.findall(r"^\| `(\w+)` \|", errors_page(), re.M))
    assert len(codes) > 50
    assert set(CODES) == codes
    texts = {*CODES.values(), *FIELDS.values(), *(each.said for each in OWN), UNKNOWN}
    assert texts <= set(chinese())


def test_an_error_is_told_in_the_language_of_the_reader_with_the_message_of_the_node_as_a_detail(
    shared_node: RunningNode,
) -> None:
    with visitor(shared_node.url, user="er-ann") as ann:
        english = ann.get("/ui/items/er-nowhere")
        assert english.status_code == 404
        assert said(english.text).startswith("There is no such item, or you may not see it.")
        ann.http.headers.update(IN_CHINESE)
        page = ann.get("/ui/items/er-nowhere").text
        assert not re.search(r"[A-Za-z]{3,}", said(page))
        detail = DETAIL.search(page[page.index("refusal") :])
        assert detail is not None
        assert "er-nowhere" in words(detail[0])
        assert "unknown_knowledge" in words(detail[0])


def test_a_form_that_is_refused_names_the_fields_that_do_not_fit_as_it_labels_them(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, user="er-ann") as ann:
        ann.get("/ui/new")
        answer = ann.post("/ui/new", content="c", types="Not A Type")
        assert said(answer.text) == "Something that was written does not fit. Check: Types"
        assert "types.0" in words(answer.text)  # in the detail


def test_a_change_that_is_refused_leads_back_to_its_form_with_what_was_written(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger, visitor(shared_node.url, user="er-ann") as ann:
        ledger.acting_as(user="er-ann").save("a door", "is open", ["tool"], id="er-door")
        ann.get("/ui/items/er-door?show=access")
        fields: dict[str, str | list[str]] = {
            "entity": ["team:er", 'mei"><script>'],
            "permission": ["read_write", "read"],
            "once": "er-1",
        }
        refused = ann.post("/ui/items/er-door/share", fields)
        assert refused.status_code == 422
        assert "<script>" not in refused.text.partition('class="narrow"')[2]
        form = re.search(r'<form method="post" action="/ui/items/er-door/share".*?</form>', refused.text, re.DOTALL)
        assert form is not None
        sent = [(name, unescape(value)) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form[0])]
        assert [value for name, value in sent if name == "entity"] == fields["entity"]
        assert [value for name, value in sent if name == "permission"] == fields["permission"]
        again = ann.post("/ui/items/er-door/share", {**fields, "entity": ["team:er", "user:mei"]})
        assert again.status_code == 200
        assert {row["entity"] for row in ledger.get("er-door")["acl"]} == {"team:er", "user:mei"}


@pytest.mark.parametrize(
    ("referer", "back"),
    [
        ("{own}/ui/traces?find=x", "/ui/traces?find=x"),
        ("https://evil.example/ui/traces", "/ui"),
        ("{own}/api/knowledge", "/ui"),
        ("", "/ui"),
    ],
)
def test_an_error_leads_back_to_the_page_of_ours_that_one_came_from(
    shared_node: RunningNode, referer: str, back: str
) -> None:
    with visitor(shared_node.url, user="er-ann") as ann:
        answer = ann.http.get("/ui/traces/er-none", headers={"Referer": referer.format(own=shared_node.url)})
        assert answer.status_code == 404
        link = re.search(r'<p><a href="([^"]+)">', answer.text.partition("refusal")[2])
        assert link is not None
        assert unescape(link[1]) == back


@pytest.mark.parametrize("ended", ["signed out", "signed in anew"])
def test_what_was_written_when_the_session_ended_is_shown_to_be_copied(shared_node: RunningNode, ended: str) -> None:
    with visitor(shared_node.url, user="er-ann") as ann:
        stale = ann.csrf
        ann.post("/ui/sign-out")
        if ended == "signed in anew":
            ann.sign_in(user="er-ann")
        ann.http.headers["Referer"] = f"{shared_node.url}/ui/items/er-door?show=revise"
        written = {"csrf": stale, "content": "an evening's work </textarea>", "types": "tool"}
        for said_by_browser in ({"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {}):
            answer = ann.http.post("/ui/items/er-door/revise", data=written, headers=said_by_browser)
            assert answer.status_code in (401, 403)
            shown = "an evening&#39;s work &lt;/textarea&gt;</textarea>" in answer.text
            assert shown is (said_by_browser.get("Sec-Fetch-Site") == "same-origin")
            assert "Send it again" not in answer.text
            assert ('"/ui/sign-in?next=/ui/items/er-door%3Fshow%3Drevise"' in answer.text) is (ended == "signed out")
            assert stale not in answer.text


def test_what_another_site_sent_is_not_offered_to_be_sent_again(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, user="er-ann") as ann:
        answer = ann.http.post("/ui/items/er-door/share", data={"csrf": "another", "entity": "user:er-eve"})
        assert answer.status_code == 403
        assert "user:er-eve" not in answer.text
        assert "Open the page again, and repeat it." in said(answer.text)
