"""Errors by name: every error has a stable code that is the same on every interface.

A message says what happened, to which id, and what to do about it.
"""

from __future__ import annotations

from kledger.contract.ledger_error import LedgerError as LedgerError
from kledger.contract.model_errors import BudgetSpent as BudgetSpent
from kledger.contract.model_errors import Interrupted as Interrupted
from kledger.contract.model_errors import ModelFailed as ModelFailed
from kledger.contract.model_errors import ModelRefused as ModelRefused


class InvalidPayload(LedgerError):
    """The request or event does not fit its schema; `details["errors"]` lists field and reason."""

    code = "invalid_payload"


class BadJson(LedgerError):
    """The bytes are not JSON."""

    code = "bad_json"


class IllegalScope(LedgerError):
    """A scope or owner that is not `{entity_type}:{entity_id}` (or `public` where that is legal)."""

    code = "illegal_scope"


class PayloadTooLarge(LedgerError):
    """The event would not fit the broker's limit (1 MiB, headers included)."""

    code = "payload_too_large"


class UnknownEvent(LedgerError):
    """An event type that this version does not know."""

    code = "unknown_event"


class UnsupportedVersion(LedgerError):
    """A known event type in a version that no upcast reaches."""

    code = "unsupported_version"


class IllegalSubject(LedgerError):
    """A subject that is not one of the ledger's, or that names something else than its event."""

    code = "illegal_subject"


class UnknownKnowledge(LedgerError):
    """No such item, or none that the caller may see: the two are told apart by nobody."""

    code = "unknown_knowledge"


class KnowledgeExists(LedgerError):
    """An item with this id is there already, with other content."""

    code = "knowledge_exists"


class IdempotencyMismatch(LedgerError):
    """An Idempotency-Key came again with another request: the first one counts, this one changed nothing."""

    code = "idempotency_mismatch"


class UnknownProfile(LedgerError):
    """The user has no profile of this memory type yet."""

    code = "unknown_profile"


class UnknownGoal(LedgerError):
    """No such goal, or none of the caller's: the two are told apart by nobody."""

    code = "unknown_goal"


class UnknownSession(LedgerError):
    """No such session, or none of the caller's: the two are told apart by nobody. Or its words are kept no longer."""

    code = "unknown_session"


class UnknownPrompt(LedgerError):
    """The product ships no prompt of this name, or not in this language."""

    code = "unknown_prompt"


class UnknownProcess(LedgerError):
    """There is no such evolution, extraction, slim or conflict, or none for this caller."""

    code = "unknown_process"


class UnknownReference(LedgerError):
    """A lineage reference that no event names."""

    code = "unknown_reference"


class NotOwner(LedgerError):
    """Only the owner may change or delete."""

    code = "not_owner"


class NotReader(LedgerError):
    """Only who reads an item may rate, score or confirm it; a fold says so, elsewhere there is no such item."""

    code = "not_reader"


class IllegalState(LedgerError):
    """The item is in a state that does not allow this: retired twice, restored while active."""

    code = "illegal_state"


class VersionConflict(LedgerError):
    """Somebody else wrote first: the expected version or position is no longer the last one."""

    code = "version_conflict"


class ViewBehind(LedgerError):
    """The view did not reach the asked position within the time allowed."""

    code = "view_behind"


class IllegalQuery(LedgerError):
    """A query that the node does not admit: not read-only, too slow, or not well formed."""

    code = "illegal_query"


class BrokerUnavailable(LedgerError):
    """The broker does not answer; an append that ends so may or may not have been kept: retry it."""

    code = "broker_unavailable"


class BrokerMisconfigured(LedgerError):
    """The broker answers, but not as the ledger needs it: binary, port, rights or stream settings."""

    code = "broker_misconfigured"


class LogGap(LedgerError):
    """Positions are missing between what was read and what came next: folding stops."""

    code = "log_gap"


class LogReplaced(LedgerError):
    """The log is not the one that was read before: an older copy, or another one, stands in its place."""

    code = "log_replaced"


class IllegalTree(LedgerError):
    """A directory that is no tree of knowledge, or that an export may not write over."""

    code = "illegal_tree"


class BackupDamaged(LedgerError):
    """A backup has missing, changed or cut files; `details["problems"]` lists them."""

    code = "backup_damaged"


class BackupMismatch(LedgerError):
    """The directory holds something else, or the backup of another stream."""

    code = "backup_mismatch"


class RestoreRefused(LedgerError):
    """A backup cannot be brought back there: the stream is not empty, or something uses it."""

    code = "restore_refused"


class RestoreUnfinished(LedgerError):
    """The stream is half restored: nothing may use it before the restore has come to its end."""

    code = "restore_unfinished"


class NotRepairable(LedgerError):
    """The stream lost or changed events that the backup does not have; `details["positions"]` names them."""

    code = "not_repairable"


class UnsafeKeyFile(LedgerError):
    """A private key that others may read, or that cannot be read as one: nothing is signed with it."""

    code = "unsafe_key_file"


class ChainContradicted(LedgerError):
    """The log is not the one that was signed: events were cut off or changed; nothing more is signed."""

    code = "chain_contradicted"


class NotCertified(LedgerError):
    """No signed checkpoint covers what is to be proved, and none came within the time allowed."""

    code = "not_certified"


class UnfoldableEvent(LedgerError):
    """Folding this one event fails, each time: it is parked, or a rebuild that met it has stopped."""

    code = "unfoldable"


class DataDirectoryInUse(LedgerError):
    """Another node runs on this data directory."""

    code = "data_directory_in_use"


class NodeUnreachable(LedgerError):
    """No node answers at the address."""

    code = "node_unreachable"


class Unauthenticated(LedgerError):
    """The node has tokens, and the request brings none that it knows."""

    code = "unauthenticated"


class TokenExpired(LedgerError):
    """The token was good until a moment that is past."""

    code = "token_expired"


class TokenRevoked(LedgerError):
    """The token was taken back."""

    code = "token_revoked"


class Forbidden(LedgerError):
    """The token does not allow this: another identity, a scope it is not bound to, or another role's work."""

    code = "forbidden"


class RateLimited(LedgerError):
    """More requests a second than one principal may make; `details["retry_after"]` says how long to wait."""

    code = "rate_limited"


class SubjectForgotten(LedgerError):
    """The person (or resource) was forgotten: nothing more is kept under this name."""

    code = "subject_forgotten"


class UnknownResource(LedgerError):
    """There is no such resource, or none that the caller may see."""

    code = "unknown_resource"


class SecretInClear(LedgerError):
    """An event holds the secret of a resource in clear: it does not count, and the secret is to be changed."""

    code = "secret_in_clear"


class Erased(LedgerError):
    """What was asked for was erased with the person whom it belonged to."""

    code = "erased"


class KeyMissing(LedgerError):
    """A value is sealed with a key that the vault does not have, not even as a tombstone."""

    code = "key_missing"


class SealBroken(LedgerError):
    """A sealed value does not verify: it was changed, moved from its place, or never sealed."""

    code = "seal_broken"


class WrongMasterKey(LedgerError):
    """The master key is missing, malformed, or not the one that this ledger's keys are wrapped by."""

    code = "wrong_master_key"


class VaultDamaged(LedgerError):
    """A record of the vault cannot be read."""

    code = "vault_damaged"


class NotAvailable(LedgerError):
    """This build has no such feature, or the model it needs is not configured."""

    code = "not_available"


class ServiceFailed(LedgerError):
    """Something inside failed that the caller did not cause; the log of the node has the cause."""

    code = "internal_error"
