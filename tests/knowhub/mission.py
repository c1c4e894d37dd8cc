"""Which doors does each row of the mission have? The table that is walked row by row, door by door.

A row is walked through a door by a check in `checks_*.py`, named by the row.
"""

from __future__ import annotations

from tests.knowhub.doors import NAMES, Name

HTTP_SDK_COMMAND: tuple[Name, ...] = ("http", "sdk", "command")

ROWS: dict[str, tuple[Name, ...]] = {
    "K1": NAMES,  # an item, field by field
    "K2": NAMES,  # types, an open set
    "K3": NAMES,  # feedback with its case, counts, histories, confidence
    "K4": NAMES,  # evolve
    "K5": NAMES,  # slim
    "K6": NAMES,  # extraction
    "K7": NAMES,  # recall at start, on focus, on call
    "K8": NAMES,  # ranking: quality, min_score, scope priority
    "K9": ("command",),  # the file form
    "K10": ("http",),  # the endpoints
    "K11": ("sdk", "mcp"),  # the tools
    "K12": NAMES,  # goal focus keeps what it injected; the prompts
    "S1": NAMES,  # scopes of every kind, several an item
    "S2": NAMES,  # read by scope, change by owner
    "S3": NAMES,  # the label
    "S4": HTTP_SDK_COMMAND,  # new scope types
    "S5": HTTP_SDK_COMMAND,  # ACL entries
    "X1": NAMES,  # resources, field by field
    "X2": NAMES,  # several resources an item
    "X3": NAMES,  # secure bodies
    "X4": NAMES,  # expiry
    "M1": NAMES,  # working memory: window, budget, scratchpad
    "M2": NAMES,  # levels of compression
    "M3": NAMES,  # short memories: lifetimes, promotion
    "M4": NAMES,  # semantic, episodic and procedural memories
    "M5": NAMES,  # what a project shares, once a coordinator approves it
    "M6": NAMES,  # health
    "R1": NAMES,  # paths at once, rerank, the best five
    "R2": NAMES,  # the memory document
    "R3": NAMES,  # intent
    "R4": NAMES,  # other words, documents
    "R5": NAMES,  # caches
    "R6": HTTP_SDK_COMMAND,  # models by task
    "P1": HTTP_SDK_COMMAND,  # two memories with default content
    "P2": HTTP_SDK_COMMAND,  # get, put, patch; active and disabled
    "P3": HTTP_SDK_COMMAND,  # prompt sections
    "P4": HTTP_SDK_COMMAND,  # user_profile knowledge at the start
}
