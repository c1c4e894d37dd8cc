"""Lease: which of several nodes may do what only one may do at a time; a key of a JetStream bucket.

No clock is compared with another one. A holder renews the key, each time only if nobody else wrote it (the broker
compares the sequence), and counts itself as holder for LEASE_SECONDS from the start of its last successful write.
Another node takes the key when it has not seen it change for longer than that by its own clock. Between the end of one
lease and the start of the next there is a pause, so two holders at once would need clocks of very different speed. What
they write is guarded by expected positions all the same.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import time

import orjson
import structlog

from kledger.contract.errors import LedgerError
from ledger.broker.access import LEASE_BUCKET, LEASE_SUBJECTS, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NOTHING_STORED
from ledger.broker.stream_setup import ensure
from ledger.event import JsonObject
from ledger.runtime.log_once import Outage
from ledger.wire.publication import EXPECTED, error_code, error_of, parse_answer

log = structlog.get_logger(__name__)

LEASE_SECONDS = 10.0
PAUSE_FACTOR = 1.5
"""Another node waits this many times the length of a lease before it takes it."""
RENEWALS = 4
"""Writes of the key within LEASE_SECONDS."""


def bucket_settings(replicas: int = 1) -> JsonObject:
    """The configuration of the bucket's stream (NATS ADR-8)."""
    return {
        "name": f"KV_{LEASE_BUCKET}",
        "description": "Which node holds which lease",
        "subjects": [LEASE_SUBJECTS],
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "max_msgs_per_subject": 1,
        "discard": "new",
        "allow_rollup_hdrs": True,
        "deny_delete": True,
        "allow_direct": True,
    }


async def ensure_leases(access: BrokerAccess, *, replicas: int = 1) -> None:
    """Create the bucket if it does not exist; connects as `admin`. Raises BrokerUnavailable, BrokerMisconfigured."""
    await ensure(access, f"KV_{LEASE_BUCKET}", bucket_settings(replicas), "keeps leases")


class Lease:
    """One key, as one node sees it. `keep` acquires and renews the lease; `held` is whether this node has it now.

    `holder` is for people: several nodes may have one name. A node knows its own key by a word that it made up.
    """

    def __init__(self, connection: BrokerConnection, key: str, holder: str, *, seconds: float = LEASE_SECONDS) -> None:
        self._connection, self._subject = connection, f"$KV.{LEASE_BUCKET}.{key}"
        self._holder, self._seconds, self._own = holder, seconds, secrets.token_hex(8)
        self._until = float("-inf")
        self._seen = (-1, 0.0)  # the key's sequence, and since when it has it by our clock
        self._was_held = False
        self._outage = Outage("lease_not_reached", "lease_reached", log)
        self.holder = ""
        """The last known holder."""

    @property
    def held(self) -> bool:
        """Whether this node has the lease now."""
        return time.monotonic() < self._until

    async def keep(self) -> None:
        """Acquire the lease and renew it, until cancelled."""
        while True:
            try:
                await self._try()
                self._outage.over(key=self._subject)
            except LedgerError as error:
                self._outage.met(error.message, key=self._subject)
            if self._was_held != self.held:
                self._was_held = self.held
                log.warning("lease_taken" if self.held else "lease_lost", key=self._subject, holder=self._holder)
            await asyncio.sleep(self._seconds / RENEWALS)

    async def release(self) -> None:
        """Release the lease, so that another node can take it at once."""
        if self.held:
            self._until = float("-inf")
            await self._write(self._seen[0], "")

    async def _try(self) -> None:
        began = time.monotonic()
        sequence, self.holder, whose = await self._read()
        if sequence != self._seen[0]:
            self._seen = (sequence, began)
        ours = whose == self._own
        expired = began - self._seen[1] > self._seconds * PAUSE_FACTOR
        if (ours or not self.holder or expired) and (written := await self._write(sequence, self._holder)):
            self._seen, self._until, self.holder = (written, began), began + self._seconds, self._holder

    async def _read(self) -> tuple[int, str, str]:
        """The key's sequence, holder and the holder's word, from the bucket's leader; 0 where nobody wrote yet."""
        answer = await self._connection.api(
            f"STREAM.MSG.GET.KV_{LEASE_BUCKET}", {"last_by_subj": self._subject}, timeout=self._seconds / RENEWALS
        )
        code = error_code(answer)
        if code in NOTHING_STORED:
            return 0, "", ""
        if code:
            raise error_of(answer, "a look at a lease")
        message = answer["message"]
        document = orjson.loads(base64.b64decode(message.get("data", "") or "e30="))
        return int(message["seq"]), str(document.get("holder", "")), str(document.get("own", ""))

    async def _write(self, expected: int, holder: str) -> int:
        """Write the key; returns its new sequence, 0 when another node was first."""
        reply = await self._connection.request(
            self._subject,
            orjson.dumps({"holder": holder, "own": self._own}),
            {EXPECTED: str(max(0, expected))},
            timeout=self._seconds / RENEWALS,
        )
        answer = parse_answer(reply.data)
        return 0 if error_code(answer) else int(answer["seq"])
