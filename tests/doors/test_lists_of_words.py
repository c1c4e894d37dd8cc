"""A filter of several words is one text, and a word of it may hold anything, a comma too."""

from __future__ import annotations

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.lists import join_words, split_words
from tests.journeys.running_node import RunningNode, caught_up
from tests.web.visitor import visitor


def links_of(page: str) -> list[str]:
    """Where a list's facets and tags lead."""
    return list(dict.fromkeys(unescape(link) for link in re.findall(r'href="(/ui/knowledge\?[^"]*tags=[^"]*)"', page)))


def shown(page: str) -> tuple[str, ...]:
    """The items on a page."""
    return tuple(sorted(set(re.findall(r'data-item="([^"]+)"', page))))


WORDS = st.lists(
    st.text("ab,\\ |。，", min_size=1).map(str.strip).filter(bool),
    unique=True,
)


@given(WORDS)
def test_words_come_back_from_their_text(words: list[str]) -> None:
    assert split_words(join_words(words)) == words


def test_a_backslash_before_anything_else_is_a_part_of_the_word() -> None:
    assert split_words(r" a\b , c\\d,, x\,y ,a\b, \ ") == [r"a\b", r"c\d", "x,y", "\\"]


def test_a_tag_with_a_comma_is_found_by_every_interface_and_its_parts_are_not(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger:
        ann = ledger.acting_as(user="lw-ann")
        for item_id, tag in (("lw-both", r"lw-x,y\z"), ("lw-x", "lw-x"), ("lw-y", r"y\z")):
            ann.save(f"task of {item_id}", "content", ["tool"], id=item_id, tags={"area": tag})
        caught_up(ledger)
        tags = [r"lw-x,y\z"]
        assert [each["id"] for each in ann.list(tags=tags)["results"]] == ["lw-both"]
        assert [each["id"] for each in ann.search("content", tags=tags, record=False)["results"]] == ["lw-both"]
        with visitor(shared_node.url, user="lw-ann") as person:
            page = person.get("/ui/knowledge").text
            links = [link for link in links_of(page) if "lw-x" in link and "both" not in link]
            assert {shown(person.get(link).text) for link in links} == {("lw-both",), ("lw-x",)}
            listed = next(link for link in links if shown(person.get(link).text) == ("lw-both",))
            bulk = person.get(listed.replace("/ui/knowledge?", "/ui/knowledge/bulk?all=1&action=retire&")).text
            assert "task of lw-both" in bulk
            assert "task of lw-x" not in bulk
