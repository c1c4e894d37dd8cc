"""Minimal HTTP server around the bare engine, for `bench.growth`: uvicorn, no framework, prepared query vectors.

`python -m bench.minimal_search ITEMS QUERIES FOLDER [--load]` serves `/?q=` on a port of 127.0.0.1 that it prints. The
engine works in the server's process; the answer has the ids and scores.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import orjson
import uvicorn

from bench.search import BareEngine


def app_of(engine: BareEngine) -> Any:
    """The ASGI app."""

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        query = parse_qs(scope["query_string"].decode("ascii"))["q"][0]
        body = orjson.dumps({"results": [(point.payload, point.score) for point in engine.hits(query)]})
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def main(items: Path, queries: Path, folder: Path) -> None:
    """Fill the engine and serve it."""
    payloads = [orjson.loads(line) for line in items.read_bytes().splitlines()]
    engine = BareEngine(folder, payloads, orjson.loads(queries.read_bytes()))
    config = uvicorn.Config(
        app_of(engine), port=0, http="httptools", loop="uvloop", lifespan="off", log_level="warning", access_log=False
    )
    listening = config.bind_socket()
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
