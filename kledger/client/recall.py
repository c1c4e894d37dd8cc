"""Requests for recall at an agent's start, for a message and on a goal's focus, for recalls of before, for prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kledger.client.faces import Endpoint
from kledger.client.knowledge import KNOWLEDGE, Moment, moment
from kledger.client.wire import Wire, comma_joined, segment, without_none
from kledger.contract.language import Language
from kledger.contract.words import MessageKind, RecallKind, RecallLayer

if TYPE_CHECKING:
    from kledger.answers.recall import FocusedGoal, Goal, GoalList, Prompt, PromptName, Recalled, Startup
    from kledger.answers.recalls import RecallList, RecallShown, RecallsOfItem

GOALS = "/api/goals"
PROMPTS = "/api/prompts"
RECALL = "/api/memory/recall"
RECALLS = "/api/recalls"


async def startup(
    wire: Wire,
    query: str = "",
    *,
    top_k: int = 5,
    profile_k: int = 20,
    min_score: int = 3,
    min_match: float | None = None,
    types: Sequence[str] | None = None,
    record: bool = True,
    language: Language | None = None,
) -> Startup:
    """What to know at the start: the caller's profile first, then related knowledge; `prompt` is all of it as text.

    With a `query` what fits it, without one what has served the caller best and lately; what matches less than
    `min_match` is left out, by default what answers nothing. `language` is that of the texts; without one it is the
    node's.
    """
    return await wire.read(
        "/api/recall/startup",
        {
            "q": query or None,
            "top_k": top_k,
            "profile_k": profile_k,
            "min_score": min_score,
            "min_match": min_match,
            "types": comma_joined(types),
            "record": record,
            "language": language,
        },
    )


async def recall(
    wire: Wire,
    message: str,
    *,
    session: str | None = None,
    target_agent: str | None = None,
    layers: Sequence[RecallLayer] | None = None,
    as_of: Moment | None = None,
    top_k: int = 5,
    min_score: int = 3,
    min_match: float | None = None,
    budget_tokens: int | None = None,
    language: Language | None = None,
    record: bool = True,
    kind: MessageKind = "recall",
) -> Recalled:
    """What is known that answers a message, with its reasons; `text` is the same for a prompt, in your language.

    `nothing_known` says that no result answers. With a `session` of yours, what its context holds already is left out.
    `target_agent` asks what that agent and the project know; `layers` reads these alone. `text` has at most
    `budget_tokens`. The `kind` `page` is for a person who looks: it is recorded and counts for nothing.
    """
    asked = {
        "message": message,
        "session": session,
        "target_agent": target_agent,
        "layers": None if layers is None else list(layers),
        "as_of": moment(as_of),
        "top_k": top_k,
        "min_score": min_score,
        "min_match": min_match,
        "budget_tokens": budget_tokens,
        "language": language,
        "record": record,
        "kind": None if kind == "recall" else kind,
    }
    return await wire.read(RECALL, method="POST", body=without_none(**asked))


async def focus(
    wire: Wire,
    goal_id: str,
    description: str,
    *,
    top_k: int = 3,
    min_score: int = 3,
    min_match: float | None = None,
    language: Language | None = None,
    idempotency_key: str | None = None,
) -> FocusedGoal:
    """Focus a goal: related knowledge is kept on it, and is text in `output`. Again: what was saved since comes too."""
    return await wire.write(
        "POST",
        f"{GOALS}/{segment(goal_id)}/focus",
        {"description": description, "top_k": top_k, "min_score": min_score}
        | ({} if min_match is None else {"min_match": min_match}),
        params={**wire.freshness(), "language": language},
        idempotency_key=idempotency_key,
    )


async def goal(wire: Wire, goal_id: str, *, owner: str | None = None, language: Language | None = None) -> Goal:
    """A goal with the knowledge that the caller may see now. UnknownGoal when it is nobody's, or somebody else's."""
    return await wire.read(f"{GOALS}/{segment(goal_id)}", {"owner": owner, "language": language})


async def goals(wire: Wire, *, owner: str | None = None, limit: int = 20, offset: int = 0) -> GoalList:
    """A page of the caller's goals in brief, the one that was focused last first; the operator's are those of all,
    unless an `owner` is named."""
    return await wire.read(GOALS, {"owner": owner, "limit": limit, "offset": offset})


async def prompts(wire: Wire, *, language: Language | None = None) -> list[PromptName]:
    """The prompts that ship with the ledger: name, title, description, languages."""
    return (await wire.look(PROMPTS, {"language": language}))["prompts"]


async def prompt(wire: Wire, name: str, *, language: Language | None = None) -> Prompt:
    """One prompt as text, in the node's language unless one is given. UnknownPrompt when there is none of this name."""
    return await wire.look(f"{PROMPTS}/{segment(name)}", {"language": language})


async def list_recalls(
    wire: Wire,
    *,
    trace: str | None = None,
    actor: str | None = None,
    kind: RecallKind | None = None,
    item: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    limit: int = 20,
    before: int | None = None,
    counts: bool | None = None,
) -> RecallList:
    """A page of your recalls, newest first, without what they served; the operator's are all. Filters narrow it.

    `kind` `page` is a person who looked, which does not count: `counts` True leaves looks out, False gives them alone.
    From `since` on and before `until`: a position or a time.
    """
    asked = {"trace": trace, "actor": actor, "kind": kind, "item": item, "limit": limit, "before": before}
    asked |= {"counts": counts}
    return await wire.read(RECALLS, {**asked, "since": moment(since), "until": moment(until)})


async def recalls_of_item(
    wire: Wire, id: str, *, limit: int = 20, before: int | None = None, counts: bool | None = None
) -> RecallsOfItem:
    """A page of your recalls that served an item, newest first, with its place in each; the operator's are all.

    `counts` True leaves looks at pages out, False gives them alone. UnknownKnowledge when there is no such item to see.
    """
    return await wire.read(f"{KNOWLEDGE}/{segment(id)}/recalls", {"limit": limit, "before": before, "counts": counts})


async def recall_shown(wire: Wire, recall_id: str) -> RecallShown:
    """One of your recalls with what it served, word for word, and the version of each item that holds now.

    `left_out` counts what you may not see now. UnknownReference when there is none, or when it is somebody else's.
    """
    return await wire.read(f"{RECALLS}/{segment(recall_id)}")


class RecordedRecallEndpoints:
    """`client.recalls`: what was served before."""

    list = Endpoint(list_recalls)
    of = Endpoint(recalls_of_item)
    get = Endpoint(recall_shown)


class RecallEndpoints:
    """Recall at an agent's start and on a goal's focus, and the prompts."""

    startup = Endpoint(startup)
    recall = Endpoint(recall)
    focus = Endpoint(focus)
    goal = Endpoint(goal)
    goals = Endpoint(goals)
    prompts = Endpoint(prompts)
    prompt = Endpoint(prompt)
