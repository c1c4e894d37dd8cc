"""Which of several nodes may do what only one may do at a time? Whoever holds the lease, a key of a JetStream bucket.

No clock is compared with another's. A holder writes the key again and again, each time only where nobody else wrote
(the broker compares the sequence), and counts itself as holder for LEASE_SECONDS from before its last write that went
well. Another one takes the key when it has not seen it change for longer than that by its own clock. Between the end of
the one and the beginning of the other there is a pause, so that two holders would need clocks of very different speed;
what they write is guarded by position all the same.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable

import orjson
import structlog

from kledger.contract.errors import LedgerError
from ledger.broker.access import LEASE_BUCKET, LEASE_SUBJECTS, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.stream_setup import ensure
from ledger.event import JsonObject
from ledger.runtime.log_once import Outage
from ledger.wire.publication import EXPECTED, error_code, error_of, parse_answer

log = structlog.get_logger(__name__)

LEASE_SECONDS = 10.0
PAUSE_FACTOR = 1.5
"""Another one waits for so many times as long as a lease lasts."""
RENEWALS = 4
"""So many times in LEASE_SECONDS a holder writes its key."""
_NONE = frozenset({10037, 404})


def bucket_settings(replicas: int = 1) -> JsonObject:
    """The bucket as the stream that it is (NATS ADR-8)."""
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
    """Create the bucket when it is not there; connects as `admin`. Raises BrokerUnavailable, BrokerMisconfigured."""
    await ensure(access, f"KV_{LEASE_BUCKET}", bucket_settings(replicas))


class Lease:
    """One key, as one node sees it; `keep` keeps or awaits it, `held` says whether it is ours now."""

    def __init__(
        self,
        connection: BrokerConnection,
        key: str,
        holder: str,
        *,
        seconds: float = LEASE_SECONDS,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection, self._subject = connection, f"$KV.{LEASE_BUCKET}.{key}"
        self._holder, self._seconds, self._changed = holder, seconds, changed
        self._until = float("-inf")
        self._seen = (-1, 0.0)  # the sequence that the key has, and since when by our clock
        self._was_held = False
        self._outage = Outage("lease_not_reached", "lease_reached", log)
        self.holder = ""
        """Who wrote the key last, as far as is known."""

    @property
    def held(self) -> bool:
        """Whether it is ours now."""
        return time.monotonic() < self._until

    async def keep(self) -> None:
        """Keep the lease, or wait to get it, until cancelled."""
        while True:
            try:
                await self._try()
                self._outage.over(key=self._subject)
            except LedgerError as error:
                self._outage.met(error.message, key=self._subject)
            if self._was_held != self.held:
                self._was_held = self.held
                log.warning("lease_taken" if self.held else "lease_lost", key=self._subject, holder=self._holder)
                self._changed()
            await asyncio.sleep(self._seconds / RENEWALS)

    async def release(self) -> None:
        """Let it go, so that another one takes it at once."""
        if self.held:
            self._until = float("-inf")
            await self._write(self._seen[0], "")

    async def _try(self) -> None:
        began = time.monotonic()
        sequence, self.holder = await self._read()
        if sequence != self._seen[0]:
            self._seen = (sequence, began)
        ours = self.holder == self._holder
        left_alone = began - self._seen[1] > self._seconds * PAUSE_FACTOR
        if (ours or not self.holder or left_alone) and (written := await self._write(sequence, self._holder)):
            self._seen, self._until, self.holder = (written, began), began + self._seconds, self._holder

    async def _read(self) -> tuple[int, str]:
        """The key's sequence and holder, asked of the bucket's leader; (0, "") where nobody wrote yet."""
        answer = await self._connection.api(
            f"STREAM.MSG.GET.KV_{LEASE_BUCKET}", {"last_by_subj": self._subject}, timeout=self._seconds / RENEWALS
        )
        code = error_code(answer)
        if code in _NONE:
            return 0, ""
        if code:
            raise error_of(answer, "a look at a lease")
        message = answer["message"]
        document = orjson.loads(base64.b64decode(message.get("data", "") or "e30="))
        return int(message["seq"]), str(document.get("holder", ""))

    async def _write(self, expected: int, holder: str) -> int:
        """The new sequence; 0 when somebody else was first."""
        reply = await self._connection.request(
            self._subject,
            orjson.dumps({"holder": holder}),
            {EXPECTED: str(max(0, expected))},
            timeout=self._seconds / RENEWALS,
        )
        answer = parse_answer(reply.data)
        return 0 if error_code(answer) else int(answer["seq"])
