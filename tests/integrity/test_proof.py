"""A proof convinces without the log, and nothing in it can be changed unseen."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.errors import ChainContradicted, InvalidPayload
from ledger.event import StoredEvent
from ledger.integrity.certificate import check_certificate, compare_certificates, make_certificate
from ledger.integrity.chain import Chain, leaf_hash
from ledger.integrity.checkpoints import read_checkpoints
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.proof import check_proof, make_proof
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey
from tests.integrity.logs import signed_log

OURS = (2, 5, 11)
ABOUT = {"org": "default", "knowledge": "中文/one", "positions": list(OURS)}


def about_one(event: StoredEvent) -> StoredEvent:
    return event._replace(subject="ledger.default.knowledge.=E4=B8=AD=E6=96=87=2Fone.saved.user.ada")


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    events, files = signed_log(
        tmp_path_factory.mktemp("proof"), 13, 6, lambda one: about_one(one) if one.position in OURS else one
    )
    checkpoint = read_checkpoints(files.checkpoints)[-1]
    key = SigningKeys.open(files.keys).current()
    made = make_proof(
        ABOUT, [events[at - 1] for at in OURS], files.leaves.read(1, checkpoint.position), checkpoint, key
    )
    return dict(orjson.loads(orjson.dumps(made)))


def test_a_proof_is_checked_with_a_key_alone(proof: dict[str, Any], tmp_path: Path) -> None:
    key = VerifyingKey.from_text(proof["key"])
    checked = check_proof(proof, key)
    assert checked.holds
    assert checked.trusted
    assert [one.event.position for one in checked.events] == list(OURS)
    assert check_proof(proof).holds
    assert not check_proof(proof).trusted
    stranger = SigningKeys.open(tmp_path / "other").current()
    assert not check_proof(proof, stranger).holds
    forged = {**proof, "key": stranger.text()}
    assert not check_proof(forged).holds
    assert not check_proof(forged, key).holds


def leaves_of(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value of a document that is no list or object."""
    if isinstance(document, dict | list):
        for name, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield from leaves_of(value, (*path, name))
    else:
        yield path


def other_than(value: Any, data: st.DataObject) -> Any:
    """A value of the same kind that is not the same; text changes in one character."""
    if isinstance(value, int):
        return value + data.draw(st.integers(-20, 20).filter(bool))
    at = data.draw(st.integers(0, len(value) - 1))
    return (
        value[:at]
        + data.draw(st.sampled_from("0123456789abcdefAZ+/=中 ").filter(lambda c: c != value[at]))
        + value[at + 1 :]
    )


@given(st.data())
def test_whatever_is_changed_in_a_proof_it_no_longer_holds(proof: dict[str, Any], data: st.DataObject) -> None:
    forged = copy.deepcopy(proof)
    *path, name = data.draw(st.sampled_from(sorted(leaves_of(forged), key=str)))
    target = forged
    for step in path:
        target = target[step]
    before, target[name] = target[name], other_than(target[name], data)
    if same_meaning(name, before, target[name]):
        return
    try:
        checked = check_proof(forged, VerifyingKey.from_text(proof["key"]))
    except InvalidPayload:
        return
    assert not checked.holds


def same_meaning(name: object, before: Any, after: Any) -> bool:
    """Whether two spellings say the same: capitals in hexadecimal, spare bits in base64, a time with a space."""
    try:
        if name in ("body", "signature", "key") and len(before) != 32:
            return base64.b64decode(before) == base64.b64decode(after, validate=True)
        if name == "time":
            return datetime.fromisoformat(before) == datetime.fromisoformat(after)
        return bytes.fromhex(before) == bytes.fromhex(after)
    except (TypeError, ValueError):
        return False


def test_events_cannot_be_taken_out_put_in_or_exchanged(proof: dict[str, Any]) -> None:
    first, second, third = proof["events"]
    for events in ([], [first, second], [second, first, third], [first, second, third, third]):
        assert not check_proof({**proof, "events": events}).holds
    one = {**first, "path": second["path"]}
    assert not check_proof({**proof, "events": [one, second, third]}).holds
    other = {**proof, "about": {**ABOUT, "knowledge": "another"}}
    assert {one.fault for one in check_proof(other).events} == {"it is in the log, and about something else"}


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"kind": "kledger proof"},
        {"kind": "kledger proof", "version": 2},
        {"kind": "kledger proof", "version": 1, "checkpoint": {}, "key": "", "about": {}, "events": []},
    ],
)
def test_what_is_no_proof_is_refused(document: object) -> None:
    with pytest.raises(InvalidPayload, match="proof"):
        check_proof(document)


def test_no_proof_is_made_against_what_was_signed(tmp_path: Path) -> None:
    events, files = signed_log(tmp_path, 9, 3)
    checkpoint, key = read_checkpoints(files.checkpoints)[-1], SigningKeys.open(files.keys).current()
    leaves = files.leaves.read(1, 9)
    with pytest.raises(ChainContradicted, match="position 4"):
        make_proof(ABOUT, [events[3]._replace(body=b"other")], leaves, checkpoint, key)
    with pytest.raises(ChainContradicted, match="leaves"):
        make_proof(ABOUT, [events[3]], [*leaves[:-1], bytes(32)], checkpoint, key)


def certificate(directory: Path, position: int = 3, **about: Any) -> dict[str, Any]:
    told = {
        "run": "replay",
        "product": "1",
        "views_schema": 1,
        "state": "ab",
        "seconds": 0.1,
        "views": {"events": {"rows": 3, "digest": "aa"}, "knowledge": {"rows": 1, "digest": "bb"}},
        **about,
    }
    events, _ = signed_log(directory / "log", position, 5)
    chain = Chain.empty().extended(leaf_hash(one) for one in events)
    keys = SigningKeys.open(directory / "keys")
    return dict(orjson.loads(orjson.dumps(make_certificate(told, chain, keys, datetime.now(UTC)))))


def test_certificates_of_two_nodes_are_compared_view_by_view(tmp_path: Path) -> None:
    one, other = certificate(tmp_path / "a"), certificate(tmp_path / "b", seconds=9.0)
    told = compare_certificates(one, other)
    assert told["equal"]
    assert told["keys"]["a"] != told["keys"]["b"]
    views = {
        "events": {"rows": 3, "digest": "aa"},
        "knowledge": {"rows": 2, "digest": "cc"},
        "new": {"rows": 0, "digest": ""},
    }
    told = compare_certificates(one, certificate(tmp_path / "c", views=views, product="2"))
    assert not told["equal"]
    assert [view["view"] for view in told["views"] if not view["equal"]] == ["knowledge", "new"]
    assert told["program_differs"] == ["product"]


def test_certificates_of_different_logs_or_positions_are_not_equal(tmp_path: Path) -> None:
    one, later = certificate(tmp_path / "a"), certificate(tmp_path / "b", position=4)
    told = compare_certificates(one, later)
    assert (told["equal"], told["same_position"], told["views"]) == (False, False, [])


def test_a_changed_certificate_is_found(tmp_path: Path) -> None:
    one = certificate(tmp_path / "a")
    assert check_certificate(one) is None
    changed = {**one, "views": {**one["views"], "events": {"rows": 4, "digest": "aa"}}}
    told = compare_certificates(one, changed)
    assert not told["equal"]
    assert told["faults"] == ["B: its signature is wrong: it was changed, or forged"]
    for document in (None, {}, {**one, "version": 3}, {**one, "views": []}, {**one, "views": {}}, {**one, "key": "x"}):
        with pytest.raises(InvalidPayload, match=r"certificate|public key"):
            check_certificate(document)


def test_the_files_of_a_notary_stand_outside_of_the_brokers(tmp_path: Path) -> None:
    files = NotaryFiles.of(tmp_path)
    for path in (files.directory, files.keys, files.checkpoints, files.leaves.path):
        assert tmp_path / "broker" not in path.parents
