"""Items of knowledge as resources of the protocol: listed and read by the official client, for who may see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from mcp import Client, MCPError, types

from producers.access.book import TokenBook
from producers.access.tokens import create_token, tokens_file
from producers.mcp.resources import MOST_SHOWN, PAGE, id_of, uri_of
from tests.journeys.running_node import RunningNode, caught_up, result_of
from tests.mcp.connecting import WAYS, Way, connected, told
from tests.mcp.mcp_door import mcp_door

one_way_each = pytest.mark.parametrize("way", ["http", "http of 2025", "stdio"])
ITEM: dict[str, Any] = {"task": "Mend a pump", "content": "Replace the seal first.", "types": ["tool"]}


async def listed(client: Client) -> list[types.Resource]:
    """Every resource that a client lists, page after page."""
    page = await client.list_resources()
    found = list(page.resources)
    while page.next_cursor is not None:
        page = await client.list_resources(cursor=page.next_cursor)
        found += page.resources
    return found


async def read(client: Client, item_id: str) -> tuple[dict[str, Any], str]:
    """What the resource of an item holds: its document and its text."""
    document, text = (await client.read_resource(uri_of(item_id))).contents
    assert isinstance(document, types.TextResourceContents)
    assert isinstance(text, types.TextResourceContents)
    assert (document.mime_type, text.mime_type) == ("application/json", "text/plain")
    assert document.uri == text.uri == uri_of(item_id)
    return json.loads(document.text), text.text


async def refused(client: Client, uri: str) -> types.ErrorData:
    """The error with which a read is answered."""
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    return caught.value.error


@one_way_each
async def test_an_item_is_listed_by_its_percent_encoded_id_and_read_as_over_http(
    shared_node: RunningNode, way: Way
) -> None:
    task, content = "泵漏水\n时换 密封", "先关阀门。\n再换密封圈。" + "慢" * 500
    dots = [".", ".."] if way == "http" else []
    item_ids = [*dots, *(f"{start}{WAYS.index(way)}" for start in ("pump-", "泵/密封 第一?", "100%#a+b", "../x"))]
    with shared_node.client() as ledger:
        keeper = ledger.acting_as(agent="keeper")
        for item_id in item_ids:
            keeper.save(task, content, ["tool"], id=item_id)
        over_http = {item_id: keeper.get(item_id) for item_id in item_ids}
    async with connected(shared_node.url, way, agent="keeper") as client:
        assert client.server_capabilities is not None
        assert client.server_capabilities.resources is not None
        newest = (await client.list_resources()).resources[: len(item_ids)]
        assert [resource.name for resource in newest] == item_ids[::-1]
        for resource in newest:
            assert resource.uri == f"knowledge://{quote(resource.name, safe='')}"
            assert (resource.title, resource.mime_type) == ("泵漏水 时换 密封", "application/json")
            assert resource.description is not None
            assert resource.description.startswith("先关阀门。 再换密封圈。慢")
            assert len(resource.description) == MOST_SHOWN
            assert resource.annotations is not None
            assert resource.annotations.last_modified == over_http[resource.name]["updated_at"]
            assert await read(client, resource.name) == (over_http[resource.name], content)
        (template,) = (await client.list_resource_templates()).resource_templates
    assert (template.uri_template, template.mime_type) == ("knowledge://{id}", "application/json")
    assert template.description


@one_way_each
async def test_the_list_has_each_item_once_newest_first_whatever_is_saved_between_its_pages(
    shared_node: RunningNode, way: Way
) -> None:
    name = f"many-{WAYS.index(way)}"
    items = [{**ITEM, "id": f"{name}-{number:03}", "content": f"step {number}"} for number in range(2 * PAGE + 3)]
    async with connected(shared_node.url, way, agent=name) as client:
        with shared_node.client() as ledger:
            saving = ledger.acting_as(agent=name)
            assert saving.save_many(items)["saved"] == len(items)
            saving.get(items[-1]["id"])
            page = await client.list_resources()
            found = [resource.name for resource in page.resources]
            assert len(found) == PAGE
            assert page.next_cursor is not None
            late = saving.save("late", "while the list is read", ["tool"])
            assert saving.get(late["id"])
            saving.retire(items[0]["id"])
        while page.next_cursor is not None:
            page = await client.list_resources(cursor=page.next_cursor)
            found += [resource.name for resource in page.resources]
        mine = [each for each in found if each.startswith(name)]
        assert mine == [item["id"] for item in reversed(items[1:])]
        assert late["id"] not in found
        assert (await client.list_resources(cache_mode="bypass")).resources[0].name == late["id"]


@pytest.mark.parametrize("way", ["http", "stdio"])
async def test_what_a_tool_saved_is_a_resource_at_once(shared_node: RunningNode, way: Way) -> None:
    async with connected(shared_node.url, way, agent="quick") as client:
        saved = await told(client, "knowledge_save", ITEM)
        assert (await client.list_resources()).resources[0].uri == uri_of(saved["id"])
        document, text = await read(client, saved["id"])
        assert (document["owner"], text) == ("agent:quick", ITEM["content"])


@one_way_each
async def test_a_private_item_of_another_is_neither_listed_nor_readable_and_is_refused_as_one_that_never_was(
    shared_node: RunningNode, way: Way
) -> None:
    number = WAYS.index(way)
    hidden, never, shared = f"hidden-{number}", f"absent-{number}", f"shared-{number}"
    with shared_node.client() as ledger:
        ada = ledger.acting_as(user="ada")
        ada.save("Find the spare key", "Under the mat.", ["tool"], id=hidden)
        reader = [{"entity": "agent:guest", "permission": "read"}]
        ada.save("Find the door", "At the back.", ["tool"], id=shared, acl=reader)
        assert ada.get(shared)["owner"] == "user:ada"
    async with connected(shared_node.url, way, agent="guest") as guest:
        names = [resource.name for resource in await listed(guest)]
        assert shared in names
        assert hidden not in names
        assert (await read(guest, shared))[1] == "At the back."
        seen, missing = await refused(guest, uri_of(hidden)), await refused(guest, uri_of(never))
    assert seen.code == missing.code == types.INVALID_PARAMS
    assert seen.data["code"] == "unknown_knowledge"
    assert json.dumps([seen.message, seen.data]).replace(hidden, never) == json.dumps([missing.message, missing.data])


async def test_who_names_nobody_is_no_operator_who_reads_everything(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger:
        saved = ledger.acting_as(user="ada").save("Find the spare key", "Under the mat.", ["tool"])
        assert ledger.seeing(saved["position"]).get(saved["id"])["owner"] == "user:ada"
    ways: tuple[Way, ...] = ("http", "stdio")
    for way in ways:
        async with connected(shared_node.url, way) as client:
            assert saved["id"] not in [resource.name for resource in await listed(client)]
            assert (await refused(client, uri_of(saved["id"]))).data["code"] == "unknown_knowledge"


async def test_a_retired_item_is_listed_no_more_and_read_with_its_status_until_it_is_restored(
    shared_node: RunningNode,
) -> None:
    with shared_node.client() as ledger:
        owner = ledger.acting_as(agent="closer")
        item_id = owner.save(**ITEM)["id"]
        owner.retire(item_id)
        assert owner.get(item_id)["status"] == "retired"
        async with connected(shared_node.url, "http", agent="closer") as client:
            assert item_id not in [resource.name for resource in await listed(client)]
            assert (await read(client, item_id))[0]["status"] == "retired"
        owner.restore(item_id)
        assert owner.get(item_id)["status"] == "active"
        async with connected(shared_node.url, "stdio", agent="closer") as client:
            assert item_id in [resource.name for resource in await listed(client)]


async def test_what_was_erased_with_a_person_is_refused_as_erased_and_no_list_has_its_words(
    shared_node: RunningNode,
) -> None:
    name, word = "alice-of-the-resources", "quixotry"
    with shared_node.client() as op:
        alice = op.acting_as(user=name)
        item_id = alice.save(f"Her own {word}", f"her own {word}", ["tool"])["id"]
        assert alice.get(item_id)["content"] == f"her own {word}"
        result_of(op, "forget", subject=f"user:{name}")
        caught_up(op)
        over_http = [item["id"] for item in alice.list(limit=PAGE)["results"]]
    async with connected(shared_node.url, "http", user=name) as client:
        error = await refused(client, uri_of(item_id))
        assert (error.code, error.data["code"]) == (types.INVALID_PARAMS, "erased")
        page = (await client.list_resources()).resources
        assert [resource.name for resource in page] == over_http
        assert word not in "".join(resource.model_dump_json() for resource in page)


@one_way_each
async def test_a_cursor_or_a_uri_that_is_none_is_refused_with_what_to_give(shared_node: RunningNode, way: Way) -> None:
    async with connected(shared_node.url, way, agent="careless") as client:
        for cursor in ("", "next", "-1", "1.5", "1e3", " 7", "１２", "9" * 19, "x" * 5_000):
            with pytest.raises(MCPError, match="nextCursor") as caught:
                await client.list_resources(cursor=cursor)
            assert caught.value.error.code == types.INVALID_PARAMS
            assert caught.value.error.data["code"] == "invalid_payload"
            assert len(caught.value.error.message) < 300
        for uri in (
            "",
            "pump",
            "file:///etc/passwd",
            "https://knowledge/a",
            "knowledge:",
            "knowledge:a",
            "knowledge://",
        ):
            error = await refused(client, uri)
            assert (error.code, error.data["code"]) == (types.INVALID_PARAMS, "invalid_payload")
            assert "knowledge://ID" in error.message
        assert "UTF-8" in (await refused(client, "knowledge://%ff")).message
        assert len((await refused(client, f"knowledge://{'x' * 100_000}")).message) < 400
        unlikely = ("knowledge://..", "knowledge://../admin/status", "knowledge://a/history", "knowledge://a?as_of=1")
        for uri in unlikely:
            assert (await refused(client, uri)).data["code"] == "unknown_knowledge", uri
        assert await client.list_resources()


async def test_a_token_decides_whose_items_are_resources(tmp_path: Path) -> None:
    _, ada = create_token(tmp_path, {"user": ["ada"]})
    _, bob = create_token(tmp_path, {"user": ["bob"]})
    _, analyst = create_token(tmp_path, {}, role="analyst")
    as_ada, as_bob, as_analyst = ({"Authorization": f"Bearer {token}"} for token in (ada, bob, analyst))
    async with mcp_door(tokens=TokenBook(tokens_file(tmp_path))) as door:
        saved = await door.call("knowledge_save", as_ada, **ITEM)
        uri = uri_of(saved["id"])
        mine = (await door.post("resources/list", as_ada)).json()["result"]["resources"]
        assert [resource["uri"] for resource in mine] == [uri]
        assert (await door.post("resources/list", as_bob)).json()["result"]["resources"] == []
        hidden = (await door.post("resources/read", as_bob, uri=uri)).json()["error"]
        assert hidden["data"]["code"] == "unknown_knowledge"
        for who in (as_analyst, {**as_bob, "X-Ledger-User": "ada"}):
            for answer in (await door.post("resources/list", who), await door.post("resources/read", who, uri=uri)):
                assert answer.json()["error"]["data"]["code"] == "forbidden"
        assert (await door.post("resources/list")).status_code == 401


def test_an_id_comes_back_from_its_uri_however_it_is_written() -> None:
    for item_id in ("a", "泵", "a/b", "a b", "%41", "?#", "é", "🙂", ".", "..", "x" * 200, "🙂" * 200):
        assert uri_of(item_id).isascii()
        assert id_of(uri_of(item_id)) == item_id
    assert id_of("KNOWLEDGE://泵/密封") == "泵/密封"
