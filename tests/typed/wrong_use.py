"""A program that uses the client wrongly: mypy and pyright report every line that says `# wrong`, and no other."""

# pyright: strict

from __future__ import annotations

from kledger import AsyncLedgerClient, LedgerClient


def asks(ledger: LedgerClient) -> None:
    """Arguments that no call takes."""
    ledger.search()  # wrong: no query
    ledger.search("q", top_k="3")  # wrong: a text
    ledger.search("q", path="fuzzy")  # wrong: no such path
    ledger.search("q", topk=3)  # wrong: misspelt
    ledger.save("t", "c", types=3)  # wrong: no list
    ledger.save("t", "c", ["tool"], owner=7)  # wrong: no text
    ledger.rate("k-1", "useful")  # wrong: no such verdict
    ledger.list(status="gone")  # wrong: no such status
    ledger.evolutions(status="recorded")  # wrong: that of a conflict
    ledger.extract("text", kind="poem")  # wrong: no such kind
    ledger.start_job("explode")  # wrong: no such job
    ledger.profiles.get("home")  # wrong: no such profile
    ledger.acting_as(person="ann")  # wrong: no such identity
    ledger.memories.both()  # wrong: of an earlier name
    ledger.in_language("fr")  # wrong: no texts in it


def takes(ledger: LedgerClient) -> None:
    """Fields that no answer has, or not of this type."""
    found = ledger.search("q")
    found["hits"]  # wrong: results
    found["results"][0]["eval"]["stars"]  # wrong: score
    found["results"][0]["status"]  # wrong: of a list's items
    found["results"][0]["quality_score"].upper()  # wrong: a number
    found["results"][0]["source"]["page"]  # wrong: no such field
    ledger.get("k-1")["relevance"]  # wrong: of a search's items
    ledger.get("k-1")["source"]["name"].upper()  # wrong: may be null
    ledger.get("k-1")["eval"]["helpful_history"][0]["verdict"]  # wrong: every one is helpful
    ledger.list()["next"] + 1  # wrong: null on the last page
    ledger.rate("k-1", "helpful")["version"]  # wrong: a verdict makes none
    ledger.status()["health"]  # wrong: healthy
    position: str = ledger.retire("k-1")["position"]  # wrong: a number
    ledger.save("t", position, ["tool"])


async def forgets(ledger: AsyncLedgerClient) -> None:
    """A call that is not awaited."""
    ledger.search("q")["results"]  # wrong: a coroutine
    (await ledger.get("k-1"))["scope"]  # wrong: scopes
