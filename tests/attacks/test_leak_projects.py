"""Does anybody learn what a project that is not theirs shares, is asked to share, and who decides there?

All that the project `web` holds has its word. The coordinator of another project has the most reason to ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kledger import LedgerClient
from tests.attacks.leak_doors import Ask, Doors, Told, Who, about, lacking, search
from tests.attacks.test_leak_memories import HEALTH, NOT_THERE, ids, listed, shown
from tests.journeys.running_node import caught_up, head, running, until

WORD = "zqproject"
AUTHOR: Who = {"user": "ada", "project": "web"}
LEAD: Who = {"agent": "lead", "project": "web"}
OTHERS: dict[str, Who] = {
    "a stranger": {"user": "mallory"},
    "the coordinator of another project": {"agent": "boss", "project": "other"},
}
HELD = ("proposed", "approved", "rejected", "superseded", "later", "first", "second")
"""What the project holds: `later` took the place of `superseded`; `first` and `second` are in conflict."""


def decided(item_id: str, decision: str) -> Ask:
    return Ask(
        f"POST /api/memory/{item_id}/{decision}", (decision, (item_id,), {}), ["memory", decision, item_id], body={},
        tool=("memory_review", {"memory_id": item_id, "decision": decision}),
    )  # fmt: skip


def members(project: str) -> Ask:
    return Ask(
        f"GET /api/projects/{project}/members", ("project_members", (project,), {}), ["project", "members", project]
    )


def given(project: str, entity: str) -> list[Ask]:
    """Roles of somebody, stated in both ways."""
    base = f"POST /api/projects/{project}"
    return [
        Ask(
            f"{base}/members", ("assign_roles", (project, entity, ["tester"]), {}),
            ["project", "roles", project, entity, "--role", "tester"], body={"entity": entity, "roles": ["tester"]},
        ),
        Ask(
            f"{base}/coordinators", ("appoint_coordinator", (project, entity), {}),
            ["project", "coordinator", project, entity], body={"entity": entity},
        ),
    ]  # fmt: skip


def superseding(item_id: str) -> Ask:
    return Ask(
        "POST /api/memory", ("remember", ("mine",), {"supersedes": item_id}),
        ["memory", "save", "mine", "--supersedes", item_id],
        body={"layer": "semantic", "content": "mine", "supersedes": item_id},
        tool=("memory_save", {"layer": "semantic", "content": "mine", "supersedes": item_id}),
    )  # fmt: skip


def nameless(told: Told, project: str) -> tuple[str | None, str]:
    """An error without the project that it names, as a scope, as an option or as an argument."""
    code, message = lacking(told, f"project:{project}")
    return code, message.replace(f"--project {project}", "--project ID").replace(f"project={project!r}", "project=ID")


@dataclass
class Project:
    """The node, and what its conflict is called."""

    doors: Doors
    ledger: LedgerClient
    conflict: str

    def ask(self, who: Who, ask: Ask) -> Iterator[tuple[str, Told]]:
        """What each door that can be asked tells."""
        for door in self.doors.of(ask):
            yield door, self.doors.all[door](who, ask)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with running(tmp_path_factory.mktemp("projects") / "data") as node, node.client() as ledger:
        ledger.appoint_coordinator("web", "agent:lead")
        ledger.appoint_coordinator("other", "agent:boss")
        author, lead = ledger.acting_as(**AUTHOR), ledger.acting_as(**LEAD)

        def propose(item_id: str, confidence: float = 0.9, supersedes: str | None = None) -> None:
            said = f"calm {WORD} {item_id}"
            author.remember(said, kind="adr", id=item_id, confidence=confidence, supersedes=supersedes)

        for item_id in ("proposed", "approved", "rejected", "superseded", "first"):
            propose(item_id)
        lead.reject("rejected", reason=WORD)
        for item_id in ("approved", "superseded", "first"):
            lead.approve(item_id)
        propose("later", supersedes="superseded")
        assert lead.approve("later")["superseded"] == "superseded"
        propose("second", confidence=0.1, supersedes="first")
        conflict = lead.approve("second")["conflict"]
        assert conflict is not None
        caught_up(ledger)
        until(
            lambda: {each["id"] for each in lead.search("calm")["results"]} >= {"approved", "later"}, "they are found"
        )
        doors = Doors(node.url)
        yield Project(doors, ledger, conflict)
        doors.close()


def test_what_a_project_holds_is_told_of_to_others_as_what_is_not_there(web: Project) -> None:
    before = head(web.ledger)
    questions = [
        shown,
        lambda item_id: about("get", item_id),
        lambda item_id: about("history", item_id),
        lambda item_id: decided(item_id, "approve"),
        lambda item_id: decided(item_id, "reject"),
        superseding,
    ]
    for who in OTHERS.values():
        for number, question in enumerate(questions):
            nothing = dict(web.ask(who, question(NOT_THERE)))
            for item_id in {HELD[number % len(HELD)], "proposed", "superseded"}:
                for door, told in web.ask(who, question(item_id)):
                    assert lacking(told, item_id) == lacking(nothing[door], NOT_THERE), (door, item_id)
                    assert WORD not in told.text, (door, item_id)
    assert head(web.ledger) == before


def test_lists_searches_health_and_conflicts_hold_nothing_of_another_project(web: Project) -> None:
    statuses = ("active", "proposed", "rejected", "superseded", "all")
    asks = [*(listed(status=status) for status in statuses), listed(role="developer"), search("calm"), search(WORD)]
    for who in OTHERS.values():
        for ask in asks:
            for door, told in web.ask(who, ask):
                assert ids(told) == set(), (door, ask)
        for door, told in web.ask(who, HEALTH):
            numbers = {name: value for name, value in told.document.items() if isinstance(value, int)}
            assert {name for name, value in numbers.items() if value} <= {"position"}, door
        theirs = web.ledger.acting_as(**who)
        assert theirs.conflicts()["results"] == []
    for door, told in web.ask(LEAD, listed(status="proposed")):
        assert ids(told) == {"proposed"}, door
    assert [each["id"] for each in web.ledger.acting_as(**LEAD).conflicts()["results"]] == [web.conflict]


def test_the_members_of_a_project_are_told_to_nobody_else_and_nobody_else_changes_them(web: Project) -> None:
    before = head(web.ledger)
    for who in OTHERS.values():
        nothing = dict(web.ask(who, members("none")))
        for door, told in web.ask(who, members("web")):
            assert nameless(told, "web") == nameless(nothing[door], "none"), door
            assert "lead" not in told.text
        for there, not_there in zip(given("web", "agent:boss"), given("none", "agent:boss"), strict=True):
            nothing = dict(web.ask(who, not_there))
            for door, told in web.ask(who, there):
                assert nameless(told, "web") == nameless(nothing[door], "none"), door
    assert head(web.ledger) == before
    for door, told in web.ask(AUTHOR, members("web")):
        assert [each["member"] for each in told.document["members"]] == ["agent:lead"], door
