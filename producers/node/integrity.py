"""Integrity of a node: its notary, audits, proofs, and the certificates of its rebuilds."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import orjson
import structlog

from kledger.contract.errors import BrokerUnavailable, ChainContradicted, LedgerError, NotCertified, UnknownKnowledge
from ledger.event import JsonObject, StoredEvent
from ledger.installed import PRODUCT, version
from ledger.integrity.audit import audit
from ledger.integrity.audit_evidence import gather
from ledger.integrity.certificate import RETENTION, make_certificate
from ledger.integrity.chain_start import Beginning, begin, beginning, doubt
from ledger.integrity.checkpoint_hook import CheckpointHook
from ledger.integrity.checkpoints import from_the_last
from ledger.integrity.found import Found, Part, found, found_by_audit, is_intact, remember
from ledger.integrity.notary import Notary
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.proof import make_proof
from ledger.integrity.receipt import SIGNED_AS
from ledger.integrity.signing_keys import SigningKeys, public_keys
from ledger.progress import Progress
from ledger.store.jetstream import JetStreamLedger
from ledger.stream import Ledger, event_at
from projections.engine.schema_version import SCHEMA_VERSION
from projections.engine.view import View
from projections.views.knowledge.provenance import positions_behind

log = structlog.get_logger(__name__)


async def create_notary(ledger: JetStreamLedger, data: Path, hook: str | None) -> Notary:
    """The notary of a node on the directory `data`; records where its chain begins.

    Raises UnsafeKeyFile, InvalidPayload (the hook), ChainContradicted, BrokerUnavailable.
    """
    begin(NotaryFiles.of(data), (await ledger.head()).position, await ledger.restored_to())
    return Notary(ledger, NotaryFiles.of(data), hook=CheckpointHook(hook) if hook else None)


def receipt_signer(files: NotaryFiles) -> Callable[[bytes], JsonObject]:
    """Signs receipts with the key that signs the log; returns `key` (the public key) and `signature` (base64).

    The signed bytes are a line with the kind of document, then the receipt as JSON with sorted keys
    (ledger/integrity/receipt.py checks them).
    """

    def sign(receipt: bytes) -> JsonObject:
        key = SigningKeys(files.keys).in_use()
        signature = key.sign(SIGNED_AS + receipt)
        return {"key": key.public.text(), "signature": base64.b64encode(signature).decode()}

    return sign


@dataclass(frozen=True, slots=True)
class Integrity:
    """Operator functions that use the signed chain."""

    ledger: Ledger
    view: View
    notary: Notary
    org: str
    data: Path

    def status(self) -> JsonObject:
        """How far the log is signed (see Notary.status), and where its chain began."""
        began = self._began()
        return {**self.notary.status(), "began": began.to_json() if began else None}

    def reasons(self) -> list[str]:
        """Why the log before the chain is doubtful, what jobs found and nobody mended, and why nothing is signed.

        An unavailable broker is not included; the status reports it anyway.
        """
        began, trouble = self._began(), self.notary.trouble
        reasons = [doubt(began)] if began is not None and began.doubtful else []
        reasons += map(str, found(self.notary.files))
        if trouble is None or isinstance(trouble, BrokerUnavailable):
            return reasons
        return [*reasons, f"nothing is signed any more: {trouble.message}"]

    def warnings(self) -> list[str]:
        """What wants attention, and hinders nothing: nobody gets the checkpoints that are to be kept elsewhere."""
        hook = self.notary.status()["hook"]
        return (
            [f"checkpoints are not sent: {hook}; what is missed is sent with the next that is signed"] if hook else []
        )

    def _began(self) -> Beginning | None:
        """Where the chain begins, None where that cannot be read; the next start reports why."""
        with contextlib.suppress(ChainContradicted):
            return beginning(self.notary.files)
        return None

    async def audit(self, progress: Progress) -> JsonObject:
        """Sign up to the head, then read the log and compare it with all that this node signed.

        Raises NotCertified, BrokerUnavailable.
        """
        head = (await self.ledger.head()).position
        with contextlib.suppress(NotCertified):  # the audit covers what is signed
            await self.notary.certify(max(1, head), timeout=10 if head else 0)
        evidence = await asyncio.to_thread(gather, self.notary.files)
        report = await audit(self.ledger, evidence, progress)
        self.note("log", None if report.intact else found_by_audit(report.findings))
        return report.to_json()

    def note(self, part: Part, one: Found | None) -> None:
        """Keep what a job found not intact of a part, for the health of the node; None: the part is intact."""
        try:
            if one is None:
                is_intact(self.notary.files, part)
            else:
                log.error("a job found what is not intact", job=one.job, part=part, what=one.what)
                remember(self.notary.files, one)
        except OSError as error:  # the job has its result all the same
            log.error("what a job found cannot be kept", job=one.job if one else None, part=part, error=str(error))

    async def prove(self, item_id: str) -> JsonObject:
        """A proof for every event behind an item's current state.

        Raises UnknownKnowledge, NotCertified, ChainContradicted, LogGap.
        """
        positions = await self.view.ask(positions_behind, self.org, item_id)
        if not positions:
            raise UnknownKnowledge(f"there is no knowledge {item_id!r}: look for its id with kledger list", id=item_id)
        checkpoint = await self.notary.certify(positions[-1])
        keys = await asyncio.to_thread(public_keys, self.notary.files.keys)
        if checkpoint.key_id not in keys:
            raise ChainContradicted(f"the public key {checkpoint.key_id} is not in {self.notary.files.keys} any more")
        events = [await self._event_at(position) for position in positions]
        about = {"org": self.org, "knowledge": item_id, "positions": positions}
        leaves = await asyncio.to_thread(self.notary.files.leaves.read, 1, checkpoint.position)
        return await asyncio.to_thread(make_proof, about, events, leaves, checkpoint, keys[checkpoint.key_id])

    async def certified(self, run: str, result: JsonObject, recall_days: int | None = None) -> JsonObject:
        """The result of a rebuild or replay, with the path of the `certificate` that was written for it.

        `recall_days` is for how long its views keep the detail of recalls, None for ever.
        Where the log cannot be attested there is none, and `uncertified` says why.
        """
        views = result["rebuilt"].pop("views")
        try:
            chain = await self.notary.chain_at(result["position"])
            document = await asyncio.to_thread(
                make_certificate,
                {
                    "run": run,
                    "product": version(PRODUCT),
                    "views_schema": SCHEMA_VERSION,
                    "views": views,
                    "state": result["rebuilt"]["digest"],
                    "seconds": result["seconds"],
                    **({} if recall_days is None else {RETENTION: recall_days}),
                },
                chain,
                SigningKeys(self.notary.files.keys),
                datetime.now(UTC),
            )
            file = await asyncio.to_thread(_write_certificate, self.data / "certificates", run, document)
        except LedgerError as error:
            return {**result, "certificate": None, "uncertified": error.message}
        return {**result, "certificate": str(file)}

    def kept(self, most: int) -> JsonObject:
        """`checkpoints` and `certificates`: the last `most` of each that are on the disk, newest first.

        What cannot be read is left out: an audit tells of it.
        """
        directory = self.data / "certificates"
        files = sorted(directory.glob("*.json"), key=lambda file: file.stat().st_mtime_ns, reverse=True)[:most]
        certificates = []
        for file in files:
            with contextlib.suppress(OSError, orjson.JSONDecodeError, KeyError, TypeError):
                document = orjson.loads(file.read_bytes())
                certificates.append({"file": file.name, **{name: document[name] for name in _TOLD}})
        checkpoints = [each.to_json() for each in islice(from_the_last(self.notary.files.checkpoints), most)]
        return {"checkpoints": checkpoints, "certificates": certificates}

    async def _event_at(self, position: int) -> StoredEvent:
        event = await event_at(self.ledger, position)
        if event is None:
            raise ChainContradicted(f"the log ends before position {position}, which the views know: run kledger audit")
        return event


_TOLD = ("run", "position", "root", "state", "time", "key", "signature")
"""What is told of a certificate that is kept."""


def _write_certificate(directory: Path, run: str, document: JsonObject) -> Path:
    """Write a certificate durably; an existing one is never replaced."""
    directory = directory.absolute()
    directory.mkdir(exist_ok=True)
    moment = datetime.fromisoformat(document["time"]).strftime("%Y%m%dT%H%M%S%fZ")
    file = directory / f"{run}-{document['position']}-{moment}.json"
    with file.open("xb") as out:
        out.write(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
        out.flush()
        os.fsync(out.fileno())
    return file
