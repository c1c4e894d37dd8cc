"""The overview: numbers that lead to what they count, and the last days as a figure and as a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from kledger.answers.overview import Day
from producers.web.figures.days import bars, spans
from producers.web.words import words_of
from tests.journeys.running_node import RunningNode, caught_up, running, until
from tests.web.visitor import visitor, words


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    data: Path = tmp_path_factory.mktemp("overview") / "data"
    with running(data) as node:
        with node.client() as ledger:
            mei = ledger.acting_as(user="mei")
            mei.save("Roll back first", "Then look.", ["strategy"], id="roll-back", scopes=["public"])
            mei.save("Never deploy on Friday", "Nobody is there.", ["strategy"], id="friday", scopes=["public"])
            mei.remember("Mei is calm.", "short", id="calm", lifetime=1)
            ledger.acting_as(user="pia").remember("Pia is calm.", "short", id="pias-calm", lifetime=1)
            mei.remember("Mei likes tea.", "semantic", id="tea")
            agent = ledger.acting_as(agent="deployer")
            agent.search("roll back", top_k=1)
            agent.rate("roll-back", "helpful", task="release 1")
            agent.rate("friday", "harmful", task="release 1")
            agent.rate("friday", "harmful", task="release 2")
            stated = "SELECT count(*) FROM events WHERE type = 'knowledge.expired'"
            until(lambda: ledger.sql(stated)["rows"] == [[2]], "that both short memories are over is stated")
            assert mei.overview()["expired"] == 1
        yield node


def number(page: str, name: str) -> str:
    """The number below a name on top of the overview."""
    found = re.search(rf"<span>{name}</span><strong>([^<]+)</strong>", page)
    assert found is not None, name
    return found[1]


def test_each_number_is_what_the_list_counts_that_it_leads_to(node: RunningNode) -> None:
    with visitor(node.url, user="mei") as mei:
        page = mei.get("/ui").text
        assert (number(page, "Memories in all"), number(page, "Expired memories")) == ("3", "1")
        for name in ("Memories in all", "Never recalled"):
            found = re.search(rf'<a href="([^"]+)"><span>{name}</span>', page)
            assert found is not None
            assert f"{number(page, name)} item" in words(mei.get(unescape(found[1])).text)
        assert 'href="/ui/review?tab=conflicts"' in page
        for layer, count in (("semantic", 1), ("plain", 2)):
            assert f"{count} item" in words(mei.get(f"/ui/knowledge?layer={layer}").text)
            assert re.search(rf"layer={layer}\">.*?<strong>{count}</strong>", page)


def test_who_sees_less_counts_less(node: RunningNode) -> None:
    with visitor(node.url, user="jonas") as jonas:
        page = jonas.get("/ui").text
        assert (number(page, "Memories in all"), number(page, "Expired memories")) == ("2", "0")
        assert "calm" not in page
        assert "tea" not in page


def test_what_helped_most_and_what_turned_harmful_are_listed(node: RunningNode) -> None:
    with visitor(node.url, user="mei") as mei:
        page = mei.get("/ui").text
    sections = dict(re.findall(r'<section class="panel"><h2>([^<]+)</h2>(.*?)</section>', page, re.DOTALL))
    assert "Roll back first" in sections["Most helpful"]
    assert "Never deploy on Friday" in sections["Turned harmful"]
    assert "Never deploy on Friday" not in sections["Most helpful"]
    assert 'href="/ui/items/tea"' in sections["Never recalled"]
    assert "roll-back" not in sections["Never recalled"]


@pytest.mark.parametrize(("days", "rows"), [("7", 7), ("30", 30), ("90", 90), ("365", 53), ("8", 30), ("no", 30)])
def test_the_days_are_bars_and_the_same_rows_of_a_table(node: RunningNode, days: str, rows: int) -> None:
    with visitor(node.url, user="mei") as mei:
        page = mei.get("/ui", days=days).text
    assert page.count('<th scope="row">') == rows
    figure = re.search(r'<svg class="figure".*?</svg>', page, re.DOTALL)
    assert figure is not None
    assert 'role="img"' in figure[0]
    assert "3 saved" in figure[0] or "4 saved" in figure[0]
    assert {'class="saved"', 'class="recalled"', 'class="judged"', 'class="harmful"'} <= set(
        re.findall(r'class="(?:saved|recalled|judged|harmful)"', figure[0])
    )


def test_the_operator_sees_how_the_node_stands_and_nobody_else_does(node: RunningNode) -> None:
    with node.client() as ledger, visitor(node.url) as operator, visitor(node.url, user="mei") as mei:
        head = caught_up(ledger)["stream"]["head"]
        page = words(operator.get("/ui").text)
        assert "Head of the log" in page
        assert f"{head:,}" in page
        assert "View vectors" in page
        assert "The node" not in words(mei.get("/ui").text)


def test_what_is_expired_leads_to_a_preview_of_cleaning_that_changes_nothing(node: RunningNode) -> None:
    with node.client() as ledger, visitor(node.url, user="pia") as pia:
        head = caught_up(ledger)["stream"]["head"]
        link = re.search(r'<a href="([^"]+)"><span>Expired memories</span>', pia.get("/ui").text)
        assert link is not None
        preview = pia.get(unescape(link[1]))
        assert preview.status_code == 200
        assert "Pia is calm" in words(preview.text)
        assert caught_up(ledger)["stream"]["head"] == head
        pia.post("/ui/review/expired")
        assert number(pia.get("/ui").text, "Expired memories") == "0"
        assert ledger.get("pias-calm")["status"] == "retired"


def day(name: str, saved: int) -> Day:
    return {"day": name, "saved": saved, "revised": 0, "recalled": 2, "helpful": 1, "harmful": 1}


def test_many_days_are_weeks_that_lose_nothing_and_end_today() -> None:
    days = [day(f"2026-01-01+{n}", n) for n in range(365)]
    weeks = spans(days)
    assert sum(each.saved for each in weeks) == sum(range(365))
    assert sum(each.judged for each in weeks) == 2 * 365
    assert len(weeks) == 53
    assert weeks[-1].saved == sum(range(358, 365))


def test_a_figure_of_nothing_is_drawn_and_the_tallest_bar_fills_its_strip() -> None:
    assert "<rect" not in bars(
        spans([{**day("2026-01-01", 0), "recalled": 0, "helpful": 0, "harmful": 0}]), words_of("en")
    )
    drawn = bars(spans([day("2026-01-01", 5), day("2026-01-02", 10)]), words_of("en"))
    heights = [float(each) for each in re.findall(r'class="saved"[^>]* height="([\d.]+)"', drawn)]
    assert heights[0] * 2 == heights[1]
