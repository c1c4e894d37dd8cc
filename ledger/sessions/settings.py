"""Settings of sessions, from the environment: each number of the window, of the levels, and of the lifetimes.

KLEDGER_SESSION_MESSAGES, _SHARE, _LEVEL_1, _LEVEL_2, _LEVEL_3, _SEGMENT, _KEPT_2, _KEPT_3, _IDLE_MINUTES, _DAYS, _TURNS
and _EXTRACT.
"""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from ledger.runtime.settings import EnvironmentSettings, settings_of

MOST_DAYS = 36_500
"""A hundred years, for whoever wants to keep them for good."""


class SessionSettings(EnvironmentSettings):
    """How sessions are cut to a model's window, and how long they are kept."""

    model_config = SettingsConfigDict(env_prefix="KLEDGER_SESSION_", frozen=True, allow_inf_nan=False)

    messages: int = Field(default=50, ge=1, le=1_000)
    """So many of the last messages are shown in full at most."""
    share: float = Field(default=0.70, gt=0, le=1)
    """Share of the model's window that the context may take: its budget."""
    level_1: float = Field(default=0.60, gt=0, le=1)
    """Share of the budget above which tool outputs and attachments are shortened."""
    level_2: float = Field(default=0.75, gt=0, le=1)
    """Share of the budget above which segments are replaced by their summaries."""
    level_3: float = Field(default=0.90, gt=0, le=1)
    """Share of the budget above which all summaries are replaced by one overview."""
    segment: int = Field(default=10, ge=2, le=100)
    """Messages of one segment."""
    kept_2: int = Field(default=10, ge=1, le=1_000)
    """So many of the last messages stay as they are at level 2."""
    kept_3: int = Field(default=5, ge=1, le=1_000)
    """So many of the last messages stay as they are at level 3."""
    idle_minutes: float = Field(default=30.0, gt=0, le=MOST_DAYS * 24 * 60)
    """After so many minutes without a message a session is closed, and its scratchpad ends."""
    days: float = Field(default=30.0, gt=0, le=MOST_DAYS)
    """So many days after its last message the words of a session are removed."""
    turns: int = Field(default=20, ge=1)
    """After so many messages of the user extraction is asked."""
    extract: bool = True
    """Whether extraction is asked at all, where a model is set for it."""

    @property
    def idle_us(self) -> int:
        """Microseconds."""
        return int(self.idle_minutes * 60e6)

    @property
    def kept_us(self) -> int:
        """Microseconds."""
        return int(self.days * 86_400e6)

    @property
    def steady_seconds(self) -> float:
        """So long a node has to see its clock go on before it removes anything for its age: an hour of 30 days."""
        return min(3_600.0, self.days * 86_400 / 24)


def session_settings_from_environment() -> SessionSettings:
    """The settings of this node. Raises InvalidPayload for an invalid one."""
    return settings_of(SessionSettings)
