"""Audit of a data directory, with or without a running node: from its own files and any broker that has the log.

Nothing here asks the node: an auditor who holds the directory, a key and copied checkpoints trusts no running code.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from kledger.contract.errors import DataDirectoryInUse, NodeMisconfigured
from ledger.broker.access import BrokerAccess
from ledger.broker.server import EmbeddedServer
from ledger.broker.server_config import HOST, ServerFiles, keep_passwords
from ledger.integrity.audit import Report, audit
from ledger.integrity.audit_evidence import gather
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import VerifyingKey
from ledger.progress import Progress
from ledger.store.jetstream import JetStreamLedger


async def audit_directory(
    data: Path,
    progress: Progress,
    *,
    nats: str | None = None,
    outside: Sequence[Path] = (),
    key: VerifyingKey | None = None,
) -> Report:
    """Audit the log of a node's directory; `nats` is the URL of its broker where that is not its own.

    Raises NotCertified, NodeMisconfigured (no stream there), BrokerUnavailable.
    """
    evidence = await asyncio.to_thread(gather, NotaryFiles.of(data), outside, key)
    async with _broker_of(data, nats) as access:
        ledger = await JetStreamLedger.connect(access, role="reader", name="kledger-audit")
        try:
            return await audit(ledger, evidence, progress)
        finally:
            await ledger.close()


@asynccontextmanager
async def _broker_of(data: Path, nats: str | None) -> AsyncIterator[BrokerAccess]:
    """The broker of a data directory: the running one, or else one that is started for the duration of the context."""
    if nats is not None:
        yield BrokerAccess.from_url(nats)
        return
    directory = data / "broker"
    if not directory.is_dir():
        raise NodeMisconfigured(
            f"there is no broker directory in {data}: name a node's data directory with --data, or its "
            "broker with --nats"
        )
    server = EmbeddedServer(directory)
    try:
        access = await server.start()
    except DataDirectoryInUse:
        files = ServerFiles(directory)
        try:
            port = int(files.port.read_text())
        except (OSError, ValueError) as error:
            raise NodeMisconfigured(f"the broker of {directory} is in use and names no port: try again") from error
        yield BrokerAccess(f"nats://{HOST}:{port}", keep_passwords(files))
        return
    try:
        yield access
    finally:
        await server.stop()
