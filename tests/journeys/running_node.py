"""A node in processes of its own, as `kledger up` starts it: begun, asked, killed and stopped by tests."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kledger import LedgerClient
from kledger.contract.errors import LedgerError
from ledger.broker.access import BrokerAccess
from ledger.broker.server_config import ServerFiles, keep_passwords
from tests.patience import PATIENCE
from tests.processes.started import ENVIRONMENT as ENVIRONMENT
from tests.processes.started import KLEDGER as KLEDGER
from tests.processes.started import ROOT as ROOT
from tests.processes.started import Process, start

STARTS_WITHIN = STOPS_WITHIN = PATIENCE


def up(data: Path, http: str = "127.0.0.1:0", *more: str) -> list[str]:
    """The words of the command that runs a node on `data`."""
    return ["up", "--data", str(data), "--http", http, *more]


def until(holds: Callable[[], object], what: str, within: float = PATIENCE, instead: object = "") -> None:
    """Return once `holds()`; fail saying `what` did not come about in so many seconds, and what is there instead.

    To ask takes at most a fifth of the time: a node that is asked all the time has less of it for what is waited for.
    """
    deadline = time.monotonic() + within
    while True:
        asked = time.monotonic()
        if holds():
            return
        now = time.monotonic()
        assert now < deadline, f"not within {within:g} s: {what} {instead}"
        time.sleep(min(max(0.02, 4 * (now - asked)), 0.25))


def alive(pid: int) -> bool:
    """Whether this process still runs; one that ended and was not waited for does not."""
    try:
        return _state(Path(f"/proc/{pid}")) not in "ZX"
    except OSError:
        return False


def stands_still(pid: int) -> bool:
    """Whether each thread of a process that was stopped is so by now."""
    return all(_state(thread) == "T" for thread in Path(f"/proc/{pid}/task").iterdir())


def _state(process: Path) -> str:
    return (process / "stat").read_text().rpartition(")")[2].split()[0]


def sockets(pid: int) -> set[str]:
    """The sockets that a process holds, by the kernel's names."""
    held = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            held.add(str(descriptor.readlink()))
    return {name for name in held if name.startswith("socket:")}


@dataclass
class RunningNode:
    """One life of a node: from its ready line to its end."""

    data: Path
    process: Process
    url: str
    ready: str
    log: Path

    @contextmanager
    def client(self, **about: Any) -> Iterator[LedgerClient]:
        """A client of it, closed in the end. It waits for an answer as long as a busy machine may take."""
        with LedgerClient(self.url, **{"timeout": PATIENCE, **about}) as ledger:
            yield ledger

    @property
    def broker(self) -> int:
        """The process id of its broker, once it has written it."""
        told: list[str] = []

        def has_written() -> object:
            with contextlib.suppress(FileNotFoundError):
                told[:] = ServerFiles(self.data / "broker").pid.read_text().split()
            return told

        until(has_written, "the broker says which process it is")
        return int(told[0])

    @property
    def vectors(self) -> int:
        """The process id of its vector process."""
        (pid,) = self.children("projections.vectors.process")
        return pid

    def children(self, module: str) -> list[int]:
        """Its child processes that run `module`."""
        found = []
        for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if module.encode() in words and alive(int(pid)):
                    found.append(int(pid))
        return found

    @property
    def access(self) -> BrokerAccess:
        """How to reach its broker, with the credentials that it keeps."""
        files = ServerFiles(self.data / "broker")
        return BrokerAccess(f"nats://127.0.0.1:{int(files.port.read_text())}", keep_passwords(files))

    def kill(self) -> list[int]:
        """kill -9 of the node alone; the processes that it leaves behind."""
        left = [self.broker, self.vectors]
        self.process.kill()
        self.process.wait()
        return left

    def kill_everything(self) -> None:
        """kill -9 of the node, its broker and its vector process, at once."""
        for pid in (self.process.pid, self.broker, self.vectors):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Stop it as a person would; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOPS_WITHIN)

    def said(self) -> str:
        """The end of its log."""
        return self.log.read_text("utf-8", "replace")[-4000:]


@contextmanager
def running(
    data: Path,
    *more: str,
    http: str = "127.0.0.1:0",
    env: Mapping[str, str] | None = None,
    cold: bool = False,
) -> Iterator[RunningNode]:
    """A node on `data`. What still runs in the end is stopped, and has to exit with 0."""
    log = data.parent / f"{data.name}.log"
    with log.open("ab") as errors:
        process = start(up(data, http, *more), stderr=errors, environment={**ENVIRONMENT, **(env or {})}, cold=cold)
    assert process.stdout is not None
    try:
        ready = _ready_line(process, log)
        node = RunningNode(data, process, ready.split()[3], ready, log)
        yield node
        if process.poll() is None:
            assert (code := node.stop()) == 0, f"exit code {code}; {node.said()}"
    except BaseException:  # whatever failed, the node's own words belong to the report
        print(f"the log of {data} ends:\n{log.read_text('utf-8', 'replace')[-4000:]}")  # noqa: T201  # pytest shows it
        raise
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def _ready_line(process: Process, log: Path) -> str:
    assert process.stdout is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        ready = process.stdout.readline() if waiting.select(STARTS_WITHIN) else ""
    if not ready:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)  # its exit code says more
    assert ready.startswith("kledger is ready: http://"), (
        f"{ready!r} {process.poll()}; the log says:\n{log.read_text()[-4000:]}"
    )
    return ready


def caught_up(ledger: LedgerClient) -> dict[str, Any]:
    """The status, once every view has what the log has, also the vectors of a model, and all is well."""
    told: dict[str, Any] = {}

    def all_there() -> bool:
        told.update(ledger.status())
        there = all(view["position"] == told["stream"]["head"] for view in told["views"])
        return bool(told["healthy"]) and there and not (told["embeddings"] or {"awaiting": 0})["awaiting"]

    until(all_there, "the views reach the head of the log", instead=told)
    return told


def head(ledger: LedgerClient) -> int:
    """The last position of the log."""
    return int(ledger.status()["stream"]["head"])


def result_of(ledger: LedgerClient, kind: Any, **given: Any) -> dict[str, Any]:
    """What a job came to."""
    done = ledger.wait_job(ledger.start_job(kind, **given)["id"], timeout=PATIENCE)
    assert done["result"] is not None
    return done["result"]


def items(count: int, prefix: str = "part") -> list[dict[str, Any]]:
    """Payloads, each with a word that no other one has: `word_of` its number."""
    return [
        {
            "id": f"{prefix}-{number:05d}",
            "task": f"Find the spare {word_of(number, prefix)} in the store",
            "content": f"It lies on shelf {number % 97} of row {number // 97}; 第 {number} 号备件在仓库。",
            "types": ["tool"],
            "tags": {"shelf": number % 97},
            "scopes": ["public"],
            "owner": "agent:storekeeper",
            "source": {"trace_id": f"trace-{prefix}-{number % 10}", "message_id": f"message-{prefix}-{number}"},
        }
        for number in range(count)
    ]


def word_of(number: int, prefix: str = "part") -> str:
    """The word by which one generated item is found."""
    return f"{prefix}q{number:05d}x"


@dataclass
class Importing:
    """An import that runs beside the test, in small requests, and remembers what was acknowledged."""

    url: str
    payloads: list[dict[str, Any]]
    chunk: int = 20
    retries: int = 0
    acknowledged: dict[str, int] = field(default_factory=dict)
    """Item id to position, of everything whose answer came."""
    error: LedgerError | None = None
    _thread: threading.Thread | None = None

    def start(self) -> Importing:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            with LedgerClient(self.url, timeout=PATIENCE, retries=self.retries, read_your_writes=False) as ledger:
                for first in range(0, len(self.payloads), self.chunk):
                    told = ledger.save_many(self.payloads[first : first + self.chunk])
                    for one in told["results"]:
                        assert one["outcome"] != "refused", one
                        assert one["id"] is not None
                        assert one["position"] is not None
                        self.acknowledged[one["id"]] = one["position"]
        except LedgerError as error:
            self.error = error

    def until_acknowledged(self, count: int) -> None:
        """Return once so many items were acknowledged, with more to come."""
        until(lambda: len(self.acknowledged) >= count, f"{count} items are acknowledged, {self.error}")
        assert len(self.acknowledged) < len(self.payloads), "the import was over before the test could interfere"

    def end(self) -> None:
        """Wait for its end, whatever that is."""
        assert self._thread is not None
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the import hangs"


def assert_kept_once(ledger: LedgerClient, acknowledged: dict[str, int]) -> None:
    """Every acknowledged item is in the log where it was said to be, once, and so is every event."""
    table = ledger.sql("SELECT entity_id, position FROM events WHERE type = 'knowledge.saved'")
    kept: dict[str, list[int]] = {}
    for entity_id, position in table["rows"]:
        kept.setdefault(entity_id, []).append(position)
    assert {item: kept.get(item) for item in acknowledged} == {item: [at] for item, at in acknowledged.items()}
    (counts,) = ledger.sql("SELECT count(*), count(DISTINCT event_id), count(DISTINCT position) FROM events")["rows"]
    assert counts[0] == counts[1] == counts[2]
    assert ledger.sql("SELECT count(*) FROM refused_events")["rows"] == [[0]]


def assert_found(ledger: LedgerClient, numbers: range | list[int], prefix: str = "part") -> None:
    """A search for each item's own word finds it first."""
    for number in numbers:
        found = ledger.search(word_of(number, prefix), top_k=1, record=False)["results"]
        assert [item["id"] for item in found] == [f"{prefix}-{number:05d}"]
