"""Whoever checks a proof or a receipt reads what was said, which words are sealed, and who signed it."""

from __future__ import annotations

import base64
import copy
from pathlib import Path
from typing import Any

import orjson
import pytest

from ledger.event import StoredEvent
from ledger.integrity.checkpoints import read_checkpoints
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.proof import make_proof
from ledger.integrity.signing_keys import SigningKeys
from producers.node.integrity import receipt_signer
from producers.node.receipts import Order, Receipts
from tests.doors.test_cli_knowledge import kledger
from tests.integrity.logs import signed_log

SUBJECT = "ledger.default.knowledge.k-1.saved.user.ada"
SEALED = "sealed:v1:user:ada:QUJD"


def ran(*arguments: object) -> tuple[int, str]:
    ended = kledger(*map(str, arguments))
    return ended.exit_code, ended.stdout


def proof_of(directory: Path, data: dict[str, Any]) -> Path:
    body = orjson.dumps({"type": "knowledge.saved", "actor": "user:ada", "data": data})

    def about_it(event: StoredEvent) -> StoredEvent:
        return event._replace(subject=SUBJECT, body=body) if event.position == 2 else event

    events, files = signed_log(directory / "log", 3, 3, about_it)
    checkpoint = read_checkpoints(files.checkpoints)[-1]
    about = {"org": "default", "knowledge": "k-1", "positions": [2]}
    leaves = files.leaves.read(1, checkpoint.position)
    made = make_proof(about, [events[1]], leaves, checkpoint, SigningKeys.open(files.keys).current())
    (directory / "proof.json").write_bytes(orjson.dumps(made))
    return directory / "proof.json"


def test_a_check_of_a_proof_shows_what_its_events_say(tmp_path: Path) -> None:
    file = proof_of(tmp_path, {"task": "给分支命名", "content": "Use the number."})
    code, shown = ran("check-proof", file)
    assert code == 0
    assert '{"task":"给分支命名","content":"Use the number."}' in " ".join(shown.split())
    (event,) = orjson.loads(ran("check-proof", file, "--json")[1])["events"]
    assert event["data"] == {"task": "给分支命名", "content": "Use the number."}
    assert event["sealed_for"] == []


def test_a_check_of_a_proof_says_whose_words_are_sealed_in_it(tmp_path: Path) -> None:
    file = proof_of(tmp_path, {"task": SEALED, "tags": {"$sealed": "sealed:v1:user:bob:QUJD"}, "score": 3})
    shown = " ".join(ran("check-proof", file)[1].split())
    assert "sealed words of user:ada, user:bob: a proof shows that they were said, and not what they are" in shown
    assert '{"task":"[sealed]","tags":"[sealed]","score":3}' in shown
    (event,) = orjson.loads(ran("check-proof", file, "--json")[1])["events"]
    assert event["sealed_for"] == ["user:ada", "user:bob"]


@pytest.fixture
def receipt(tmp_path: Path) -> tuple[dict[str, Any], NotaryFiles]:
    files = signed_log(tmp_path / "signer", 1, 1)[1]
    kept = Receipts(tmp_path / "receipts", receipt_signer(files))
    order = Order("forget-1", "user:ada", "user:local", "2026-03-05T12:00:00Z")
    told = {"id": "forget-1", "subject": "user:ada", "key": "destroyed", "done_at": "2026-03-05T12:00:01Z"}
    return kept.finish(order, told), files


def test_a_receipt_is_checked_with_a_public_key_alone(
    receipt: tuple[dict[str, Any], NotaryFiles], tmp_path: Path
) -> None:
    document, files = receipt
    (tmp_path / "node.pem").write_text(SigningKeys(files.keys).current().pem())
    code, shown = ran("check-proof", tmp_path / "receipts" / "forget-1.json", "--key", tmp_path / "node.pem")
    assert code == 0
    assert "receipt holds" in " ".join(shown.split())
    assert "user:ada" in shown
    told = orjson.loads(ran("check-proof", tmp_path / "receipts" / "forget-1.json", "--json")[1])
    assert (told["holds"], told["receipt"], told["key"]["given"]) == (True, document["receipt"], False)


def test_a_receipt_that_was_changed_or_that_another_key_signed_does_not_hold(
    receipt: tuple[dict[str, Any], NotaryFiles], tmp_path: Path
) -> None:
    document, _files = receipt
    stranger = SigningKeys.open(tmp_path / "other").current().text()
    signature = document["signature"]
    for changed in (
        {"receipt": document["receipt"] | {"subject": "user:bob"}},
        {"signature": signature | {"key": stranger}},
        {"signature": signature | {"signature": base64.b64encode(bytes(64)).decode()}},
        {"signature": None},
    ):
        file = tmp_path / "changed.json"
        file.write_bytes(orjson.dumps(copy.deepcopy(document) | changed))
        code, shown = ran("check-proof", file, "--json")
        assert (code, orjson.loads(shown)["holds"]) == (1, False)
    file.write_bytes(orjson.dumps(document))
    assert ran("check-proof", file, "--key", stranger)[0] == 1
    file.write_bytes(orjson.dumps(document | {"signature": {"key": 5}}))
    assert ran("check-proof", file)[0] == 2
