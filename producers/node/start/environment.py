"""What the environment says of a node, but for its models and reactors; read before anything of the node begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kledger.contract.language import Language, language_of_node
from ledger.sessions.settings import SessionSettings, session_settings_from_environment
from producers.access.limits import Limits, limits_from_environment
from producers.node.archiving import segment_events_from_environment
from producers.operations.available_models import Reflected
from producers.operations.lifetimes import lifetimes_from_environment
from producers.operations.recording import Recorded, detail_days_from_environment, recorded_from_environment
from producers.operations.reflection.asking import reflected_from_environment
from projections.analysts.memory_watch import AnalystLimits, analyst_limits


@dataclass(frozen=True, slots=True)
class NodeEnvironment:
    """What it says. To make one raises InvalidPayload for a value that no setting has."""

    limits: Limits = field(default_factory=limits_from_environment)
    analysts: AnalystLimits = field(default_factory=analyst_limits)
    sessions: SessionSettings = field(default_factory=session_settings_from_environment)
    language: Language = field(default_factory=language_of_node)
    recorded: Recorded = field(default_factory=recorded_from_environment)
    lifetimes: Mapping[str, int] = field(default_factory=lifetimes_from_environment)
    reflected: frozenset[Reflected] = field(default_factory=reflected_from_environment)
    segment_events: int = field(default_factory=segment_events_from_environment)
    recall_days: int | None = field(default_factory=detail_days_from_environment)
