"""HTTP answers: JSON responses, and how a route documents what it answers.

The shapes stand in `kledger.answers`. They describe: an answer is made by an operation and is not validated again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson
from starlette.responses import Response

from kledger.answers.knowledge import SavedItem
from kledger.answers.memory import Remembered
from kledger.answers.parts import Degraded, Refusal
from producers.operations.desk import Freshness

_WIDEST = 2**63  # an integer beyond has no form that every reader of JSON keeps
POSITION = "X-Ledger-Position"
DEGRADED = "X-Ledger-Degraded"
"""Where the position of an answer is in a header, what the answer lacks is in this one, as JSON; absent when whole."""

SCHEMAS = "#/components/schemas/"
_described: dict[Any, str] = {}


def described() -> dict[str, Any]:
    """The shapes of all answers that a route documents, by the reference to each."""
    return {reference: model for model, reference in _described.items()}


def shape(model: Any) -> dict[str, Any]:
    """The content of an answer of this shape, for `responses`; its schema is made when the document is asked for.

    Of a `model` FastAPI would make a validator for each route, and no answer is validated.
    """
    reference = _described.setdefault(model, f"answer {len(_described) + 1}")
    return {"application/json": {"schema": {"$ref": reference}}}


REFUSED = shape(Refusal)
"""How the document shows an error."""


class Json(Response):
    """A JSON response; takes dataclasses as well as documents."""

    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(orjson.dumps(content, default=_plain), status_code, headers)
        position = content.get("position") if isinstance(content, dict) else getattr(content, "position", None)
        self.position: int = position if isinstance(position, int) else 0
        """Where a write is kept, 0 where the answer does not say."""


class ReadJson(Json):
    """A document that was read, with what it lacks in `degraded`."""

    def __init__(
        self, content: Mapping[str, Any], freshness: Freshness, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__({**content, "degraded": freshness.degraded or []}, headers=headers)
        self.position = 0


def in_headers(position: int, degraded: Sequence[Degraded] | None = None) -> dict[str, str]:
    """The headers of an answer whose document has no place of its own for its position and for what it lacks."""
    headers = {POSITION: str(position)}
    if degraded:
        # Escaped: a header is ASCII.
        headers[DEGRADED] = json.dumps(degraded)
    return headers


def _plain(value: object) -> int | float | str:
    """What JSON has no form for, as an analyst's SELECT may give it: a sum of integers is a Decimal."""
    if isinstance(value, Decimal):
        if value == value.to_integral_value():
            return int(value) if abs(value) < _WIDEST else str(value)
        return float(value)
    return str(value)


def saved_item(saved: SavedItem | Remembered) -> Json:
    """The answer to a save: 202 where the item is proposed and not in force yet."""
    return Json(saved, 202 if saved["status"] == "proposed" else 201)


UNDER_WAY = "The work is still under way"
PROPOSED = "It is proposed: a coordinator of its project decides"


def documented(model: Any, *codes: int, status: int = 200, accepted: str = "") -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route: its answer, what a 202 says where it may be one, and which errors it may give."""
    answers: dict[int | str, dict[str, Any]] = {status: {"content": shape(model)}}
    if accepted:
        answers[202] = {"content": shape(model), "description": accepted}
    return answers | {code: {"content": REFUSED} for code in (*codes, 503)}
