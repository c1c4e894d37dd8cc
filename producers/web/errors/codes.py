"""What each code of an error says to a person: what happened, and what they can do about it."""

from __future__ import annotations

from collections.abc import Mapping

_DAMAGED = "What the node keeps is damaged. Tell whoever runs it."
_SET_UP = "The node is not set up for this. Tell whoever runs it."
_ITSELF = "Something inside the node failed. Try again in a moment; if it stays so, tell whoever runs it."
_MODEL = "The model that was asked gave no answer that can be used. Nothing has changed."
_TAKEN = "There is something under this id already, with other content."
_TRY_AGAIN = "The node is not ready for this at the moment. Try again in a few seconds."
_NOT_THERE = "This is not there, or you may not see it. Check its id, and as whom you look."
_EVENT = "An event of the log is not as this version of the node knows it."
_FILE = "The file is not as it has to be."
CODES: Mapping[str, str] = {
    "backup_damaged": _DAMAGED,
    "backup_mismatch": "The backup is of another ledger.",
    "bad_json": "What was sent cannot be read.",
    "bad_request": "What was sent cannot be read.",
    "broker_misconfigured": _SET_UP,
    "broker_unavailable": _TRY_AGAIN,
    "budget_spent": "What models may cost a day is spent. It works again tomorrow.",
    "chain_contradicted": "The log is not the one that was signed. Tell whoever runs the node.",
    "data_directory_in_use": _SET_UP,
    "embedding_failed": _ITSELF,
    "embedding_not_kept": _ITSELF,
    "erased": "This was erased for good, with the person whom it belonged to.",
    "forbidden": "You may not do or see this. Look as somebody who may, or ask whoever runs the node.",
    "head_too_large": "The address is too long. Shorten what you ask.",
    "idempotency_mismatch": "This form was sent already, with other content. Open the page again, and repeat it.",
    "illegal_query": "This query cannot be run.",
    "illegal_scope": "A person, group or scope is not written as it has to be. Write its kind and its name, such as "
    "user:mei or team:web.",
    "illegal_state": "In its present state this cannot be done; perhaps it is done already. Open the page again.",
    "illegal_subject": _EVENT,
    "illegal_tree": _FILE,
    "internal_error": _ITSELF,
    "interrupted": "The node was stopped while a model worked. Ask again if you still want it.",
    "invalid_payload": "Something that was written does not fit.",
    "key_missing": _DAMAGED,
    "knowledge_exists": _TAKEN,
    "log_gap": _DAMAGED,
    "log_replaced": "The log is not the one that was there before. Tell whoever runs the node.",
    "message_exists": _TAKEN,
    "method_not_allowed": "There is no such page.",
    "model_failed": _MODEL,
    "model_refused": "The model declined to answer this. Ask in other words.",
    "no_backup": _NOT_THERE,
    "node_misconfigured": _SET_UP,
    "node_unreachable": _TRY_AGAIN,
    "not_available": "This node has no such feature, or the model that it needs is not set.",
    "not_certified": "This is not signed yet. Try again in a few seconds.",
    "not_owner": "Only its owner may do this.",
    "not_reader": "Only who may read it may do this.",
    "not_repairable": _DAMAGED,
    "object_store_failed": "The place of the backup cannot be reached, or refuses it. Tell whoever runs the node.",
    "payload_too_large": "This is too long to be kept. Shorten the text.",
    "rate_limited": "That were too many requests at once. Wait a moment, and try again.",
    "request_too_slow": "What was sent did not arrive in time. Try again.",
    "restore_refused": "The backup cannot be brought back there.",
    "restore_unfinished": "The node is being brought back from a backup. Try again later.",
    "past_retention": "This node shows the detail of recalls for some time only. The log still has it: ask whoever "
    "runs the node for a replay.",
    "seal_broken": _DAMAGED,
    "secret_in_clear": "A secret must not be kept in clear text.",
    "subject_forgotten": "This person was forgotten on request: nothing more is kept under the name.",
    "token_expired": "Your token is no longer valid. Sign in with a new one.",
    "token_revoked": "Your token was taken back. Sign in with another one.",
    "unauthenticated": "You are not signed in, or the token is not known here. Sign in again.",
    "unfoldable": _EVENT,
    "unknown_document": _NOT_THERE,
    "unknown_event": _EVENT,
    "unknown_goal": _NOT_THERE,
    "unknown_knowledge": "There is no such item, or you may not see it. Check its id, and as whom you look.",
    "unknown_process": _NOT_THERE,
    "unknown_profile": _NOT_THERE,
    "unknown_prompt": _NOT_THERE,
    "unknown_reference": "Nothing is kept under this id, or you may not see it. Check the id, and as whom you look.",
    "unknown_resource": _NOT_THERE,
    "unknown_route": "There is no such page.",
    "unknown_session": "There is no such session, or you may not see it. Check its id, its owner, and as whom you "
    "look.",
    "unreadable_document": _FILE,
    "unsafe_key_file": _SET_UP,
    "unsupported_version": _EVENT,
    "vault_damaged": _DAMAGED,
    "vector_process_gone": _TRY_AGAIN,
    "vector_store_failed": _ITSELF,
    "vectors_damaged": _DAMAGED,
    "version_conflict": "Somebody changed this while you looked. Open the page again, and decide anew.",
    "view_behind": "What was just written is not to be seen everywhere yet. Open the page again in a moment.",
    "wrong_master_key": _SET_UP,
}
