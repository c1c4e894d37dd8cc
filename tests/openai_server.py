"""A local HTTP server that speaks OpenAI's embeddings and chat APIs, for tests: it counts what it is asked.

Its vectors are hashed n-grams, so that what it gives depends on the text alone; chats are scripted (openai_chat.py).
It reranks as well (rerank_endpoint.py).
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson

from projections.vectors.embedding.hashed import hashed_vectors
from tests.openai_chat import ChatEndpoint
from tests.rerank_endpoint import RerankEndpoint


class EmbeddingEndpoint:
    """Where the server listens, what it was asked, and how it is to misbehave."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.url = ""
        self.calls = 0
        self.texts: list[str] = []
        self.models: list[str] = []
        self.keys: list[str] = []
        self.most_at_once = 0
        self.fail_next = 0  # answer so many requests with status 500
        self.refuse = ""  # answer requests that hold this text with status 400
        self.delay = 0.0  # seconds before each answer
        self.dead = False  # close each connection without an answer
        self.retry_after = ""  # answer requests with status 429 and this header
        self.half = False  # give vectors for the first half of the texts alone
        self.body: bytes | None = None  # answer with this, and status 200
        self.lost = ""  # give texts that hold this a vector of `nowhere`
        self.nowhere: float | None = 0.0
        self.chat = ChatEndpoint()
        self.rerank = RerankEndpoint()
        self._now = 0
        self._lock = threading.Lock()

    def answer(self, key: str, body: bytes) -> tuple[int, bytes]:
        request = orjson.loads(body)
        texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
        with self._lock:
            self.calls += 1
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            failing = self.fail_next > 0
            self.fail_next -= failing
        time.sleep(self.delay)
        with self._lock:
            self._now -= 1
            if failing:
                return 500, b'{"error": {"message": "try again"}}'
            if self.dead:
                return 0, b""
            if self.retry_after:
                return 429, b'{"error": {"message": "too many requests"}}'
            if self.half:
                texts = texts[: max(1, len(texts) // 2)]
            if self.refuse and any(self.refuse in text for text in texts):
                return 400, b'{"error": {"message": "refused"}}'
            self.texts += texts
            self.models.append(request["model"])
            self.keys.append(key)
        rows = hashed_vectors(texts, self.dimensions).tolist()
        rows = [
            [self.nowhere] * len(row) if self.lost and self.lost in text else row
            for text, row in zip(texts, rows, strict=True)
        ]
        data = [{"object": "embedding", "index": n, "embedding": row} for n, row in enumerate(rows)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        # the order is the server's own business: the index says which is which
        told = {"object": "list", "data": data[::-1], "model": request["model"], "usage": usage}
        return 200, json.dumps(told).encode() if self.body is None else self.body  # json writes NaN, as such servers do


@contextmanager
def embedding_endpoint(dimensions: int = 64) -> Iterator[EmbeddingEndpoint]:
    """Run the server on a free port of this machine; `url` is the base URL for a client."""
    endpoint = EmbeddingEndpoint(dimensions)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else a body waits 40 ms for the acknowledgement of its headers

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/v1/chat/completions":
                status, answer = endpoint.chat.answer({k.lower(): v for k, v in self.headers.items()}, body)
            elif self.path.endswith("/rerank"):
                time.sleep(endpoint.delay)
                status, answer = endpoint.rerank.answer(self.path, self.headers.get("authorization", ""), body)
                status = 0 if endpoint.dead else status
            else:
                status, answer = endpoint.answer(self.headers.get("authorization", ""), body)
                status = status if self.path == "/v1/embeddings" else 404
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("content-type", "application/json")
            if status == 429 and endpoint.retry_after:
                self.send_header("retry-after", endpoint.retry_after)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who asked was killed meanwhile
                self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: a test reads the counts."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
