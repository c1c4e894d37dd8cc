"""A person states something new: it is saved once, as stated, and what is refused keeps what was written."""

from __future__ import annotations

import re
from html import unescape

from tests.journeys.running_node import RunningNode, caught_up
from tests.web.visitor import undone, visitor, words


def test_what_a_person_states_is_saved_and_taken_back_by_the_undo(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger, visitor(shared_node.url, user="nw-ann") as ann:
        form = ann.get("/ui/new").text
        assert 'name="owner" value="user:nw-ann"' in form
        key = re.search(r'name="key" value="([^"]+)"', form)
        assert key is not None
        stated = {
            "task": "Name a branch",
            "content": "Use the number of the ticket.\nNothing else.",
            "types": "tool, strategy",
            "scopes": "public，team:nw-web",
            "tags": "area=git, urgent",
            "owner": "user:nw-ann",
            "key": key[1],
        }
        saved = ann.post("/ui/new", stated)
        assert saved.url.path.startswith("/ui/items/")
        again = ann.post("/ui/new", stated)
        assert again.url.path == saved.url.path
        item = ledger.get(unescape(saved.url.path.rpartition("/")[2]))
        assert item["content"].splitlines() == ["Use the number of the ticket.", "Nothing else."]
        assert item["types"] == ["tool", "strategy"]
        assert item["scopes"] == ["public", "team:nw-web"]
        assert item["tags"] == {"area": "git", "urgent": ""}
        assert item["owner"] == "user:nw-ann"
        ann.post(f"{saved.url.path}/retire")
        assert ledger.get(item["id"])["status"] == "retired"


def test_the_undo_of_something_new_leaves_what_was_revised_since(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger, visitor(shared_node.url, user="nw-ann") as ann:
        ann.get("/ui/new")
        saved = ann.post("/ui/new", {"content": "Name it after the ticket.", "types": "tool"})
        item = unescape(saved.url.path.rpartition("/")[2])
        ledger.acting_as(user="nw-ann").revise(item, content="Name it after the ticket, in lower case.")
        assert "It was changed since, and stays as it is." in words(undone(ann, saved.text))
        assert ledger.get(item)["status"] == "active"


def test_what_is_refused_says_why_and_keeps_what_was_written(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger, visitor(shared_node.url, user="nw-ben") as ben:
        head = caught_up(ledger)["stream"]["head"]
        ben.get("/ui/new")
        for fields in (
            {"content": "c <b>", "types": "Not A Type"},
            {"content": "c <b>", "types": "tool", "scopes": "nobody knows:this"},
            {"content": "c <b>", "types": "tool", "owner": "user:nw-ann"},
            {"content": "c <b>", "types": ""},
        ):
            answer = ben.post("/ui/new", fields)
            assert answer.status_code == 422
            assert "c &lt;b&gt;</textarea>" in answer.text
            assert 'role="alert"' in answer.text
        assert caught_up(ledger)["stream"]["head"] == head


def test_a_link_begins_the_form(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, user="nw-ann") as ann:
        page = ann.get("/ui/new", task='"><script>alert(1)</script>', types="tool").text
        assert "<script>alert" not in page
        assert 'name="types" value="tool"' in page
        assert "Save" in words(page)


def test_every_field_that_has_to_be_filled_in_is_marked_and_no_other(shared_node: RunningNode) -> None:
    with visitor(shared_node.url, user="nw-ann") as ann:
        labels = re.findall(r"<label>(.*?)</label>", ann.get("/ui/new").text, re.DOTALL)
        assert len(labels) == 6
        assert [" required" in label for label in labels] == ['class="must"' in label for label in labels]
        assert sum('class="must"' in label for label in labels) == 2
