"""Arguments of the tools: the type, the bounds and a sentence for each, for people and for models alike.

The MCP server and the reference are made of these; the node itself judges what is sent, on every interface the same.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from kledger.contract import language
from kledger.contract.scopes import Visibility
from kledger.contract.sessions import Window
from kledger.contract.words import ExtractionKind, ItemFilter, MemoryLayer, ProfileType
from kledger.requests.recall import MOST_MESSAGE

Query = Annotated[
    str, Field(min_length=1, max_length=MOST_MESSAGE, description="What to look for, in words, in any language")
]
About = Annotated[str, Field(max_length=MOST_MESSAGE, description="What you are about to do; may be left out")]
TopK = Annotated[int, Field(ge=1, le=100, description="At most so many items")]
MinMatch = Annotated[float, Field(ge=0, le=1, description="Leave out items that cover less of the query than this")]
MinScore = Annotated[int, Field(ge=0, le=5, description="Leave out items with a score below this")]
Limit = Annotated[int, Field(ge=1, le=1000, description="At most so many items")]
Next = Annotated[int | None, Field(ge=1, description="To read on, with the same filters: the last answer's `next`")]
KnowledgeId = Annotated[str, Field(description="The item's id, for example knowledge-20260305-a1b2")]
Types = Annotated[
    list[str],
    Field(description="Kinds of knowledge: strategy, tool, usecase, definition, plan, user_profile"),
]
OnlyOwner = Annotated[str | None, Field(description="Only items of this owner, `type:id`")]
OnlyVisibility = Annotated[
    list[Visibility] | None, Field(description="Only items with any of these labels: private, shared, org, public")
]
OnlyTypes = Annotated[list[str] | None, Field(description="Only items of any of these types")]
OnlyTags = Annotated[
    list[str] | None, Field(description="Only items with any of these words among their tags, or name=value")
]
OnlyScopes = Annotated[list[str] | None, Field(description="Only items of any of these scopes")]
Task = Annotated[str, Field(description="In which situation, to reach what")]
Content = Annotated[str, Field(description="The knowledge itself")]
Tags = Annotated[dict[str, Any] | None, Field(description="Business tags, for example {'domain': 'coding_style'}")]
Scopes = Annotated[
    list[str] | None,
    Field(description="Who may read it: user:ID, agent:ID, project:ID, team:ID, org:ID or public; else its owner"),
]
Owner = Annotated[str | None, Field(description="Who alone may change it, for example agent:ID; else who asks")]
SourceName = Annotated[str, Field(description="The name of what it was learned from")]
SourceCategory = Annotated[str, Field(description="paper, exp, skill or book")]
Urls = Annotated[list[str] | None, Field(description="Where it can be read")]
AgentId = Annotated[str, Field(description="Which agent says it; left alone, the agent that asks")]
SubmittedBy = Annotated[str, Field(description="Who handed it in, for example a mail address")]
Score = Annotated[int, Field(ge=1, le=5, description="How good it is, 1 to 5")]
NewScore = Annotated[int | None, Field(ge=1, le=5, description="A new score, 1 to 5")]
MessageId = Annotated[str, Field(description="The message that it comes from")]
ResourceIds = Annotated[list[str] | None, Field(description="Resources that it refers to, by their ids")]
Together = Annotated[
    list[dict[str, Any]] | None,
    Field(description="New resources to save with it, as resource_save takes them; owner and scopes are the item's"),
]
HelpfulCase = Annotated[dict[str, Any] | None, Field(description="A use in which it helped: task, outcome, why")]
HarmfulCase = Annotated[dict[str, Any] | None, Field(description="A use in which it harmed: task, outcome, why")]
EvolveFeedback = Annotated[str | None, Field(description="What to make better: a model rewrites the content")]
FeedbackList = Annotated[list[dict[str, Any]], Field(description="Verdicts, each judged on its own")]
NewTask = Annotated[str, Field(description="In which situation, to reach what, from now on")]
NewContent = Annotated[str, Field(description="The knowledge itself, from now on")]
NewTypes = Annotated[list[str] | None, Field(description="Its kinds from now on")]
NewTags = Annotated[
    dict[str, Any] | list[str] | None, Field(description="All of its tags from now on: names with values, or words")
]
NewScopes = Annotated[
    list[str] | None, Field(description="Who may read it from now on: user:ID, agent:ID, project:ID, …, or public")
]
RevisionReason = Annotated[str, Field(description="Why it is stated anew")]
RetirementReason = Annotated[str, Field(description="Why it does not hold any more")]
Ref = Annotated[str, Field(description="An item's id, or trace:ID, message:ID, event:ID")]
Material = Annotated[str, Field(description="What was said or done; or give a conversation")]
Conversation = Annotated[
    list[dict[str, Any]] | None,
    Field(description="Messages with their ids, so that what is found leads back to them; or give a text"),
]
OfMaterial = Annotated[ExtractionKind, Field(description="What it is")]
ExtractedScopes = Annotated[
    list[str] | None, Field(description="Who may read what is found; else its owner, and whoever asks")
]
Profile = Annotated[ProfileType, Field(description="Which memory: user, or work")]
ProfileChanges = Annotated[
    dict[str, Any],
    Field(
        description="What changes. Of user: occupation, timezone, primary_language, people, places, preferences, "
        "scheduling_preferences, interests, avoid_topics, custom_rules, recurring_routines. Of work: occupation, "
        "expertise, preferred_tools, current_projects, work_habits, team_members, team_context, work_rules"
    ),
]
Model = Annotated[str, Field(description="The model that merges; left alone, the one that the node is configured with")]
Plan = Annotated[str, Field(description="The id of a plan that an earlier call answered with: merge what it proposed")]
ResourceId = Annotated[str, Field(description="A path-like id, for example code/selenium/login")]
Title = Annotated[str, Field(description="What it is, in a line")]
Body = Annotated[str, Field(description="What everybody who sees the resource may read")]
SecureBody = Annotated[str, Field(description="A secret (password, cookie): sealed, for its owner and those named")]
SharedWith = Annotated[
    list[str] | None, Field(description="Who may read the secret beside its owner, for example user:ID")
]
ContentType = Annotated[str, Field(description="code, credential, cookie, text or another word")]
Metadata = Annotated[
    dict[str, Any] | None, Field(description="For example language, acquired_at, expires_at (RFC 3339)")
]
SessionId = Annotated[str, Field(description="The session's id; it begins with its first message")]
Messages = Annotated[list[dict[str, Any]], Field(description="Messages in order, each with its own id", min_length=1)]
MaxTokens = Annotated[Window, Field(description="Tokens of the model's window; 70 % of them are used")]
ForModel = Annotated[str | None, Field(description="The model, by whose tokens is counted")]
RecordId = Annotated[str, Field(description="The id of the message or of the summary, as session_context shows it")]
Noted = Annotated[
    dict[str, Any] | None,
    Field(description="What to change, null removes a field, a list is replaced whole; left out, nothing is changed"),
]
GoalId = Annotated[str, Field(description="The goal's id")]
Description = Annotated[str, Field(description="What is to be reached: the knowledge is looked for by these words")]
Language = Annotated[language.Language | None, Field(description="Of the section: zh or en; else the node's own")]
Layer = Annotated[MemoryLayer, Field(description="How it is remembered: short, semantic, episodic or procedural")]
MemoryTask = Annotated[str, Field(description="In which situation it matters; may be left out")]
MemoryContent = Annotated[str, Field(description="What to remember; an event, or steps, may stand for it")]
Kind = Annotated[
    str,
    Field(
        description="Of a short memory: preference, decision, follow_up or mood; of what a project shares: "
        "project_context, adr, convention, known_issue or user_preference; else any word"
    ),
]
OnlyLayer = Annotated[MemoryLayer | None, Field(description="Only memories of this layer")]
OnlyKind = Annotated[str, Field(description="Only memories of this kind")]
Since = Annotated[str, Field(description="Only what happened at or after this time, such as 2026-03-05T12:00:00Z")]
Until = Annotated[str, Field(description="Only what happened before this time")]
WithStatus = Annotated[ItemFilter, Field(description="Only memories with this status, or all")]
Lifetime = Annotated[
    int | None, Field(ge=1, description="Of a short memory: the seconds that it lives; else as its kind does")
]
Supersedes = Annotated[str, Field(description="The id of the memory of which this is a later version")]
Decision = Annotated[Literal["approve", "reject"], Field(description="What becomes of the proposal")]
HeldId = Annotated[str, Field(description="The id of what is held, as memory_held shows it")]
HeldDecision = Annotated[Literal["release", "drop"], Field(description="Save it as it was stated, or do not save it")]
HeldReason = Annotated[str, Field(description="Why, as your user said")]
ReviewReason = Annotated[str, Field(description="Why; its author reads it")]
ReadVersion = Annotated[int | None, Field(ge=1, description="The version that you read; refused where it was revised")]
Share = Annotated[float | None, Field(ge=0, le=1, description="0 to 1")]
Category = Annotated[str, Field(description="Of a fact, for example user_preference")]
Event = Annotated[str, Field(description="What happened")]
Outcome = Annotated[str, Field(description="How it ended")]
Participants = Annotated[list[str] | None, Field(description="Who took part")]
Artifacts = Annotated[list[str] | None, Field(description="What came of it: a commit, a file, a link")]
HappenedAt = Annotated[str, Field(description="When it happened, for example 2026-03-05T12:00:00Z")]
Name = Annotated[str, Field(description="What the procedure is called")]
Trigger = Annotated[str, Field(description="When the procedure is due")]
Steps = Annotated[list[str] | None, Field(description="The steps of the procedure, in order")]
Words = Annotated[list[str] | None, Field(description="Words to find it by")]
RelatedIds = Annotated[list[str] | None, Field(description="The ids of related memories")]
Message = Annotated[
    str, Field(description="What was said to you, or what you are about to do", min_length=1, max_length=MOST_MESSAGE)
]
OneSession = Annotated[
    str, Field(max_length=200, description="The session of the message; what its context holds is left out")
]
TargetAgent = Annotated[str, Field(description="The id of another agent whose knowledge you ask for")]
Budget = Annotated[int | None, Field(description="At most so many tokens of text", ge=1)]
FromSession = Annotated[str, Field(description="The session that it is from")]
MemoryId = Annotated[str, Field(description="The id of the memory")]
ConfirmReason = Annotated[str, Field(description="What shows that it holds")]
