"""On the page of the audit the operator sees how the node stands, and checks it; nobody else does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

import httpx
import pytest

from kledger import LedgerClient
from ledger.integrity.proof import check_proof
from producers.node.sizes import PARTS
from tests.journeys.running_node import RunningNode, running, until
from tests.web.visitor import Visitor, visitor, words

POLLED = 'hx-trigger="every 1s"'


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running(tmp_path_factory.mktemp("audit") / "data") as node, node.client() as ledger:
        ledger.save("Deploy at night", "On Tuesday, before noon.", ["plan"], id="deploy/夜", scopes=["public"])
        yield node


@pytest.fixture
def ledger(node: RunningNode) -> Iterator[LedgerClient]:
    with node.client() as ledger:
        yield ledger


@pytest.fixture
def operator(node: RunningNode) -> Iterator[Visitor]:
    with visitor(node.url) as person:
        yield person


def ran(operator: Visitor, kind: str) -> tuple[str, httpx.Response]:
    """Start a job by its form, look again by the link until it is over; the words of its page, and the page."""
    started = operator.post("/ui/audit/jobs", {"kind": kind})
    assert started.url.path.startswith(f"/ui/audit/jobs/{kind}-"), words(started.text)
    pages = [started]

    def over() -> bool:
        if POLLED not in pages[-1].text:
            return True
        again = re.search(r'<a class="button" href="([^"]+)">Look again</a>', pages[-1].text)
        assert again is not None
        pages.append(operator.get(again[1]))
        return False

    until(over, f"the {kind} is over")
    return words(pages[-1].text), pages[-1]


def test_what_the_node_has_on_disk_is_told_in_the_language_of_the_reader(operator: Visitor) -> None:
    until(lambda: "events of knowledge" in operator.get("/ui/audit").text, "the bytes of the events are counted")
    operator.post("/ui/settings", language="zh", back="/ui")
    page = operator.get("/ui/audit").text
    told = page[page.index('id="bytes"') : page.index("<h3>模型")]
    named = re.findall(r'<th scope="row">([^<]*)</th>', told)
    assert len(named) > len(PARTS) + 1
    assert not [name for name in named if re.search("[A-Za-z]", name)]
    assert len(named) == len({*named})  # two rows of the log had different numbers
    assert "已运行</dt><dd>0" not in page


def test_a_rebuild_is_watched_to_its_end_and_says_that_every_view_is_equal(operator: Visitor) -> None:
    told, page = ran(operator, "rebuild")
    assert "Rebuild: finished" in told
    assert "Every view is equal to what the log gives." in told
    assert "the new views are served" in told
    assert "Certificate:" in told
    assert re.search(r"knowledge_state \d+ [0-9a-f]+ [0-9a-f]+ equal", told)
    assert "<progress" not in page.text
    standing = operator.get("/ui/audit").text
    assert page.url.path in standing
    certificate = re.search(r"rebuild-\d+-\w+\.json", told)
    assert certificate is not None
    assert certificate[0] in standing


def test_a_script_is_given_the_progress_alone_and_no_more_once_the_job_is_over(operator: Visitor) -> None:
    _, page = ran(operator, "verify")
    part = operator.http.get(page.url.path, headers={"HX-Request": "true"})
    assert part.status_code == 200
    assert part.text.lstrip().startswith('<section id="job"')
    assert "<html" not in part.text
    assert POLLED not in part.text
    assert "Every view is equal to what the log gives." in words(part.text)


def test_an_audit_says_in_words_what_it_found(operator: Visitor, ledger: LedgerClient) -> None:
    told, _ = ran(operator, "audit")
    assert "The log is as it was signed." in told
    assert f"of {ledger.status()['stream']['head']}" in told


def test_a_snapshot_names_its_file(operator: Visitor) -> None:
    told, _ = ran(operator, "snapshot")
    assert ".duckdb" in told


def test_the_operator_sees_the_chain_the_views_the_sizes_and_the_models(
    operator: Visitor, ledger: LedgerClient
) -> None:
    until(lambda: ledger.status()["chain"]["certified"], "the log is signed")
    page = operator.get("/ui/audit")
    told, status = words(page.text), ledger.status()
    assert status["chain"]["certified"] is not None
    assert status["chain"]["certified"]["key"] in told
    for said in ("healthy", "Merkle root", "KLEDGER_EMBEDDING_MODEL", status["versions"]["duckdb"], "vectors"):
        assert said in told, said


def test_a_proof_of_an_item_is_a_file_that_is_checked_without_the_log(operator: Visitor) -> None:
    answer = operator.get("/ui/audit/proof", id="deploy/夜")
    assert answer.headers["content-type"] == "application/json"
    disposition = answer.headers["content-disposition"]
    assert disposition.startswith("attachment; filename*=UTF-8''")
    assert unquote(disposition.partition("''")[2]) == "proof-deploy/夜.json"
    assert "/" not in disposition.partition("''")[2]
    checked = check_proof(answer.json())
    assert answer.json()["about"]["knowledge"] == "deploy/夜"
    assert checked.holds


def test_the_page_of_an_item_leads_the_operator_to_its_proof_and_nobody_else(
    node: RunningNode, operator: Visitor
) -> None:
    address = "/ui/items/deploy%2F%E5%A4%9C?show=lineage"
    link = re.search(r'href="(/ui/audit/proof[^"]+)"', operator.get(address).text)
    assert link is not None
    assert operator.get(link[1]).json()["about"]["knowledge"] == "deploy/夜"
    with visitor(node.url, user="ann") as ann:
        page = ann.get(address)
        assert page.status_code == 200
        assert "/ui/audit/proof" not in page.text


def test_a_proof_of_nothing_is_refused_in_words(operator: Visitor) -> None:
    assert operator.get("/ui/audit/proof").status_code == 422
    missing = operator.get("/ui/audit/proof", id="<b>none</b>")
    assert missing.status_code == 404
    assert "<b>none" not in missing.text
    assert 'name="id" value="&lt;b&gt;none&lt;/b&gt;"' in missing.text  # back at the form, with what was written
    assert "There is no such item" in words(missing.text)


def test_who_is_not_the_operator_sees_none_of_it_and_starts_nothing(node: RunningNode, operator: Visitor) -> None:
    _, page = ran(operator, "verify")
    with visitor(node.url, user="ann") as ann:
        assert "/ui/audit" not in ann.get("/ui/review").text
        for path in ("/ui/audit", page.url.path, "/ui/audit/proof?id=deploy%2F%E5%A4%9C"):
            answer = ann.get(path)
            assert answer.status_code == 403, path
            assert "Merkle" not in answer.text
        for kind in ("verify", "audit", "rebuild", "snapshot"):
            assert ann.post("/ui/audit/jobs", {"kind": kind}).status_code == 403


def test_a_job_that_needs_more_than_a_click_is_not_started_here(operator: Visitor) -> None:
    for kind in ("forget", "backup", "replay", "retry", "<b>", ""):
        assert operator.post("/ui/audit/jobs", {"kind": kind}).status_code == 422, kind


def test_a_job_that_the_node_does_not_know_is_missing(operator: Visitor) -> None:
    assert operator.get("/ui/audit/jobs/rebuild-unknown").status_code == 404


def test_the_page_of_a_job_names_it_without_a_link_to_itself_and_sizes_as_people_read_them(operator: Visitor) -> None:
    _, page = ran(operator, "snapshot")
    assert f'href="{page.url.path}"' not in page.text
    said = words(page.text)
    assert "Snapshot: finished" in said
    assert re.search(r"size [\d.]+ [KMG]iB", said), said
