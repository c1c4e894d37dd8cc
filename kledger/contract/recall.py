"""Words and numbers of recall: the intents of a message, the paths, and the least match of an answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

Intent = Literal["new_task", "follow_up", "bug_fix", "preference", "cross_agent"]
"""What a message asks for (source 004 §3.3)."""

RecallLayer = Literal["short", "semantic", "episodic", "procedural", "shared", "plain"]
"""Where a result is from: a layer of memory, the shared memory of a project, or knowledge that is no memory."""

MATCH_FLOOR = 0.36
"""A result with a lesser `match` answers nothing. Chosen on one half of the questions of bench/nothing_known.py."""

Match = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
