"""What a context promises, over random sessions: never more than the budget, and what belongs together together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.sessions.context import Context, Conversation, context_of, latest_prompts
from ledger.sessions.forms import cost_of
from ledger.sessions.settings import SessionSettings
from ledger.sessions.summaries import Summary
from ledger.sessions.tokens import estimate
from ledger.sessions.words import Message
from tests.examples import tries

SETTINGS = SessionSettings()
TEXTS = (
    "The quick brown fox jumps over the lazy dog, again and again. ",
    "用户希望回复简洁，并且所有代码都要有中文注释。",
    "def f(x: int) -> list[str]:\n    return [str(each) for each in range(x)]\n",
    "🙂\u00e9\u0416 ",
)


def letters(text: str) -> int:
    """A counter that is far from what tokens are."""
    return len(text)


COUNTERS: list[Callable[[str], int]] = [estimate, letters, lambda text: len(text.split()) + 1]


def message(number: int, role: str = "user", content: str = "x", **more: Any) -> Message:
    return Message(f"m-{number}", number, number, {"role": role, "content": content, **more})


sizes = st.one_of(st.integers(0, 300), st.integers(0, 5_000), st.sampled_from([60_000, 1_000_000]))


@st.composite
def sessions(draw: st.DrawFn) -> list[Message]:
    """Messages of all roles; tools answer calls, some late and some never, some a call that is not there."""
    said: list[Message] = []
    open_calls: list[str] = []
    for number in range(1, draw(st.integers(1, 70)) + 1):
        role = draw(st.sampled_from(["user", "assistant", "assistant", "tool", "tool", "system"]))
        size = draw(sizes if number % 7 == 0 else st.integers(0, 400))
        text = draw(st.sampled_from(TEXTS))
        content = (text * (size // len(text) + 1))[:size]
        more: dict[str, Any] = {}
        if role == "assistant" and draw(st.booleans()):
            calls = [f"c-{number}-{at}" for at in range(draw(st.integers(1, 3)))]
            more["tool_calls"] = [{"id": each, "function": {"name": "look", "arguments": "{}"}} for each in calls]
            open_calls += calls
        if role == "tool":
            position = draw(st.integers(0, len(open_calls)))
            more["tool_call_id"] = open_calls.pop(position) if position < len(open_calls) else "of-nobody"
        if role == "user" and draw(st.integers(0, 5)) == 0:
            more["attachments"] = [{"type": "image", "name": "画.png", "size": 12, "description": "a door" * size}]
        if draw(st.integers(0, 5)) == 0:
            more["tokens"] = draw(st.integers(0, 2_000))
        said.append(message(number, role, content, **more))
    return said


def conversation(said: list[Message], upto: int = 0, overview: int = 0) -> Conversation:
    """As the store gives it: the last fifty, all system prompts, the user's last message, summaries of the first."""
    users = [each for each in said if each.role == "user"]
    summaries = [
        Summary(f"s-{first}", 2, first, first + 9, f"[summary] of {first} to {first + 9}")
        for first in range(1, upto - 8, 10)
    ]
    return Conversation(
        messages=said[-SETTINGS.messages :],
        total=len(said),
        prompts=[each for each in said if each.role == "system"],
        last_user=users[-1] if users else None,
        summaries=summaries,
        overview=Summary("o", 3, 1, overview, "What went on", ("use it",), ("test it",)) if overview else None,
    )


budgets = st.one_of(st.integers(140, 1_000), st.integers(140, 140_000))


@given(sessions(), budgets, st.sampled_from(COUNTERS), st.integers(0, 70), st.integers(0, 70))
@settings(max_examples=tries(150))
def test_a_context_never_exceeds_its_budget_and_keeps_together_what_belongs_together(
    said: list[Message], budget: int, count: Callable[[str], int], upto: int, overview: int
) -> None:
    given_to = conversation(said, min(upto, len(said)), min(overview, len(said)))
    cut = context_of(given_to, budget, count, SETTINGS)
    assert cut == context_of(given_to, budget, count, SETTINGS), "the same session gives the same context"
    real = sum(cost_of({k: v for k, v in each.items() if k != "tokens"}, count) for each in cut.messages)
    real += sum(each.cost(count) for each in cut.summaries)
    real += cut.overview.cost(count) if cut.overview is not None else 0
    assert real <= cut.used <= budget
    assert len([each for each in cut.messages if each["role"] != "system"]) <= SETTINGS.messages + 1
    pairs_stay_together(given_to, cut)
    if given_to.last_user is not None:
        (shown,) = [each for each in cut.messages if each["id"] == given_to.last_user.id]
        if shown["content"] != given_to.last_user.content:
            assert shown["shortened"] in ("level 1", "budget")
    numbers = [each["number"] for each in cut.messages if each["role"] != "system"]
    assert numbers == sorted(set(numbers))
    left = sum(group["messages"] for group in cut.left_out)
    assert left + len(cut.messages) == len(said), "what is not there is said to be left out"


def pairs_stay_together(given_to: Conversation, cut: Context) -> None:
    """Each result that is shown has its call before it, and each call that is shown has its results."""
    shown = {each["id"] for each in cut.messages}
    callers = {
        call["id"]: each.id for each in given_to.messages for call in each.said.get("tool_calls") or () if call["id"]
    }
    for each in given_to.messages:
        if each.role == "tool" and (caller := callers.get(each.said["tool_call_id"])) is not None:
            assert (each.id in shown) == (caller in shown)
        elif each.role == "tool":
            assert each.id not in shown, "a result without its call is for no model"


def test_below_the_first_level_the_last_fifty_are_there_as_they_were_sent() -> None:
    said = [message(1, "system", "You are brief."), *(message(n, content=f"word {n}") for n in range(2, 121))]
    cut = context_of(conversation(said), 100_000, estimate, SETTINGS)
    assert (cut.level, cut.wanted) == (0, 0)
    assert [each["number"] for each in cut.messages] == [1, *range(71, 121)]
    assert cut.left_out == [{"by": "window", "messages": 69, "first": 2, "last": 70}]


def test_level_1_makes_tool_outputs_a_line_describes_attachments_and_drops_repeated_prompts() -> None:
    said = [
        message(1, "system", "You are brief.\nVersion 1"),
        message(2, "user", "看这张图", attachments=[{"type": "image", "name": "a.png", "data": "x" * 4_000}]),
        message(3, "assistant", "", tool_calls=[{"id": "c"}]),
        message(4, "tool", "first line\n" + "output " * 2_000, tool_call_id="c"),
        message(5, "system", "You are brief.\nVersion 2"),
        message(6, "assistant", "done"),
        message(7, "user", "thanks"),
    ]
    cut = context_of(conversation(said), 3_500, estimate, SETTINGS)
    assert (cut.level, cut.wanted) == (1, 1)
    by_id = {each["id"]: each for each in cut.messages}
    assert by_id["m-4"]["content"].startswith("first line output output")
    assert by_id["m-4"]["content"].endswith("characters more: expand m-4]")
    assert by_id["m-2"]["content"] == "看这张图\n[image a.png]"
    assert {by_id[each]["shortened"] for each in ("m-2", "m-4")} == {"level 1"}
    assert "m-1" not in by_id
    assert by_id["m-5"]["content"].endswith("Version 2")
    assert cut.left_out == [{"by": "level 1", "messages": 1, "first": 1, "last": 1}]


_BYTES = "iVBORw0KGgo" * 400


@pytest.mark.parametrize(
    ("attachment", "words"),
    [
        (
            {"type": "image_url", "image_url": {"url": "https://e.example/登录页.png"}},
            "image https://e.example/登录页.png",
        ),
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_BYTES}"}}, "image image/png"),
        ({"type": "image", "name": "画.png", "url": f"data:image/png;base64,{_BYTES}"}, "image 画.png"),
        ({"type": "input_image", "image_url": "file:quay.png", "data": _BYTES}, "image file:quay.png"),
        ({"type": "input_audio", "input_audio": {"data": _BYTES, "format": "wav"}}, "audio wav"),
        ({"type": "file", "file": {"filename": "合同.pdf", "file_data": _BYTES}}, "file 合同.pdf"),
        ({"type": "input_file", "filename": "合同.pdf", "file_data": _BYTES}, "file 合同.pdf"),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _BYTES}},
            "image image/png",
        ),
        (
            {"type": "document", "title": "合同", "source": {"type": "url", "url": "https://e.example/a.pdf"}},
            "document 合同",
        ),
    ],
)
def test_level_1_says_in_words_what_an_attachment_of_any_form_is(attachment: dict[str, Any], words: str) -> None:
    said = [message(1, "user", "看", attachments=[{**attachment, "detail": "x" * 4_000}]), message(2, "user", "thanks")]
    first, _ = context_of(conversation(said), 1_500, estimate, SETTINGS).messages
    assert first["content"] == f"看\n[{words}]"


def test_what_a_tool_has_just_answered_stays_whole_while_it_has_room() -> None:
    said = [
        message(1, "user", "look"),
        message(2, "assistant", "", tool_calls=[{"id": "c"}]),
        message(3, "tool", "output " * 700, tool_call_id="c"),
    ]
    cut = context_of(conversation(said), 1_000, estimate, SETTINGS)
    assert cut.level == 1
    assert cut.messages[-1]["content"] == "output " * 700


def levelled(budget: int, upto: int, overview: int = 0) -> Context:
    said = [message(n, content=f"{n} " + "some words " * 40) for n in range(1, 41)]
    return context_of(conversation(said, upto, overview), budget, estimate, SETTINGS)


def test_level_2_puts_summaries_in_the_place_of_segments_and_keeps_the_last_ten() -> None:
    cut = levelled(2_500, 30)
    assert (cut.level, cut.wanted) == (2, 2)
    assert [each.first_number for each in cut.summaries] == [1, 11, 21]
    assert [each["number"] for each in cut.messages] == list(range(31, 41))
    assert cut.left_out == [{"by": "level 2", "messages": 30, "first": 1, "last": 30}]


def test_level_3_puts_one_overview_in_the_place_of_summaries_and_keeps_the_last_five() -> None:
    cut = levelled(800, 30, overview=35)
    assert (cut.level, cut.wanted) == (3, 3)
    assert cut.summaries == []
    assert cut.overview is not None
    assert cut.overview.decisions == ("use it",)
    assert [each["number"] for each in cut.messages] == list(range(36, 41))
    assert cut.left_out == [{"by": "level 3", "messages": 35, "first": 1, "last": 35}]


def test_without_summaries_the_window_holds_the_budget_and_says_which_level_is_wanted() -> None:
    cut = levelled(2_500, 0)
    assert (cut.level, cut.wanted) == (1, 2)
    assert cut.used <= 2_500
    assert [each["number"] for each in cut.messages] == list(range(41 - len(cut.messages), 41))
    assert cut.left_out == [
        {"by": "budget", "messages": 40 - len(cut.messages), "first": 1, "last": 40 - len(cut.messages)}
    ]


def test_what_is_kept_first_is_kept_in_the_smallest_budget() -> None:
    said = [
        message(1, "system", "You are brief."),
        message(2, "user", "an old question " * 30),
        message(3, "assistant", "", tool_calls=[{"id": "c"}]),
        message(4, "tool", "found", tool_call_id="c"),
        *(message(n, "assistant", "chatter " * 30) for n in range(5, 30)),
        message(30, "user", "the last question"),
    ]
    cut = context_of(conversation(said), 140, estimate, SETTINGS)
    shown = [each["id"] for each in cut.messages]
    assert shown[:3] == ["m-1", "m-3", "m-4"]
    assert shown[-1] == "m-30"
    assert "m-2" not in shown


def test_of_prompts_with_one_first_line_the_latest_counts() -> None:
    prompts = [message(1, "system", "A\n1"), message(2, "system", "B"), message(3, "system", "A\n2")]
    assert [each.id for each in latest_prompts(prompts)] == ["m-2", "m-3"]


@pytest.mark.parametrize("count", COUNTERS)
def test_a_message_that_is_too_large_alone_is_shortened_with_a_mark(count: Callable[[str], int]) -> None:
    cut = context_of(conversation([message(1, "user", "word " * 200_000)]), 140, count, SETTINGS)
    (shown,) = cut.messages
    assert shown["content"].startswith("word word")
    assert shown["content"].endswith("characters more: expand m-1]")
    assert cut.used <= 140
