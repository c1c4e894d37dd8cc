"""Minimal HTTP server that publishes what it is sent, for `bench.saturated`: uvicorn and a bare client, no framework.

`python -m bench.minimal_publisher FOLDER` starts a broker of its own that syncs each message, and serves every POST on
a port of 127.0.0.1 that it prints: it publishes the body and answers with its position. Nothing is read of the body.
"""

from __future__ import annotations

import contextlib
import sys
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import uvicorn
import uvloop
from nats.js import JetStreamContext

from bench.append import bare_client
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream

STATUS, HEADERS = 201, (b"content-type", b"application/json")


def app_of(jetstream: JetStreamContext) -> Any:
    """The ASGI app."""
    numbers = count()

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        kept = await jetstream.publish(f"ledger.default.knowledge.item-{next(numbers)}.saved.user.bench", body)
        answer = orjson.dumps({"position": kept.seq})
        headers = [HEADERS, (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": STATUS, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return app


async def serve(folder: Path) -> None:
    """Start the broker, and serve until the process is told to end."""
    broker = EmbeddedServer(folder)
    with contextlib.redirect_stdout(sys.stderr):  # for its log
        access = await broker.start()
    try:
        await ensure_stream(access)
        client = await bare_client(access, "node")
        config = uvicorn.Config(
            app_of(client.jetstream()), port=0, http="httptools", lifespan="off", log_level="warning", access_log=False
        )
        listening = config.bind_socket()
        print(listening.getsockname()[1], flush=True)
        await uvicorn.Server(config).serve([listening])
        await client.close()
    finally:
        await broker.stop()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
