"""The memories of source 003, field by field and endpoint by endpoint, asked of one node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from ledger.event import JsonObject
from tests.doors.test_http_memory_content import FULL, WINDOW
from tests.journeys.running_node import RunningNode
from tests.knowhub.doors import Http, Refused

M = "/api/v1/memories"
MEMORIES = ("user", "work")
DEFAULTS: JsonObject = {"preferred_meeting_duration_minutes": [30, 60]}
"""What a field holds at first where that is neither null nor an empty list."""


def leaves(value: Any, place: str) -> Iterator[str]:
    """Every field of a content by its path, those of an entry of a list too."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, f"{place}.{name}")
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from leaves(value[0], place)
    else:
        yield place


def told_apart(value: Any, name: str) -> Any:
    """A content of which no field is as it begins, and every list has two entries at least."""
    if isinstance(value, dict):
        return {inner: told_apart(part, inner) for inner, part in value.items()}
    if not isinstance(value, list):
        return value
    if name in LISTED:
        return LISTED[name]
    entries = [told_apart(entry, "") for entry in value or [WINDOW]]
    if isinstance(entries[0], str):
        return [*entries, "another"]
    return [*entries, {**entries[0], "name": "another"} if "name" in entries[0] else LATER]


LISTED: dict[str, list[Any]] = {"weekdays": [1, "fri"], "preferred_meeting_duration_minutes": [25, 50]}
LATER: JsonObject = {"weekdays": ["sat"], "start": "20:00", "end": "21:15"}
PUT: JsonObject = {name: told_apart(FULL[name], name) for name in MEMORIES}
FIELDS = [place for name in MEMORIES for place in leaves(FULL[name], name)]
TOP = [f"{memory}.{name}" for memory in MEMORIES for name in FULL[memory]]
LATE = {"name": "m", "due_date": "x"}
BOUNDED: list[tuple[str, str, JsonObject]] = [
    ("confidence above 1", "user", {"people": [{"name": "x", "meta": {"confidence": 1.1}}]}),
    ("confidence below 0", "work", {"team_members": [{"name": "x", "meta": {"confidence": -0.1}}]}),
    ("last_updated_at that is no time", "user", {"places": [{"name": "x", "meta": {"last_updated_at": "soon"}}]}),
    ("preference of a place", "user", {"places": [{"name": "x", "preference": "love"}]}),
    ("commute_minutes that is no number", "user", {"places": [{"name": "x", "commute_minutes": "40"}]}),
    ("status of a project", "work", {"current_projects": [{"name": "x", "status": "late"}]}),
    ("deadline that is no date", "work", {"current_projects": [{"name": "x", "deadline": "soon"}]}),
    ("due_date that is no date", "work", {"current_projects": [{"name": "x", "key_milestones": [LATE]}]}),
    ("start that is no HH:MM", "user", {"scheduling_preferences": {"no_meeting_windows": [{**WINDOW, "start": "9"}]}}),
    ("end that is no HH:MM", "work", {"work_habits": {"available_hours": [{"start": "09:00", "end": "25:00"}]}}),
    ("a field that it does not have", "user", {"mood": "fine"}),
    ("an entry without a name", "user", {"people": [{"notes": "x"}]}),
]  # fmt: skip


@pytest.fixture
def door(shared_node: RunningNode) -> Http:
    """A user whom no other test knows."""
    return Http(shared_node.url, {"user": f"ann-{uuid4().hex[:12]}"})


def at(content: Any, place: str) -> Any:
    """The value of a field by its path; within a list, that of every entry."""
    _, _, rest = place.partition(".")
    if not rest:
        return content
    if isinstance(content, list):
        return [at(entry, place) for entry in content]
    return at(content[rest.partition(".")[0]], rest)


@pytest.fixture(scope="module")
def full(shared_node: RunningNode) -> JsonObject:
    """Both memories with a value in every field, as they are answered."""
    door = Http(shared_node.url, {"user": f"full-{uuid4().hex[:12]}"})
    for name in MEMORIES:
        door.ask("PUT", f"{M}/{name}", {"content": PUT[name]})
    return {name: door.ask("GET", f"{M}/{name}") for name in MEMORIES}


@pytest.fixture(scope="module")
def fresh(shared_node: RunningNode) -> JsonObject:
    """Both memories as registration makes them."""
    door = Http(shared_node.url, {"user": f"fresh-{uuid4().hex[:12]}"})
    door.ask("POST", M)
    return {name: door.ask("GET", f"{M}/{name}") for name in MEMORIES}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_a_memory_is_answered_as_it_was_put(full: JsonObject, field: str) -> None:
    memory = field.partition(".")[0]
    assert at(full[memory], field) == at(PUT[memory], field)


@pytest.mark.parametrize("field", TOP)
def test_a_memory_has_the_field_from_the_beginning(fresh: JsonObject, field: str) -> None:
    def empty(value: Any, name: str) -> bool:
        if isinstance(value, dict):
            return all(empty(part, inner) for inner, part in value.items())
        return bool(value == DEFAULTS.get(name, [] if isinstance(value, list) else None))

    memory, _, name = field.partition(".")
    assert empty(fresh[memory][name], name), fresh[memory][name]


@pytest.mark.parametrize(("memory", "content"), [each[1:] for each in BOUNDED], ids=[each[0] for each in BOUNDED])
def test_a_value_that_the_field_cannot_have_is_refused(door: Http, memory: str, content: JsonObject) -> None:
    with pytest.raises(Refused, match="invalid_payload"):
        door.ask("PUT", f"{M}/{memory}", {"content": content})


@pytest.mark.parametrize("preference", ["like", "neutral", "avoid", None])
def test_a_place_is_liked_or_not(door: Http, preference: str | None) -> None:
    told = door.ask("PUT", f"{M}/user", {"content": {"places": [{"name": "x", "preference": preference}]}})
    assert told["places"][0]["preference"] == preference


@pytest.mark.parametrize("status", ["planned", "active", "paused", "completed", None])
def test_a_project_stands_somewhere(door: Http, status: str | None) -> None:
    told = door.ask("PUT", f"{M}/work", {"content": {"current_projects": [{"name": "x", "status": status}]}})
    assert told["current_projects"][0]["status"] == status


def test_registration_makes_both_memories(door: Http) -> None:
    assert set(door.ask("POST", M)) == {"user_memory", "work_memory"}
    assert None not in door.ask("GET", M).values()


def test_get_of_all_answers_both_under_the_names_of_the_source(door: Http) -> None:
    door.ask("POST", M)
    user, work = (door.ask("GET", f"{M}/{name}") for name in MEMORIES)
    for path in (M, f"{M}/"):
        assert door.ask("GET", path) == {"user_memory": user, "work_memory": work}


@pytest.mark.parametrize("memory", MEMORIES)
def test_get_of_one_that_is_disabled_is_null(door: Http, memory: str) -> None:
    door.ask("POST", M)
    assert door.ask("GET", f"{M}/{memory}") is not None
    door.ask("DELETE", f"{M}/{memory}")
    assert door.ask("GET", f"{M}/{memory}") is None


@pytest.mark.parametrize("memory", MEMORIES)
def test_put_states_the_whole_memory(door: Http, memory: str) -> None:
    door.ask("PUT", f"{M}/{memory}", {"content": FULL[memory]})
    told = door.ask("PUT", f"{M}/{memory}", {"content": {"occupation": "厨师"}})
    assert told == door.ask("GET", f"{M}/{memory}")
    said = {name: value for name, value in told.items() if value and not isinstance(value, dict)}
    assert said == {"occupation": "厨师"}


@pytest.mark.parametrize("memory", MEMORIES)
def test_patch_states_a_part_of_the_memory(door: Http, memory: str) -> None:
    door.ask("PUT", f"{M}/{memory}", {"content": FULL[memory]})
    told = door.ask("PATCH", f"{M}/{memory}", {"content": {"occupation": "作家"}})
    assert told == {**FULL[memory], "occupation": "作家"} == door.ask("GET", f"{M}/{memory}")


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_memory_is_its_users_alone(door: Http, shared_node: RunningNode, memory: str) -> None:
    door.ask("PUT", f"{M}/{memory}", {"content": {"occupation": "厨师"}})
    other = Http(shared_node.url, {"user": f"bob-{uuid4().hex[:12]}"}, after=door.after)
    told = other.ask("GET", f"{M}/{memory}")
    assert told is None or told["occupation"] is None


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_memory_is_one_row_of_its_owner_and_type(shared_node: RunningNode, door: Http, memory: str) -> None:
    door.ask("POST", M)
    for occupation in ("a", "b"):
        door.ask("PUT", f"{M}/{memory}", {"content": {"occupation": occupation}})
    assert door.ask("GET", f"{M}/{memory}")
    owner = f"user:{door.who['user']}"
    with shared_node.client() as ledger:
        asked = ledger.sql(f"SELECT content, status FROM profiles WHERE owner = '{owner}' AND memory_type = '{memory}'")
    ((content, status),) = asked["rows"]
    assert '"occupation":"b"' in str(content).replace(" ", "")
    assert status == "active"


@pytest.mark.parametrize("column", ["created_at", "updated_at"])
def test_the_row_of_a_memory_says_when(shared_node: RunningNode, door: Http, column: str) -> None:
    door.ask("POST", M)
    assert door.ask("GET", f"{M}/user")
    with shared_node.client() as ledger:
        asked = ledger.sql(f"SELECT {column} FROM profiles WHERE owner = 'user:{door.who['user']}'")
    assert len(asked["rows"]) == 2
    assert None not in [row[0] for row in asked["rows"]]


@pytest.mark.parametrize(("memory", "agent"), [("user", "router"), ("work", "worker")])
def test_a_memory_is_for_its_agent(door: Http, memory: str, agent: str) -> None:
    door.ask("POST", M)
    assert door.ask("GET", f"{M}/{memory}/prompt")["agent_type"] == agent


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_memory_is_put_into_a_prompt_between_the_markers_of_the_source(door: Http, memory: str) -> None:
    door.ask("PUT", f"{M}/{memory}", {"content": {"occupation": "厨师"}})
    name = memory.upper()
    section = door.ask("GET", f"{M}/{memory}/prompt")["prompt"]
    assert section.startswith(f"<!-- {name}_MEMORY_START -->")
    assert section.endswith(f"<!-- {name}_MEMORY_END -->")
    assert "厨师" in section


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_memory_that_is_null_has_no_section(door: Http, memory: str) -> None:
    door.ask("POST", M)
    door.ask("DELETE", f"{M}/{memory}")
    assert door.ask("GET", f"{M}/{memory}/prompt")["prompt"] is None
