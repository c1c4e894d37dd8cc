"""One principal's haste is its own: a bucket each, settings that are checked, a wait that is told."""

from __future__ import annotations

import pytest

from kledger.contract.errors import InvalidPayload, RateLimited
from producers.access.limits import RATE_OF_A_TOKEN, Buckets, Limits, limits_from_environment


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_let_through_then_the_rate_holds_and_the_wait_is_told() -> None:
    clock = Clock()
    buckets = Buckets(Limits(rate=2, burst=4), clock)
    for _ in range(4):
        buckets.take("t-1")
    with pytest.raises(RateLimited, match="t-1") as refused:
        buckets.take("t-1")
    assert refused.value.details["retry_after"] == 0.5
    clock.now += 0.5
    buckets.take("t-1")
    with pytest.raises(RateLimited):
        buckets.take("t-1")
    clock.now += 1000
    for _ in range(4):
        buckets.take("t-1")
    with pytest.raises(RateLimited):
        buckets.take("t-1")


def test_one_principal_does_not_use_up_what_is_anothers() -> None:
    buckets = Buckets(Limits(rate=1, burst=1), Clock())
    buckets.take("t-1")
    buckets.take("t-2")
    buckets.take(None)
    with pytest.raises(RateLimited, match="this machine"):
        buckets.take(None)


def test_without_tokens_there_is_no_rate_unless_one_is_stated() -> None:
    assert Limits().rate_for(with_token=False) == 0
    assert Limits().rate_for(with_token=True) == RATE_OF_A_TOKEN
    assert Limits(rate=0).rate_for(with_token=True) == 0
    buckets = Buckets(Limits(), Clock())
    for _ in range(5000):
        buckets.take(None)


def test_settings_come_from_the_environment_and_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLEDGER_LIMIT_BATCH", "50")
    monkeypatch.setenv("KLEDGER_LIMIT_RATE", "7.5")
    assert (limits_from_environment().batch, limits_from_environment().rate) == (50, 7.5)
    monkeypatch.setenv("KLEDGER_LIMIT_BODY", "-1")
    with pytest.raises(InvalidPayload, match="KLEDGER_LIMIT_BODY"):
        limits_from_environment()
