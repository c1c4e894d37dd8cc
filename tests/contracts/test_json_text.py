"""Is a number that no view can hold refused wherever a document is read, instead of becoming another number?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from consumers.structured import InvalidAnswer, document_in
from kledger.contract.errors import InvalidPayload
from kledger.contract.json_text import WIDE, WideInteger, loads
from producers.cli import reading
from producers.cli.commands.sessions import _messages_in
from producers.requests.reading import read_json
from producers.web.item.form import _value
from projections.engine.decode import parse
from projections.engine.model_check import validated
from projections.fold_kit.parser import Parser
from tests.conftest import saved
from tests.projections.histories import stored

WIDE_NUMBERS = (2**63, -(2**63) - 1, 2**64, 10**30)
KEPT = (2**63 - 1, -(2**63), 1e20, 0.1234567890123456789, "18446744073709551616", {"18446744073709551616": 1})
# What reads files that nobody but a node writes, answers of a node or a broker, or copies what was read before.
OF_OUR_OWN = {
    "producers/access/tokens.py",
    "producers/cli/certificates.py",
    "producers/cli/commands/evolutions.py",  # words of a conversation, of which each field has a type
    "producers/documents/child.py",
    "producers/documents/converting.py",
    "producers/node/integrity.py",
    "producers/node/receipts.py",
    "producers/operations/stated_before.py",
    "producers/tree/writing.py",
    "producers/web/pages/reference.py",
    "producers/web/words/__init__.py",
    "consumers/recall/reranker.py",
}
ROOT = Path(__file__).parents[2]


@given(
    st.recursive(
        st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False) | st.none(),
        lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(), part, max_size=3),
    )
)
def test_what_is_read_is_what_was_written_or_it_is_refused(document: Any) -> None:
    text = json.dumps(document)
    try:
        read = loads(text)
    except orjson.JSONDecodeError:  # also numbers of so many digits that they are infinite, and half characters
        return
    assert read == json.loads(text)
    assert loads(text.encode()) == read


@pytest.mark.parametrize("number", WIDE_NUMBERS)
def test_the_place_of_a_wide_number_is_told(number: int) -> None:
    with pytest.raises(WideInteger, match=r"tags\.sizes\.1 holds an integer beyond 64 bits"):
        loads(json.dumps({"id": "x", "tags": {"label": "7" * 40, "sizes": [1, number]}}))


@pytest.mark.parametrize("value", KEPT)
def test_what_fits_is_read(value: Any) -> None:
    assert loads(json.dumps({"n": value, "digits": "1" * 30})) == {"n": value, "digits": "1" * 30}


def test_a_deep_document_with_many_digits_is_refused_as_any_other() -> None:
    deep = "[" * 900 + '"' + "1" * 30 + '"' + "]" * 900
    with pytest.raises((orjson.JSONDecodeError, InvalidPayload)):
        read_json(deep.encode())


class _Answer(BaseModel):
    tags: dict[str, Any]


READERS: dict[str, Callable[[str, Path], object]] = {
    "a request": lambda text, _: read_json(text.encode()),
    "an option": lambda text, _: reading.json_object(text),
    "a file that an option names": lambda text, at: reading.json_object(f"@{_written(at, text)}"),
    "a list that an option names": lambda text, at: reading.json_objects(_written(at, f"[{text}]"), "--resources"),
    "messages": lambda text, at: _messages_in(_written(at, text)),
    "a form of an item": lambda text, _: _value("tags", text),
    "an answer of a model": lambda text, _: document_in(text, _Answer),
}


def _written(directory: Path, text: str) -> Path:
    (directory / "read.json").write_text(text)
    return directory / "read.json"


@pytest.mark.parametrize("number", WIDE_NUMBERS)
@pytest.mark.parametrize("reader", READERS)
def test_each_reader_refuses_a_wide_number_in_the_same_words(reader: str, number: int, tmp_path: Path) -> None:
    with pytest.raises((InvalidPayload, InvalidAnswer, typer.BadParameter)) as refused:
        READERS[reader](json.dumps({"tags": {"n": number}}), tmp_path)
    assert WIDE in str(refused.value)


def test_whatever_reads_documents_reads_them_here() -> None:
    others = {
        str(file.relative_to(ROOT))
        for package in ("producers", "consumers")
        for file in (ROOT / package).rglob("*.py")
        if "orjson.loads(" in file.read_text("utf-8")
    }
    assert others == OF_OUR_OWN


@pytest.mark.parametrize("number", WIDE_NUMBERS)
def test_an_event_of_any_publisher_with_a_wide_number_does_not_count(number: int) -> None:
    (event,) = stored([saved("wide")])
    body = event.body.replace(b'"tags":{}', b'"tags":{"n":%d}' % number)
    assert body != event.body
    written = event._replace(body=body)
    with pytest.raises(InvalidPayload, match=r"64.bit"):
        validated(written)
    parsed, refused = parse(Parser(), [event, written._replace(position=2)])
    assert [refusal.event.position for refusal in refused] == [2]
    assert sum(map(len, parsed.values())) == 1
