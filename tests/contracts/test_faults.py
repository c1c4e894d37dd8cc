"""Faults of validation are told in plain words, of whichever type they are."""

from __future__ import annotations

import json
import re
import uuid
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import pytest
from pydantic import AwareDatetime, BaseModel, Field, HttpUrl, StringConstraints, TypeAdapter, ValidationError
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import ErrorType

from kledger.contract.bounds import TypeWord
from kledger.contract.documents import MediaType
from kledger.contract.faults import in_plain_words
from kledger.contract.knowledge import KnowledgeType

OPENAPI = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
WORD = "has to be a word of a-z, 0-9 and _ that begins with a letter"


class Shape(BaseModel):
    a: int = 0


CASES: list[tuple[Any, Any, str]] = [
    (str, 3, "has to be a text"),
    (int, "x", "has to be a whole number"),
    (int, 1.5, "has to be a whole number"),
    (float, "x", "has to be a number"),
    (bool, "x", "has to be true or false"),
    (list[str], "x", "has to be a list"),
    (dict[str, str], "x", "has to be an object"),
    (Shape, "x", "has to be an object"),
    (datetime, "yesterday", "has to be a time such as 2026-03-05T12:00:00Z"),
    (AwareDatetime, "2026-03-05T12:00:00", "has to be a time with its offset, such as 2026-03-05T12:00:00Z"),
    (uuid.UUID, "x", "has to be a UUID"),
    (HttpUrl, "x", "has to be an address such as https://example.org"),
    (Literal["a", "b"], "x", "has to be 'a' or 'b'"),
    (Annotated[int, Field(ge=1)], 0, "has to be at least 1"),
    (Annotated[int, Field(le=5)], 6, "has to be at most 5"),
    (Annotated[str, Field(min_length=1)], "", "is empty"),
    (Annotated[str, Field(max_length=3)], "xxxx", "is too long: 3 characters at most"),
    (Annotated[list[int], Field(max_length=1)], [1, 2], "is too long: 1 entries at most"),
    (Annotated[str, StringConstraints(pattern="^a$")], "x", "has to be of the form ^a$"),
    (KnowledgeType, "策略", f"{WORD}, 64 characters at most, such as strategy or preference"),
    (TypeWord, "部门", f"{WORD}, 32 characters at most, such as department"),
    (MediaType, "文本", "has to be a media type such as text/markdown"),
]


@pytest.mark.parametrize(("kind", "value", "said"), CASES)
def test_a_fault_says_what_the_field_has_to_be(kind: Any, value: Any, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    assert [in_plain_words(fault) for fault in caught.value.errors()] == [said]


def test_no_field_of_a_request_is_told_as_a_pattern() -> None:
    described = OPENAPI.read_text(encoding="utf-8")
    patterns = {json.loads(found) for found in re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', described)}
    assert len(patterns) > 3
    for pattern in patterns:
        said = in_plain_words({"type": "string_pattern_mismatch", "msg": "", "ctx": {"pattern": pattern}})
        assert pattern not in said


def test_no_type_of_fault_is_told_in_the_words_of_the_library() -> None:
    context = dict.fromkeys(("gt", "ge", "lt", "le", "expected", "pattern", "min_length", "max_length"), 1)
    for kind in {*get_args(ErrorType)} - {"value_error", "assertion_error"}:  # these two are in words of our own
        try:
            message = PydanticKnownError(kind, None).message_template
        except (TypeError, KeyError, ValueError):
            message = "Input should be odd"
        said = in_plain_words({"type": kind, "msg": message, "ctx": context})
        assert "Input should" not in said, kind
