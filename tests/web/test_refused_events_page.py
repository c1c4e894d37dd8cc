"""Events that do not count are shown to the operator as they came, tried again and watched, or let rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.poison import MARKER
from tests.journeys.running_node import ROOT, RunningNode, caught_up, running, until
from tests.web.visitor import visitor, words

INJECT = ROOT / "tests" / "faults" / "inject"
HOSTILE = f"{MARKER} <script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def poison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """While this file is there, folds fail on the marker."""
    file = tmp_path_factory.mktemp("poison") / "active"
    file.touch()
    return file


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory, poison: Path) -> Iterator[RunningNode]:
    """A node with two events that no fold could take."""
    env = {"PYTHONPATH": str(INJECT), "FAULT_ROOT": str(ROOT), "FAULT_POISON": str(poison)}
    with running(tmp_path_factory.mktemp("poisoned") / "data", env=env) as node, node.client() as ledger:
        for number in (1, 2):
            ledger.save(f"bad {number}", HOSTILE, ["tool"], id=f"bad-{number}", scopes=["public"])
        until(lambda: ledger.status()["refused"] == 2, "both events are parked")
        yield node


def test_what_a_refused_event_says_is_text_whatever_it_says(poisoned: RunningNode) -> None:
    with visitor(poisoned.url) as operator:
        page = operator.get("/ui/review?tab=refused").text
    assert "Position 2" in words(page)
    assert "unfoldable" in page
    assert "tried 3 times" in words(page)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_only_the_operator_sees_that_there_are_any(poisoned: RunningNode) -> None:
    with visitor(poisoned.url, user="ann") as ann:
        page = words(ann.get("/ui/review?tab=refused").text)
        assert "Refused events" not in page
        assert "unfoldable" not in page
        for what in ("retry", "dismiss"):
            assert ann.post("/ui/review/refused", {"position": "1", "what": what}).status_code == 403


def test_a_parked_event_is_tried_in_vain_then_in_earnest_watched_to_its_end_and_another_rests(
    poisoned: RunningNode, poison: Path
) -> None:
    with visitor(poisoned.url) as operator, poisoned.client() as ledger:

        def tried() -> str:
            """Try the first event again, and look until that is over."""
            answer = operator.post("/ui/review/refused", {"position": "1", "what": "retry", "of": "parked"})
            assert "Retry a parked event" in words(answer.text)
            pages = [answer.text]

            def over() -> bool:
                pages.append(operator.get(str(answer.url)).text)
                return 'hx-trigger="every' not in pages[-1]

            until(over, "the retry is over")
            return words(pages[-1])

        assert "position 1" in tried()
        assert ledger.status()["refused"] == 2
        poison.unlink()  # the cause is mended
        assert "The event at 1 counts now." in tried()
        caught_up(ledger)
        assert ledger.get("bad-1")["content"] == HOSTILE
        page = operator.post("/ui/review/refused", {"position": "2", "what": "dismiss"}).text
        assert "The event at 2 rests; it stays refused." in words(page)
        page = operator.get("/ui/review?tab=refused").text
        assert re.search(r"at rest", words(page))
        assert 'value="retry"' not in page
        assert operator.post("/ui/review/refused", {"position": "2", "what": "dismiss"}).status_code == 409
