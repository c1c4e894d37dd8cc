"""The variables of the environment that the product reads.

One that is nearly one of them is pointed out, and so is one that says something of a model which none names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

PREFIX = "KLEDGER_"
OF_THE_COMMAND = "AGENT DATA LANGUAGE ORG PROJECT RETRY_FOR TEAM TOKEN TOKEN_FILE TOOLS_OWNER TOOLS_SCOPES URL USER"
OF_A_NODE = """
ARCHIVE_EVENTS CHECKPOINT_HOOK EXTRACT_AFTER HTTP LOG_LEVEL MASTER_KEY MASTER_KEY_FILE MEMORY_LIFETIMES NATS
NATS_CREDENTIALS QDRANT QUACK REACTOR_ACK_WAIT RECALL_DETAIL_DAYS RECORD_RECALLS REPLICAS ROLES ROUTING
EMBEDDING_DEADLINE EMBEDDING_DIMENSIONS EMBEDDING_KEY EMBEDDING_MODEL EMBEDDING_SHORTEN EMBEDDING_URL
LIMIT_ANALYST_BYTES LIMIT_ANALYST_DISK LIMIT_ANALYST_MEMORY LIMIT_ANALYST_SECONDS LIMIT_ANSWERS LIMIT_BATCH
LIMIT_BATCH_BODY LIMIT_BODIES LIMIT_BODY LIMIT_BODY_SECONDS LIMIT_BURST LIMIT_CONNECTIONS LIMIT_HEAD LIMIT_HEAD_SECONDS
LIMIT_IDLE_SECONDS LIMIT_RATE
MODEL MODEL_BUDGET_USD MODEL_CONCURRENCY MODEL_EVOLVE MODEL_EXTRACT MODEL_HYDE MODEL_IDEMPOTENT MODEL_INTENT MODEL_KEY
MODEL_PRICES MODEL_RETRIES MODEL_REWRITE MODEL_ROUTE MODEL_SLIM MODEL_SUMMARISE MODEL_TIMEOUT MODEL_URL
RERANK_DEADLINE RERANK_KEY RERANK_MODEL RERANK_URL
SESSION_DAYS SESSION_EXTRACT SESSION_IDLE_MINUTES SESSION_KEPT_2 SESSION_KEPT_3 SESSION_LEVEL_1 SESSION_LEVEL_2
SESSION_LEVEL_3 SESSION_MESSAGES SESSION_SEGMENT SESSION_SHARE SESSION_TURNS
"""
NAMES = frozenset(PREFIX + name for name in (*OF_THE_COMMAND.split(), *OF_A_NODE.split()))
_TASKS = "EVOLVE EXTRACT HYDE INTENT REWRITE ROUTE SLIM SUMMARISE"
_NAMED_BY = {
    "EMBEDDING_": ("EMBEDDING_MODEL",),
    "RERANK_": ("RERANK_URL",),
    "MODEL_": ("MODEL", *(f"MODEL_{task}" for task in _TASKS.split())),
    "EXTRACT_AFTER": ("MODEL", "MODEL_EXTRACT"),
}
"""What names a model, by the beginning of the names that say something of it."""
_NEAR = 0.65  # of 1; ULR is 0.67 of URL


def mistyped(environment: Iterable[str]) -> Iterator[str]:
    """A line for each variable that nothing reads and that is nearly one that is read: a typo would go unseen."""
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in NAMES)
    if unknown:
        from difflib import get_close_matches

        meant = {name.removeprefix(PREFIX): name for name in NAMES}
        for name in unknown:
            for near in get_close_matches(name.removeprefix(PREFIX), meant, n=1, cutoff=_NEAR):
                yield f"nothing reads {name}: is {meant[near]} meant?"


def idle(environment: Mapping[str, str]) -> Iterator[str]:
    """A line for those of a node's variables that say something of a model which no variable names: they do nothing."""
    given = {name.removeprefix(PREFIX) for name, value in environment.items() if value.strip() and name in NAMES}
    for beginning, naming in _NAMED_BY.items():
        said = sorted(name for name in given if name.startswith(beginning))
        if said and given.isdisjoint(naming):
            names = ", ".join(PREFIX + name for name in said)
            does = "does" if len(said) == 1 else "do"
            yield f"{names} {does} nothing: set {PREFIX}{naming[0]} too, which names what is asked"
