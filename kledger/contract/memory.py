"""Value types of a memory: the layer of an item, and what belongs to a layer beside task and content.

A memory is a knowledge item with a layer: `short` lives for a while, `semantic` is a fact, `episodic` an event with its
moment, `procedural` a way to do something. Requests and events share these types, and the rule of which field belongs
to which layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from kledger.contract.bounds import MOST_LISTED, MOST_REASON, SAYS_SOMETHING, Short
from kledger.contract.knowledge import Confidence, Id, KnowledgeType, Text
from kledger.contract.resource import moment_of
from kledger.contract.words import MemoryLayer

_DAY = 86_400
LONGEST_LIFE = 10 * 365 * _DAY
"""Seconds that a short memory may live without a recall."""
LIFETIMES: Mapping[str, int] = {"preference": 7 * _DAY, "decision": 7 * _DAY, "follow_up": 3 * _DAY, "mood": _DAY}
"""Seconds that short memories live by their kind, where a node has no other setting."""
PROMOTING_RECALLS = 3
"""So many recalls promote a short memory to a semantic one: those of one trace, else of one session, count once."""


def moment_or_value_error(value: str) -> str:
    """Return an RFC 3339 time with its offset as it was written; for pydantic."""
    moment_of(value)
    return value


MomentText = Annotated[str, AfterValidator(moment_or_value_error)]
Importance = Confidence
Lifetime = Annotated[int, Field(ge=1, le=LONGEST_LIFE)]
Labels = Annotated[list[Short], Field(max_length=MOST_LISTED)]
Related = Annotated[list[Id], Field(max_length=MOST_LISTED)]
Steps = Annotated[list[Text], Field(max_length=MOST_LISTED)]
Line = Annotated[str, Field(min_length=1, max_length=MOST_REASON), SAYS_SOMETHING]
"""A sentence or a few."""

OF_A_LAYER: dict[MemoryLayer, tuple[str, ...]] = {
    "short": ("lifetime",),
    "semantic": ("category",),
    "episodic": ("event", "participants", "outcome", "artifacts", "happened_at"),
    "procedural": ("name", "trigger", "steps"),
}
"""The fields that only memories of a layer have; the others are open to every layer."""
DETAILS = (
    *("category", "related", "tags", "session"),
    *("event", "participants", "outcome", "artifacts", "happened_at"),
    *("name", "trigger", "steps"),
)
"""The fields of a memory that the views keep as one JSON document."""


def fault_of_layer(layer: str, stated: Mapping[str, Any]) -> str | None:
    """The fault of fields that belong to another layer; None where there is none."""
    for other, names in OF_A_LAYER.items():
        foreign = [name for name in names if layer != other and stated.get(name)]
        if foreign:
            return (
                f"states {', '.join(foreign)}, which memories of the layer {other} have, and its layer is {layer}: "
                "leave it out, or choose that layer"
            )
    return None


def tags_of_words(words: Sequence[str]) -> dict[str, str]:
    """Words as the tags of an item: each is a name without a value."""
    return dict.fromkeys(words, "")


def are_words(tags: Mapping[str, Any]) -> bool:
    """Whether tags are words alone: there are some, and none has a value."""
    return bool(tags) and all(value == "" for value in tags.values())


def words_of_steps(name: str | None, steps: Sequence[str]) -> str:
    """What a procedure says that states its steps and no content; empty where it states neither name nor steps."""
    return "\n".join([*filter(None, [name]), *steps])


class Memory(BaseModel):
    """What makes an item a memory: its layer, and the fields of that layer."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    layer: MemoryLayer
    kind: KnowledgeType | None = None
    importance: Importance | None = None
    lifetime: Lifetime | None = None
    category: Short | None = None
    related: Related = Field(default_factory=list)
    tags: Labels = Field(default_factory=list)
    session: Short | None = None
    event: Text | None = None
    participants: Labels = Field(default_factory=list)
    outcome: Line | None = None
    artifacts: Labels = Field(default_factory=list)
    happened_at: MomentText | None = None
    name: Short | None = None
    trigger: Line | None = None
    steps: Steps = Field(default_factory=list)

    @model_validator(mode="after")
    def _of_its_layer(self) -> Self:
        if (fault := fault_of_layer(self.layer, dict(self))) is not None:
            raise ValueError(fault)
        if self.layer == "short" and self.lifetime is None:
            raise ValueError("is short and states no lifetime: say for how many seconds it lives")
        return self


PERSONAL = ("category", "tags", "event", "participants", "outcome", "artifacts", "name", "trigger", "steps")
"""The fields with words of persons, which are sealed like an item's content."""
