"""Start of a node's chain: at position 1 of its log, or later, with earlier events that no signature attests.

A chain that starts on a log which is not empty has two possible causes: a node's first start on an existing log, or
lost chain files. They cannot be told apart here, so an operator has to confirm it (`kledger chain accept`). A log that
was restored from a backup was verified against the backup's chain and needs no confirmation.
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
    """The chain covers the events after `position` (None: of the first log that the node finds).

    `signed`: a checkpoint of it was written. `accepted`: the operator's reason why this start is right, if confirmed.
    """

    position: int | None
    time: str
    signed: bool = False
    accepted: str | None = None

    @property
    def doubtful(self) -> bool:
        """Whether there are earlier events and nobody confirmed the start."""
        return bool(self.position) and self.accepted is None

    def to_json(self) -> JsonObject:
        """The content of the file, also shown in answers."""
        return {"position": self.position, "time": self.time, "signed": self.signed, "accepted": self.accepted}


def beginning(files: NotaryFiles) -> Beginning | None:
    """The recorded start of a node's chain; None before its first start. Raises ChainContradicted."""
    path = files.directory / FILE
    try:
        document = orjson.loads(path.read_bytes())
        return Beginning(document["position"], document["time"], document["signed"], document["accepted"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ChainContradicted(
            f"{path} cannot be read ({error!r}): bring it back from a copy, or remove it"
        ) from error


def begin(files: NotaryFiles, head: int, restored_to: int) -> Beginning:
    """Record the start of the chain, for a log that ends at `head` and was restored up to `restored_to`.

    Raises ChainContradicted.
    """
    kept = beginning(files)
    if _is_signed(files):
        if kept is not None and kept.signed:
            return kept
        return _write(files, replace(kept or Beginning(0, _now()), signed=True))  # None: an older version wrote no file
    if kept is not None and not kept.signed:  # nothing was signed yet, or it was accepted before the first start
        return kept if kept.position is not None else _write(files, replace(kept, position=head))
    reason = None
    if head and head <= restored_to:
        reason = f"the log was brought back from a backup up to position {restored_to} and compared with its chain"
    start = _write(files, Beginning(head, _now(), accepted=reason))
    if start.doubtful:
        log.error("the chain begins anew beneath a log that is not empty", position=head, do=doubt(start))
    return start


def note_signed(files: NotaryFiles) -> None:
    """Record that the first checkpoint was written: if checkpoints are missing later, somebody removed them."""
    kept = beginning(files)
    if kept is not None and not kept.signed:
        _write(files, replace(kept, signed=True))


def accept(files: NotaryFiles, reason: str) -> Beginning:
    """Record the operator's confirmation of the start; before the first start, that the chain may start on any log.

    Raises ChainContradicted.
    """
    kept = beginning(files) or Beginning(None, _now())
    return _write(files, replace(kept, accepted=reason))


def doubt(start: Beginning) -> str:
    """The message about a doubtful start: what is doubtful, and what to do."""
    return (
        f"the chain begins anew behind position {start.position}, since {start.time}: nobody here vouches for what is "
        "before it. Where this node had a chain, its files were removed: bring the directories chain and keys back, or "
        "compare the log with checkpoints that were copied elsewhere (kledger audit --data DIR --checkpoints FILE). "
        "Where the log was there before the node, or all is well: kledger chain accept --data DIR --reason WHY"
    )


def _write(files: NotaryFiles, start: Beginning) -> Beginning:
    files.directory.mkdir(parents=True, exist_ok=True)
    write_private(files.directory / FILE, orjson.dumps(start.to_json(), option=orjson.OPT_INDENT_2) + b"\n")
    return start


def _is_signed(files: NotaryFiles) -> bool:
    try:
        return last_checkpoint(files.checkpoints) is not None
    except ValueError:  # there is a damaged line, which the notary reports
        return True


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
