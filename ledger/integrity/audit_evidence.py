"""Audit evidence: the signed checkpoints of a log and its leaves, as far as the checkpoints attest them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kledger.contract.errors import NotCertified
from ledger.event import JsonObject
from ledger.integrity.chain import HASH_BYTES, NO_HEAD, Chain, chain_head
from ledger.integrity.chain_start import beginning
from ledger.integrity.checkpoints import SignedCheckpoint, read_checkpoints
from ledger.integrity.leaves import LeafFile
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import VerifyingKey, public_keys, trusted_with


class Finding(NamedTuple):
    """Something that is not as it was signed.

    `kind` is changed, missing, moved (its events are at `moved_to` now), cut_off, range (something in it is not as
    signed, but the leaves that would show what are lost), leaves, checkpoint or key. `first` and `last` are
    positions, both included; None where it is not about positions.
    """

    kind: str
    message: str
    first: int | None = None
    last: int | None = None
    moved_to: int | None = None

    def to_json(self) -> JsonObject:
        return self._asdict()


class Segment(NamedTuple):
    """The positions after `after` up to `to`, between two checkpoints; `verified`: their leaves are as signed."""

    after: int
    to: int
    head_before: bytes
    head: bytes
    verified: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """The checkpoints with valid signatures, by position, and the content of the leaf file."""

    checkpoints: list[SignedCheckpoint]
    leaves: bytes
    findings: list[Finding] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)

    @property
    def certified(self) -> int:
        """The last position that is signed."""
        return self.checkpoints[-1].position if self.checkpoints else 0

    @property
    def leaf_count(self) -> int:
        return len(self.leaves) // HASH_BYTES


def gather(files: NotaryFiles, outside: Sequence[Path] = (), anchor: VerifyingKey | None = None) -> Evidence:
    """Load a node's checkpoints and leaves, and checkpoints that were copied elsewhere (`outside`).

    With `anchor` only that key is trusted, and those bound to it by signed replacements; without it, every key in the
    node's directory. Raises NotCertified when there is no checkpoint at all, InvalidPayload, OSError.
    """
    findings: list[Finding] = []

    def known() -> Mapping[str, VerifyingKey]:
        return public_keys(files.keys) if anchor is None else trusted_with(anchor, files.keys)

    checkpoints: list[SignedCheckpoint] = []
    for path in (files.checkpoints, *outside):
        checkpoints += _valid(path, known, findings, required=path is not files.checkpoints)
    began = beginning(files)
    if not checkpoints and not findings:
        raise _nothing_signed(files, was_signed=began is not None and began.signed)
    unseen = ["what was changed before the first checkpoint was signed: it vouches for the log as it was then"]
    if began is not None and began.position:
        accepted = f"accepted: {began.accepted}" if began.accepted else "nobody accepted that"
        unseen.insert(
            0,
            f"positions 1 to {began.position}: they stood there when the chain of this node began, at {began.time}; it "
            f"vouches for them as they were then, and for nothing of before ({accepted})",
        )
    if anchor is None:
        unseen.append(
            "whether the keys are the right ones: they are those the node keeps; give the one you know (--key)"
        )
    if not outside:
        unseen.append(
            "a log that was replaced together with its checkpoints and signed anew with the node's key: compare with "
            "checkpoints that were copied elsewhere (--checkpoints)"
        )
    leaves = files.leaves
    return Evidence(_in_order(checkpoints, findings), _content(leaves), findings, unseen)


def _nothing_signed(files: NotaryFiles, *, was_signed: bool) -> NotCertified:
    """Why there is nothing to compare a log with: it was never signed, or its checkpoints were taken away."""
    if was_signed:
        return NotCertified(
            f"this log was signed, and the checkpoints in {files.checkpoints} are gone: somebody removed them; bring "
            "the directories chain and keys back from a copy, or compare the log with checkpoints that were copied "
            "elsewhere (--checkpoints)"
        )
    return NotCertified(
        f"nothing of this log is signed: there is no checkpoint in {files.checkpoints}; start a node on it, which "
        "signs it as it is from then on"
    )


def segments(evidence: Evidence) -> list[Segment]:
    """The log's segments between checkpoints, each with whether its leaves are as signed; faults become findings."""
    result: list[Segment] = []
    chain: Chain | None = Chain.empty()
    after, before = 0, NO_HEAD
    for signed in evidence.checkpoints:
        leaves = split(evidence.leaves, after, signed.position)
        verified = len(leaves) == signed.position - after and chain_head(before, leaves) == signed.head
        chain = chain.extended(leaves) if chain is not None and verified else None
        if chain is not None and chain.root() != signed.root:
            evidence.findings.append(
                Finding(
                    "checkpoint", f"the checkpoint of position {signed.position} names a tree that its chain is not"
                )
            )
        result.append(Segment(after, signed.position, before, signed.head, verified))
        after, before = signed.position, signed.head
    doubtful = [part for part in result if not part.verified]
    if evidence.leaves and doubtful:
        evidence.findings.append(
            Finding(
                "leaves",
                f"the leaf file is not as it was signed for positions {doubtful[0].after + 1} to {doubtful[-1].to}; a "
                "restarted node makes it anew from a log that is intact",
            )
        )
    if doubtful:
        evidence.unseen.append(
            f"which event it is, where positions {doubtful[0].after + 1} to {doubtful[-1].to} are not as signed: there "
            "the leaves are lost, and only the checkpoints are left to compare with"
        )
    return result


def split(leaves: bytes | bytearray, after: int, to: int) -> list[bytes]:
    """The leaves of the positions after `after` up to `to`, as far as there are any."""
    last = min(to, len(leaves) // HASH_BYTES)
    return [bytes(leaves[at * HASH_BYTES : (at + 1) * HASH_BYTES]) for at in range(after, last)]


def _content(leaves: LeafFile) -> bytes:
    try:
        return leaves.path.read_bytes()[: leaves.count * HASH_BYTES]
    except OSError:  # as if there were none
        return b""


def _valid(
    path: Path, known: Callable[[], Mapping[str, VerifyingKey]], findings: list[Finding], *, required: bool
) -> Iterable[SignedCheckpoint]:
    """The checkpoints of a file that one of the `known` keys signed; everything else in it becomes a finding.

    The keys are read behind the file: one that came into use meanwhile has signed nothing of it, or is among them.
    Raises OSError where the file is there, cannot be read and is not `required`.
    """

    def invalid(line: int, reason: str) -> None:
        findings.append(Finding("checkpoint", f"{path.name}, line {line}: {reason}"))

    try:
        checkpoints = read_checkpoints(path, invalid)
    except OSError as error:
        if required:
            findings.append(Finding("checkpoint", f"{path} cannot be read: {error.strerror}"))
        elif not isinstance(error, FileNotFoundError):  # it is there, so nobody removed it
            raise
        return []
    keys, valid = known(), []
    for one in checkpoints:
        where = f"the checkpoint of position {one.position} in {path.name}"
        if one.key_id not in keys:
            findings.append(Finding("key", f"{where} is signed by an unknown key, {one.key_id}"))
        elif not one.signed_by(keys):
            findings.append(Finding("checkpoint", f"{where} has a wrong signature"))
        else:
            valid.append(one)
    return valid


def _in_order(checkpoints: Iterable[SignedCheckpoint], findings: list[Finding]) -> list[SignedCheckpoint]:
    """Checkpoints by position, one for each; two that were signed over different logs become a finding."""
    by_position: dict[int, SignedCheckpoint] = {}
    for one in checkpoints:
        other = by_position.setdefault(one.position, one)
        if (one.root, one.head) != (other.root, other.head):
            findings.append(
                Finding("checkpoint", f"two checkpoints of position {one.position} were signed over different logs")
            )
    return [by_position[position] for position in sorted(by_position)]
