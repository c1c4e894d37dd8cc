"""The reference of the API for whoever is signed in, also where the API asks for a token."""

from __future__ import annotations

from pathlib import Path

from producers.access.tokens import create_token
from tests.doors.test_http_pages import Page
from tests.journeys.running_node import RunningNode, running
from tests.web.visitor import visitor


def test_who_is_signed_in_with_a_token_reads_the_reference(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    _, token = create_token(data, {"user": ["ada"]}, "agent")
    with running(data) as node, visitor(node.url, token) as ada:
        answer = ada.get("/ui/reference")
        assert answer.status_code == 200
        assert "POST /api/knowledge" in answer.text
        anchors = {link[1:] for link in Page(answer.text).links if link.startswith("#")}
        assert len(anchors) > 40
        assert anchors <= set(Page(answer.text).ids)
        assert ada.get("/ui/openapi.json").json()["info"]["title"] == "Knowledge Ledger"


def test_who_is_signed_out_is_asked_to_sign_in_first(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, signed_in=False) as person:
        assert person.get("/ui/reference").url.path == "/ui/sign-in"
