"""A tree of files keeps everything that it can hold: out of one ledger, into another, and out again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kledger import LedgerClient
from kledger.contract.errors import IllegalTree
from ledger import one_answer
from producers.tree import seen
from producers.tree.importing import Brought, import_tree
from producers.tree.writing import MANIFEST, Written, export_tree
from tests.doors.http_door import PROFILE_EXAMPLE
from tests.tree.in_process import head, in_process

SEES: dict[str, Any] = {"user": "Ann/..", "agent": "general_assistant", "project": "p", "team": "T", "org": "组织"}
SCOPES = [f"{kind}:{name}" for kind, name in SEES.items()] + ["public"]


def files(directory: Path) -> dict[str, Any]:
    """Every file of a tree but its manifest, by name."""
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(directory).as_posix(): orjson.loads(path.read_bytes()) for path in found}


def without_the_ledgers_own(tree: dict[str, Any]) -> dict[str, Any]:
    """A tree without what each ledger says of its own: when it took an item up, and in which version."""
    own = ("created_at", "updated_at", "version")
    return {
        name: [{key: value for key, value in entry.items() if key not in own} for entry in entries]
        for name, entries in tree.items()
    }


_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
_names = st.sampled_from(["a", "A", "a/b", "..", "用户 1", "é", "ê", "con", "x" * 190])
_owners = st.builds("{}:{}".format, st.sampled_from(["user", "agent", "project", "team", "org"]), _names)
_items = st.fixed_dictionaries(
    {
        "types": st.lists(
            st.sampled_from(["user_profile", "strategy", "tool", "usecase", "definition", "plan", "con", "own_kind"]),
            min_size=1,
            max_size=3,
            unique=True,
        ),
        "task": _texts,
        "content": _texts,
        "owner": _owners,
        "scopes": st.lists(st.sampled_from(SCOPES), min_size=1, max_size=2, unique=True),
        "tags": st.dictionaries(
            st.just("category") | _texts, st.sampled_from(["preference", "habit", "constraint", "other", 3]), max_size=2
        ),
        "resource_ids": st.lists(_texts, max_size=2),
        "source": st.fixed_dictionaries({}, optional={"name": _texts, "urls": st.lists(_texts), "timestamp": _texts}),
        "eval": st.fixed_dictionaries(
            {"score": st.integers(1, 5), "helpful": st.integers(0, 9), "confidence": st.floats(0, 1)}
        ),
    }
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(items=st.lists(_items, max_size=8), retired=st.integers(0, 3))
def test_what_goes_out_comes_in_and_goes_out_the_same(items: list[dict[str, Any]], retired: int) -> None:
    payloads = [{**item, "id": f"k/{number}"} for number, item in enumerate(items)]
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder, "one"), Path(folder, "two")
        with in_process() as ledger:
            assert ledger.save_many(payloads)["refused"] == 0
            for payload in payloads[:retired]:
                ledger.retire(payload["id"])
            written = export_tree(ledger.acting_as(**SEES), one)
            assert written.items == len(items)
            before = head(ledger)
            again = import_tree(ledger, one)
            assert (again.saved, again.retired, again.tree.refused, head(ledger)) == (0, 0, [], before)
        with in_process() as ledger:
            brought = import_tree(ledger, one)
            assert (brought.saved, brought.tree.refused, brought.tree.skipped) == (len(items), [], [])
            export_tree(ledger.acting_as(**SEES), two)
            before = head(ledger)
            assert import_tree(ledger, two).saved == 0
            assert head(ledger) == before
        assert without_the_ledgers_own(files(one)) == without_the_ledgers_own(files(two))
        assert orjson.loads((one / MANIFEST).read_bytes())["files"] == {
            name: len(told) for name, told in files(one).items()
        }


def put(directory: Path, name: str, document: Any) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(document if isinstance(document, bytes) else orjson.dumps(document))


def test_a_tree_written_by_hand_says_by_its_places_what_its_entries_leave_out(tmp_path: Path) -> None:
    said = {"task": "t", "content": "c"}
    put(tmp_path, "global/tools.json", [{"id": "tool", **said}])
    put(tmp_path, "global/definitions.json", {"id": "definition", **said, "owner": "team:docs"})
    put(tmp_path, "agents/general_assistant/experience.json", [{"id": "experience", **said}])
    put(tmp_path, "agents/crawler_ops/usecases.json", [{"id": "usecase", **said, "scopes": ["public"]}])
    put(tmp_path, "users/user_123/preferences.json", [PROFILE_EXAMPLE])
    put(tmp_path, "users/用户/habits.json", [{"id": "habit", **said, "created_at": "2026-03-03"}])
    put(tmp_path, "users/用户/profile.json", b"\xef\xbb\xbf" + orjson.dumps([{"id": "base", **said}]))
    with in_process() as ledger:
        assert_brought(import_tree(ledger, tmp_path), saved=7)
        found = {name: ledger.get(name) for name in ("tool", "definition", "experience", "usecase", "habit", "base")}
        told = {name: (item["types"], item["owner"], item["scopes"]) for name, item in found.items()}
        assert told == {
            "tool": (["tool"], "user:local", ["public"]),
            "definition": (["definition"], "team:docs", ["public"]),
            "experience": (["strategy"], "agent:general_assistant", ["agent:general_assistant"]),
            "usecase": (["usecase"], "agent:crawler_ops", ["public"]),
            "habit": (["user_profile"], "user:用户", ["user:用户"]),
            "base": (["user_profile"], "user:用户", ["user:用户"]),
        }
        assert (found["habit"]["tags"], found["base"]["tags"]) == ({"category": "habit"}, {"category": "background"})
        assert found["habit"]["source"]["timestamp"] == "2026-03-03"
        profile = ledger.get("profile_001")
        assert (profile["scopes"], profile["eval"]["helpful"]) == (PROFILE_EXAMPLE["scopes"], 5)
        before = head(ledger)
        assert_brought(import_tree(ledger, tmp_path), unchanged=7)
        assert head(ledger) == before


def requests_of(ledger: LedgerClient) -> list[str]:
    """The requests that the client makes from now on."""
    asked: list[str] = []
    transport: Any = ledger._wire.connection.transport

    async def asking(request: httpx.Request) -> None:
        asked.append(f"{request.method} {request.url.path}")

    transport.http.event_hooks = {"request": [asking]}
    return asked


def assert_brought(brought: Brought, saved: int = 0, unchanged: int = 0) -> None:
    assert (brought.tree.refused, brought.tree.skipped) == ([], [])
    assert (brought.saved, brought.unchanged) == (saved, unchanged)


def test_what_cannot_be_brought_is_told_with_its_place_and_the_rest_comes(tmp_path: Path) -> None:
    put(
        tmp_path, "global/tools.json", [{"id": "good", "task": "t", "content": "c"}, "text", {"id": "bad", "task": "t"}]
    )
    put(tmp_path, "global/plans.json", b"[{]")
    put(tmp_path, "notes/readme.md", b"# mine")
    put(tmp_path, "users/ann/memories.json", {"user_memory": None})
    put(tmp_path, ".git/config.json", b"[]")
    (tmp_path / "users" / "ann" / "habits.json").symlink_to(tmp_path / "global" / "tools.json")
    with in_process() as ledger:
        brought = import_tree(ledger, tmp_path)
        assert brought.saved == 1
        refused = {(each["file"], each["number"], each["code"]) for each in brought.tree.refused}
        assert refused == {
            ("global/plans.json", None, "bad_json"),
            ("global/tools.json", 2, "invalid_payload"),
            ("global/tools.json", 3, "invalid_payload"),
        }
        assert brought.tree.skipped[:2] == ["notes/readme.md", "users/ann/habits.json"]
        assert "user:ann" in brought.tree.skipped[2]
    with pytest.raises(IllegalTree), in_process() as ledger:
        import_tree(ledger, tmp_path / "nothing")


def test_an_item_that_was_revised_or_is_somebody_elses_is_known_again(tmp_path: Path) -> None:
    with in_process() as ledger:
        ann, bob = ledger.acting_as(user="ann"), ledger.acting_as(user="bob")
        ann.save("t", "first", ["tool"], id="hers", scopes=["public"])
        ann.revise("hers", content="second")
        ann.score("hers", 5)
        export_tree(bob, tmp_path / "tree")
        before = head(ledger)
        assert_brought(import_tree(bob, tmp_path / "tree"), unchanged=1)
        assert head(ledger) == before
        ann.revise("hers", content="third")
        (refused,) = import_tree(bob, tmp_path / "tree").tree.refused
        assert refused["code"] == "not_owner"
        (refused,) = import_tree(ann, tmp_path / "tree").tree.refused
        assert refused["code"] == "knowledge_exists"


def test_an_unchanged_tree_is_recognised_in_pages_though_its_items_were_revised_and_retired(tmp_path: Path) -> None:
    with in_process() as ledger:
        ledger.save_many([{"id": f"k{number}", "task": "t", "content": "c", "types": ["tool"]} for number in range(40)])
        for number in range(20):
            ledger.revise(f"k{number}", content="better")
            ledger.retire(f"k{39 - number}")
        export_tree(ledger, tmp_path)
        asked = requests_of(ledger)
        assert_brought(import_tree(ledger, tmp_path), unchanged=40)
        assert len(asked) < 10, asked


def test_a_few_entries_are_recognised_one_by_one_where_the_ledger_has_many_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "PAGE", 3)
    monkeypatch.setattr(seen, "OVERLAP", 1)
    with in_process() as ledger:
        ledger.save_many([{"id": f"k{number}", "task": "t", "content": "c", "types": ["tool"]} for number in range(40)])
        ledger.revise("k0", content="better")
        put(tmp_path, "global/tools.json", [ledger.get("k0")])
        asked = requests_of(ledger)
        assert_brought(import_tree(ledger, tmp_path), unchanged=1)
        assert len(asked) < 10, asked
        put(tmp_path, "global/tools.json", [{**ledger.get(f"k{number}"), "content": "else"} for number in range(39)])
        assert len(import_tree(ledger, tmp_path).tree.refused) == 39


def test_an_item_of_somebody_elses_is_not_retired_and_the_rest_comes(tmp_path: Path) -> None:
    with in_process() as ledger:
        ann, bob = ledger.acting_as(user="ann"), ledger.acting_as(user="bob")
        ann.save("t", "hers", ["tool"], id="hers", scopes=["public"])
        retired = {"task": "t", "types": ["tool"], "status": "retired", "version": 1}
        theirs = {**retired, "id": "hers", "content": "hers", "owner": "user:ann", "scopes": ["public"]}
        put(tmp_path, "retired.json", [theirs, {**retired, "id": "his", "content": "his"}])
        brought = import_tree(bob, tmp_path)
        assert (brought.saved, brought.unchanged, brought.retired) == (1, 0, 1)
        ((number, code),) = [(each["number"], each["code"]) for each in brought.tree.refused]
        assert (number, code) == (1, "not_owner")
        assert ann.get("hers")["status"] == "active"
        assert bob.get("his")["status"] == "retired"


def test_what_a_project_no_longer_shares_is_not_proposed_to_it_again(tmp_path: Path) -> None:
    """Superseded, rejected and retired; what is in force, or waits already, is proposed."""
    out, waiting = {"old", "declined", "withdrawn"}, {"new", "asked"}
    with in_process() as ledger:
        ledger.appoint_coordinator("apollo", "agent:lead")
        lead = ledger.acting_as(agent="lead", project="apollo")
        dev = ledger.acting_as(agent="dev", project="apollo")
        lead.remember("MySQL", kind="adr", id="old", scopes=["project:apollo"])
        lead.remember("PostgreSQL", kind="adr", id="new", scopes=["project:apollo"], supersedes="old")
        lead.remember("SQLite", kind="adr", id="withdrawn", scopes=["project:apollo"])
        lead.retire("withdrawn")
        for each in ("declined", "asked"):
            dev.remember(f"{each} by a developer", kind="adr", id=each, scopes=["project:apollo"])
        lead.reject("declined", reason="no")
        before = {each: ledger.get(each)["status"] for each in sorted(out | waiting)}
        told = ("proposed", "rejected", "active", "superseded", "retired")
        assert before == dict(zip(sorted(out | waiting), told, strict=True))
        export_tree(ledger, tmp_path)
    with in_process() as ledger:
        brought = import_tree(ledger, tmp_path)
        assert (brought.retired, brought.proposed, brought.tree.refused) == (3, waiting, [])
        assert {each: ledger.get(each)["status"] for each in out} == dict.fromkeys(out, "retired")
        assert {each: ledger.get(each)["status"] for each in waiting} == dict.fromkeys(waiting, "proposed")
        again = import_tree(ledger, tmp_path)
        assert (again.saved, again.retired, again.proposed) == (0, 0, waiting)


def test_an_export_has_what_its_identity_sees_and_the_operators_what_everybody_has(tmp_path: Path) -> None:
    with in_process() as ledger:
        ann = ledger.acting_as(user="ann")
        ann.save("t", "private", ["tool"], id="hers", scopes=["user:ann"])
        ann.save("t", "shown", ["tool"], id="public", scopes=["public"])
        seen = {
            who: {entry["id"] for entries in files(tmp_path / who).values() for entry in entries}
            for who, of in (("operator", ledger), ("ann", ann), ("bob", ledger.acting_as(user="bob")))
            if export_tree(of, tmp_path / who)
        }
    assert seen == {"operator": {"hers", "public"}, "ann": {"hers", "public"}, "bob": {"public"}}


def test_an_export_goes_into_an_empty_directory_or_over_an_earlier_one(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    with in_process() as ledger:
        ann = ledger.acting_as(user="ann")
        ann.save("t", "c", ["tool"], id="moves", scopes=["public"])
        ann.profiles.put("user", {"occupation": "厨师"})
        assert exported(ann, tree) == {"global/tools.json", "users/ann/memories.json"}
        assert (tree / "global" / "tools.json").stat().st_mode & 0o077 == 0
        ann.revise("moves", scopes=["user:ann"])
        ann.profiles.disable("user")
        (tree / ".parts-left").mkdir()
        assert exported(ann, tree) == {"users/ann/knowledge.json"}
        assert {path.name for path in tree.iterdir()} == {"users", MANIFEST}
        (tree / "users" / "ann" / "knowledge.json").unlink()
        (tree / "users" / "ann").rmdir()
        (tree / "users" / "ann").symlink_to(tmp_path)
        with pytest.raises(IllegalTree, match="leads out of"):
            export_tree(ann, tree)
        put(tmp_path, "other/file.json", [])
        with pytest.raises(IllegalTree, match="is no export"):
            export_tree(ann, tmp_path / "other")
        put(tmp_path, f"other/{MANIFEST}", {"name": "a web app"})
        with pytest.raises(IllegalTree, match="not the manifest"):
            export_tree(ann, tmp_path / "other")
        assert {path.name for path in (tmp_path / "other").iterdir()} == {"file.json", MANIFEST}


def test_an_export_of_many_pages_has_each_item_once_though_some_are_closed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "PAGE", 10)
    monkeypatch.setattr(seen, "OVERLAP", 2)
    with in_process() as ledger:
        payloads = [
            {"id": f"k{number:02d}", "task": "t", "content": "c", "types": ["tool"], "scopes": ["public"]}
            for number in range(45)
        ]
        ledger.save_many(payloads)

        def closing(count: int) -> None:
            if count == 15:  # the latest come first: these are written already
                for number in range(40, 45):
                    ledger.revise(f"k{number}", scopes=["user:ann"])

        export_tree(ledger, tmp_path / "tree", progress=closing)
        entries = files(tmp_path / "tree")["global/tools.json"]
        assert [entry["id"] for entry in entries] == [f"k{number:02d}" for number in range(45)]


def exported(ledger: LedgerClient, directory: Path) -> set[str]:
    written: Written = export_tree(ledger, directory, user="ann")
    assert set(written.files) == set(files(directory))
    return set(written.files)


def test_memories_travel_with_their_user_alone(tmp_path: Path) -> None:
    with in_process() as ledger:
        ann = ledger.acting_as(user="ann")
        ann.profiles.put("user", {"occupation": "厨师", "people": [{"name": "李雷"}]})
        content = ann.profiles.get("user")
        export_tree(ann, tmp_path / "tree", user="ann")
    with in_process() as ledger:
        ann = ledger.acting_as(user="ann")
        assert import_tree(ledger, tmp_path / "tree").memories == 0
        assert import_tree(ann, tmp_path / "tree", user="ann").memories == 1
        assert ann.profiles.get("user") == content
        assert import_tree(ann, tmp_path / "tree", user="ann").memories == 0
        assert (ann.profiles.get("work") or {})["expertise"] == []


def test_who_may_read_and_write_an_item_beside_its_scopes_goes_out_and_comes_in(tmp_path: Path) -> None:
    acl = [{"entity": "team:组织", "permission": "read"}, {"entity": "user:bob", "permission": "read_write"}]
    with in_process() as ledger:
        ann = ledger.acting_as(user="ann")
        ann.save("t", "shared when it was saved", ["tool"], id="saved", acl=acl)
        ann.save("t", "shared later", ["tool"], id="later")
        ann.share("later", acl)
        ann.save("t", "closed again", ["tool"], id="closed", acl=acl)
        ann.share("closed", [])
        export_tree(ann, tmp_path / "tree")
        assert_brought(import_tree(ann, tmp_path / "tree"), unchanged=3)
    with in_process() as ledger:
        ann, bob = ledger.acting_as(user="ann"), ledger.acting_as(user="bob")
        assert_brought(import_tree(ann, tmp_path / "tree"), saved=3)
        assert {item["id"]: item.get("acl") for item in ann.list()["results"]} == {
            "saved": acl,
            "later": acl,
            "closed": None,
        }
        bob.revise("later", content="better")
        assert {item["id"] for item in ledger.acting_as(team="组织").list()["results"]} == {"later", "saved"}


def test_a_tree_has_every_item_where_pages_end_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_process() as ledger:
        for number in range(30):
            ledger.save(f"t {number}", "x" * 300, ["tool"], id=f"i{number:02}", scopes=["public"])
        whole = export_tree(ledger, tmp_path / "whole")
        monkeypatch.setattr(one_answer, "MOST_BYTES", 3_000)
        cut = export_tree(ledger, tmp_path / "cut")
        assert cut.items == whole.items == 30
        assert files(tmp_path / "cut") == files(tmp_path / "whole")
