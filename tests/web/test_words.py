"""Every text of the pages is there in English and Chinese."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import producers.web
from ledger.events import FACTS
from producers.web.references import EVENTS, RELATIONS
from producers.web.words import chinese, of_one, words_of
from projections.views.lineage.links import LINKS, OF_REFERENCES, REFERS, SERVING, SHOWN

WEB = Path(producers.web.__file__).parent
IN_TEMPLATES = re.compile(r"""\b_\(\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")
NAMED = re.compile(r"\{(\w+)\}")


def of_templates() -> set[str]:
    return {
        found[1] if found[1] is not None else found[2]
        for file in (WEB / "templates").rglob("*.html")
        for found in IN_TEMPLATES.finditer(file.read_text("utf-8"))
    }


def of_modules() -> set[str]:
    """The literal first argument of each call of `words` or `notify`."""
    found = set()
    for file in WEB.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if name in ("words", "_") and isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.add(first.value)
    return found


def test_every_text_of_a_page_has_a_chinese_form() -> None:
    texts = of_templates() | of_modules()
    assert len(texts) > 30
    missing = sorted(text for text in texts if text not in chinese())
    assert not missing


def test_every_event_and_every_relation_of_a_lineage_is_told_in_words() -> None:
    related = {each.relation for references in REFERS.values() for each in references}
    assert EVENTS.keys() == FACTS.keys()
    assert RELATIONS.keys() >= {*related, *SERVING.values(), SHOWN, *(relation for relation, *_ in LINKS), "caused"}
    kinds = {prefix.rstrip(":") for prefix in OF_REFERENCES}
    assert not {*EVENTS.values(), *RELATIONS.values(), *kinds} - chinese().keys()


def test_both_forms_of_a_text_name_the_same_values() -> None:
    unlike = [text for text, other in chinese().items() if set(NAMED.findall(text)) != set(NAMED.findall(other))]
    assert not unlike


def test_no_text_is_named_twice() -> None:
    keys = [
        key
        for file in (WEB / "words").glob("zh.*.json")
        for key in re.findall(r'^\s*"((?:[^"\\]|\\.)*)":', file.read_text("utf-8"), re.M)
    ]
    assert len(keys) == len(set(keys)), sorted({key for key in keys if keys.count(key) > 1})


def test_a_text_without_a_chinese_form_is_shown_as_it_is() -> None:
    assert words_of("zh")("nothing that any page says") == "nothing that any page says"
    assert words_of("zh")("{n} items", n=3) == "3 条"
    assert words_of("en")("{n} items", n=3) == "3 items"


def test_english_has_a_form_of_its_own_for_one() -> None:
    assert words_of("en")("{n} items", n=1) == words_of("en")("{n} items", n="1") == "1 item"
    assert words_of("zh")("{n} items", n=1) == "1 条"
    assert not set(of_one()) - set(chinese()), "a text that no page has"
