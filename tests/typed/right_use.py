"""A program that uses the client as it is meant: mypy and pyright find nothing, and no revealed type holds Any."""

# pyright: strict

from __future__ import annotations

from typing import reveal_type

from kledger import AsyncLedgerClient, LedgerClient


def recalls(ledger: LedgerClient) -> str:
    """Search, and what was found."""
    found = ledger.search("how do I name a branch", top_k=3, types=["tool"], path="keyword")
    reveal_type(found["degraded"])
    for hit in found["results"]:
        reveal_type(hit["eval"])
        reveal_type(hit["tags"])
        reveal_type(hit["source"])
        reveal_type(hit["quality_score"] + hit["relevance"])
        reveal_type(hit.get("acl", []))
    start = ledger.startup()
    reveal_type(start["sections"]["profile"])
    reveal_type(start["user_memory"])
    goal = ledger.focus("release", "deploy")
    reveal_type([item["task"] for item in goal["metadata"]["items"]])
    return start["prompt"] + goal["output"]


def changes(ledger: LedgerClient) -> None:
    """What became of writes."""
    ann = ledger.acting_as(user="ann").within(trace_id="t")
    saved = ann.save("a task", "content", ["tool"], scopes=["public"], score=4)
    reveal_type([warning["readers"] for warning in saved["warnings"]])
    rated = ann.rate(saved["id"], "helpful", task="t")
    reveal_type(rated["events"][0]["position"])
    reveal_type({name: field.get("error") for name, field in rated["fields"].items()})
    evolving = ann.evolve(saved["id"], "shorter", dry_run=True)
    reveal_type(evolving["evolution"]["usage"])
    for one in ann.save_many([{"task": "t"}])["results"]:
        reveal_type(one["outcome"])
        if one["error"] is not None:
            reveal_type(one["error"]["code"])
            reveal_type(one["error"]["details"])


def reads(ledger: LedgerClient) -> None:
    """One item, its past, and where it came from."""
    item = ledger.get("k-1", as_of=4)
    reveal_type(item["eval"]["helpful_history"])
    reveal_type(item["source"]["trace_id"])
    reveal_type(item["origin"])
    reveal_type(item["resources"])
    reveal_type([item["status"] for item in ledger.iterate(status="all")])
    history = ledger.history("k-1")
    reveal_type([version["change"] for version in history["versions"]])
    reveal_type([case["verdict"] for case in history["feedback"]])
    reveal_type([event["role"] for event in ledger.lineage("k-1")["events"]])
    reveal_type([reason["since"]["by"] for reason in ledger.why_visible("k-1")["because"]])
    reveal_type([conflict["winner"] for conflict in ledger.conflicts()["results"]])
    reveal_type([group["merged"] for group in ledger.slim_get("slim-1")["groups"]])
    reveal_type(ledger.resources.get("code")["metadata"])
    reveal_type([each["valid"] for each in ledger.resources.iterate()])
    reveal_type(ledger.profiles.history("work")["versions"][0]["content"])
    reveal_type(ledger.profiles.prompt("user"))


def operates(ledger: LedgerClient) -> bool:
    """How the node stands."""
    status = ledger.status()
    reveal_type([view["lag_seconds"] for view in status["views"]])
    reveal_type(status["chain"]["certified"])
    reveal_type(ledger.attach()["statement"])
    reveal_type(ledger.prove("k-1")["checkpoint"]["position"])
    reveal_type([event["reason"] for event in ledger.refused()["refused"]])
    reveal_type(ledger.wait_job(ledger.start_job("verify")["id"])["state"])
    return status["healthy"]


async def awaits() -> list[str]:
    """The same, awaited."""
    async with AsyncLedgerClient(token="t") as ledger:
        reveal_type((await ledger.search("q"))["results"][0]["eval"]["score"])
        reveal_type((await ledger.tools.knowledge_search("q"))["metadata"]["items"])
        return [item["id"] async for item in ledger.iterate()]
