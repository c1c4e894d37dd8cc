"""How is one question put through every door? What was asked, and what came back, in the same terms.

A door is a function of who asks and what is asked; a further one is a line in DOORS.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any
from urllib.parse import quote

import httpx
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.contract.errors import LedgerError
from producers.cli.main import app

Who = Mapping[str, Any]
"""The arguments of `acting_as`."""


@dataclass(frozen=True)
class Told:
    """What a door answered: the code and message of an error, or a document; `text` is all of it."""

    code: str | None
    message: str
    document: Any

    @property
    def text(self) -> str:
        return self.message + json.dumps(self.document, ensure_ascii=False)


@dataclass(frozen=True)
class Ask:
    """One question in the words of each door; `sdk` is a method and its arguments.

    `tool` and `resource` are what MCP has for it: a tool with its arguments, and a request about resources.
    """

    line: str
    sdk: tuple[str, tuple[Any, ...], dict[str, Any]]
    command: Sequence[str]
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    tool: tuple[str, dict[str, Any]] | None = None
    resource: tuple[str, dict[str, Any]] | None = None


def lacking(told: Told, item_id: str) -> tuple[str | None, str]:
    """An error without the id that it names."""
    assert told.code is not None, told
    return told.code, told.message.replace(repr(item_id), "ID").replace(item_id, "ID")


def item_path(item_id: str, rest: str = "") -> str:
    return f"/api/knowledge/{quote(item_id, safe='')}{rest}"


def search(query: str, path: str = "fused", as_of: int | str | None = None, types: str | None = None) -> Ask:
    more = {name: value for name, value in (("as_of", as_of), ("types", types)) if value is not None}
    asked = {"q": query, "top_k": 100, "min_score": 1, "paths": path, "record": "false", **more}
    given: dict[str, Any] = {"top_k": 100, "min_score": 1, "path": path, "record": False, **more}
    if types is not None:
        given["types"] = types.split(",")
    words = ["search", query, "--top-k", "100", "--min-score", "1", "--path", path, "--no-record"]
    tool = {"query": query, "top_k": 100, "min_score": 1} | ({} if types is None else {"types": types.split(",")})
    plain = path == "fused" and as_of is None
    return Ask(
        "GET /api/knowledge/search",
        ("search", (query,), given),
        [*words, *_options(more)],
        asked,
        tool=("knowledge_search", tool) if plain else None,
    )


def listing(**given: Any) -> Ask:
    given = {"limit": 100, **given}
    several = {name: [value] if name in ("types", "scopes") else value for name, value in given.items()}
    tool = ("knowledge_list", several) if several.keys() <= {"limit", "types", "scopes"} else None
    resource = ("resources/list", dict[str, Any]()) if given.keys() == {"limit"} else None
    words = ["list", *_options(given)]
    return Ask("GET /api/knowledge", ("list", (), several), words, given, tool=tool, resource=resource)


def about(question: str, item_id: str, as_of: int | str | None = None) -> Ask:
    """`get`, `history`, `why`, `recalls` or `lineage` of one item (or, for lineage, of a reference)."""
    then = {} if as_of is None else {"as_of": as_of}
    match question:
        case "get":
            resource = None if then else ("resources/read", {"uri": f"knowledge://{quote(item_id, safe='')}"})
            words = ["show", item_id, *_options(then)]
            tool = None if then else ("knowledge_read", {"knowledge_id": item_id})
            return Ask(
                f"GET {item_path(item_id)}", ("get", (item_id,), then), words, then, tool=tool, resource=resource
            )
        case "history":
            return Ask(f"GET {item_path(item_id, '/history')}", ("history", (item_id,), {}), ["history", item_id])
        case "recalls":
            return Ask(f"GET {item_path(item_id, '/recalls')}", ("recalls.of", (item_id,), {}), ["recalls", item_id])
        case "why":
            return Ask(f"GET {item_path(item_id, '/why')}", ("why_visible", (item_id,), {}), ["why-visible", item_id])
        case _:
            ref = {"ref": item_id}
            tool = ("knowledge_lineage", ref)
            return Ask("GET /api/lineage", ("lineage", (item_id,), {}), ["lineage", item_id], ref, tool=tool)


def recalls(**given: Any) -> Ask:
    """The list of recalls."""
    given = {"limit": 200, **given}
    item = [given["item"]] if "item" in given else []
    options = _options({name: value for name, value in given.items() if name != "item"})
    return Ask("GET /api/recalls", ("recalls.list", (), given), ["recalls", *item, *options], given)


def served(recall_id: str) -> Ask:
    """What one recall served."""
    return Ask(
        f"GET /api/recalls/{quote(recall_id, safe='')}", ("recalls.get", (recall_id,), {}), ["served", recall_id]
    )


def documents(question: str, document_id: str = "") -> Ask:
    """The list of documents, one of them, its removal, or a next version of it."""
    path, text = f"/api/documents/{quote(document_id)}", "# Over it\n\nMine now."
    match question:
        case "list":
            given = {"limit": 100, "status": "all"}
            words = ["document", "list", *_options(given)]
            return Ask("GET /api/documents", ("documents.list", (), given), words, given)
        case "show":
            return Ask(f"GET {path}", ("documents.get", (document_id,), {}), ["document", "show", document_id])
        case "delete":
            return Ask(f"DELETE {path}", ("documents.delete", (document_id,), {}), ["document", "delete", document_id])
        case _:
            said = {"id": document_id, "text": text}
            return Ask("POST /api/documents", ("documents.ingest", (document_id,), {"text": text}), [], body=said)


def judged(item_ids: Sequence[str]) -> Ask:
    """A verdict on each in one request; no command has many."""
    verdicts = [{"knowledge_id": item_id, "is_helpful": False} for item_id in item_ids]
    body = {"feedback_list": verdicts}
    return Ask(
        "POST /api/knowledge/batch_update",
        ("rate_many", (verdicts,), {}),
        [],
        body=body,
        tool=("knowledge_batch_update", body),
    )


def counted(question: str, **given: Any) -> Ask:
    """`facets` of the list, the `overview`, or what `changed`."""
    match question:
        case "facets":
            return Ask("GET /api/overview/facets", ("facets", (), given), ["facets", *_options(given)], given)
        case "overview":
            return Ask("GET /api/overview", ("overview", (), given), ["overview", *_options(given)], given)
        case _:
            given = {"limit": 1000, **given}
            return Ask("GET /api/overview/changes", ("changes", (), given), ["changes", *_options(given)], given)


def bulk(action: str, item_ids: Sequence[str], *, dry_run: bool) -> Ask:
    """The same change of many items."""
    shared = {"readers": ["user:mallory"]} if action == "share" else {}
    with_whom = ["--reader", "user:mallory"] if shared else []
    body = {"action": action, "ids": list(item_ids), "dry_run": dry_run}
    return Ask(
        "POST /api/knowledge/bulk",
        ("bulk", (action, list(item_ids)), {"dry_run": dry_run, **shared}),
        ["bulk", action, *item_ids, *with_whom, *([] if dry_run else ["--yes"])],
        body=body | shared,
    )


def changes(item_id: str) -> dict[str, Ask]:
    """Everything that might change an item, or tell by its answer that there is one."""
    entry = {"entity": "user:mallory", "permission": "read_write"}
    path, acl = item_path(item_id), [entry]
    return {
        "revise": Ask(
            f"PUT {path}", ("revise", (item_id,), {"content": "x"}), ["revise", item_id, "--content", "x"],
            body={"content": "x"}, tool=("knowledge_revise", {"knowledge_id": item_id, "content": "x"}),
        ),
        "rescope": Ask(
            f"PUT {path}", ("revise", (item_id,), {"scopes": ["public"]}),
            ["revise", item_id, "--scopes", "public"], body={"scopes": ["public"]},
            tool=("knowledge_revise", {"knowledge_id": item_id, "scopes": ["public"]}),
        ),
        "rate": Ask(
            f"PUT {path}", ("rate", (item_id, "harmful"), {}), ["rate", item_id, "--harmful"],
            body={"add_harmful_case": {}},
            tool=("knowledge_update", {"knowledge_id": item_id, "add_harmful_case": {}}),
        ),
        "score": Ask(
            f"PUT {path}", ("score", (item_id, 1), {}), ["rate", item_id, "--score", "1"], body={"update_score": 1},
            tool=("knowledge_update", {"knowledge_id": item_id, "update_score": 1}),
        ),
        "evolve": Ask(
            f"PUT {path}", ("evolve", (item_id, "x"), {}), ["evolve", item_id, "x"], body={"evolve_feedback": "x"},
            tool=("knowledge_update", {"knowledge_id": item_id, "evolve_feedback": "x"}),
        ),
        "revert": Ask(
            f"POST {path}/revert", ("revert", (item_id, 1), {}), ["revert", item_id, "1"], body={"to_version": 1}
        ),
        "retire": Ask(
            f"DELETE {path}", ("retire", (item_id,), {}), ["retire", item_id],
            tool=("knowledge_retire", {"knowledge_id": item_id}),
        ),
        "restore": Ask(f"POST {path}/restore", ("restore", (item_id,), {}), ["restore", item_id]),
        "share": Ask(
            f"PUT {path}/acl", ("share", (item_id, acl), {}), ["share", item_id, "--writer", "user:mallory"],
            body={"acl": acl},
        ),
    }  # fmt: skip


def _options(given: Mapping[str, Any]) -> list[str]:
    return [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", str(value))]


class Doors:
    """The doors of one node, open until `close`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=url, timeout=30)
        self._sdk = LedgerClient(url, read_your_writes=False)
        self._runner = CliRunner()
        self.all: dict[str, Callable[[Who, Ask], Told]] = {
            "http": self.http,
            "sdk": self.sdk,
            "command": self.command,
            "mcp": self.mcp,
            "resource": self.resource,
        }

    def of(self, ask: Ask) -> list[str]:
        """The doors that have words for a question: MCP has its tools and resources alone."""
        has = {"http": ask.line, "sdk": ask.sdk[0], "command": ask.command, "mcp": ask.tool, "resource": ask.resource}
        return [name for name in self.all if has[name]]

    def http(self, who: Who, ask: Ask) -> Told:
        method, _, path = ask.line.partition(" ")
        answer = self._http.request(method, path, params=ask.params, json=ask.body, headers=headers(who))
        document = answer.json()
        if answer.status_code < 400:
            return Told(None, "", document)
        return Told(document["error"]["code"], document["error"]["message"], document["error"]["details"])

    def sdk(self, who: Who, ask: Ask) -> Told:
        name, args, given = ask.sdk
        try:
            return Told(None, "", attrgetter(name)(self._sdk.acting_as(**who))(*args, **given))
        except LedgerError as error:
            return Told(error.code, error.message, error.details)

    def command(self, who: Who, ask: Ask) -> Told:
        identity = [part for kind, name in who.items() if kind != "scopes" for part in (f"--{kind}", name)]
        identity += [part for entity in who.get("scopes", ()) for part in ("--entity", entity)]
        done = self._runner.invoke(app, [*ask.command, *identity, "--json", "--url", self.url])
        document = json.loads(done.stdout)
        if "error" not in document:  # also where some of many were refused, which the exit code says
            return Told(None, "", document)
        return Told(document["error"]["code"], document["error"]["message"], document["error"]["details"])

    def mcp(self, who: Who, ask: Ask) -> Told:
        assert ask.tool is not None, ask
        name, arguments = ask.tool
        result = self._message(who, "tools/call", {"name": name, "arguments": arguments})["result"]
        document = json.loads(result["content"][0]["text"])
        if not result["isError"]:
            return Told(None, "", document)
        return Told(document["error"]["code"], document["error"]["message"], document["error"]["details"])

    def resource(self, who: Who, ask: Ask) -> Told:
        assert ask.resource is not None, ask
        method, params = ask.resource
        answer = self._message(who, method, params)
        if "error" in answer:
            error = answer["error"]
            return Told(error["data"]["code"], error["message"], error["data"]["details"])
        result = answer["result"]
        if method == "resources/read":
            return Told(None, "", result["contents"])
        return Told(None, "", {"results": [{"id": each["name"], **each} for each in result["resources"]]})

    def _message(self, who: Who, method: str, params: dict[str, Any]) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        spoken = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
        return self._http.post("/mcp", json=message, headers=headers(who) | spoken).json()

    def close(self) -> None:
        self._http.close()
        self._sdk.close()


def headers(who: Who) -> dict[str, str]:
    """Who asks, as the HTTP door takes it."""
    named = {f"X-Ledger-{kind}": quote(name) for kind, name in who.items() if kind != "scopes"}
    further = ",".join(quote(entity, safe=":") for entity in who.get("scopes", ()))
    return named | ({"X-Ledger-Scope": further} if further else {})
