"""In which language is somebody answered?"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kledger.contract.errors import InvalidPayload
from kledger.contract.language import (
    LANGUAGES,
    accepted_language,
    language_of_locale,
    language_of_node,
    language_of_terminal,
)
from tests.examples import tries


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("zh", "zh"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-US,en;q=0.9,zh;q=0.8", "en"),
        ("fr, zh;q=0.3, EN;q=0.2", "zh"),
        ("en;q=0.2, zh-Hant-TW ; q=0.7", "zh"),
        ("zh;q=0, en;q=0.1", "en"),
        ("zh;q=0", None),
        ("fr, de;q=0.5", None),
        ("*", None),
        ("", None),
        ("zh;q=2, en;q=nonsense", None),
        ("zhuang, english", None),
    ],
)
def test_the_best_language_of_the_header_that_there_are_texts_in(header: str, chosen: str | None) -> None:
    assert accepted_language(header) == chosen


@settings(max_examples=tries(300), deadline=None)
@given(st.text(alphabet=st.sampled_from("zhenq=;,.-*01 \x00é"), max_size=60) | st.text(max_size=60))
def test_no_header_is_an_error(header: str) -> None:
    assert accepted_language(header) in (*LANGUAGES, None)


@pytest.mark.parametrize(
    ("environment", "chosen"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_GB"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "de_DE", "LC_ALL": "zh_TW"}, "zh"),
        ({"LANG": "C.UTF-8"}, None),
        ({"LC_ALL": "", "LANG": "POSIX"}, None),
        ({}, None),
    ],
)
def test_a_terminal_speaks_the_language_of_its_messages(environment: dict[str, str], chosen: str | None) -> None:
    assert language_of_locale(environment) == chosen


def test_the_setting_decides_before_the_locale_and_a_wrong_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "KLEDGER_LANGUAGE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    assert (language_of_node(), language_of_terminal()) == ("en", "en")
    monkeypatch.setenv("KLEDGER_LANGUAGE", "zh-CN")
    assert (language_of_node(), language_of_terminal()) == ("zh", "zh")
    monkeypatch.setenv("KLEDGER_LANGUAGE", "klingon")
    with pytest.raises(InvalidPayload, match="KLEDGER_LANGUAGE is 'klingon': write zh or en"):
        language_of_node()
