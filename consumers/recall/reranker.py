"""Client of a reranker: `POST /rerank`, as Cohere, Jina and vLLM answer it, and as TEI does.

Cohere, Jina and vLLM take `{model, query, documents, top_n}`; TEI takes `{query, texts, truncate}` and refuses the
other with a status of 422. Which of the two an endpoint takes is learned from its first answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from consumers.recall.awaited import LONGEST, Awaited, NoAnswer
from consumers.recall.rerank_settings import RerankSettings
from consumers.recall.scores import MOST_TEXTS, calibrated, raw_scores, with_controls
from kledger.contract.addresses import LOOPBACK
from ledger.runtime.breaker import stated_pause
from projections.search.asking import shortened

if TYPE_CHECKING:  # a node without a reranker needs no client of HTTP
    import httpx

MOST_TEXT, MOST_QUERY = 4_000, 1_000
"""Characters of a text and of a query that are sent."""
MOST_BYTES = 2 * 1024 * 1024
"""Of an answer: Jina and vLLM repeat the texts in theirs."""

TRY_QUERY = "How do I roll back a failed deployment?"
TRY_TEXTS = ("To roll back a failed deployment, deploy the previous release again.", "Water boils at 100 degrees.")


class Reranker:
    """One endpoint. Nothing is called before the first question."""

    def __init__(self, settings: RerankSettings) -> None:
        self.settings = settings
        self.awaited: Awaited[list[float]] = Awaited(settings.name, settings.deadline)
        self._client: httpx.AsyncClient | None = None
        self._takes_texts = False

    async def rerank(self, query: str, texts: Sequence[str]) -> tuple[list[float] | None, str | None]:
        """How well each of the first MOST_TEXTS texts answers the query, from 0 to 1; or None and the reason.

        Waits no longer than the deadline.
        """
        if len(texts) < 2:
            return None, "there is nothing to order"
        return await self.awaited.answer(object(), lambda: self.ask(query, texts))

    async def ask(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each of these texts answers the query, without a deadline. Raises NoAnswer."""
        query = _sent(shortened(query, MOST_QUERY), MOST_QUERY)
        own = [_sent(text, MOST_TEXT) for text in texts[:MOST_TEXTS]]
        asked = with_controls(query, own)
        document = await self._answered(query, asked)
        known = [score for score in raw_scores(document, len(asked)) if score is not None]
        if len(known) < len(asked):
            raise NoAnswer(f"{self.settings.name} scored {len(known)} of {len(asked)} texts", useless=True)
        scores = calibrated(known, len(own))
        if scores is None:  # which may be the query's doing: it opens the circuit only when it happens again and again
            raise NoAnswer(f"{self.settings.name} does not tell the query's own words from unrelated ones")
        return scores

    async def _answered(self, query: str, texts: Sequence[str]) -> Any:
        takes_texts = self._takes_texts
        status, body, retry_after = await self._posted(query, texts, takes_texts)
        if status in (400, 422) and (b"documents" if takes_texts else b"texts") in body:  # it misses the other field
            status, body, retry_after = await self._posted(query, texts, not takes_texts)
            self._takes_texts = takes_texts != (status == 200)
        if status != 200:
            raise NoAnswer(f"{self.settings.name} answered with status {status}", retry_after=retry_after)
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError:
            raise NoAnswer(f"the answer of {self.settings.name} is not JSON", useless=True) from None

    async def _posted(self, query: str, texts: Sequence[str], as_texts: bool) -> tuple[int, bytes, float | None]:
        """Status, body and Retry-After of an answer, which is read no further than MOST_BYTES."""
        import httpx

        asked: dict[str, Any] = {"query": query, "texts": texts, "truncate": True}
        if not as_texts:
            asked = {"query": query, "documents": texts, "top_n": len(texts)}
            if self.settings.model:
                asked["model"] = self.settings.model
        body, name = bytearray(), self.settings.name
        try:
            async with self._connected().stream(
                "POST", self.settings.address, content=orjson.dumps(asked), headers=self._headers()
            ) as answer:
                if answer.headers.get("content-encoding", "identity") != "identity":
                    raise NoAnswer(f"{name} answered compressed, which it was asked not to", useless=True)
                async for part in answer.aiter_raw():
                    body += part
                    if len(body) > MOST_BYTES:
                        raise NoAnswer(f"{name} answered with more than {MOST_BYTES:,} bytes", useless=True)
        except httpx.HTTPError as error:
            raise NoAnswer(f"{name} could not be asked ({type(error).__name__})") from error
        return answer.status_code, bytes(body), stated_pause(answer.headers.get("retry-after"))

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        if key := self.settings.key.get_secret_value():
            headers["authorization"] = f"Bearer {key}"
        return headers

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            import httpx

            address = urlsplit(self.settings.address)
            here = address.scheme == "http" and address.hostname in LOOPBACK  # where no proxy reaches
            try:
                self._client = httpx.AsyncClient(timeout=LONGEST, trust_env=not here)
            except (ImportError, ValueError, OSError) as error:  # a proxy or certificates of the environment
                raise NoAnswer(f"{self.settings.name} could not be asked ({error})") from error
        return self._client

    async def close(self) -> None:
        """Cancel what is under way, and close the connections."""
        await self.awaited.close()
        if self._client is not None:
            await self._client.aclose()


def _sent(text: str, most: int) -> str:
    """A text as it is sent: bounded, and never blank, which some endpoints refuse."""
    return text[: 2 * most].encode(errors="replace").decode()[:most].strip() or "-"
