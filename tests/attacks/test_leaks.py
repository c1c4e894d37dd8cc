"""Does anybody learn of what they may not see? Principals × kinds of scopes × doors × shapes of questions.

One node without tokens, so that everybody may be anybody. Every item has the same common words, a word of its own, a
trace and a message of its own. What may be seen is said once, by hand, in `SEEN`; every answer is held against it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle, product
from typing import Any

import httpx
import pytest

from kledger import LedgerClient
from kledger.client.slips.own_advice import in_python
from kledger.contract.errors import LedgerError
from tests.attacks.leak_doors import (
    Ask,
    Doors,
    Told,
    about,
    bulk,
    changes,
    counted,
    headers,
    judged,
    lacking,
    listing,
    recalls,
    search,
    served,
)
from tests.journeys.running_node import caught_up, head, running
from tests.patience import PATIENCE

PRINCIPALS: dict[str, dict[str, Any]] = {
    "user:ada": {"user": "ada"},
    "agent:scribe": {"agent": "scribe"},
    "project:apollo": {"project": "apollo"},
    "team:web": {"team": "web"},
    "org:acme": {"org": "acme"},
    "department:finance": {"scopes": ["department:finance"]},
    "a stranger": {"user": "mallory"},
    "the operator": {},
}
ENTITIES = [name for name in PRINCIPALS if ":" in name]
KEEPER = "agent:keeper"
ODD = ["o'--\"/../x", "论文/1.md", "o%2F*>?# {}[]\\"]
EVERYBODY = list(PRINCIPALS)
READ_ALL = {"the operator"}  # who says nothing to a node that asks for no token
OVER_MCP = ("mcp", "resource")
KINDS = ("scope-", "acl-")
NOT_THERE = "not-there"

# Who finds each item in lists and searches now, the operator aside.
SEEN: dict[str, set[str]] = {
    "scope-public": set(EVERYBODY),
    **{f"scope-{entity}": {entity} for entity in ENTITIES},
    **{f"acl-{entity}": {entity} for entity in ENTITIES},
    "scopes-and-acl": {"user:ada", "team:web", "department:finance"},
    **{"closed": set(), "opened": set(EVERYBODY)},
    **{"unshared": set(), "shared-later": {"user:ada"}},
    # By owning it: nobody has its scope; and by owning it now, which user:ada did before.
    **{"owned-alone": {"user:ada"}, "given-away": {"agent:scribe"}, "others-secret": set()},
    **{odd: {"user:ada"} for odd in ODD},
}


def word_of(item_id: str) -> str:
    return f"zq{list(SEEN).index(item_id):03d}word"


def reads(principal: str, item_id: str) -> bool:
    return principal in SEEN[item_id] | READ_ALL


@dataclass
class Target:
    """The node, its doors, and the position at which everything was otherwise."""

    doors: Doors
    ledger: LedgerClient
    before: int
    moment: str = ""
    _missing: dict[tuple[str, str, str], tuple[str | None, str]] = field(default_factory=dict)

    def ask(self, door: str, principal: str, ask: Ask) -> Told:
        return self.doors.all[door](PRINCIPALS[principal], ask)

    def missing(self, door: str, principal: str, question: str, ask: Ask) -> tuple[str | None, str]:
        """What is told of an item that is not there."""
        key = (door, principal, question)
        if key not in self._missing:
            self._missing[key] = lacking(self.ask(door, principal, ask), NOT_THERE)
        return self._missing[key]

    def hidden_words(self, principal: str) -> list[str]:
        return [word_of(item) for item in SEEN if not reads(principal, item)]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running(tmp_path_factory.mktemp("leaks") / "data") as node, node.client() as ledger:
        ledger.register_scope_type("department", 2.5)
        doors = Doors(node.url)

        def save(item_id: str, scopes: list[str], acl: list[str] | None = None, owner: str = KEEPER) -> None:
            word = word_of(item_id)
            ledger.save(
                f"common words {word}",
                f"what is common of {word}",
                ["tool"],
                id=item_id,
                owner=owner,
                scopes=scopes,
                acl=[{"entity": entity, "permission": "read"} for entity in acl or []],
                source={"trace_id": f"t-{word}", "message_id": f"m-{word}", "name": word},
            )

        save("closed", ["public"])
        save("opened", ["user:ada"])
        save("unshared", [KEEPER], ENTITIES)
        save("shared-later", [KEEPER])
        save("given-away", ["team:nobody"], owner="user:ada")
        before = head(ledger)
        for entity in ENTITIES:
            save(f"scope-{entity}", [entity])
            save(f"acl-{entity}", [KEEPER], [entity])
        save("scope-public", ["public"])
        save("scopes-and-acl", ["team:web"], ["user:ada", "department:finance"])
        save("owned-alone", ["team:nobody"], owner="user:ada")
        save("others-secret", ["user:bob"], owner="user:bob")
        for odd in ODD:
            save(odd, ["user:ada"])
        for item_id, scopes in (("closed", [KEEPER]), ("opened", ["public"])):
            ledger.revise(item_id, scopes=scopes)
        ledger.revise("given-away", owner="agent:scribe")
        ledger.share("unshared", [])
        ledger.share("shared-later", [{"entity": "user:ada", "permission": "read"}])
        caught_up(ledger)
        moment = ledger.sql(f"SELECT stream_time::VARCHAR FROM events WHERE position = {before}")["rows"][0][0]
        yield Target(doors, ledger, before, moment.replace(" ", "T").replace("+00", "+00:00"))
        doors.close()


def ids(told: Told) -> set[str]:
    assert told.code is None, told
    return {item["id"] for item in told.document["results"]}


def each(doors: Doors, ask: Ask) -> list[tuple[str, str]]:
    return list(product(doors.of(ask), PRINCIPALS))


def seen_by(principal: str, door: str = "http") -> set[str]:
    """What is found. Through MCP a model that nobody named is a stranger, and never the operator."""
    who = "a stranger" if principal in READ_ALL and door in OVER_MCP else principal
    return {item_id for item_id in SEEN if reads(who, item_id)}


def seen_then(principal: str) -> set[str]:
    """What was there at `before`, could be seen then, and can be seen now; no tool asks for then."""
    ada = ["user:ada"]
    then = {"closed": EVERYBODY, "opened": ada, "unshared": ENTITIES, "shared-later": [], "given-away": ada}
    return {item_id for item_id, who in then.items() if principal in {*who, *READ_ALL}} & seen_by(principal)


def shapes(target: Target) -> list[tuple[Ask, bool]]:
    """Every shape of a search and a list, and whether it asks for then instead of now."""
    now = [search("common words", path) for path in ("fused", "keyword", "vector", "recency")]
    now += [search("common words", types="tool,plan"), listing(), listing(status="all"), listing(types="tool")]
    then = [
        search("common words", path, as_of)
        for path in ("fused", "keyword", "vector", "recency")
        for as_of in (target.before, target.moment)
    ]
    then += [listing(as_of=as_of, status="all") for as_of in (target.before, target.moment)]
    return [(ask, False) for ask in now] + [(ask, True) for ask in then]


def test_lists_and_searches_of_every_door_tell_what_may_be_seen_and_nothing_else(target: Target) -> None:
    asked = shapes(target)
    for number, (door, principal) in enumerate(product(target.doors.all, PRINCIPALS)):
        for ask, then in asked[number % 3 :: 3] if door == "command" else asked:  # a command takes ten times as long
            if door not in target.doors.of(ask):
                continue
            told = target.ask(door, principal, ask)
            expected = seen_then(principal) if then else seen_by(principal, door)
            assert ids(told) == expected, (door, principal, ask)
            assert not [word for word in target.hidden_words(principal) if word in told.text]


def test_no_filter_widens_what_may_be_seen(target: Target) -> None:
    filters: list[dict[str, Any]] = [
        *({"scopes": entity} for entity in [*ENTITIES, KEEPER, "user:bob"]),
        *({"owner": owner} for owner in (KEEPER, "user:ada", "user:bob")),
        {"scopes": "user:x') OR ('1'='1"},
        {"owner": "user:x' OR '1'='1"},
        {"offset": 3, "limit": 1000},
        {"status": "retired"},
    ]
    doors = cycle(("http", "sdk", "mcp", "http", "sdk", "mcp", "command"))
    for principal, given in product(PRINCIPALS, filters):
        ask, door = listing(**given), next(doors)
        told = target.ask(door if door in target.doors.of(ask) else "http", principal, ask)
        assert ids(told) <= seen_by(principal), (principal, given)


def test_what_is_hidden_is_told_of_as_what_is_not_there(target: Target) -> None:
    questions = ("get", "history", "why", "recalls", "lineage")
    in_turn = cycle(questions)

    def hold(door: str, principal: str, item_id: str, question: str) -> None:
        told = target.ask(door, principal, about(question, item_id))
        if item_id in seen_by(principal, door):
            assert told.code is None, (door, principal, item_id, question, told)
            assert not [word for word in target.hidden_words(principal) if word in told.text]
        else:
            missing = target.missing(door, principal, question, about(question, NOT_THERE))
            assert lacking(told, item_id) == missing, (door, principal, item_id, question)
            assert word_of(item_id) not in told.text

    for principal, item_id in product(PRINCIPALS, SEEN):
        for question in questions[:-1]:
            hold("http", principal, item_id, question)
        hold("resource", principal, item_id, "get")
        hold("sdk", principal, item_id, next(in_turn))
        if item_id.startswith(KINDS[0]) and principal != "the operator":
            hold("command", principal, item_id, next(in_turn))


def test_as_of_then_an_item_is_read_by_its_id_only_by_those_who_read_it_then_and_now(target: Target) -> None:
    moments: Iterator[int | str] = cycle((target.before, target.moment, target.before))
    for (door, principal), item_id in product(
        each(target.doors, about("get", NOT_THERE, target.before)),
        ("closed", "opened", "unshared", "shared-later", "given-away"),
    ):
        told = target.ask(door, principal, about("get", item_id, next(moments)))
        assert (told.code is None) == (item_id in seen_then(principal)), (door, principal, item_id, told)


def test_histories_show_only_the_versions_that_the_reader_might_have_read(target: Target) -> None:
    for door in target.doors.of(about("history", NOT_THERE)):
        for principal, item_id, versions in (
            ("a stranger", "opened", [2]),
            ("user:ada", "opened", [1, 2]),
            ("user:ada", "shared-later", [2]),
            ("user:ada", "acl-user:ada", [2]),
            ("agent:scribe", "given-away", [2]),
            ("the operator", "closed", [1, 2]),
        ):
            told = target.ask(door, principal, about("history", item_id))
            assert [each["version"] for each in told.document["versions"]] == versions, (principal, item_id)


def test_lineage_tells_nothing_of_the_traces_messages_and_events_of_what_is_hidden(target: Target) -> None:
    saved = target.ledger.sql("SELECT entity_id, event_id FROM events WHERE type = 'knowledge.saved'")["rows"]
    doors, refs = cycle(("http", "sdk")), cycle(("event", "trace", "message"))
    for (item_id, event_id), principal in product(saved, PRINCIPALS):
        word = word_of(item_id)
        ref = {"event": f"event:{event_id}", "trace": f"trace:t-{word}", "message": f"message:m-{word}"}[next(refs)]
        told = target.ask(next(doors), principal, about("lineage", ref))
        assert (told.code is None) == reads(principal, item_id), (principal, item_id, ref)
        assert told.code in (None, "unknown_reference")


def test_what_may_not_be_changed_answers_as_what_is_not_there_and_stays(target: Target) -> None:
    before = head(target.ledger)
    doors = cycle(("http", "sdk", "mcp", "http", "sdk", "mcp", "http", "command"))
    in_turn = cycle(changes(NOT_THERE))
    for principal, item_id in product(PRINCIPALS, SEEN):
        if reads(principal, item_id):
            continue
        for _ in range(3 if item_id.startswith(KINDS) else 1):
            door, change = next(doors), next(in_turn)
            door = door if door in target.doors.of(changes(item_id)[change]) else "sdk"
            told = target.ask(door, principal, changes(item_id)[change])
            missing = target.missing(door, principal, change, changes(NOT_THERE)[change])
            assert lacking(told, item_id) == missing, (door, principal, item_id, change)
    assert head(target.ledger) == before


def test_readers_change_nothing_of_what_is_the_owners(target: Target) -> None:
    before = head(target.ledger)
    kinds = cycle(KINDS)
    for principal, change in product(ENTITIES, ("revise", "rescope", "retire", "share", "revert")):
        for door in target.doors.of(changes(NOT_THERE)[change]):
            told = target.ask(door, principal, changes(next(kinds) + principal)[change])
            assert told.code == "not_owner", (door, principal, change, told)
    assert head(target.ledger) == before


def test_a_batch_of_verdicts_is_no_oracle(target: Target) -> None:
    for principal, door in zip(PRINCIPALS, cycle(("http", "mcp", "sdk")), strict=False):
        hidden = [item_id for item_id in SEEN if item_id not in seen_by(principal, door)]
        told = target.ask(door, principal, judged([*hidden, NOT_THERE])).document
        assert told["updated"] == 0
        said = {
            (one["error"]["code"], one["error"]["message"].replace(repr(one["knowledge_id"]), "ID"))
            for one in told["refused"]
        }
        assert len(told["refused"]) == len(hidden) + 1
        assert len(said) == 1, said


def test_what_is_counted_and_what_changed_is_of_what_may_be_seen(target: Target) -> None:
    for door, principal in each(target.doors, counted("facets")):
        seen = seen_by(principal, door)
        facets = target.ask(door, principal, counted("facets"))
        assert facets.document["total"] == len(seen), (door, principal)
        scopes = {one["value"] for one in facets.document["scopes"]}
        assert scopes == {scope for item_id in seen for scope in target.ledger.get(item_id)["scopes"]}
        overview = target.ask(door, principal, counted("overview"))
        assert overview.document["total"] == len(seen), (door, principal)
        assert sum(day["saved"] for day in overview.document["days"]) == len(seen), (door, principal)
        changed = target.ask(door, principal, counted("changed"))
        assert {one["id"] for one in changed.document["changes"]} == seen, (door, principal)
        for told in (facets, overview, changed):
            assert not [word for word in target.hidden_words(principal) if word in told.text], (door, principal)


@pytest.mark.parametrize("action", ["retire", "restore", "share"])
def test_a_bulk_is_no_oracle(target: Target, action: str) -> None:
    before = head(target.ledger)
    for (door, principal), dry_run in product(each(target.doors, bulk(action, [], dry_run=True)), (True, False)):
        hidden = [item_id for item_id in SEEN if item_id not in seen_by(principal, door)]
        if door == "command" and not dry_run and hidden:
            continue  # it is the same request; starting it takes long
        results = target.ask(door, principal, bulk(action, [*hidden, NOT_THERE], dry_run=dry_run)).document["results"]
        said = {
            (one["outcome"], one["task"], one["error"]["code"], one["error"]["message"].replace(repr(one["id"]), "ID"))
            for one in results
        }
        assert [one["id"] for one in results] == [*hidden, NOT_THERE]
        assert len(said) == 1, (door, principal, said)
    assert head(target.ledger) == before


def test_saving_over_a_hidden_item_tells_that_the_id_is_taken_and_nothing_else(target: Target) -> None:
    mallory = target.ledger.acting_as(user="mallory")
    said = set()
    for item_id in ("others-secret", "owned-alone", "closed"):
        payload = {"id": item_id, "task": "t", "content": "c", "types": ["tool"]}
        (one,) = mallory.save_many([payload])["results"]
        alone = httpx.post(
            f"{target.doors.url}/api/knowledge", json=payload, headers=headers({"user": "mallory"}), timeout=PATIENCE
        )
        assert alone.status_code == 409
        for error in (alone.json()["error"], one["error"]):
            assert error is not None
            assert error["details"] == {"id": item_id}
            said.add((error["code"], in_python(error["message"]).replace(repr(item_id), "ID")))
        assert word_of(item_id) not in json.dumps(alone.json())
    assert len(said) == 1


def test_recalls_of_others_are_theirs(target: Target) -> None:
    served_then = target.ledger.acting_as(user="ada").search(word_of("acl-user:ada"), top_k=100, record=True)
    assert {"acl-user:ada", "scope-public"} <= {item["id"] for item in served_then["results"]}
    position = head(target.ledger)
    (event_id,) = target.ledger.seeing(position).sql(
        f"SELECT event_id FROM events WHERE entity_id = '{served_then['recall_id']}'"
    )["rows"][0]
    for principal in PRINCIPALS:
        for door in target.doors.of(about("lineage", NOT_THERE)):
            told = target.ask(door, principal, about("lineage", f"event:{event_id}"))
            knows = {"user:ada"} if door in OVER_MCP else {"user:ada", *READ_ALL}  # nobody is no operator over MCP
            assert (told.code is None) == (principal in knows), (principal, door)
    for door in target.doors.of(about("lineage", NOT_THERE)):
        told = target.ask(door, "a stranger", about("lineage", "scope-public"))
        assert event_id not in told.text
    recall_id = str(served_then["recall_id"])
    lists = (recalls(), recalls(actor="user:ada"), recalls(since=1), about("recalls", "scope-public"))
    for principal, ask in product(PRINCIPALS, lists):
        for door in target.doors.of(ask):
            told = target.ask(door, principal, ask)
            assert (recall_id in told.text) == (principal in ("user:ada", "the operator")), (principal, door, ask.line)
    for principal in PRINCIPALS:
        for door in target.doors.of(served(NOT_THERE)):
            told, nothing = (target.ask(door, principal, served(each)) for each in (recall_id, NOT_THERE))
            if principal in ("user:ada", "the operator"):
                assert told.code is None, (principal, door)
                continue
            assert lacking(told, recall_id) == lacking(nothing, NOT_THERE), (principal, door)


def test_a_recall_of_before_tells_what_may_be_seen_now(target: Target) -> None:
    ada = target.ledger.acting_as(user="ada")
    said = "what zqwithdrawn was"
    target.ledger.save("withdrawn", said, ["tool"], id="withdrawn", owner=KEEPER, scopes=["public"])
    caught_up(target.ledger)
    recall_id = str(ada.search("zqwithdrawn", top_k=100)["recall_id"])
    caught_up(target.ledger)
    target.ledger.revise("withdrawn", scopes=[KEEPER])
    caught_up(target.ledger)
    for door in target.doors.of(served(recall_id)):
        told = target.ask(door, "user:ada", served(recall_id)).document
        assert (told["left_out"], told["of"]) == (1, len(told["results"]) + 1)
        assert said not in json.dumps(told)
        asked = target.ask(door, "user:ada", recalls(item="withdrawn"))
        assert recall_id not in asked.text
        assert lacking(target.ask(door, "user:ada", about("recalls", "withdrawn")), "withdrawn") == target.missing(
            door, "user:ada", "recalls", about("recalls", NOT_THERE)
        )
    target.ledger.retire("withdrawn")


def test_what_is_recalled_at_the_start_and_for_a_goal_is_what_may_be_seen(target: Target) -> None:
    for principal, who in PRINCIPALS.items():
        ledger = target.ledger.acting_as(**who)
        starts = [ledger.startup(query, top_k=80, min_score=1, record=False) for query in ("", "common words")]
        focused = ledger.focus("goal", "common words", top_k=50, min_score=1)
        given = {"goal_id": "goal-of-mcp", "description": "common words", "top_k": 50, "min_score": 1}
        through_mcp = target.doors.mcp(who, Ask("", ("", (), {}), [], tool=("goal_focus", given))).document
        for told in (*starts, focused, ledger.goal("goal"), through_mcp):
            shown = {item_id for item_id in SEEN if word_of(item_id) in json.dumps(told)}
            assert shown == seen_by(principal, "mcp" if told is through_mcp else "sdk"), principal
        for other in PRINCIPALS.keys() - {principal, "the operator"}:
            if principal != "the operator":
                with pytest.raises(LedgerError, match="goal"):
                    ledger.goal("goal", owner="user:mallory" if other == "a stranger" else other)


def test_waiting_for_a_position_shows_no_more(target: Target) -> None:
    position = head(target.ledger)
    for principal, who in PRINCIPALS.items():
        asked = {"q": "common words", "top_k": 100, "min_score": 1, "record": "false", "min_position": position}
        told = target.doors.http(who, Ask("GET /api/knowledge/search", ("", (), {}), [], asked))
        assert ids(told) == seen_by(principal)


def test_why_says_through_what_an_item_is_seen(target: Target) -> None:
    named = [one for one in each(target.doors, about("why", NOT_THERE)) if one[1] in ENTITIES]
    for (door, principal), kind in product(named, ("scope", "acl")):
        told = target.ask(door, principal, about("why", f"{kind}-{principal}")).document
        assert [(one["kind"], one["entity"]) for one in told["because"]] == [(kind, principal)]
        assert told["may_change"] == {"owner": KEEPER, "writers": [], "coordinators": [], "you": None}
