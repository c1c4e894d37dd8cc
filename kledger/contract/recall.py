"""Words and numbers of recall: the intents of a message, the paths, and the least match of an answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kledger.contract.bounds import UNSIGNED_ZERO

Intent = Literal["new_task", "follow_up", "bug_fix", "preference", "cross_agent"]
"""What a message asks for (source 004 §3.3)."""

RecallKind = Literal["search", "startup", "focus", "recall"]
RecallLayer = Literal["working", "short", "semantic", "episodic", "procedural", "shared", "document", "plain"]
"""Where a result is from: the words of the session, a layer of memory, the shared memory of a project, a document, or
knowledge that is none of these."""

MOST_RECALLED = 50
"""Results of one recall."""

MATCH_FLOOR = 0.36
"""A result with a lesser `match` answers nothing. Chosen on one half of the questions of bench/nothing_known.py."""

Match = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False), UNSIGNED_ZERO]
