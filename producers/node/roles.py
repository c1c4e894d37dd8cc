"""Roles of a node: every node folds views and serves interfaces; vectors have a single writer.

Without a Qdrant server, a node writes its own vectors. On a Qdrant server they are shared: of the nodes with the role
`vectors`, the one that holds the lease writes them, and the others follow its progress. Nodes with the role `reactors`
have models process requests; each request is consumed by one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import get_args

from kledger.contract.errors import LedgerError, NodeMisconfigured
from kledger.contract.words import NodeRole
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.lease import Lease, ensure_leases

ALL_ROLES: frozenset[NodeRole] = frozenset(get_args(NodeRole))


async def writes_vectors(
    roles: frozenset[NodeRole], qdrant: str | None, access: BrokerAccess, replicas: int, stack: AsyncExitStack
) -> Callable[[], bool]:
    """Returns a function that reports whether this node may write vectors now.

    Raises NodeMisconfigured for a node without any vectors, BrokerUnavailable.
    """
    if qdrant is None:
        if "vectors" not in roles:
            raise NodeMisconfigured(
                "a node without the role vectors searches what another one writes: say where, with --qdrant URL"
            )
        return lambda: True
    if "vectors" not in roles:
        return lambda: False
    await ensure_leases(access, replicas=replicas)
    connection = await BrokerConnection.open(access, "node", name="kledger-lease")
    stack.push_async_callback(connection.close)
    lease = Lease(connection, "vectors", f"{socket.gethostname()}:{os.getpid()}")
    renewing = asyncio.create_task(lease.keep(), name="vectors-lease")

    async def release() -> None:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        with contextlib.suppress(LedgerError):
            await lease.release()

    stack.push_async_callback(release)
    return lambda: lease.held
