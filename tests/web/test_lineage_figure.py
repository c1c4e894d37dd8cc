"""The figure of a lineage: left to right, bounded, each box a link, and every word of others text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from producers.web.figures.lineage import MOST_A_SIDE, Box, Texts, fitting, lineage_figure

TEXTS = Texts("Where from, and where to", "{n} more")
ITEM = Box("this item", "Deploy at night", None, here=True)
SVG = "{http://www.w3.org/2000/svg}"


def drawn(came_from: list[Box], led_to: list[Box]) -> ElementTree.Element:
    figure = lineage_figure(came_from, ITEM, led_to, TEXTS, "/ui/items/x?show=lineage#all")
    return ElementTree.fromstring(str(figure).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def test_what_it_came_from_is_left_of_it_and_what_it_led_to_is_right() -> None:
    figure = drawn([Box("trace", "a", "/ui/traces/a")], [Box("recall", "b", "/ui/recalls/b")])
    links = {each.get("href"): float(each[1].get("x", "")) for each in figure.iter(f"{SVG}a")}
    here = next(float(each.get("x", "")) for each in figure.iter(f"{SVG}rect") if "here" in each.get("class", ""))
    assert links["/ui/traces/a"] < here < links["/ui/recalls/b"]


def test_what_has_no_room_is_counted_in_a_link_to_the_list() -> None:
    many = [Box("recall", f"recall-{number}", f"/ui/recalls/{number}") for number in range(300)]
    figure = drawn(many, many)
    assert len(list(figure.iter(f"{SVG}rect"))) <= 2 * (MOST_A_SIDE + 1) + 1
    more = [each for each in figure.iter(f"{SVG}a") if each.get("href", "").endswith("#all")]
    assert [each[0].text for each in more] == [f"{300 - MOST_A_SIDE} more"] * 2


def test_the_same_lineage_is_the_same_figure() -> None:
    boxes = [Box("trace", str(number)) for number in range(30)]
    assert lineage_figure(boxes, ITEM, boxes, TEXTS, "#") == lineage_figure(boxes, ITEM, boxes, TEXTS, "#")


def test_words_of_others_are_text_and_what_has_no_page_is_no_link() -> None:
    hostile = "\"/><script>alert(1)</script>\u202e'"
    figure = lineage_figure([Box(hostile, hostile, '/ui/"x')], ITEM, [Box(hostile, hostile)], TEXTS, "#")
    assert "<script" not in figure
    assert len(re.findall("<a ", figure)) == 1
    assert drawn([Box(hostile, hostile)], []) is not None


def test_a_wide_letter_takes_the_room_of_two() -> None:
    assert fitting("数" * 20) == "数" * 14 + "…"
    assert fitting("a" * 30) == "a" * 30
    assert fitting("\u202eab\x00") == "ab"
