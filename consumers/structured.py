"""Structured answers of a model: the request for a form, and parsing of the answer's text."""

from __future__ import annotations

import re
from typing import Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from kledger.contract.faults import in_plain_words
from kledger.contract.json_text import Unfit, loads

A = TypeVar("A", bound=BaseModel)

Form = Literal["json_schema", "json_object", "text"]
FORMS: tuple[Form, ...] = ("json_schema", "json_object", "text")
"""From the strictest form to the one that every endpoint supports."""

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n?\s*```", re.DOTALL)


class Structured(BaseModel):
    """What a model is asked for: the fields that it names, and no other."""

    model_config = ConfigDict(extra="forbid")


class InvalidAnswer(Exception):
    """The text does not have the requested form; the message is for the model."""


def response_format(form: Form, answer: type[BaseModel]) -> dict[str, Any] | None:
    """The `response_format` of a request, None for plain text."""
    if form == "text":
        return None
    if form == "json_object":
        return {"type": "json_object"}
    schema = {"name": answer.__name__, "schema": answer.model_json_schema(), "strict": True}
    return {"type": "json_schema", "json_schema": schema}


def schema_instruction(form: Form, answer: type[BaseModel]) -> str:
    """The schema as text for the prompt, where the request does not carry it."""
    if form == "json_schema":
        return ""
    schema = orjson.dumps(answer.model_json_schema()).decode()
    return f"\n\nAnswer with one JSON document that fits this JSON schema, and with nothing else:\n{schema}"


def document_in(text: str, answer: type[A]) -> A:
    """Parse the answer in a model's text, with or without a code fence or text around it. Raises InvalidAnswer."""
    fenced = _FENCED.search(text)
    start, end = text.find("{"), text.rfind("}")
    candidates = [text.strip(), fenced[1] if fenced else "", text[start : end + 1] if 0 <= start < end else ""]
    fault = "it is not a JSON document"
    for candidate in candidates:
        try:
            document = loads(candidate)
        except Unfit as error:
            fault = str(error)
            continue
        except orjson.JSONDecodeError:
            continue
        try:
            return answer.model_validate(document)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
            fault = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'it'} {in_plain_words(one)}" for one in errors[:5])
    raise InvalidAnswer(fault)
