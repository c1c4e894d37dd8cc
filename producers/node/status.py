"""Status of a node: the log's head, each view's position and lag, and health with its reasons."""

from __future__ import annotations

import platform
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from kledger.contract.errors import LedgerError
from ledger.broker.streams_beside import StreamsBeside
from ledger.event import JsonObject
from ledger.installed import PRODUCT, version
from ledger.store.jetstream import StreamStatus
from producers.node.eraser import Eraser
from producers.node.readiness import LONGEST_LAG_SECONDS, Readiness, lag
from producers.node.rebuilds import Rebuilds
from producers.operations.ports import Health
from projections.engine.parking import attention
from projections.engine.view import DAMAGED
from projections.vectors.soundness import vector_reasons
from projections.views.lineage.ask import refused_count


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What a node tells of itself."""

    rebuilds: Rebuilds
    eraser: Eraser
    started: float
    """By the monotonic clock."""
    readiness: Readiness = field(default_factory=Readiness)
    beside: StreamsBeside | None = None

    async def health(self) -> Health:
        """Whether the node is healthy and ready, with the reasons where it is not.

        Whoever reaches the node may ask for it: files are named as they stand in the data directory, wherever that is.
        """
        status, data = await self.now(), self.rebuilds.integrity.data
        for place in (data, data.resolve()):
            status["reasons"] = [str(each).replace(f"{place}/", "") for each in status["reasons"]]
        return self.readiness.of(status, () if self.rebuilds.feed.comes else ("vectors",))

    async def now(self) -> JsonObject:
        """Stream head, each view's position and lag, refused events, versions, and health with its reasons."""
        of, feed, view = self.rebuilds, self.rebuilds.feed, self.rebuilds.view
        reasons, head, stored_ns, stream = [], view.position, 0, StreamStatus()
        try:
            stream = await of.ledger.status()
            head, stored_ns = stream.head.position, stream.head.stored_ns
            why = await of.ledger.hindrance(stream, of.integrity.org)
            reasons += await self.beside.reasons() if self.beside else []
        except LedgerError as error:
            reasons.append(error.message)
            why = of.ledger.hindered()
        if why:
            reasons.append(why)
        views = [
            await lag(of.ledger, "duckdb", view.position, head, stored_ns),
            await lag(of.ledger, "vectors", feed.applied, head, stored_ns),
        ]
        for name, trouble in (("duckdb", of.projector.trouble), ("vectors", feed.trouble)):
            if trouble is not None:
                reasons.append(f"the view {name} stands still: {trouble.message}")
        if view.instance.damage:
            reasons.append(DAMAGED)
        reasons += vector_reasons(feed)
        reasons += of.integrity.reasons()
        reasons += self.eraser.reasons()
        reasons += [
            f"the view {each['name']} is {each['lag_events']} events and {each['lag_seconds']} s behind"
            for each in views
            if min(each["lag_seconds"], time.monotonic() - self.started) > LONGEST_LAG_SECONDS
        ]
        warnings: list[str] = []
        try:
            parking_reasons, warnings = await attention(of.ledger, view, of.parked)
            reasons += parking_reasons
        except LedgerError as error:
            reasons += [error.message] if error.message not in reasons else []
        warnings += [f"{each} was removed from the archive, and is made anew" for each in of.archiving.missing]
        if of.archiving.trouble is not None:
            warnings.append(f"the archive is not written: {of.archiving.trouble}")
        warnings += of.integrity.warnings()
        return {
            "healthy": not reasons,
            "reasons": reasons,
            "warnings": warnings,
            "stream": {
                "head": head,
                "time": datetime.fromtimestamp(stored_ns / 1e9, UTC).isoformat() if stored_ns else None,
                "messages": stream.messages,
                "bytes": stream.bytes,
                "url": of.access.url,
            },
            "views": views,
            "embeddings": asdict(feed.backlog.state) if feed.settings.embedding else None,
            "chain": of.integrity.status(),
            "archive": of.archiving.status() if of.archiving.kept else None,
            "refused": 0 if view.instance.damage else await view.ask(refused_count),
            "versions": {
                "product": version(PRODUCT),
                "python": platform.python_version(),
                "duckdb": version("duckdb"),
                "nats": stream.server,
                "qdrant_edge": version("qdrant-edge-py"),
            },
            "uptime_seconds": round(time.monotonic() - self.started, 3),
            "quack": {"port": of.files.address.port} if of.files.address else None,
        }
