"""What does the SDK refuse before it sends anything? What an append-only log would keep as a slip."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin
from uuid import UUID

import pytest

from kledger import AsyncLedgerClient, LedgerClient
from kledger.client import arguments
from kledger.client.arguments import hints_of_arguments
from kledger.client.faces import Endpoint
from kledger.contract.errors import IllegalScope, InvalidPayload, NodeUnreachable
from tests.doors.scripted_node import ScriptedNode, scripted_node
from tests.doors.sdk_families import FAMILIES


@pytest.fixture
def node() -> Iterator[ScriptedNode]:
    with scripted_node() as running:
        yield running


def arguments_of(*kinds: str) -> list[Any]:
    """Every argument of every endpoint whose hint names one of these kinds."""
    return [
        pytest.param(family, name, argument, id=f"{family.__name__}.{name}.{argument}")
        for family, name, argument, hint in every_argument()
        if kinds_of(hint) & {*kinds}
    ]


def every_argument() -> Iterator[tuple[type, str, str, Any]]:
    """Each argument of each endpoint, with its hint: (family, name, argument, hint)."""
    for family in FAMILIES:
        for name in dir(family):
            endpoint = getattr(family, name)
            if isinstance(endpoint, Endpoint):
                for argument, hint in hints_of_arguments(endpoint.function).items():
                    yield family, name, argument, hint


def kinds_of(hint: Any) -> set[str]:
    parts = [hint, *get_args(hint)] if get_origin(hint) in (Union, UnionType) else [hint]
    return {getattr(get_origin(part) or part, "__name__", str(get_origin(part) or part)) for part in parts}


def call(client: Any, family: type, name: str, argument: str, value: Any) -> Any:
    """The endpoint with this one argument, and something harmless for the others that it needs."""
    function = getattr(family, name).function
    parameters = list(inspect.signature(function).parameters.values())[1:]
    needed = [each.name for each in parameters if each.default is inspect.Parameter.empty]
    hints = hints_of_arguments(function)
    stated = {each: harmless(hints[each]) for each in needed if each != argument} | {argument: value}
    return getattr(FAMILIES[family](client), name)(**stated)


def harmless(hint: Any) -> Any:
    """A value that a hint allows."""
    kinds = kinds_of(hint)
    if {"int", "float"} & kinds:
        return 1
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    if {"list", "Sequence", "Iterable"} & kinds:
        of_objects = any({"dict", "Mapping"} & kinds_of(part) for part in get_args(hint))
        return [{}] if of_objects else ["x"]
    if {"dict", "Mapping"} & kinds:
        return {}
    return "x"


def takes(family: type, name: str, argument: str) -> set[str]:
    return kinds_of(hints_of_arguments(getattr(family, name).function)[argument])


@pytest.mark.parametrize(("family", "name", "argument"), arguments_of("list", "Sequence", "Iterable"))
async def test_what_is_no_list_where_one_is_meant_is_refused_and_nothing_is_sent(
    node: ScriptedNode, family: type, name: str, argument: str
) -> None:
    takes_objects = {"dict", "Mapping"} & takes(family, name, argument)
    async with AsyncLedgerClient(node.url, retries=0) as ledger:
        for slip in ("tool", b"tool", 5 if takes_objects else {"tool": 1}):
            with pytest.raises(InvalidPayload, match=rf"^{argument} is .*, and .*a list.* is meant") as caught:
                await call(ledger, family, name, argument, slip)
            details: Any = caught.value.details
            assert details["errors"][0]["field"] == argument
    assert node.asked == []


@pytest.mark.parametrize(("family", "name", "argument"), arguments_of("Literal"))
async def test_a_word_that_is_not_known_is_refused_with_those_that_are(
    node: ScriptedNode, family: type, name: str, argument: str
) -> None:
    async with AsyncLedgerClient(node.url, retries=0) as ledger:
        with pytest.raises(InvalidPayload, match=f"{argument} is 'good': write .* or "):
            await call(ledger, family, name, argument, "good")
    assert node.asked == []


@pytest.mark.parametrize(("family", "name", "argument"), arguments_of("dict", "Mapping"))
async def test_a_text_where_an_object_is_meant_is_refused(
    node: ScriptedNode, family: type, name: str, argument: str
) -> None:
    async with AsyncLedgerClient(node.url, retries=0) as ledger:
        with pytest.raises(InvalidPayload, match=f"{argument} is "):
            await call(ledger, family, name, argument, "tool")
    assert node.asked == []


MORE_NEEDED = {"extract", "knowledge_extract", "revise", "knowledge_revise", "start_job", "session_append"}
MORE_NEEDED |= {"DocumentEndpoints.ingest.name"}  # of a file
"""Endpoints that look at other arguments first."""


@pytest.mark.parametrize(
    ("family", "name", "argument"),
    [each for each in arguments_of("str") if not {each.values[1], each.id} & MORE_NEEDED],
)
async def test_half_a_character_is_refused_and_nothing_is_sent(
    node: ScriptedNode, family: type, name: str, argument: str
) -> None:
    async with AsyncLedgerClient(node.url, retries=0) as ledger:
        with pytest.raises(InvalidPayload, match="surrogate"):
            await call(ledger, family, name, argument, "half \ud83d")
    assert node.asked == []


KINDS = {
    "str": ("a text", [5, True, b"x", ["rice"], {"query": "rice"}, {"rice"}, UUID(int=1), timedelta(1), Path("x")]),
    "int": ("a whole number", ["3", 2.5, math.nan, True, b"3", [3], {"top_k": 3}, timedelta(1)]),
    "float": ("a number", ["0.5", True, b"1", [0.5], {"wait": 1}, timedelta(1)]),
    "bool": ("True or False", ["no", 0, 1.0, b"", [False], {}]),
    "list": ("a list", [5, {1}, {"x": 1}.keys(), iter(["x"]), 2.5, timedelta(1)]),
    "dict": ("an object", ["x", 5, ["a"], {"a"}, [("a", 1)], timedelta(1)]),
}


def meant(of: str) -> list[Any]:
    kinds = {"list": ("list", "Sequence"), "dict": ("dict", "Mapping")}.get(of, (of,))
    return [pytest.param(of, *each.values, id=each.id) for each in arguments_of(*kinds)]


def has_default(family: type, name: str, argument: str) -> bool:
    """None then says that it is not stated."""
    parameters = inspect.signature(getattr(family, name).function).parameters
    return parameters[argument].default is not inspect.Parameter.empty


@pytest.mark.parametrize(("of", "family", "name", "argument"), [each for of in KINDS for each in meant(of)])
async def test_what_is_not_of_the_kind_that_is_meant_is_refused_by_its_name_and_nothing_is_sent(
    node: ScriptedNode, of: str, family: type, name: str, argument: str
) -> None:
    word, wrong = KINDS[of]
    others = takes(family, name, argument)
    async with AsyncLedgerClient(node.url, retries=0) as ledger:
        for value in [*wrong, *([] if "NoneType" in others or has_default(family, name, argument) else [None])]:
            if ({"int", "float"} & others and isinstance(value, int | float)) or type(value).__name__ in others:
                continue
            if ("Path" in others and isinstance(value, Path)) or ("Sequence" in others and isinstance(value, list)):
                continue
            with pytest.raises(InvalidPayload, match=rf"^{argument} is .*, and .*{word}.* is meant") as caught:
                await call(ledger, family, name, argument, value)
            details: Any = caught.value.details
            assert details["errors"][0]["field"] == argument
    assert node.asked == []


@pytest.mark.parametrize(("family", "name", "argument"), arguments_of("list", "Sequence"))
async def test_what_is_no_text_in_a_list_is_refused_with_its_place(
    node: ScriptedNode, family: type, name: str, argument: str
) -> None:
    async with AsyncLedgerClient(node.url, retries=0) as ledger:
        with pytest.raises(InvalidPayload, match=rf"^{argument}\[0\] is 5, and (a text|an object) is meant"):
            await call(ledger, family, name, argument, [5])
    assert node.asked == []


def test_every_argument_of_every_endpoint_has_a_check() -> None:
    for _, name, argument, hint in every_argument():
        if argument != "wire" and not kinds_of(hint) & {"Callable"}:
            assert arguments._rule(hint, "") is not None, (name, argument, hint)


def test_messages_where_a_text_is_meant_are_told_which_argument_takes_them(node: ScriptedNode) -> None:
    said: Any = [{"role": "user", "content": "I am allergic to nuts"}]
    with LedgerClient(node.url) as ledger:
        with pytest.raises(InvalidPayload, match=r"^text is a list, and a text is meant: write messages=\[…\]$"):
            ledger.extract(said)
        with pytest.raises(InvalidPayload, match=r"^text is a list, .*: write conversation=\[…\]$"):
            ledger.tools.knowledge_extract(said)
    assert node.asked == []


def test_numbers_of_other_kinds_are_numbers(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/search", {"results": []})

    class Whole:  # as that of numpy
        def __index__(self) -> int:
            return 3

        def __str__(self) -> str:
            return "3"

    with LedgerClient(node.url) as ledger:
        for top_k in (3, 3.0, Whole()):
            ledger.search("rice", top_k=top_k, min_match=Fraction(1, 2))  # type: ignore[arg-type]
    assert [float(asked.query["top_k"]) for asked in node.asked] == [3, 3, 3]


@pytest.mark.parametrize("client", [LedgerClient, AsyncLedgerClient])
def test_who_makes_a_client_of_what_is_none_is_told_what_is_meant(client: Any) -> None:
    for url in (8420, ["http://127.0.0.1:1"], b"http://127.0.0.1:1"):
        with pytest.raises(NodeUnreachable, match=r"is no address of a node: write http://HOST:PORT"):
            client(url)
    for given, said in (
        ({"timeout": "30"}, r"^timeout is '30', and a number is meant"),
        ({"timeout": None}, r"^timeout is None, and a number is meant"),
        ({"retries": "2"}, r"^retries is '2', and a whole number is meant: write 2$"),
        ({"token": 5}, r"^token is 5, and a text is meant"),
        ({"retry_for": [1]}, r"is no number of seconds to try again for"),
    ):
        with pytest.raises(InvalidPayload, match=said):
            client("http://127.0.0.1:1", **given)


@pytest.mark.parametrize("client", [LedgerClient, AsyncLedgerClient])
def test_what_a_client_is_derived_with_is_checked_as_arguments_are(client: Any) -> None:
    ledger: Any = client("http://127.0.0.1:1")
    slips: list[tuple[Callable[[], object], str]] = [
        (lambda: ledger.within(trace_id=5), "trace_id is 5, and a text is meant: write '5'"),
        (lambda: ledger.within(traceparent=["x"]), "traceparent is a list, and a text is meant"),
        (lambda: ledger.session(5), "session_id is 5, and a text is meant: write '5'"),
        (lambda: ledger.session(None), "session_id is None, and a text is meant"),
        (lambda: ledger.seeing("7"), "position is '7', and a whole number is meant: write 7"),
        (lambda: ledger.seeing(7, wait="1"), "wait is '1', and a number is meant"),
        (lambda: ledger.in_language(["zh"]), "language is a list: write zh or en"),
        (lambda: ledger.acting_as(scopes=[5]), "scopes[0] is 5, and a text is meant: write '5'"),
    ]
    for derive, said in slips:
        with pytest.raises(InvalidPayload) as refused:
            derive()
        assert refused.value.message == said
    for user, named in ((["tom"], "a list"), ({"id": "tom"}, "an object"), (b"tom", "bytes")):
        with pytest.raises(IllegalScope, match=rf"^the user is {named}, and a text is meant$"):
            ledger.acting_as(user=user)


NO_NUMBERS = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("value", [*NO_NUMBERS, [1.0, math.nan], {"a": [{"b": math.inf}], "c": None}, (math.nan,)])
def test_what_is_no_number_is_refused_and_not_sent_as_nothing(node: ScriptedNode, value: Any) -> None:
    with LedgerClient(node.url, retries=0) as ledger:
        with pytest.raises(InvalidPayload, match="is no number"):
            ledger.save("Name a branch", "Use the number of the ticket.", ["tool"], tags={"value": value})
        with pytest.raises(InvalidPayload, match="is no number"):
            ledger.profiles.patch("user", {"value": value, "other": None})
    assert node.asked == []


HOLDS_ITSELF: dict[str, Any] = {}
HOLDS_ITSELF["self"] = [HOLDS_ITSELF, HOLDS_ITSELF]


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({"for": timedelta(1)}, "tags.for cannot be said in JSON: Type is not JSON serializable: datetime.timedelta"),
        ({"a": [{"b": b"x"}]}, "tags.a[0].b cannot be said in JSON: Type is not JSON serializable: bytes"),
        ({"a": {"x"}}, "tags.a cannot be said in JSON: Type is not JSON serializable: set"),
        ({"a": 2**70}, "tags.a cannot be said in JSON: Integer exceeds 64-bit range"),
        ({"a": {5: 1}}, "tags.a cannot be said in JSON: 5 is a name in it, and no text"),
        ({"a": math.nan}, "tags.a cannot be said in JSON: nan is no number there"),
        ({"a": "half \ud83d"}, "tags.a cannot be said in JSON: str is not valid UTF-8: surrogates not allowed"),
        (HOLDS_ITSELF, "this cannot be said in JSON: Recursion limit reached"),
    ],
)
def test_what_json_cannot_say_is_named(node: ScriptedNode, tags: Any, said: str) -> None:
    with LedgerClient(node.url) as ledger, pytest.raises(InvalidPayload) as refused:
        ledger.save("t", "c", ["tool"], tags=tags)
    assert refused.value.message == said
    assert node.asked == []


def test_what_is_no_object_is_told_as_what_it_is(node: ScriptedNode) -> None:
    wrong: list[tuple[Any, str]] = [([5], "a list"), ({"a"}, "a set"), (timedelta(1), "a timedelta"), (b"a", "bytes")]
    with LedgerClient(node.url) as ledger:
        with pytest.raises(InvalidPayload, match=r"^tags is a list, and an object is meant: write \{'tea': '', …\}$"):
            ledger.save("t", "c", ["tool"], tags=["tea", "drink"])  # type: ignore[arg-type]
        for value, said in wrong:
            with pytest.raises(InvalidPayload) as refused:
                ledger.save("t", "c", ["tool"], tags=value)
            assert refused.value.message == f"tags is {said}, and an object is meant: write {{…}}"
    assert node.asked == []


async def test_half_a_character_in_a_trace_or_an_id_is_refused(node: ScriptedNode) -> None:
    async with AsyncLedgerClient(node.url, retries=0) as ledger:
        with pytest.raises(InvalidPayload, match="surrogate"):
            await ledger.within(trace_id="\ud83d").get("k-1")
        with pytest.raises(InvalidPayload, match="surrogate"):
            await ledger.revise("\ud83d", content="x")
    assert node.asked == []


def test_what_a_slip_would_have_kept_is_named_with_what_to_write(node: ScriptedNode) -> None:
    with LedgerClient(node.url, retries=0) as ledger:
        with pytest.raises(InvalidPayload) as types:
            ledger.save("Name a branch", "Use the number of the ticket.", "tool")
        with pytest.raises(InvalidPayload) as verdict:
            ledger.rate("k-1", "good")  # type: ignore[arg-type]
        with pytest.raises(InvalidPayload) as scopes:
            ledger.acting_as(scopes="team:web")
    assert types.value.message == "types is a text, and a list is meant: write ['tool']"
    assert verdict.value.message == "verdict is 'good': write helpful or harmful"
    assert scopes.value.message == "scopes is a text, and a list is meant: write ['team:web']"
    assert node.asked == []


def test_who_is_meant_is_asked_for_as_an_endpoint_asks() -> None:
    with LedgerClient("http://127.0.0.1:1") as ledger:
        with pytest.raises(TypeError, match=r"^acting_as\(\) got .* 'user_id'; here it is user=…; it"):
            ledger.acting_as(user_id="ann")  # type: ignore[call-arg]
        with pytest.raises(
            TypeError, match=r"^acting_as\(\) too many positional arguments; name what it is, as user=…"
        ):
            ledger.acting_as("ann")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"^within\(\) got .* 'run_id'; here it is within\(trace_id=…\)"):
            ledger.within(run_id="run-1")  # type: ignore[call-arg]


def test_what_is_no_list_of_objects_is_told_what_to_write(node: ScriptedNode) -> None:
    with LedgerClient(node.url, retries=0) as ledger:
        session = ledger.session("s-1")
        for messages, said in (
            ("hello", "messages is a text, and a list of objects is meant: write [{…}]"),
            ({"role": "user"}, "messages is an object, and a list of them is meant: write [{…}]"),
            (["hello"], "messages[0] is 'hello', and an object is meant: write {…}"),
        ):
            with pytest.raises(InvalidPayload) as refused:
                session.append(messages)  # type: ignore[arg-type]
            assert refused.value.message == said
        with pytest.raises(InvalidPayload, match=r"^acl\[0\] is 'user:mei', and an object is meant"):
            ledger.save("t", "c", ["tool"], acl=["user:mei"])  # type: ignore[list-item]
    assert node.asked == []


def test_a_name_that_is_no_text_is_refused_as_one() -> None:
    with LedgerClient("http://127.0.0.1:1") as ledger, pytest.raises(IllegalScope, match="the user is 3, and a text"):
        ledger.acting_as(user=3)  # type: ignore[arg-type]
