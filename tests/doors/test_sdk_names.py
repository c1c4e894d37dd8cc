"""What does the SDK say of a name that is none: of another library, with a slip in it, or asked for in the class?"""

from __future__ import annotations

import functools
import inspect
import pydoc
import re
from collections.abc import Callable
from typing import Any

import pytest

import kledger
from kledger import AsyncLedgerClient, LedgerClient
from kledger.client.clients import LedgerEndpoints
from kledger.client.faces import Endpoint
from kledger.client.slips import other_names
from kledger.contract import errors
from tests.doors.scripted_node import scripted_node
from tests.doors.sdk_families import FAMILIES
from tests.house.project import ROOT

EVERY_DAY = (
    *("add", "get_all", "delete_all", "batch_update", "batch_delete", "feedback", "users"),  # mem0
    *("thread", "graph", "user"),  # Zep
    *("retain", "retain_batch", "reflect", "create_bank", "list_memories"),  # Hindsight
    *("blocks", "core_memory_append", "core_memory_replace", "archival_memory_insert", "conversation_search"),  # Letta
    *("append_to_stream", "get_stream", "read_stream", "read_all", "subscribe_to_all", "subscribe_to_stream"),
    *("delete_stream", "tombstone_stream"),  # KurrentDB
    *("StartStream", "FetchStreamAsync", "AggregateStreamAsync", "FetchForWriting", "ArchiveStream"),  # Marten
)
"""What the users of each of these call every day."""


@pytest.mark.parametrize("client", [LedgerClient, AsyncLedgerClient])
def test_a_method_of_another_library_is_answered_with_the_one_that_is_here(client: type) -> None:
    for name, here in (("add", "remember"), ("update", "revise"), ("delete", "retire"), ("subscribe", "changes")):
        with pytest.raises(AttributeError, match=f"{client.__name__}.*{name}.*here it is {here}"):
            getattr(client("http://127.0.0.1:1"), name)
        assert hasattr(client, here)
    for name in EVERY_DAY:
        with pytest.raises(AttributeError, match=f"'{name}': here it is "):
            getattr(client("http://127.0.0.1:1"), name)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing_like_it'$"):
        client("http://127.0.0.1:1").nothing_like_it  # noqa: B018  # to name it is the test


def test_what_the_package_has_is_listed_before_it_is_loaded_and_its_errors_have_one_base() -> None:
    assert {*kledger.__all__} <= {*dir(kledger)}
    assert kledger.LedgerError is errors.LedgerError
    assert all(hasattr(kledger, name) for name in kledger.__all__)


def test_a_client_of_another_library_is_imported_under_the_name_that_it_has_here() -> None:
    for name, here in (("Memory", "LedgerClient"), ("AsyncMemory", "AsyncLedgerClient"), ("Client", "LedgerClient")):
        with pytest.raises(ImportError, match=f"'{name}'.*from kledger import {here}"):
            exec(f"from kledger import {name}")
        assert here in kledger.__all__
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        exec("from kledger import Nothing")
    assert not hasattr(kledger, "nothing")
    assert not hasattr(kledger, "Nothing")


def test_an_error_that_is_imported_from_the_package_is_told_where_it_is() -> None:
    for name in ("NotOwner", "UnknownKnowledge", "ViewBehind"):
        with pytest.raises(ImportError, match=f"'{name}'.*write: from kledger.contract.errors import {name}"):
            exec(f"from kledger import {name}")
    with pytest.raises(ImportError, match=r"write: from kledger\.contract import errors$"):
        exec("from kledger import errors")


@pytest.mark.parametrize("client", [LedgerClient, AsyncLedgerClient])
def test_a_client_that_is_shown_says_which_node_it_asks_and_as_whom(client: Any) -> None:
    ledger = client("http://127.0.0.1:1", token="secret-of-mine")
    assert repr(ledger) == f"<{client.__name__} of http://127.0.0.1:1 as the operator or the token's>"
    ann = ledger.acting_as(user="ann", agent="coder")
    assert repr(ann) == f"<{client.__name__} of http://127.0.0.1:1 as user:ann, agent:coder>"
    assert repr(client("http://127.0.0.1:1")) == f"<{client.__name__} of http://127.0.0.1:1 as the operator>"
    assert "user:ann" in repr(ann.profiles)
    assert "session:s-1" in repr(ann.session("s-1"))
    assert "secret" not in repr(client("http://ann:secret@127.0.0.1:1"))


def test_an_argument_of_another_library_is_answered_with_the_one_that_is_here() -> None:
    ledger: Any = LedgerClient("http://127.0.0.1:1")  # as of a program that no type checker reads
    asked: list[tuple[Callable[[], object], str]] = [
        (lambda: ledger.acting_as("ann"), "as user=…"),
        (lambda: ledger.search("tea", 3), "as top_k=…"),
        (lambda: ledger.search("tea", threshold=0.4), "here it is min_match=…"),
        (lambda: ledger.recall("tea", max_tokens=400), "here it is budget_tokens=…"),
        (lambda: ledger.remember("tea", ttl=60), "here it is lifetime=…"),
        (lambda: ledger.session("s").context(budget=400), "here it is max_tokens=…"),
        (lambda: ledger.search("tea", run_id="r"), "lineage('trace:ID') has what came of one"),
        (lambda: ledger.search("tea", valid_at="2020-01-01T00:00:00Z"), "happened_at=… for when it was"),
        (lambda: ledger.search("tea", min_rating=4), "here it is min_score=…"),
        (lambda: ledger.get("tea", version=3), "the valid_from that history has of the version"),
        (lambda: ledger.retire("tea", current_version=3), "here it is expected_version=…"),
        (lambda: ledger.acting_as(tenant="acme"), "here it is org=…"),
        (lambda: ledger.changes(since=3), "here it is after=…"),
        (lambda: ledger.changes(position=3), "here it is after=…"),
        (lambda: ledger.list(skip=10), "here it is offset=…"),
        (lambda: ledger.list(page=2), "here it is iterate, which reads all of them"),
        (lambda: ledger.list(cursor=9), "here it is before=…"),
        (lambda: ledger.list(order_by="helpful"), "here it is sort=…"),
        (lambda: ledger.acting_as(user_id="ann"), "here it is user=…"),
        (lambda: ledger.acting_as(person="ann"), "here it is user=…"),
        (lambda: ledger.search("tea", tenant_id="acme"), "here it is acting_as(org=…)"),
        (lambda: ledger.within(trace="t"), "is trace_id=… meant?"),
        (lambda: ledger.share("tea", readers=["user:bob"]), "acl=[{'entity': 'user:bob', 'permission': 'read'}]"),
        (lambda: ledger.save("tea", "hot", ["tool"], writers=["user:bob"]), "'permission': 'read_write'}]"),
        (lambda: ledger.session("s").append("user", "hello"), "write [{'role': 'user'"),
        (lambda: ledger.session("s").append(role="user", content="hello"), "a field of a message"),
    ]
    for call, here in asked:
        with pytest.raises(TypeError, match=re.escape(here)):
            call()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_help_of_a_method_of_the_class_has_its_name_and_its_arguments(family: type) -> None:
    endpoints = [name for name in dir(family) if isinstance(getattr(family, name), Endpoint)]
    assert endpoints
    for name in endpoints:
        endpoint = getattr(family, name)
        assert getattr(family, endpoint.__name__) is endpoint  # one may have two names
        # On one line, or from Python 3.13 on with each argument on its own.
        shown = " ".join(pydoc.plain(pydoc.render_doc(endpoint)).split("\n\n")[1].split())
        _, *taken = inspect.signature(endpoint.function).parameters
        assert shown.startswith((f"{endpoint.__name__}(self", f"{endpoint.__name__}( self"))
        assert all(f" {argument}: " in shown for argument in taken), (shown, taken)


def test_a_method_of_the_class_is_called_with_the_client_first() -> None:
    with scripted_node() as node, LedgerClient(node.url) as ledger:
        node.says("GET /api/knowledge/k-1", {"id": "k-1"})
        assert LedgerClient.get(ledger, "k-1") == {"id": "k-1"}


FACES: dict[str, type] = {
    each.__name__: each for each in (LedgerEndpoints, *FAMILIES) if each.__name__ in other_names._OF_A_FAMILY
}


@pytest.mark.parametrize("family", other_names._OF_A_FAMILY)
def test_every_name_that_an_answer_gives_is_there(family: str) -> None:
    here = LedgerClient if family == "LedgerEndpoints" else FACES[family]
    for other, answer in other_names._OF_A_FAMILY[family].items():
        assert not hasattr(here, other), other
        methods = [word for word in re.findall(r"[a-z_]+", answer) if hasattr(here, word)]
        assert methods or answer.startswith("kledger "), answer


@pytest.mark.parametrize("family", FACES.values())
@pytest.mark.parametrize("client", [LedgerClient, AsyncLedgerClient])
def test_each_part_of_a_client_says_what_it_is_called_here(client: Any, family: type) -> None:
    part = FAMILIES[family](client("http://127.0.0.1:1"))
    for other, answer in other_names._OF_A_FAMILY[family.__name__].items():
        with pytest.raises(AttributeError, match=rf"no attribute '{other}': here it is {re.escape(answer)}$"):
            getattr(part, other)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_name_that_is_nearly_right_is_answered_with_the_one_that_is_meant(family: type) -> None:
    part = FAMILIES[family](LedgerClient("http://127.0.0.1:1"))
    public = [name for name in dir(family) if not name.startswith("_") and len(name) > 4]
    for name in (name for name in public if not hasattr(type(part), name[:-1])):
        with pytest.raises(AttributeError, match=r": (is \w+ meant\?|here (it|\w+) is .*)$"):
            getattr(part, name[:-1])
    with pytest.raises(AttributeError, match=r"no attribute '__nothing__'$"):
        part.__nothing__  # noqa: B018  # as above


def test_a_slip_of_the_keys_is_answered_with_the_name_that_is_meant() -> None:
    with LedgerClient("http://127.0.0.1:1") as ledger:
        for name, said in (("serach", "is search meant?"), ("delet", "here delete is retire, which restore takes")):
            with pytest.raises(AttributeError, match=re.escape(said)):
                getattr(ledger, name)


PAGE = ROOT / "docs/how-to/come-from-another-store.md"
NO_METHODS = {"Memory", "AsyncMemory", "all", "infer"}
"""Classes, a stream, and an argument of `add`, which is answered as such."""


def names_of_others() -> list[str]:
    """What the first column of each table names: `user.add`, `delete_all(user_id)`."""
    rows = re.findall(r"(?m)^\| ([^|]*`[^|]*) \|", PAGE.read_text())
    said = [
        name for row in rows for code in re.findall(r"`([^`]*)`", row) for name in re.findall(r"[A-Za-z_]\w+", code)
    ]
    return sorted(set(said) - NO_METHODS - {"text", "messages", "False"})


def test_the_page_for_who_comes_from_another_store_names_some() -> None:
    assert {"reset", "add_messages", "graph", "thread", "user", "human", "user_id", "valid_at"} <= {*names_of_others()}


@pytest.mark.parametrize("name", names_of_others())
def test_every_name_of_another_library_on_its_page_is_answered(name: str) -> None:
    with LedgerClient("http://127.0.0.1:1") as ledger:
        if name in other_names._ARGUMENTS | other_names.ELSEWHERE:
            takes: Any = ledger.remember if name == "metadata" else ledger.search
            with pytest.raises(TypeError, match=f"'{name}'; here it is "):
                takes("x", **{name: "x"})
        elif not hasattr(LedgerClient, name):
            with pytest.raises(AttributeError, match=f"'{name}': here it is "):
                getattr(ledger, name)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"user_id": "ann"},
            r"search\(\) got .* argument 'user_id'; here it is acting_as\(user=…\)",
        ),
        ({"limit": 3}, "here it is top_k"),
        ({"bogus": 3}, "'bogus'; it takes query, "),
        ({"topk": 3}, r"'topk'; is top_k=… meant\?; it takes query, "),
        ({"metadata": {}}, "'metadata'; here it is tags=…; it takes query, "),
    ],
)
def test_an_argument_that_is_none_is_told_those_that_there_are(given: dict[str, Any], said: str) -> None:
    with LedgerClient("http://127.0.0.1:1") as ledger, pytest.raises(TypeError, match=said):
        ledger.search("q", **given)


def test_an_argument_of_another_method_is_told_what_it_is_called_in_this_one() -> None:
    with LedgerClient("http://127.0.0.1:1") as ledger:
        slips: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
            (ledger.list, {"top_k": 3}, r"^list\(\) got .* 'top_k'; here it is limit=…; it takes limit, "),
            (ledger.recall, {"query": "x"}, r"^recall\(\) got .* 'query'; here it is message=…; it takes message, "),
            (ledger.recall, {"bogus": "x"}, r"^recall\(\) got .* 'bogus'; it takes message, "),
            (ledger.recall, {"top_k": 3}, r"^recall\(\) missing a required argument: 'message'; it takes message, "),
            (
                functools.partial(ledger.remember, "x"),
                {"user": "ann"},
                r"'user'; here it is acting_as\(user=…\); it takes content, ",
            ),
            (ledger.recalls.list, {"k": 3}, r"^list\(\) got .* 'k'; here it is limit=…; it takes trace, "),
            (ledger.documents.list, {"n": 3}, r"^list\(\) got .* 'n'; here it is limit=…; it takes limit, "),
            (
                functools.partial(ledger.resources.save, "r", "t"),
                {"tags": {}},
                r"^save\(\) got .* 'tags'; here it is metadata=…; it takes id, ",
            ),
            (lambda **bad: next(ledger.iterate(**bad)), {"tpyes": []}, r"^iterate\(\) got .*; is types=… meant\?; it"),
            (
                lambda **bad: next(ledger.resources.iterate(**bad)),
                {"types": []},
                r"^iterate\(\) got .*; it takes page, ",
            ),
        ]
        for method, given, said in slips:
            with pytest.raises(TypeError, match=said):
                method(**given)


@pytest.mark.parametrize("client", [LedgerClient, AsyncLedgerClient])
def test_what_a_client_is_made_with_elsewhere_is_told_what_it_is_called_here(client: Any) -> None:
    for given, said in (
        ({"api_key": "x"}, "'api_key'; here it is token=…; it takes url, timeout"),
        ({"host": "x"}, "'host'; here it is url=…; it takes url, timeout"),
        ({"base_url": "x"}, "'base_url'; here it is url=…"),
        ({"max_retries": 3}, "'max_retries'; here it is retries=…"),
        ({"timout": 3}, r"'timout'; is timeout=… meant\?"),
    ):
        with pytest.raises(TypeError, match=rf"^{client.__name__}\(\) got .* {said}"):
            client(**given)


@pytest.mark.parametrize("part", ["limit", "before", "offset", "top_k"])
async def test_a_part_of_a_list_is_not_iterated_and_what_to_write_is_told(part: str) -> None:
    said = rf"^iterate\(\) reads a whole list and takes no '{part}': itertools.islice"
    with LedgerClient("http://127.0.0.1:1") as ledger:
        for lister in (ledger, ledger.resources):
            with pytest.raises(TypeError, match=said):
                next(lister.iterate(**{part: 1}))  # type: ignore[arg-type]
    async with AsyncLedgerClient("http://127.0.0.1:1") as awaited:
        for asynchronous in (awaited, awaited.resources):
            with pytest.raises(TypeError, match=said):
                await anext(asynchronous.iterate(**{part: 1}))  # type: ignore[arg-type]
