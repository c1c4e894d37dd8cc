"""A node lists the subjects of its vault once when it starts, however many steps look at them."""

from __future__ import annotations

from typing import Any, cast

from ledger.event import JsonObject
from ledger.privacy.vault_jetstream import JetStreamVault, subject_of


class Bucket:
    """A connection to a bucket that holds these subjects; counts the lists of all of them."""

    def __init__(self, *subjects: str) -> None:
        self.subjects = set(subjects)
        self.lists = 0

    async def api(self, _subject: str, query: JsonObject | None = None) -> JsonObject:
        """STREAM.INFO alone."""
        state: JsonObject = {"messages": len(self.subjects)}
        if query is not None:
            self.lists += 1
            state["subjects"] = dict.fromkeys(sorted(self.subjects), 1)
        return {"state": state, "total": len(self.subjects)}


ANN, BOB = subject_of("key", "user:ann"), subject_of("key", "user:bob")
GONE, SEALS = subject_of("gone", "user:ann"), subject_of("seals", "user:ann")


def vault_of(bucket: Bucket) -> JetStreamVault:
    return JetStreamVault(cast("Any", bucket), b"")


async def test_the_steps_of_a_start_look_at_one_list() -> None:
    bucket = Bucket(BOB, subject_of("gone", "user:ann"), SEALS)
    vault = vault_of(bucket)
    await vault.list_once()
    assert (await vault.count()).by_persons == 3
    assert await vault.bound(9) == 0
    assert await vault.left_keys() == []
    assert bucket.lists == 1
    await vault.count(anew=True)
    assert bucket.lists == 2


async def test_what_comes_after_the_start_is_listed_anew() -> None:
    bucket = Bucket(BOB)
    vault = vault_of(bucket)
    await vault.list_once()
    assert await vault.left_keys() == []
    bucket.subjects |= {ANN}
    assert (await vault.count()).by_persons == 2


async def test_a_key_that_was_left_at_the_start_and_is_erased_since_is_none_that_is_left() -> None:
    bucket = Bucket(ANN, GONE, SEALS)
    vault = vault_of(bucket)
    await vault.list_once()
    bucket.subjects -= {ANN}  # an order of before was carried out
    assert await vault.left_keys() == []
    bucket.subjects |= {ANN}
    assert await vault.left_keys() == ["user:ann"]
