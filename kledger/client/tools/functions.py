"""Tools for knowledge, resources and goals: functions with stable names and defaults.

Each wraps one endpoint of the node and answers with its document. The docstring of a function is what a model reads;
`tool` gives it the title and hints of the MCP list.
"""

from __future__ import annotations

from kledger.answers.knowledge import (
    Changed,
    FoundItems,
    ItemList,
    RatedMany,
    SearchResults,
    ToolItemList,
    ToolSearchResults,
)
from kledger.answers.parts import Saved
from kledger.answers.recall import FocusedGoal, Startup
from kledger.answers.resources import Resource
from kledger.answers.slims import Slim
from kledger.client import knowledge, recall, resources
from kledger.client.slims import BASE as SLIMS
from kledger.client.tools import arguments as given
from kledger.client.tools.defaults import AGENT, default_owner, default_scopes
from kledger.client.tools.hints import tool
from kledger.client.wire import Wire, segment
from kledger.contract.scopes import check_name


class Unstated(str):
    """A default that tells itself from the same text when a caller states it."""

    __slots__ = ()


MODEL = Unstated("google/gemini-2.0-flash-001")
"""A default that stands for the model that the node is configured with."""


@tool("Search knowledge", reads=True, answers=SearchResults)
async def knowledge_search(
    wire: Wire,
    query: given.Query,
    top_k: given.TopK = 5,
    min_score: given.MinScore = 3,
    types: given.OnlyTypes = None,
    owner: given.OnlyOwner = None,
    visibility: given.OnlyVisibility = None,
    min_match: given.MinMatch = 0.0,
    tags: given.OnlyTags = None,
) -> ToolSearchResults:
    """Find what is known already, best first, before you plan, research or repeat work.

    Each result has its task, content, types, score, helpful and harmful counts, an id to give feedback with, and its
    match, the share of the query that it covers: below about 0.3 it answers nothing.
    """
    found: FoundItems = await knowledge.search(
        wire,
        query,
        top_k=top_k,
        min_score=min_score,
        min_match=min_match,
        types=types,
        owner=owner,
        visibility=visibility,
        tags=tags,
    )
    return {**found, "metadata": {"items": found["results"]}}


@tool("Save knowledge")
async def knowledge_save(
    wire: Wire,
    task: given.Task,
    content: given.Content,
    types: given.Types,
    tags: given.Tags = None,
    scopes: given.Scopes = None,
    owner: given.Owner = None,
    source_name: given.SourceName = "",
    source_category: given.SourceCategory = "exp",
    urls: given.Urls = None,
    agent_id: given.AgentId = AGENT,
    submitted_by: given.SubmittedBy = "",
    score: given.Score = 3,
    message_id: given.MessageId = "",
    resource_ids: given.ResourceIds = None,
    resources: given.Together = None,
) -> Saved:
    """Keep something worth knowing next time: a strategy that worked, how a tool is used, a definition, a plan.

    State one fact or method an item, so that others can judge it. Save resources it refers to first, or with it.
    """
    speaker = (wire.caller.agent or agent_id) if agent_id == AGENT else check_name("agent", agent_id)
    source = {
        "name": source_name,
        "category": source_category,
        "urls": urls,
        "agent_id": speaker,
        "submitted_by": submitted_by,
        "message_id": message_id,
    }
    return await knowledge.save(
        wire,
        task,
        content,
        types,
        tags=tags,
        scopes=scopes or default_scopes(),
        owner=owner or default_owner(speaker),
        source={name: value for name, value in source.items() if value},
        resource_ids=resource_ids,
        resources=resources,
        score=score,
        message_id=message_id or None,
    )


@tool("Give feedback on knowledge")
async def knowledge_update(
    wire: Wire,
    knowledge_id: given.KnowledgeId,
    add_helpful_case: given.HelpfulCase = None,
    add_harmful_case: given.HarmfulCase = None,
    update_score: given.NewScore = None,
    evolve_feedback: given.EvolveFeedback = None,
) -> Changed:
    """Say what came of using an item: a case in which it helped or harmed, a new score, or what to make better.

    Every use that you report counts in what others are shown.
    """
    said = {
        "add_helpful_case": add_helpful_case,
        "add_harmful_case": add_harmful_case,
        "update_score": update_score,
        "evolve_feedback": evolve_feedback,
    }
    body = {name: value for name, value in said.items() if value is not None}
    changed: Changed = await wire.write("PUT", f"{knowledge.KNOWLEDGE}/{segment(knowledge_id)}", body)
    return changed


@tool("Give feedback on many items")
async def knowledge_batch_update(wire: Wire, feedback_list: given.FeedbackList) -> RatedMany:
    """Say of many items at once whether each helped, at the end of a task for example.

    A verdict that does not fit is refused with its reason, and the others are kept.
    """
    rated: RatedMany = await wire.write("POST", f"{knowledge.KNOWLEDGE}/batch_update", {"feedback_list": feedback_list})
    return rated


@tool("List knowledge", reads=True, answers=ItemList)
async def knowledge_list(
    wire: Wire,
    limit: given.Limit = 10,
    types: given.OnlyTypes = None,
    scopes: given.OnlyScopes = None,
    owner: given.OnlyOwner = None,
    visibility: given.OnlyVisibility = None,
    next: given.Next = None,
    tags: given.OnlyTags = None,
) -> ToolItemList:
    """List what is known, newest first; to find something by what it says, search."""
    listed = await knowledge.list_items(
        wire, limit=limit, before=next, types=types, scopes=scopes, owner=owner, visibility=visibility, tags=tags
    )
    return {**listed, "metadata": {"items": listed["results"]}}


@tool("Merge similar knowledge", hides=True)
async def knowledge_slim(wire: Wire, model: given.Model = MODEL, apply: given.Plan = "") -> Slim:
    """Merge items of yours that say the same, in two calls: the first changes nothing and answers with a plan.

    Look at its groups, then call again with `apply` set to the plan's id. The merged items stay readable and point to
    the one that replaced them.
    """
    if apply:
        path, body = f"{SLIMS}/{segment(apply)}/apply", None
    else:
        named = {} if isinstance(model, Unstated) else {"model": model}
        path, body = f"{knowledge.KNOWLEDGE}/slim", {"dry_run": True} | named
    merged: Slim = await wire.write("POST", path, body)
    return merged


@tool("Save a resource", repeatable=True)
async def resource_save(
    wire: Wire,
    resource_id: given.ResourceId,
    title: given.Title,
    body: given.Body = "",
    content_type: given.ContentType = "text",
    secure_body: given.SecureBody = "",
    metadata: given.Metadata = None,
    scopes: given.Scopes = None,
    owner: given.Owner = None,
    shared_with: given.SharedWith = None,
) -> Saved:
    """Keep code, a credential, a cookie or a text that knowledge can refer to. Secrets belong into `secure_body`."""
    return await resources.save(
        wire,
        resource_id,
        title,
        body=body,
        secure_body=secure_body or None,
        content_type=content_type,
        metadata=metadata,
        scopes=scopes or default_scopes(),
        owner=owner or default_owner(wire.caller.agent or AGENT),
        shared_with=shared_with,
    )


@tool("Read a resource", reads=True)
async def resource_get(wire: Wire, resource_id: given.ResourceId) -> Resource:
    """Read a resource that an item refers to, with its secret part where you may."""
    return await resources.get(wire, resource_id)


@tool("Focus on a goal")
async def goal_focus(
    wire: Wire,
    goal_id: given.GoalId,
    description: given.Description,
    top_k: given.TopK = 3,
    min_score: given.MinScore = 3,
    language: given.Language = None,
) -> FocusedGoal:
    """Turn to a goal: what is known about it is looked up, kept with the goal, and answered as a section to read.

    Judge by that section whether to plan at once or to research first; focus again after you saved what you found.
    """
    return await recall.focus(wire, goal_id, description, top_k=top_k, min_score=min_score, language=language)


@tool("Know what to know at the start", reads=True)
async def knowledge_startup(
    wire: Wire,
    query: given.About = "",
    top_k: given.TopK = 5,
    min_score: given.MinScore = 3,
    language: given.Language = None,
) -> Startup:
    """Call this once when you start: who your user is, what is known of them, and what fits what you are about to do.

    `prompt` is all of it as one text to read; `profile` comes before `results`.
    """
    return await recall.startup(wire, query, top_k=top_k, min_score=min_score, language=language)
