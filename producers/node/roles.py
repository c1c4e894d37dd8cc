"""What does this node do of what a node can do? Every node folds views and serves doors; vectors are written by one.

Vectors of its own (no Qdrant server) a node writes by itself. Those on a Qdrant server are everybody's: of the nodes
with the role `vectors` the one that holds the lease writes them, and the others see how far it is. Those with the role
`reactors` have models do what is asked for; each request is heard by one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Literal, get_args

from kledger.contract.errors import BrokerMisconfigured, LedgerError
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.lease import Lease, ensure_leases

Role = Literal["doors", "vectors", "reactors"]
ALL_ROLES: frozenset[Role] = frozenset(get_args(Role))


async def writes_vectors(
    roles: frozenset[Role], qdrant: str | None, access: BrokerAccess, replicas: int, stack: AsyncExitStack
) -> Callable[[], bool]:
    """What tells, at any moment, whether this node may write vectors now.

    Raises BrokerMisconfigured where it could never have any, BrokerUnavailable.
    """
    if qdrant is None:
        if "vectors" not in roles:
            raise BrokerMisconfigured(
                "a node without the role vectors searches what another one writes: say where, with --qdrant URL"
            )
        return lambda: True
    if "vectors" not in roles:
        return lambda: False
    await ensure_leases(access, replicas=replicas)
    connection = await BrokerConnection.open(access, "node", name="kledger-lease")
    stack.push_async_callback(connection.close)
    lease = Lease(connection, "vectors", f"{socket.gethostname()}:{os.getpid()}")
    keeping = asyncio.create_task(lease.keep(), name="vectors-lease")

    async def let_go() -> None:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        with contextlib.suppress(LedgerError):
            await lease.release()

    stack.push_async_callback(let_go)
    return lambda: lease.held
