"""Reading of a file: a small one of text or Markdown in a thread, every other one in a child process, which is ended
when it takes too long or too much memory."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from dataclasses import dataclass
from typing import Any

import orjson

from kledger.contract.documents import MARKDOWN, MOST_FILE, TEXT, WORD
from kledger.contract.errors import PayloadTooLarge, UnreadableDocument
from ledger.runtime.private import module_environment
from producers.documents.one_file import read_one

SECONDS = 30
"""Of the processor; of a busy machine's clock, twice as many."""
MEMORY = 768 * 1024 * 1024
"""Bytes of addresses; Python and the reader of a format take about 150 million."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What reading one file may take."""

    seconds: int = SECONDS
    memory: int = MEMORY


USUAL = Bounds()
_BOUNDS = {WORD: Bounds(seconds=10)}
"""Of types that take less: Word of 900,000 characters 0.5 s, a table of 30,000 rows 8 s, one of 100,000 rows 40 s."""


SMALL = {TEXT: 64 * 1024, MARKDOWN: 16 * 1024}
"""Bytes of a file that is read without a process: starting one takes some tenths of a second, and these at most a
second in a thread, whatever they hold (a usual one some milliseconds). No other type has a reader that is as safe."""


@dataclass(frozen=True, slots=True)
class ReadSection:
    """A section of a file with its chunks."""

    heading: str
    level: int
    summary: str
    chunks: list[str]


@dataclass(frozen=True, slots=True)
class Converted:
    """What a file says."""

    title: str | None
    summary: str
    characters: int
    sections: list[ReadSection]


async def convert(content: bytes, content_type: str, bounds: Bounds | None = None) -> Converted:
    """Read a file, within the bounds of its type where none are given. Raises UnreadableDocument, PayloadTooLarge."""
    if bounds is None and len(content) <= SMALL.get(content_type, -1):
        return _converted(await asyncio.to_thread(read_one, content_type, content))
    bounds = bounds or _BOUNDS.get(content_type, USUAL)
    if len(content) > MOST_FILE:
        raise PayloadTooLarge(f"the file has {len(content):,} bytes, {MOST_FILE:,} are the limit: split it")
    order = orjson.dumps({"content_type": content_type, "seconds": bounds.seconds, "memory": bounds.memory})
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "producers.documents.child"),
        stdin=pipe,
        stdout=pipe,
        stderr=asyncio.subprocess.DEVNULL,
        env=module_environment(),
        start_new_session=True,  # Ctrl-C reaches only the node, which ends its children
    )
    try:
        said, _ = await asyncio.wait_for(child.communicate(order + b"\n" + content), 2 * bounds.seconds)
    except TimeoutError as error:
        raise _too_long(bounds) from error
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise _too_long(bounds)
    if child.returncode != 0:
        raise UnreadableDocument("the file cannot be read: it is broken, or reading it takes too much memory")
    return _converted(orjson.loads(said))


def _converted(answer: dict[str, Any]) -> Converted:
    """What a reader answered. Raises UnreadableDocument."""
    if "error" in answer:
        raise UnreadableDocument(f"the file cannot be read: {answer['error']}")
    sections = [ReadSection(**each) for each in answer.pop("sections")]
    return Converted(**answer, sections=sections)


def _too_long(bounds: Bounds) -> UnreadableDocument:
    return UnreadableDocument(
        f"reading the file takes more than {bounds.seconds} s, or more memory than there is: split it, or simplify it"
    )
