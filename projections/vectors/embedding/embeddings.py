"""Embedders: a model behind an OpenAI-compatible endpoint, or hashed n-grams without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from json import JSONDecodeError
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from kledger.contract.addresses import LOOPBACK
from kledger.contract.errors import InvalidPayload
from ledger.runtime.breaker import stated_pause
from projections.vectors.embedding.answered import NoVectors, Row, numbered, unit
from projections.vectors.embedding.hashed import DIMENSIONS, MODEL, hashed_vector_of, hashed_vectors
from projections.vectors.embedding.weights import HASHED_VECTOR_WEIGHT, SENTENCE_VECTOR_WEIGHT
from projections.vectors.errors import EmbeddingFailed
from projections.vectors.question import Searched

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Vectors = NDArray[np.float32]

PROBE = "Is the embedding endpoint back?"
"""The text of a probe, to check that the endpoint answers usefully."""
MAX_CHARACTERS = 6_000
"""A longer text is cut before it is sent: endpoints refuse what exceeds their window (8,191 tokens is common)."""


UNREADABLE = (JSONDecodeError, UnicodeDecodeError, RecursionError)
"""What the client library raises where an answer with status 200 says that it is JSON, and is not."""


def openai_client(url: str, key: str, *, retries: int, timeout: float | None = None) -> AsyncOpenAI:
    """A client of an endpoint. No proxy reaches the machine's own loopback, whatever the environment says.

    Raises InvalidPayload where the environment names a proxy or certificates that cannot be used.
    """
    import openai  # imported here as it takes a third of a second, which a node without a model does not need

    address = urlsplit(url)
    here = address.scheme == "http" and address.hostname in LOOPBACK
    try:
        return openai.AsyncOpenAI(
            base_url=url,
            api_key=key,
            max_retries=retries,
            timeout=openai.not_given if timeout is None else timeout,
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False) if here else None,
        )
    except (ImportError, ValueError, OSError) as error:
        raise InvalidPayload(
            "a model's endpoint cannot be asked with the proxy or the certificates that the environment names "
            f"({error}): correct ALL_PROXY, HTTP_PROXY, HTTPS_PROXY or SSL_CERT_FILE, or unset it",
            errors=[],
        ) from error


class Embedder(Protocol):
    """Turns texts into unit vectors of `dimensions` numbers.

    `batch_size` is the most texts in one call to an endpoint; `vector_weight` the weight of its cosines relative to the
    best keyword score.
    """

    model: str
    dimensions: int
    batch_size: int
    vector_weight: float

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """A float32 row for each text; a blank text is a row of zeros. Raises EmbeddingFailed."""


class HashedEmbedder:
    """Hashed character n-grams: free and deterministic (see `hashed.py`)."""

    model = MODEL
    dimensions = DIMENSIONS
    vector_weight = HASHED_VECTOR_WEIGHT
    batch_size = 256

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`; never fails."""
        return self.vectors(texts)

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts, as rows."""
        return hashed_vectors(texts)

    def query(self, searched: Searched) -> NDArray[np.float32]:
        """The vector of what one search looks for."""
        return hashed_vector_of(searched)


class OpenAIEmbedder:
    """A model behind an endpoint that speaks OpenAI's embeddings API.

    `timeout` of a request in seconds; `retries` after a refused or failed one, with the client's own backoff; at most
    `concurrency` requests at once. `shorten` requests vectors of `dimensions` numbers, which only some models can give.
    """

    vector_weight = SENTENCE_VECTOR_WEIGHT

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str,
        model: str,
        dimensions: int,
        timeout: float = 30.0,
        retries: int = 3,
        batch_size: int = 128,
        concurrency: int = 4,
        shorten: bool = False,
    ) -> None:
        self.model = model
        self.dimensions = dimensions
        self.batch_size = batch_size
        self._shorten = shorten
        self._client = openai_client(base_url, api_key, retries=retries, timeout=timeout)
        self._base_url = base_url
        self._places = asyncio.Semaphore(concurrency)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.embed`. One request for each `batch_size` texts that are not blank."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        written = [place for place, text in enumerate(texts) if text.strip()]
        batches = [written[at : at + self.batch_size] for at in range(0, len(written), self.batch_size)]
        answers = await asyncio.gather(*(self._ask([texts[place] for place in batch]) for batch in batches))
        for batch, answer in zip(batches, answers, strict=True):
            vectors[batch] = answer
        return vectors

    async def _ask(self, texts: Sequence[str]) -> Vectors:
        """The vectors of one batch. A single text is refused only if it is so before and after a probe that succeeds.

        An endpoint that refused everything may have been mended between the text and the probe.
        """
        try:
            return await self._asked(texts)
        except EmbeddingFailed as error:
            if not error.refused or len(texts) > 1 or list(texts) == [PROBE]:
                raise
        await self._takes_others()
        return await self._asked(texts)

    async def _asked(self, texts: Sequence[str]) -> Vectors:
        import openai

        try:
            async with self._places:
                answer = await self._client.embeddings.create(
                    input=[text[:MAX_CHARACTERS] for text in texts],
                    model=self.model,
                    encoding_format="float",
                    dimensions=self.dimensions if self._shorten else openai.omit,
                )
        except openai.OpenAIError as error:
            raise self._failure(error, len(texts)) from error
        except UNREADABLE as error:
            raise self._useless("an answer that is not JSON") from error
        try:
            return await self._taken(numbered(answer), texts)
        except NoVectors as error:
            raise self._useless(str(error)) from error

    async def _taken(self, given: Sequence[tuple[int, Row]], texts: Sequence[str]) -> Vectors:
        """The vectors of an answer. Raises NoVectors, EmbeddingFailed."""
        part = {index: row for index, row in given if 0 <= index < len(texts)}
        if 0 < len(part) == len(given) < len(texts) and all(len(row) == self.dimensions for row in part.values()):
            return await self._completed(texts, part)
        rows = [row for _, row in given]
        if len(rows) != len(texts) or any(len(row) != self.dimensions for row in rows):
            raise self._useless(self._given({len(row) for row in rows}, len(rows), len(texts)))
        return self._pointing(unit(rows))

    def _pointing(self, vectors: Vectors) -> Vectors:
        """The vectors, unless one of them points nowhere: then its text is one that the model does not take."""
        if vectors.any(axis=1).all():
            return vectors
        failure = self._useless("a vector of zeros, or of what are no numbers")
        failure.refused = True
        raise failure

    def _useless(self, what: str) -> EmbeddingFailed:
        failure = EmbeddingFailed(f"{self.model} at {self._base_url} gave {what}")
        failure.useless = True
        return failure

    def _given(self, sizes: set[int], rows: int, texts: int) -> str:
        """What an answer had that does not fit, and which setting makes it fit where one does."""
        if rows != texts:
            return f"{rows} vectors for {_number_of(texts)}"
        if len(sizes) > 1:
            return f"vectors of {sorted(sizes)} numbers, where all have one size"
        (size,) = sizes
        mend = f": set KLEDGER_EMBEDDING_DIMENSIONS={size}, the model's size" if size else ""
        return f"vectors of {size} numbers, and {self.dimensions} were expected{mend}"

    async def _completed(self, texts: Sequence[str], part: Mapping[int, Row]) -> Vectors:
        """Accept an answer for a part of the texts: only the others are requested again."""
        missing = [place for place in range(len(texts)) if place not in part]
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        vectors[list(part)] = self._pointing(unit(list(part.values())))
        vectors[missing] = await self._ask([texts[place] for place in missing])
        return vectors

    async def _takes_others(self) -> None:
        """Probe the endpoint. If it refuses that too, its model or address is wrong, not the text: raises its error."""
        try:
            await self._ask([PROBE])
        except EmbeddingFailed as error:
            error.refused = False
            raise

    def _failure(self, error: Exception, texts: int) -> EmbeddingFailed:
        import openai

        failure = EmbeddingFailed(
            f"{self.model} at {self._base_url} gave no vectors for {_number_of(texts)}: {_said_by(error)}; "
            "check KLEDGER_EMBEDDING_URL, KLEDGER_EMBEDDING_KEY and KLEDGER_EMBEDDING_MODEL"
        )
        if isinstance(error, openai.APIStatusError):
            failure.refused = isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError)
            failure.retry_after = stated_pause(error.response.headers.get("retry-after"))
        return failure

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _number_of(texts: int) -> str:
    return "1 text" if texts == 1 else f"{texts} texts"


def _said_by(error: Exception) -> str:
    """What went wrong, as part of a sentence. Of a connection the client library says no more than that it failed."""
    cause = f" ({error.__cause__})" if type(error).__name__ == "APIConnectionError" and error.__cause__ else ""
    return f"{str(error).rstrip('.')}{cause}"
