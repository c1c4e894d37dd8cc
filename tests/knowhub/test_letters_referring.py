"""An item refers to resources in each form of source 001, and a save says who reads it and not what it refers to."""

from __future__ import annotations

import json
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from ledger.event import JsonObject
from producers.cli.main import app
from tests.journeys.running_node import RunningNode
from tests.knowhub.doors import ITEM, NAMES, Command, Door, Http, Mcp, Refused, Sdk
from tests.knowhub.walking import Walk


@pytest.fixture
def door(shared_node: RunningNode) -> Http:
    return Http(shared_node.url, {"agent": f"scribe-{uuid4().hex[:8]}", "org": "cybertogether"})


def resource(door: Http, *scopes: str) -> str:
    """The id of a new resource; its scopes are its owner's where none are named."""
    named = f"code/{uuid4().hex[:12]}"
    door.ask("POST", "/api/resource", {"id": named, "title": "t", **({"scopes": [*scopes]} if scopes else {})})
    return named


def saved(door: Door, **item: Any) -> JsonObject:
    """What the node answers to a save."""
    stated = {**ITEM, **item}
    match door:
        case Http():
            told: Any = door.ask("POST", "/api/knowledge", stated)
        case Sdk():
            positional = [stated.pop(name) for name in ("task", "content", "types")]
            told = door.ask(door.ledger.save, *positional, **stated)
        case Command():
            words = ["--content", "c", "--types", "tool", "--scopes", ",".join(stated["scopes"])]
            if named := stated.get("resource_ids"):
                words += ["--resource", ",".join(named)]
            if brought := stated.get("resources"):
                with NamedTemporaryFile("w", encoding="utf-8") as file:
                    json.dump(brought, file)
                    file.flush()
                    told = door.ask("save", *words, "--resources-file", file.name)
            else:
                told = door.ask("save", *words)
        case _:
            assert isinstance(door, Mcp)
            told = door.ask("knowledge_save", **stated)
    return dict(told)


@pytest.mark.parametrize("form", ["resource_id", "secure_resource_id"])
def test_a_single_resource_is_a_form_of_the_reference(door: Http, form: str) -> None:
    named, other = resource(door), resource(door)
    item_id = door.save(**{form: named})
    assert door.one(item_id)["resource_ids"] == [named]
    assert door.one(door.save(**{form: named}, resource_ids=[other, named]))["resource_ids"] == [other, named]
    door.ask("PUT", f"/api/knowledge/{item_id}", {form: other})
    assert door.one(item_id)["resource_ids"] == [other]
    told = door.ask("POST", "/api/knowledge/batch", {"items": [{**ITEM, "content": str(uuid4()), form: named}]})
    assert door.one(told["results"][0]["id"])["resource_ids"] == [named]


def test_both_single_forms_name_a_resource_each(door: Http) -> None:
    code, account = resource(door), resource(door)
    item_id = door.save(resource_id=code, secure_resource_id=account)
    assert door.one(item_id)["resource_ids"] == [code, account]
    with pytest.raises(Refused, match="invalid_payload"):
        door.save(resource_id="")


@pytest.mark.parametrize("walk", NAMES, indirect=True)
def test_an_item_says_when_its_readers_cannot_read_what_it_refers_to(walk: Walk) -> None:
    door = walk.door(agent="scribe", org="lantern")
    named = resource(Http(walk.url, door.who))
    owner, org = f"agent:{walk.own('scribe')}", f"org:{walk.own('lantern')}"
    told = saved(door, scopes=[org, owner], resource_ids=[named])
    (warning,) = told["warnings"]
    assert (warning["code"], warning["resource_id"], warning["readers"]) == ("unreadable_resource", named, [org])
    assert org in warning["message"]
    assert door.one(told["id"])["resource_ids"] == [named], "and is saved"
    assert saved(door, scopes=[owner], content="to itself", resource_ids=[named])["warnings"] == []


def test_what_everybody_who_reads_the_item_reads_is_no_matter_of_a_word(door: Http) -> None:
    mine, ours, everybodys = resource(door), resource(door, "org:cybertogether"), resource(door, "public")
    for named, scopes, warned in (
        (everybodys, ["public"], False),
        (everybodys, ["org:cybertogether"], False),
        (ours, ["org:cybertogether"], False),
        (ours, ["public"], True),
        (mine, ["public"], True),
    ):
        told = saved(door, content=str(uuid4()), scopes=scopes, resource_ids=[named])
        assert bool(told["warnings"]) == warned, (named, scopes)


def test_a_resource_that_is_not_there_or_not_the_callers_to_see_is_told_in_the_same_words(
    door: Http, shared_node: RunningNode
) -> None:
    hidden = resource(Http(shared_node.url, {"user": f"ann-{uuid4().hex[:8]}"}))
    missing = f"code/{uuid4().hex[:12]}"
    told = [saved(door, content=str(uuid4()), resource_ids=[named])["warnings"] for named in (hidden, missing)]
    words = {each["message"].replace(named, "X") for (each,), named in zip(told, (hidden, missing), strict=True)}
    assert len(words) == 1


@pytest.mark.parametrize("walk", NAMES, indirect=True)
def test_a_resource_that_is_saved_with_an_item_has_its_scopes(walk: Walk) -> None:
    door = walk.door(agent="scribe", org="lantern")
    owner, org = f"agent:{walk.own('scribe')}", f"org:{walk.own('lantern')}"
    code, account = walk.own("code/login"), walk.own("credentials/a")
    brought: list[JsonObject] = [
        {"id": code, "title": "Login code", "body": "driver.get(url)"},
        {"id": account, "title": "Account", "secure_body": walk.word, "scopes": [owner]},
    ]
    told = saved(door, scopes=[org, owner], resources=brought)
    assert door.one(told["id"])["resource_ids"] == [code, account]
    assert [(each["resource_id"], each["readers"]) for each in told["warnings"]] == [(account, [org])]
    reader = Http(walk.url, door.who, after=told["position"])
    kept = {named: reader.ask("GET", f"/api/resource/{quote(named, safe='')}") for named in (code, account)}
    assert (kept[code]["scopes"], kept[code]["owner"]) == ([org, owner], owner)
    assert (kept[account]["scopes"], kept[account]["secure_body"]) == ([owner], walk.word)
    wrong = [{**brought[0], "title": "new"}, {"id": walk.own("r"), "title": "t", "expected_version": 3}]
    with pytest.raises(Refused, match="version_conflict"):
        saved(door, scopes=[owner], content=f"nothing {walk.word}", resources=wrong)
    assert reader.ask("GET", f"/api/resource/{quote(code, safe='')}")["version"] == 1
    mine = [item["id"] for item in door.list() if item["owner"] == owner]
    assert mine == [told["id"]], "what is refused keeps nothing"


def test_an_import_brings_resources_with_the_scopes_of_each_item(door: Http) -> None:
    first, second = f"code/{uuid4().hex[:12]}", f"code/{uuid4().hex[:12]}"
    items = [
        {**ITEM, "content": str(uuid4()), "scopes": scopes, "resources": [{"id": named, "title": "t"}]}
        for named, scopes in ((first, ["public"]), (second, ["org:cybertogether"]))
    ]
    told = door.ask("POST", "/api/knowledge/batch", {"items": items})
    assert [(each["outcome"], each["warnings"]) for each in told["results"]] == [("saved", [])] * 2
    kept = [door.ask("GET", f"/api/resource/{quote(named, safe='')}")["scopes"] for named in (first, second)]
    assert kept == [["public"], ["org:cybertogether"]]


def test_a_change_and_an_import_say_so_too(door: Http) -> None:
    named = resource(door)
    item_id = door.save(resource_ids=[named])
    changed = door.ask("PUT", f"/api/knowledge/{item_id}", {"scopes": ["public"]})
    assert [each["readers"] for each in changed["warnings"]] == [["public"]]
    items = [
        {**ITEM, "content": str(uuid4()), "scopes": scopes, "resource_ids": [named]} for scopes in (["public"], None)
    ]
    told = door.ask("POST", "/api/knowledge/batch", {"items": items})
    assert [bool(each["warnings"]) for each in told["results"]] == [True, False]


def test_the_command_shows_a_warning_to_a_reader(shared_node: RunningNode, door: Http) -> None:
    named = resource(door)
    words = ["save", "--content", "c", "--types", "tool", "--scopes", "public", "--resource", named]
    ran = CliRunner().invoke(app, [*words, "--agent", door.who["agent"], "--url", shared_node.url])
    assert ran.exit_code == 0
    assert "saved" in ran.stdout
    assert f"warning: public may read the item and not the resource '{named}'" in ran.stderr
