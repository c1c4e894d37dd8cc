"""Schemas of a memory's content: UserMemoryContent and WorkProfileContent.

Every field has a default, so that a memory begins complete; unknown fields are refused.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from kledger.contract.words import ProfileType
from ledger.event import JsonObject

TimeOfDay = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
# The source leaves the form of a weekday open: a number, or a name such as "mon".
Weekday = Annotated[int, Field(ge=0, le=7)] | Annotated[str, Field(min_length=1, max_length=20)]
Minutes = Annotated[int, Field(ge=0, le=100_000)]
Name = Annotated[str, Field(min_length=1)]


class Part(BaseModel):
    """Base of everything in a memory."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Meta(Part):
    """Where one entry is from, how sure it is (0 to 1), and when it was last touched."""

    source: str | None = None
    confidence: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    last_updated_at: AwareDatetime | None = None


class Person(Part):
    """Somebody the user knows."""

    name: Name
    relationship: str | None = None
    role: str | None = None
    preferred_contact_channel: str | None = None
    notes: str | None = None
    meta: Meta = Meta()


class Place(Part):
    """Somewhere the user goes."""

    name: Name
    category: str | None = None
    address: str | None = None
    timezone: str | None = None
    commute_minutes: Minutes | None = None
    preference: Literal["like", "neutral", "avoid"] | None = None
    notes: str | None = None
    meta: Meta = Meta()


class Preferences(Part):
    """How the user wants to be dealt with."""

    communication_style: str | None = None
    language_preference: list[str] = []
    location_preference: str | None = None
    work_lifestyle: str | None = None
    notification_preference: list[str] = []


class TimeWindow(Part):
    """A stretch of the day on some weekdays."""

    weekdays: list[Weekday] = []
    start: TimeOfDay
    end: TimeOfDay


class SchedulingPreferences(Part):
    """When the user works, meets and is left alone."""

    productive_windows: list[TimeWindow] = []
    preferred_meeting_windows: list[TimeWindow] = []
    no_meeting_windows: list[TimeWindow] = []
    deep_work_windows: list[TimeWindow] = []
    preferred_meeting_duration_minutes: list[Minutes] = [30, 60]
    meeting_buffer_minutes: Minutes | None = None
    max_meetings_per_day: Annotated[int, Field(ge=0, le=1_000)] | None = None
    notes: str | None = None


class Routine(Part):
    """Something the user does again and again."""

    name: Name
    description: str | None = None
    cadence: str | None = None
    time_windows: list[TimeWindow] = []
    importance: str | None = None
    meta: Meta = Meta()


class UserMemoryContent(Part):
    """The `user` memory: who the user is, for a router agent."""

    occupation: str | None = None
    timezone: str | None = None
    primary_language: str | None = None
    people: list[Person] = []
    places: list[Place] = []
    preferences: Preferences = Preferences()
    scheduling_preferences: SchedulingPreferences = SchedulingPreferences()
    interests: list[str] = []
    avoid_topics: list[str] = []
    custom_rules: list[str] = []
    recurring_routines: list[Routine] = []


class Milestone(Part):
    """A step of a project."""

    name: Name
    due_date: date | None = None
    status: str | None = None
    notes: str | None = None


class Project(Part):
    """Something the user is working on."""

    name: Name
    description: str | None = None
    status: Literal["planned", "active", "paused", "completed"] | None = None
    priority: str | None = None
    deadline: date | None = None
    collaborators: list[str] = []
    key_milestones: list[Milestone] = []
    notes: str | None = None
    meta: Meta = Meta()


class WorkHabits(Part):
    """When and how the user works."""

    available_hours: list[TimeWindow] = []
    deep_work_blocks: list[TimeWindow] = []
    preferred_meeting_windows: list[TimeWindow] = []
    no_meeting_windows: list[TimeWindow] = []
    preferred_meeting_duration_minutes: list[Minutes] = [30, 60]
    notification_channel: str | None = None
    notes: str | None = None


class WorkProfileContent(Part):
    """The `work` memory: what the user does, for a worker agent."""

    occupation: str | None = None
    expertise: list[str] = []
    preferred_tools: list[str] = []
    current_projects: list[Project] = []
    work_habits: WorkHabits = WorkHabits()
    team_members: list[Person] = []
    team_context: str | None = None
    work_rules: list[str] = []


CONTENTS: dict[ProfileType, type[Part]] = {"user": UserMemoryContent, "work": WorkProfileContent}


def default_content(memory_type: ProfileType) -> JsonObject:
    """What a memory holds when it is created."""
    return CONTENTS[memory_type]().model_dump(mode="json")


def validated(memory_type: ProfileType, content: JsonObject) -> JsonObject:
    """Content with every default filled in. Raises pydantic's ValidationError."""
    return CONTENTS[memory_type].model_validate_json(orjson.dumps(content)).model_dump(mode="json")


def filled(memory_type: ProfileType, content: JsonObject) -> JsonObject:
    """Stored content with every default filled in; as it is when a foreign writer stated another shape."""
    try:
        return validated(memory_type, content)
    except ValidationError:
        return content


def unknown_names(memory_type: ProfileType, patch: JsonObject) -> dict[str, list[str]]:
    """Fields that a patch names and the memory does not have, each with those that there are in its place: a null for
    a typo would pass unseen."""
    return _unknown(CONTENTS[memory_type], patch, "")


def _unknown(model: type[BaseModel], patch: JsonObject, place: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in patch.items():
        info = model.model_fields.get(name)
        if info is None:
            found[place + name] = [place + field for field in model.model_fields]
        elif isinstance(value, dict) and isinstance(info.annotation, type):
            found |= _unknown(info.annotation, value, f"{place}{name}.")
    return found
