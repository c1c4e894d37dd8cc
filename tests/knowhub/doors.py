"""One node through each of its doors, in the same words: what a row of the mission says is asked of every one.

A door speaks for somebody (`door("http", user="ann")`). What it refuses is a `Refused` with the code of the error.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal
from urllib.parse import quote

import httpx
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.contract.errors import LedgerError
from ledger.event import JsonObject
from producers.cli.main import app

Name = Literal["http", "sdk", "command", "mcp"]
NAMES: tuple[Name, ...] = ("http", "sdk", "command", "mcp")
Items = list[JsonObject]  # a class with a method `list` cannot say it
ITEM: JsonObject = {"task": "在什么场景下要完成什么目标", "content": "核心知识内容", "types": ["strategy"]}


class Refused(Exception):
    """The door said no, with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Door(ABC):
    """What every door can do with knowledge. An answer is the node's document, whatever the door."""

    url: str
    who: dict[str, str] = field(default_factory=dict)
    also: Sequence[str] = ()  # entities of registered types for whom it asks as well
    after: int = 0  # the last position that was written here: what is read is as new

    @abstractmethod
    def save(self, **item: Any) -> str:
        """The id of a new item."""

    @abstractmethod
    def list(self, *, limit: int = 1000, types: Sequence[str] = (), scopes: Sequence[str] = ()) -> Items:
        """Items, newest first."""

    @abstractmethod
    def search(self, query: str, *, top_k: int = 5, min_score: int = 3, types: Sequence[str] = ()) -> Items:
        """Items, best first."""

    @abstractmethod
    def judge(self, item_id: str, verdict: Literal["helpful", "harmful"], **case: str) -> None:
        """Say what came of using an item."""

    @abstractmethod
    def score(self, item_id: str, score: int) -> None:
        """Give an item another score."""

    @property
    def headers(self) -> dict[str, str]:
        """Who asks, where that is said in headers."""
        named = {f"X-Ledger-{kind.title()}": quote(name) for kind, name in self.who.items()}
        return named | ({"X-Ledger-Scope": ",".join(quote(one, safe=":") for one in self.also)} if self.also else {})

    def one(self, item_id: str) -> JsonObject:
        """An item as this door shows it whole: the list's form where it has no other."""
        found = [item for item in self.list() if item["id"] == item_id]
        if not found:
            raise Refused("unknown_knowledge")
        return found[0]


class Http(Door):
    def ask(self, method: str, path: str, body: object = None, **params: Any) -> Any:
        """The document of an answer."""
        if method == "GET" and self.after:
            params["min_position"] = self.after
        with httpx.Client(base_url=self.url, headers=self.headers, trust_env=False, timeout=30) as client:
            answer = client.request(method, path, json=body, params=params)
        document: Any = answer.json() if answer.content else None
        if answer.status_code >= 400:
            raise Refused(document["error"]["code"])
        position = document.get("position") if isinstance(document, dict) else None
        self.after = max(self.after, position or int(answer.headers.get("X-Ledger-Position", 0)))
        return document

    def save(self, **item: Any) -> str:
        return str(self.ask("POST", "/api/knowledge", {**ITEM, **item})["id"])

    def list(self, *, limit: int = 1000, types: Sequence[str] = (), scopes: Sequence[str] = ()) -> Items:
        told = self.ask("GET", "/api/knowledge", limit=limit, types=",".join(types), scopes=",".join(scopes))
        return list(told["results"])

    def search(self, query: str, *, top_k: int = 5, min_score: int = 3, types: Sequence[str] = ()) -> Items:
        asked = {"q": query, "top_k": top_k, "min_score": min_score, "types": ",".join(types)}
        return list(self.ask("GET", "/api/knowledge/search", **asked)["results"])

    def judge(self, item_id: str, verdict: Literal["helpful", "harmful"], **case: str) -> None:
        self.ask("PUT", f"/api/knowledge/{quote(item_id, safe='')}", {f"add_{verdict}_case": case})

    def score(self, item_id: str, score: int) -> None:
        self.ask("PUT", f"/api/knowledge/{quote(item_id, safe='')}", {"update_score": score})

    def one(self, item_id: str) -> JsonObject:
        told: JsonObject = self.ask("GET", f"/api/knowledge/{quote(item_id, safe='')}")
        return told


class Sdk(Door):
    @cached_property
    def ledger(self) -> LedgerClient:
        """The client; whoever opened the door closes it."""
        return LedgerClient(self.url).acting_as(**self.who, scopes=self.also)

    def ask(self, call: Any, *given: Any, **named: Any) -> Any:
        """What a method of the client returns."""
        try:
            return call(*given, **named)
        except LedgerError as error:
            raise Refused(error.code) from error

    def save(self, **item: Any) -> str:
        stated = {**ITEM, **item}
        positional = [stated.pop(name) for name in ("task", "content", "types")]
        return str(self.ask(self.ledger.save, *positional, **stated)["id"])

    def list(self, *, limit: int = 1000, types: Sequence[str] = (), scopes: Sequence[str] = ()) -> Items:
        told = self.ask(self.ledger.list, limit=limit, types=types or None, scopes=scopes or None)
        return list(told["results"])

    def search(self, query: str, *, top_k: int = 5, min_score: int = 3, types: Sequence[str] = ()) -> Items:
        told = self.ask(self.ledger.search, query, top_k=top_k, min_score=min_score, types=types or None)
        return list(told["results"])

    def judge(self, item_id: str, verdict: Literal["helpful", "harmful"], **case: str) -> None:
        self.ask(self.ledger.rate, item_id, verdict, **case)

    def score(self, item_id: str, score: int) -> None:
        self.ask(self.ledger.score, item_id, score)

    def one(self, item_id: str) -> JsonObject:
        told: JsonObject = self.ask(self.ledger.get, item_id)
        return told


class Command(Door):
    def ask(self, *words: str) -> Any:
        """The document that a command prints."""
        named = [word for kind, name in self.who.items() for word in (f"--{kind}", name)]
        named += [word for entity in self.also for word in ("--entity", entity)]
        cleared = {f"KLEDGER_{kind}": None for kind in ("USER", "AGENT", "PROJECT", "TEAM", "ORG", "TOKEN")}
        runner = CliRunner(env={**cleared, "KLEDGER_URL": self.url})
        ran = runner.invoke(app, [*words, *named, "--json"])
        document = json.loads(ran.stdout) if ran.stdout else None
        if ran.exit_code != 0 and (not document or "error" in document):
            raise Refused(document["error"]["code"] if document else f"usage: {ran.output}")
        return document

    def save(self, **item: Any) -> str:
        stated = {**ITEM, **item}
        source = stated.pop("source", {})
        words = ["--content", stated["content"], "--types", ",".join(stated["types"])]
        words += ["--task", stated["task"]] if stated["task"] is not None else []
        words += [word for name, value in stated.get("tags", {}).items() for word in ("--tag", f"{name}={value}")]
        for option, value in (
            ("--scopes", ",".join(stated.get("scopes") or [])),
            ("--owner", stated.get("owner")),
            ("--score", stated.get("score")),
            ("--resource", ",".join(stated.get("resource_ids") or [])),
            ("--source-name", source.get("name")),
            ("--source-category", source.get("category")),
            ("--source-url", ",".join(source.get("urls") or [])),
            ("--message", source.get("message_id")),
        ):
            words += [option, str(value)] if value else []
        return str(self.ask("save", *words)["id"])

    def list(self, *, limit: int = 1000, types: Sequence[str] = (), scopes: Sequence[str] = ()) -> Items:
        filters = [
            *(["--types", ",".join(types)] if types else []),
            *(["--scopes", ",".join(scopes)] if scopes else []),
        ]
        return list(self.ask("list", "--limit", str(limit), *filters)["results"])

    def search(self, query: str, *, top_k: int = 5, min_score: int = 3, types: Sequence[str] = ()) -> Items:
        filters = ["--types", ",".join(types)] if types else []
        told = self.ask("search", query, "--top-k", str(top_k), "--min-score", str(min_score), *filters)
        return list(told["results"])

    def judge(self, item_id: str, verdict: Literal["helpful", "harmful"], **case: str) -> None:
        self.ask("rate", item_id, f"--{verdict}", *[word for name in case for word in (f"--{name}", case[name])])

    def score(self, item_id: str, score: int) -> None:
        self.ask("rate", item_id, "--score", str(score))

    def one(self, item_id: str) -> JsonObject:
        told: JsonObject = self.ask("show", item_id)
        return told


class Mcp(Door):
    def ask(self, tool: str, **arguments: Any) -> Any:
        """The document that a tool answers with."""
        spoken = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
        call = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        with httpx.Client(headers=self.headers | spoken, trust_env=False, timeout=30) as client:
            answer = client.post(f"{self.url}/mcp", json=message)
        assert answer.status_code == 200, answer.text
        result = answer.json()["result"]
        document = json.loads(result["content"][0]["text"])
        if result["isError"]:
            raise Refused(document["error"]["code"])
        return document

    def save(self, **item: Any) -> str:
        stated = {**ITEM, **item}
        source = stated.pop("source", {})
        named = {"name": "source_name", "category": "source_category"}
        stated |= {named.get(name, name): value for name, value in source.items()}
        return str(self.ask("knowledge_save", **stated)["id"])

    def list(self, *, limit: int = 1000, types: Sequence[str] = (), scopes: Sequence[str] = ()) -> Items:
        filters = {**({"types": [*types]} if types else {}), **({"scopes": [*scopes]} if scopes else {})}
        return list(self.ask("knowledge_list", limit=limit, **filters)["results"])

    def search(self, query: str, *, top_k: int = 5, min_score: int = 3, types: Sequence[str] = ()) -> Items:
        filters = {"types": [*types]} if types else {}
        return list(self.ask("knowledge_search", query=query, top_k=top_k, min_score=min_score, **filters)["results"])

    def judge(self, item_id: str, verdict: Literal["helpful", "harmful"], **case: str) -> None:
        self.ask("knowledge_update", knowledge_id=item_id, **{f"add_{verdict}_case": case})

    def score(self, item_id: str, score: int) -> None:
        self.ask("knowledge_update", knowledge_id=item_id, update_score=score)


DOORS: dict[Name, type[Door]] = {"http": Http, "sdk": Sdk, "command": Command, "mcp": Mcp}
