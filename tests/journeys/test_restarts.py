"""A client that writes and reads while its node is stopped, killed and started again: no error, and nothing twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from kledger import LedgerClient
from kledger.contract.errors import LedgerError
from tests.free_ports import free_address
from tests.journeys.running_node import RunningNode, caught_up, running, until
from tests.patience import PATIENCE


class _Busy:
    """Saves, rates and reads one after the other until it is told to end."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.saved: list[str] = []
        self.errors: list[LedgerError] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with LedgerClient(self.url) as ledger:
            mei = ledger.acting_as(user="mei")
            while not self._end.is_set():
                try:
                    saved = mei.save(f"note {len(self.saved)}", "what was seen", ["tool"])
                    self.saved.append(saved["id"])
                    mei.rate(saved["id"], "helpful", reason="it did")
                    assert mei.get(saved["id"])["eval"]["helpful"] == 2
                except LedgerError as error:
                    self.errors.append(error)

    def goes_on(self) -> None:
        """Return once it has written more than it had."""
        before = len(self.saved)
        until(lambda: len(self.saved) > before + 2, "the client goes on", instead=self.errors)

    def end(self) -> None:
        self._end.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def test_a_client_waits_out_a_restart_and_says_nothing_twice(tmp_path: Path) -> None:
    http = free_address()
    data = tmp_path / "data"
    ends: list[Callable[[RunningNode], object]] = [RunningNode.stop, RunningNode.kill_everything]
    busy: _Busy | None = None
    for end in ends:
        with running(data, http=http) as node:
            busy = busy or _Busy(node.url)
            busy.goes_on()
            end(node)
    assert busy is not None
    with running(data, http=http) as node:
        busy.goes_on()
        busy.end()
        assert busy.errors == []
        with node.client() as ledger:
            caught_up(ledger)
            counts = "SELECT count(*), count(DISTINCT entity_id) FROM events WHERE type = "
            assert ledger.sql(f"{counts} 'knowledge.saved'")["rows"] == [[len(busy.saved), len(set(busy.saved))]]
            assert ledger.sql(f"{counts} 'knowledge.rated'")["rows"] == [[len(busy.saved), len(set(busy.saved))]]
