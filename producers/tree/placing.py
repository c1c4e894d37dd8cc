"""Places in the tree: the file of an item, and the defaults for an entry by its place.

`global/{tools,definitions,plans}.json`, `agents/{name}/` and `users/{id}/{profile,preferences,habits,constraints}.json`
hold what belongs there. Everything else is placed by its owner: `agents/{name}/{types}.json`,
`users/{id}/knowledge.json`, `shared/{kind}/{id}/{types}.json`; what is not active is in `retired.json`. Each item is
in one file only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from producers.tree.names import id_of, name_of

PLURALS = {
    "tool": "tools",
    "definition": "definitions",
    "plan": "plans",
    "strategy": "strategies",
    "usecase": "usecases",
    "user_profile": "user_profiles",
}
GLOBAL_TYPES = ("tool", "definition", "plan")
PROFILE_FILES = {"preference": "preferences", "habit": "habits", "constraint": "constraints"}
"""The file of each category of a user's profile; everything else is in `profile`."""
BACKGROUND = "background"
RETIRED = PurePosixPath("retired.json")
MEMORIES = "memories.json"

_TYPE_OF = {plural: name for name, plural in PLURALS.items()}
_CATEGORY_OF = {file: category for category, file in PROFILE_FILES.items()} | {"profile": BACKGROUND}


def place_of(item: Mapping[str, Any]) -> PurePosixPath:
    """The file of an item, relative to the tree."""
    if item.get("status", "active") != "active":
        return RETIRED
    types, scopes = item["types"], item["scopes"]
    kind, _, owner = item["owner"].partition(":")
    if "user_profile" in types:
        persons = [owner] if kind == "user" else [scope[5:] for scope in scopes if scope.startswith("user:")]
        if persons:
            category = item["tags"].get("category")
            file = PROFILE_FILES.get(category, "profile") if isinstance(category, str) else "profile"
            return PurePosixPath("users", name_of(persons[0]), f"{file}.json")
    shared = next((name for name in types if name in GLOBAL_TYPES), None)
    if shared is not None and "public" in scopes:
        return PurePosixPath("global", f"{PLURALS[shared]}.json")
    if kind == "user":
        return PurePosixPath("users", name_of(owner), "knowledge.json")
    file = f"{name_of(PLURALS.get(types[0], types[0]))}.json"
    if kind == "agent":
        return PurePosixPath("agents", name_of(owner), file)
    return PurePosixPath("shared", name_of(kind), name_of(owner), file)


def memories_place(user: str) -> PurePosixPath:
    """The file of a user's two memories."""
    return PurePosixPath("users", name_of(user), MEMORIES)


def defaults_at(place: PurePosixPath) -> dict[str, Any] | None:
    """Default fields of an entry at a place; None for a place that is not part of the tree."""
    match place.parts:
        case ("retired.json",):
            return {}
        case ("global", file):
            return {**_types_of(file), "scopes": ["public"]}
        case ("agents", name, file):
            return _owned("agent", name) | ({"types": ["strategy"]} | _types_of(file))
        case ("users", name, file):
            category = _CATEGORY_OF.get(file.removesuffix(".json"))
            profile: dict[str, Any] = {} if category is None else {"types": ["user_profile"], "category": category}
            return _owned("user", name) | profile
        case ("shared", kind, name, file):
            return _owned(id_of(kind) or "", name) | _types_of(file)
    return None


def user_at(place: PurePosixPath) -> str | None:
    """The user whose memories a file holds; None for any other file."""
    match place.parts:
        case ("users", name, "memories.json"):
            return id_of(name)
    return None


def _owned(kind: str, name: str) -> dict[str, Any]:
    entity_id = id_of(name)
    return {} if not kind or not entity_id else {"owner": f"{kind}:{entity_id}", "scopes": [f"{kind}:{entity_id}"]}


def _types_of(file: str) -> dict[str, Any]:
    known = _TYPE_OF.get(file.removesuffix(".json"))
    return {} if known is None else {"types": [known]}
