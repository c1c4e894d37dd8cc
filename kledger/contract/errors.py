"""Errors by name: every error has a stable code that is the same on every interface.

A message says what happened, to which id, and what to do about it.
"""

from __future__ import annotations

import re

_NEXT_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class LedgerError(Exception):
    """Base of everything the product raises on purpose; `code` never changes once released.

    The code of an error is the name of its class in lower case (UnknownGoal: `unknown_goal`), unless it states another.
    The generated list of errors, which the tests compare, shows a code that a new name would change.
    """

    code = "ledger_error"

    def __init_subclass__(cls) -> None:
        if LedgerError in cls.__bases__ and "code" not in vars(cls):
            cls.code = _NEXT_WORD.sub("_", cls.__name__).lower()

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class InvalidPayload(LedgerError):
    """The request or event does not fit its schema; `details["errors"]` lists field and reason."""


class BadJson(LedgerError):
    """The bytes are not JSON."""


class IllegalScope(LedgerError):
    """A scope or owner that is not `{entity_type}:{entity_id}` (or `public` where that is legal)."""


class PayloadTooLarge(LedgerError):
    """The event would not fit the broker's limit (1 MiB, headers included)."""


class UnknownEvent(LedgerError):
    """An event type that this version does not know."""


class UnsupportedVersion(LedgerError):
    """A known event type in a version that no upcast reaches."""


class IllegalSubject(LedgerError):
    """A subject that is not one of the ledger's, or that names something else than its event."""


class UnknownKnowledge(LedgerError):
    """No such item, or none that the caller may see: the two are told apart by nobody."""


class KnowledgeExists(LedgerError):
    """An item with this id is there already, with other content."""


class MessageExists(LedgerError):
    """The session has a message with this id already, with other words: nothing was appended."""


class IdempotencyMismatch(LedgerError):
    """An Idempotency-Key came again with another request: the first one counts, this one changed nothing."""


class UnknownProfile(LedgerError):
    """The user has no profile of this memory type yet."""


class UnknownGoal(LedgerError):
    """No such goal, or none of the caller's: the two are told apart by nobody."""


class UnknownSession(LedgerError):
    """No such session, or none of the caller's: the two are told apart by nobody. Or its words are kept no longer."""

    code = "unknown_session"


class UnknownPrompt(LedgerError):
    """The product ships no prompt of this name, or not in this language."""


class UnknownProcess(LedgerError):
    """There is no such evolution, extraction, slim, conflict or held statement, or none for this caller."""


class UnknownReference(LedgerError):
    """A lineage reference that no event names."""


class NotOwner(LedgerError):
    """Only the owner may change or delete."""


class NotReader(LedgerError):
    """Only who reads an item may rate, score or confirm it; a fold says so, elsewhere there is no such item."""


class IllegalState(LedgerError):
    """The item is in a state that does not allow this: retired twice, restored while active."""


class VersionConflict(LedgerError):
    """Somebody else wrote first: the expected version or position is no longer the last one."""


class ViewBehind(LedgerError):
    """The view did not reach the asked position within the time allowed."""


class IllegalQuery(LedgerError):
    """A query that the node does not admit: not read-only, too slow, or not well formed."""


class BrokerUnavailable(LedgerError):
    """The broker does not answer; an append that ends so may or may not have been kept: retry it."""


class BrokerMisconfigured(LedgerError):
    """The broker answers, but not as the ledger needs it: binary, port, rights or stream settings."""


class NodeMisconfigured(LedgerError):
    """The node cannot work with its settings: an address, its data directory, its tokens file or its roles."""


class LogGap(LedgerError):
    """Positions are missing in the log: folding stops. `kledger repair` brings back those that a backup has."""


class LogReplaced(LedgerError):
    """The log is not the one that was read before: an older copy, or another one, stands in its place."""


class IllegalTree(LedgerError):
    """A directory that is no tree of knowledge, or that an export may not write over."""


class BackupDamaged(LedgerError):
    """A backup has missing, changed or cut files; `details["problems"]` lists them."""


class NoBackup(BackupDamaged):
    """There is no backup: nothing is at the place, or files that are none of one."""

    code = "no_backup"


class BackupMismatch(LedgerError):
    """The directory holds something else, or the backup of another stream."""


class ObjectStoreFailed(LedgerError):
    """The object store of a backup failed; `details["reason"]` is no_bucket, no_rights, no_connection or failed."""


class RestoreRefused(LedgerError):
    """A backup cannot be brought back there: the stream is not empty, or something uses it."""


class RestoreUnfinished(LedgerError):
    """The stream is half restored: nothing may use it before the restore has come to its end."""


class NotRepairable(LedgerError):
    """The stream lost or changed events that the backup does not have; `details["positions"]` names them."""


class UnsafeKeyFile(LedgerError):
    """A private key that others may read, or that cannot be read as one: nothing is signed with it."""


class ChainContradicted(LedgerError):
    """The log is not the one that was signed: events were cut off or changed; nothing more is signed."""


class NotCertified(LedgerError):
    """No signed checkpoint covers what is to be proved, and none came within the time allowed."""


class UnfoldableEvent(LedgerError):
    """Folding this one event fails, each time: it is parked, or a rebuild that met it has stopped."""

    code = "unfoldable"


class DataDirectoryInUse(LedgerError):
    """Another node runs on this data directory."""


class NodeUnreachable(LedgerError):
    """No node answers at the address."""


class Unauthenticated(LedgerError):
    """The node has tokens, and the request brings none that it knows."""


class TokenExpired(LedgerError):
    """The token was good until a moment that is past."""


class TokenRevoked(LedgerError):
    """The token was taken back."""


class Forbidden(LedgerError):
    """The token does not allow this: another identity, a scope it is not bound to, or another role's work."""


class RateLimited(LedgerError):
    """More requests a second than one principal may make; `details["retry_after"]` says how long to wait."""


class SubjectForgotten(LedgerError):
    """The person (or resource) was forgotten: nothing more is kept under this name."""


class UnknownResource(LedgerError):
    """There is no such resource, or none that the caller may see."""


class UnknownDocument(LedgerError):
    """There is no such document, or none that the caller may see."""


class UnreadableDocument(LedgerError):
    """The file is not what it is said to be, is broken, or takes more pages, time or memory than a node gives it."""


class SecretInClear(LedgerError):
    """An event holds the secret of a resource in clear: it does not count, and the secret is to be changed."""


class Erased(LedgerError):
    """What was asked for was erased with the person whom it belonged to."""


class PastRetention(LedgerError):
    """The log has it, and the views of this node keep its detail no longer: a replay shows it."""


class KeyMissing(LedgerError):
    """A value is sealed with a key that the vault does not have, not even as a tombstone."""


class SealBroken(LedgerError):
    """A sealed value does not verify: it was changed, moved from its place, or never sealed."""


class WrongMasterKey(LedgerError):
    """The master key is missing, malformed, or not the one that this ledger's keys are wrapped by."""


class VaultDamaged(LedgerError):
    """A record of the vault cannot be read, or it has lost keys that a backup has."""


class NotAvailable(LedgerError):
    """This build has no such feature, or the model it needs is not configured."""


class ServiceFailed(LedgerError):
    """Something inside failed that the caller did not cause; the log of the node has the cause."""

    code = "internal_error"


class ModelFailed(LedgerError):
    """The model gave no answer that can be used; `details["usage"]` says what it cost all the same, when known."""


class ModelRefused(LedgerError):
    """The model declined to answer this; asking again in the same words will not help."""


class Interrupted(LedgerError):
    """The node was stopped while a model was asked, which may have been billed: it is not asked again by itself."""


class BudgetSpent(LedgerError):
    """What models may cost a day is spent; `details["retry_after"]` says in how many seconds the next day begins."""
