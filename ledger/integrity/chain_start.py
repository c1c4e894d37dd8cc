"""Where does a node's chain begin? With its log; or later, and then nobody here vouches for what stood before.

A chain that begins beneath a log which is not empty is either a node's first start on a log of others, or the files of
its chain are gone. Both look the same from here, so an operator has to say that it is right (`kledger chain accept`).
A log that was brought back from a backup was compared with the backup's chain: that needs no word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import orjson
import structlog

from kledger.contract.errors import ChainContradicted
from ledger.broker.server_config import write_private
from ledger.event import JsonObject
from ledger.integrity.checkpoints import last_checkpoint
from ledger.integrity.notary_start import NotaryFiles

log = structlog.get_logger(__name__)

FILE = "began.json"


@dataclass(frozen=True, slots=True)
class Beginning:
    """The chain is of the events behind `position` (None: of whatever log is found first).

    `signed`: a checkpoint of it was written. `accepted` says why it is right that it begins there, where somebody did.
    """

    position: int | None
    time: str
    signed: bool = False
    accepted: str | None = None

    @property
    def doubtful(self) -> bool:
        """Whether events stand before it for which nobody answered."""
        return bool(self.position) and self.accepted is None

    def to_json(self) -> JsonObject:
        """As it is kept, and told."""
        return {"position": self.position, "time": self.time, "signed": self.signed, "accepted": self.accepted}


def beginning(files: NotaryFiles) -> Beginning | None:
    """Where the chain of a node began; None before its first start. Raises ChainContradicted."""
    path = files.directory / FILE
    try:
        told = orjson.loads(path.read_bytes())
        return Beginning(told["position"], told["time"], told["signed"], told["accepted"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ChainContradicted(
            f"{path} cannot be read ({error!r}): bring it back from a copy, or remove it"
        ) from error


def begin(files: NotaryFiles, head: int, restored_to: int) -> Beginning:
    """Note where the chain begins, for a log that ends at `head` and came from a backup up to `restored_to`.

    Raises ChainContradicted.
    """
    kept = beginning(files)
    if _is_signed(files):
        if kept is not None and kept.signed:
            return kept
        return _keep(files, replace(kept or Beginning(0, _now()), signed=True))  # none: of a version without this note
    if kept is not None and not kept.signed:  # nothing was signed yet, or it was accepted before the first start
        return kept if kept.position is not None else _keep(files, replace(kept, position=head))
    why = None
    if head and head <= restored_to:
        why = f"the log was brought back from a backup up to position {restored_to} and compared with its chain"
    found = _keep(files, Beginning(head, _now(), accepted=why))
    if found.doubtful:
        log.error("the chain begins anew beneath a log that is not empty", position=head, do=doubt(found))
    return found


def note_signed(files: NotaryFiles) -> None:
    """Its first checkpoint is written: from now on it cannot be gone without somebody's doing."""
    kept = beginning(files)
    if kept is not None and not kept.signed:
        _keep(files, replace(kept, signed=True))


def accept(files: NotaryFiles, reason: str) -> Beginning:
    """Note that it is right where the chain begins, or before the first start, that it may begin on any log.

    Raises ChainContradicted.
    """
    kept = beginning(files) or Beginning(None, _now())
    return _keep(files, replace(kept, accepted=reason))


def doubt(found: Beginning) -> str:
    """What is doubtful, and what to do."""
    return (
        f"the chain begins anew behind position {found.position}, since {found.time}: nobody here vouches for what is "
        "before it. Where this node had a chain, its files were removed: bring the directories chain and keys back, or "
        "compare the log with checkpoints that were copied elsewhere (kledger audit --data DIR --checkpoints FILE). "
        "Where the log was there before the node, or all is well: kledger chain accept --data DIR --reason WHY"
    )


def _keep(files: NotaryFiles, found: Beginning) -> Beginning:
    files.directory.mkdir(parents=True, exist_ok=True)
    write_private(files.directory / FILE, orjson.dumps(found.to_json(), option=orjson.OPT_INDENT_2) + b"\n")
    return found


def _is_signed(files: NotaryFiles) -> bool:
    try:
        return last_checkpoint(files.checkpoints) is not None
    except ValueError:  # something stands there; the notary says what is wrong with it
        return True


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
