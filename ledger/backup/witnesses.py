"""What do signed checkpoints say of the log, and do the events agree?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ledger.chain import Chain
from ledger.errors import BackupMismatch


class Witness(NamedTuple):
    """What somebody who can be trusted says of the first `position` events: the head of their chain, their root."""

    position: int
    head: bytes
    root: bytes


def extend_past(chain: Chain, leaves: Sequence[bytes], witnesses: Sequence[Witness]) -> Chain:
    """The chain after more leaves. Raises BackupMismatch at the first witness on the way that says otherwise."""
    end = chain.position + len(leaves)
    taken = 0
    for witness in sorted(one for one in witnesses if chain.position < one.position <= end):
        step = witness.position - chain.position
        chain = chain.extended(leaves[taken : taken + step])
        taken += step
        check(chain, witness)
    return chain.extended(leaves[taken:])


def check(chain: Chain, witness: Witness) -> None:
    """Raise BackupMismatch when a witness says another thing of this very position."""
    if (chain.head, chain.root()) != (witness.head, witness.root):
        raise BackupMismatch(
            f"the events up to position {witness.position} are not those that were signed: the chain ends in "
            f"{chain.head.hex()}, the signed checkpoint says {witness.head.hex()}. Run kledger audit, which names "
            "what was changed",
            position=witness.position,
        )
