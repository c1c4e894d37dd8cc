"""Request bodies of the operator of a node, field by field."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kledger.contract.knowledge import Id
from kledger.contract.scope_fields import Entity
from kledger.requests.body import Asked


class VerifyRequest(Asked):
    """Fold the log from zero and compare; with `from_log` nothing of the archive is read, the log alone."""

    from_log: bool = False


class ReplayRequest(Asked):
    """Fold the log up to a position or a moment (null: its end) into a new file of the node's machine."""

    to: Annotated[int, Field(ge=0)] | str | None = None
    into: Annotated[str, Field(min_length=1, max_length=4096)]


class BackupRequest(Asked):
    """Add what is new in the log to the backup in a directory of the node's machine, or at `s3://BUCKET/PREFIX`.

    `columns` is whether it has the archive's decoded columns as well; null leaves that as it was.
    """

    into: Annotated[str, Field(min_length=1, max_length=4096)]
    columns: bool | None = None


class ProveRequest(Asked):
    """The item behind which every event is to be proved."""

    id: Id


class ForgetRequest(Asked):
    """Forget a person, for good: `user:ID`."""

    subject: Entity


class SqlRequest(Asked):
    """One SELECT over the live view."""

    query: Annotated[str, Field(min_length=1, max_length=100_000)]
