"""The chain against RFC 6962 as it is written: recursive, slow and plain."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.event import StoredEvent
from ledger.integrity.chain import (
    NO_HEAD,
    Chain,
    chain_head,
    inclusion_paths,
    leaf_hash,
    leaf_hashes,
    verify_inclusion,
)

MANY = st.lists(st.binary(min_size=32, max_size=32), max_size=70)
EVENTS = st.builds(
    StoredEvent,
    st.integers(1, 2**53),
    st.integers(0, 2**63 - 1),
    st.text(max_size=20),
    st.binary(max_size=40),
    st.text(max_size=10),
)


def split(count: int) -> int:
    """The largest power of two below `count`."""
    return 1 << (count - 1).bit_length() - 1


def tree_hash(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, over leaves that are hashed already."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return sha256(b"\x01" + tree_hash(leaves[:k]) + tree_hash(leaves[k:])).digest()


def path(index: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if index < k:
        return [*path(index, leaves[:k]), tree_hash(leaves[k:])]
    return [*path(index - k, leaves[k:]), tree_hash(leaves[:k])]


@given(MANY, st.integers(0, 70))
def test_the_root_is_that_of_the_rfc_however_the_leaves_came(leaves: list[bytes], cut: int) -> None:
    at_once = Chain.empty().extended(leaves)
    in_two = Chain.empty().extended(leaves[:cut]).extended(leaves[cut:])
    assert at_once.root() == tree_hash(leaves)
    assert in_two == at_once
    assert at_once.position == len(leaves)


@given(MANY)
def test_the_head_binds_every_leaf_to_all_before_it(leaves: list[bytes]) -> None:
    head = NO_HEAD
    for leaf in leaves:
        head = sha256(b"\x02" + head + leaf).digest()
    assert Chain.empty().extended(leaves).head == head == chain_head(NO_HEAD, leaves)


@given(MANY.filter(bool), st.data())
def test_an_inclusion_path_is_that_of_the_rfc_and_proves_its_leaf_alone(
    leaves: list[bytes], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    (found,), root = inclusion_paths(leaves, [index]), tree_hash(leaves)
    assert found == path(index, leaves)
    assert verify_inclusion(leaves[index], index, len(leaves), found, root)
    assert not verify_inclusion(bytes(31) + b"\x07", index, len(leaves), found, root)
    assert not verify_inclusion(leaves[index], index, len(leaves), [*found, bytes(32)], root)
    if found:
        assert not verify_inclusion(leaves[index], index, len(leaves), found[:-1], root)
    other = data.draw(st.integers(-1, len(leaves)).filter(lambda at: at != index))
    if 0 <= other < len(leaves) and leaves[other] == leaves[index]:
        return
    assert not verify_inclusion(leaves[index], other, len(leaves), found, root)


def test_paths_of_several_leaves_are_those_of_each() -> None:
    leaves = [sha256(bytes([number])).digest() for number in range(37)]
    assert inclusion_paths(leaves, [0, 36, 5, 5]) == [path(index, leaves) for index in (0, 36, 5, 5)]
    with pytest.raises(IndexError, match="37 leaves"):
        inclusion_paths(leaves, [37])


@given(EVENTS, EVENTS)
def test_a_leaf_tells_events_apart_by_everything_but_their_position(one: StoredEvent, other: StoredEvent) -> None:
    assert leaf_hash(one) == leaf_hash(one._replace(position=other.position))
    assert (leaf_hash(one) == leaf_hash(other)) == (one[1:] == other[1:])
    for changed in (
        one._replace(stored_ns=one.stored_ns ^ 1),
        one._replace(subject=one.subject + "a"),
        one._replace(body=one.body + b"\0"),
        one._replace(message_id=one.message_id + "a"),
    ):
        assert leaf_hash(changed) != leaf_hash(one)
    assert leaf_hashes([one, other]) == [leaf_hash(one), leaf_hash(other)]


@given(MANY)
def test_a_chain_survives_json(leaves: list[bytes]) -> None:
    chain = Chain.empty().extended(leaves)
    assert Chain.from_json(chain.to_json()) == chain


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"position": 1, "head": "00" * 32, "frontier": []},
        {"position": 1, "head": "00" * 32, "frontier": ["00"]},
        {"position": -1, "head": "00" * 32, "frontier": []},
        {"position": 0, "head": "zz", "frontier": []},
        {"position": 0, "head": None, "frontier": []},
    ],
)
def test_what_is_no_chain_is_refused(told: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"not a chain|hexadecimal"):
        Chain.from_json(told)
