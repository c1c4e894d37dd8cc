"""A check of HTTP answers against the OpenAPI document: status and body, each field of it and no other."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx
from jsonschema import Draft202012Validator

from producers.web.reference import operations_of
from tests.house.project import ROOT


@cache
def document() -> dict[str, Any]:
    """The document, as docs/reference has it: to make it takes two seconds.

    That a node serves the same is what tests/house/test_generated_reference.py is for.
    """
    read: dict[str, Any] = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text("utf-8"))
    return read


def closed(part: Any) -> Any:
    """A schema in which an object has no field beside those that are named."""
    if isinstance(part, list):
        return [closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {name: closed(value) for name, value in part.items()}
    if part.get("type") == "object" and isinstance(part.get("properties"), dict):
        kept.setdefault("additionalProperties", False)
    return kept


@dataclass
class Documented:
    """The document, which operations answered as it says, and where an answer differed."""

    document: dict[str, Any] = field(default_factory=document)
    answered: set[tuple[str, str]] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._components = {"schemas": closed(self.document["components"]["schemas"])}
        # A path with more literal letters comes first: /history before what is any path.
        self._paths = sorted(self.document["paths"], key=lambda path: -len(re.sub(r"\{[^}]*\}", "", path)))

    def operations(self) -> set[tuple[str, str]]:
        """Every operation that the document names."""
        return {(method, path) for method, path, _ in operations_of(self.document)}

    def path_of(self, asked: str) -> str:
        """The path of the document that a request's path fits."""
        for path in self._paths:
            if re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", path), asked):
                return str(path)
        raise AssertionError(f"the document has no path for {asked}")

    def check(self, answer: httpx.Response) -> httpx.Response:
        """Note the operation when it succeeded, and what the document does not say of the answer."""
        method, path = (
            answer.request.method.lower(),
            self.path_of(answer.request.url.raw_path.decode().partition("?")[0]),
        )
        what = f"{method.upper()} {path} {answer.status_code}"
        stated = self.document["paths"][path][method]["responses"].get(str(answer.status_code))
        if answer.is_success:
            self.answered.add((method, path))
        if stated is None:
            self.faults.append(f"{what}: no such status, {answer.text[:200]}")
            return answer
        schema = stated.get("content", {}).get("application/json", {}).get("schema")
        if schema is None:
            return answer
        validator = Draft202012Validator(closed(schema) | {"components": self._components})
        self.faults += [
            f"{what}: {error.json_path} {error.message[:300]}" for error in validator.iter_errors(answer.json())
        ]
        return answer
