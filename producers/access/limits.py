"""Limits of a node: sizes of requests, and rates per principal, each a variable KLEDGER_LIMIT_… of the environment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from kledger.contract.errors import RateLimited
from ledger.runtime.settings import EnvironmentSettings, settings_of

RATE_OF_A_TOKEN = 300.0
_REMEMBERED = 10_000  # most principals with a bucket; a full bucket need not be kept


class Limits(EnvironmentSettings):
    """Limits of one request and one principal."""

    model_config = SettingsConfigDict(env_prefix="KLEDGER_LIMIT_", frozen=True, allow_inf_nan=False)

    body: int = Field(default=2 * 1024 * 1024, ge=1024)
    """Bytes of a body; one event holds less than 1 MiB, and escapes may double the text."""
    batch_body: int = Field(default=64 * 1024 * 1024, ge=1024)
    """Bytes of a body with many payloads."""
    bodies: int = Field(default=512 * 1024 * 1024, ge=1024)
    """Bytes of all bodies together whose requests are not answered; beyond, the largest that still comes gives way."""
    answers: int = Field(default=256 * 1024 * 1024, ge=1024)
    """Bytes of all answers together that are not taken yet; beyond, who takes one for longest loses the connection."""
    batch: int = Field(default=5_000, ge=1)
    """Payloads in one request. The endpoints have limits of their own: 1,000 items, 5,000 verdicts."""
    rate: float | None = Field(default=None, ge=0)
    """Requests per second of one principal; 0 for no limit. By default 300 of a token, and no limit without tokens."""
    burst: float | None = Field(default=None, ge=1)
    """Requests that may arrive at once after a pause; by default those of two seconds."""
    head: int = Field(default=64 * 1024, ge=1024)
    """Bytes of a request's target and headers together."""
    head_seconds: float = Field(default=10.0, gt=0)
    """Time for a new connection, or a started request, to send its whole head."""
    body_seconds: float = Field(default=30.0, gt=0)
    """Time for a body; renewed while at least 1,000 bytes per second arrive. The same for sending an answer."""
    idle_seconds: int = Field(default=5, ge=1)
    """Time until an idle connection is closed."""
    connections: int = Field(default=500, ge=1)
    """Most connections at once; one more replaces the one idle longest, or else the one sending a body longest."""

    def rate_for(self, with_token: bool) -> float:
        """Requests per second; 0 for no limit."""
        if self.rate is not None:
            return self.rate
        return RATE_OF_A_TOKEN if with_token else 0.0


def limits_from_environment() -> Limits:
    """The limits of this node. Raises InvalidPayload for an invalid setting."""
    return settings_of(Limits)


class Buckets:
    """One token bucket per principal: it refills at `rate` per second up to the burst, and each request takes one."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, principal: str | None) -> None:
        """Count one request of the token with this id, or of all callers without one. Raises RateLimited."""
        rate = self._limits.rate_for(principal is not None)
        if not rate:
            return
        burst = self._limits.burst or max(2 * rate, 1.0)
        now, key = self._clock(), principal or ""
        with self._lock:
            level, then = self._levels.get(key, (burst, now))
            level = min(burst, level + (now - then) * rate)
            if level < 1:
                self._levels[key] = (level, now)
                wait = (1 - level) / rate
                raise RateLimited(
                    f"more than {rate:g} requests a second ({burst:g} at once) came from "
                    f"{f'token {principal}' if principal else 'this machine'}: try again in {wait:.2f} s",
                    retry_after=round(wait, 3),
                )
            if key not in self._levels and len(self._levels) >= _REMEMBERED:
                self._levels.clear()  # a second burst for some is better than unbounded memory
            self._levels[key] = (level - 1, now)
