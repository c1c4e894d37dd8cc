"""What turns a text around or hides words in it is seen on a page, and sent by its forms as it is."""

from __future__ import annotations

import re
from html import unescape

import pytest

from kledger.client.clients import LedgerClient
from producers.web.rendering import item_page
from producers.web.turned import in_sight
from tests.journeys.running_node import RunningNode
from tests.web.visitor import Visitor, visitor

FLAG = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
TURNED = "pay \u202eevil\u202c \u2066to\u2069 \U000e0041\U000e0042 {FLAG} 👩‍👩‍👧 שלום\u200f!".replace("{FLAG}", FLAG)
SEEN = r"pay \u202eevil\u202c \u2066to\u2069 \U000e0041\U000e0042 {FLAG} 👩‍👩‍👧 שלום" + "\u200f!"
SEEN = SEEN.replace("{FLAG}", FLAG)


@pytest.mark.parametrize(
    ("markup", "seen"),
    [
        (f"<p>{TURNED}</p>", f"<p>{SEEN}</p>"),
        (f'<a href="/{TURNED}" title="{TURNED}">x</a>', f'<a href="/{TURNED}" title="{TURNED}">x</a>'),
        (f"<textarea name=a>\n{TURNED}</textarea>{TURNED}", f"<textarea name=a>\n{TURNED}</textarea>{SEEN}"),
        ("<p>plain</p>", "<p>plain</p>"),
        ("\u202ex<unended", "\\u202ex<unended"),
    ],
)
def test_what_stands_between_tags_is_seen_and_what_a_form_or_an_address_says_is_kept(markup: str, seen: str) -> None:
    assert in_sight(markup) == seen


def test_a_page_turns_no_word_of_an_item_around_and_its_form_keeps_them(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger, visitor(shared_node.url, user="ivo") as ivo:
        shows_them(ledger.acting_as(user="ivo"), ivo)


def shows_them(owner: LedgerClient, ivo: Visitor) -> None:
    owner.save(TURNED, f"{TURNED} at six", ["tool"], id="turned", tags={"a": TURNED}, source={"name": TURNED})
    owner.revise("turned", content=f"{TURNED} at seven", reason=TURNED)
    for show in ("now", "versions", "access"):
        markup = ivo.get(item_page("turned", show=show)).text
        outside = re.sub(r"<textarea\b.*?</textarea>|<[^>]*>", "", markup, flags=re.DOTALL)
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", outside), show
        assert SEEN in unescape(outside), show
    form = ivo.get(item_page("turned", show="revise")).text
    (content,) = re.findall(r'<textarea name="content"[^>]*>\n(.*?)</textarea>', form, flags=re.DOTALL)
    assert unescape(content) == f"{TURNED} at seven"
