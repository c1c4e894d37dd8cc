"""Base classes for the events of processes: evolutions, extractions, slims and conflicts, which go through stages.

The first event of a process names its owner; every later one has the same actor.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kledger.contract.bounds import ModelName, Reason
from kledger.contract.knowledge import Id
from ledger.event import Fact
from ledger.events.usage import Usage

Code = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class ProcessFact(Fact):
    """One stage of a process. `follows` are the stages after which it may occur; without any, it begins the process."""

    follows: ClassVar[tuple[str, ...]] = ()
    repeatable: ClassVar[bool] = False
    """Whether the event does not change the stage, and may occur any number of times."""


class CallStarted(ProcessFact):
    """A model is about to be asked; `call` is the key under which the endpoint is to bill it once."""

    personal: ClassVar[tuple[str, ...]] = ()

    call: Id
    model: ModelName


class Failed(ProcessFact):
    """It ended without a result: an error code of ours, and what was spent."""

    personal: ClassVar[tuple[str, ...]] = ("reason",)

    code: Code
    reason: str
    usage: Usage | None = None


class Rejected(ProcessFact):
    """The owner does not want what was proposed."""

    personal: ClassVar[tuple[str, ...]] = ("reason",)

    reason: Reason | None = None
