"""The child process that reads one file: `python -m producers.documents.child`, the order and the file on its stdin.

The order is one line of JSON, the rest of stdin is the file. The answer is one JSON document on stdout.
"""

from __future__ import annotations

import contextlib
import importlib
import resource
import sys

import orjson

from kledger.contract.documents import HTML, MARKDOWN, PDF, TEXT, WORD
from producers.documents.blocks import Unreadable
from producers.documents.sections import sections_of
from producers.documents.summaries import summaries

_READERS = {TEXT: "plain", MARKDOWN: "markdown", HTML: "html", PDF: "pdf", WORD: "word"}


def main() -> None:
    """Read the order and the file, within the bounds of the order."""
    order = orjson.loads(sys.stdin.buffer.readline())
    _bound(resource.RLIMIT_AS, order["memory"])
    _bound(resource.RLIMIT_CPU, order["seconds"])
    _bound(resource.RLIMIT_FSIZE, 0)
    try:
        said = _read(order["content_type"], sys.stdin.buffer.read())
    except Unreadable as error:
        said = {"error": str(error)}
    except MemoryError:
        said = {"error": f"reading it takes more than {order['memory'] // 2**20} MiB of memory: split it"}
    except RecursionError:
        said = {"error": "it is nested too deep"}
    sys.stdout.buffer.write(orjson.dumps(said))


def _bound(kind: int, most: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # not every system has every bound
        resource.setrlimit(kind, (most, most))


def _read(content_type: str, content: bytes) -> dict[str, object]:
    reader = importlib.import_module(f"producers.documents.{_READERS[content_type]}")
    told = reader.read(content)
    sections = sections_of(told.blocks)
    summary, of_sections = summaries([section.chunks for section in sections])
    title = told.title or next((section.heading for section in sections if section.heading), None)
    return {
        "title": title,
        "summary": summary,
        "characters": sum(len(block.text) for block in told.blocks),
        "sections": [
            {"heading": each.heading, "level": each.level, "summary": said, "chunks": each.chunks}
            for each, said in zip(sections, of_sections, strict=True)
        ],
    }


if __name__ == "__main__":
    main()
