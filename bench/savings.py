"""Tokens that are saved, beside the ranges of source 004 section 4.1: `python -m bench.savings`.

A node is asked over HTTP. Two seeded sessions (English, Chinese) are held as an agent holds them: before each answer,
and after each result of a tool, the context is read. They have the size of the source's example, 200 messages and about
50,000 tokens, of which tools wrote a third. Summaries are asked of a model over HTTP that answers in the form its
prompt asks for: two sentences of the messages for each part. Recall is asked the questions of bench/conversations.py.

All is counted by the product's own counter. A figure that lies outside the source's range says so in its note.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import orjson
import uvloop

from bench.conversation_words import Language
from bench.conversations import Conversation, conversations, items
from bench.visible import ROOT, running_node
from kledger import AsyncLedgerClient
from ledger.event import JsonObject
from ledger.sessions.forms import cost_of
from ledger.sessions.tokens import counter_for
from projections.search.prompt.memory_text import Told, memory_text
from tests.openai_server import embedding_endpoint

RANGES: Mapping[str, tuple[float, float] | None] = {
    "progressive compression": (0.40, 0.70),
    "summaries instead of originals": (0.60, 0.80),
    "light models before the large one": None,
    "recall on demand": (0.50, 0.90),
    "tool results": (0.30, 0.50),
    "shared context not repeated": (0.20, 0.30),
}
"""The rows of the source and what each saves there; it names no figure for the third."""

TURNS, WINDOW = 50, 16_000
"""Turns of a session, four messages each; tokens of the model's window, in which its last 50 messages have no room."""
USER, CALL, TOOL, ANSWER = 150, 80, 350, 420
"""Tokens of the messages of a turn, each times 0.6 to 1.4."""
CONVERSATIONS: Mapping[Language, int] = {"en": 10, "zh": 5}
SETTLE_SECONDS = 60.0
_CORPORA = ROOT / "tests" / "sessions" / "corpora"
_PROMPT = "You are an agent in a team. Answer in the language of the user, name the files that you read."
_SMALL, _LARGE = "small", "large"
_count = counter_for(None)


@dataclass
class Tokens:
    """What was sent (`ours`) and what would be sent without the saving (`raw`)."""

    ours: int = 0
    raw: int = 0
    about: str = ""

    def add(self, ours: int, raw: int) -> None:
        """Count one case."""
        self.ours += ours
        self.raw += raw


@dataclass
class Saved:
    """The tokens of each row, by its name in RANGES."""

    rows: dict[str, Tokens] = field(default_factory=lambda: {name: Tokens() for name in RANGES})
    tool_text: Tokens = field(default_factory=Tokens)
    levels: dict[int, int] = field(default_factory=dict)
    summaries: int = 0
    recalls: int = 0
    refilled: Tokens = field(default_factory=Tokens)
    """The texts of the same recalls with the session and without it: other results take the place of those."""


def seeded_session(language: Language, seed: int = 16) -> list[JsonObject]:
    """The messages of one session: a prompt, then turns of question, call, result and answer."""
    random = Random(seed)
    prose = (_CORPORA / ("english.txt" if language == "en" else "chinese.txt")).read_text(encoding="utf-8")
    code = (_CORPORA / "code.txt").read_text(encoding="utf-8")
    said: list[JsonObject] = [{"id": "m-0", "role": "system", "content": _PROMPT}]
    for turn in range(TURNS):
        call = {"id": f"c-{turn}", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
        turns: list[JsonObject] = [
            {"role": "user", "content": _some(prose, USER, random)},
            {"role": "assistant", "content": _some(prose, CALL, random), "tool_calls": [call]},
            {"role": "tool", "content": _some(code, TOOL, random), "tool_call_id": call["id"]},
            {"role": "assistant", "content": _some(prose, ANSWER, random)},
        ]
        said += [{"id": f"m-{4 * turn + at}", **message} for at, message in enumerate(turns, start=1)]
    return said


def _some(text: str, tokens: int, random: Random) -> str:
    """About so many tokens from somewhere in a text."""
    length = round(tokens * random.uniform(0.6, 1.4) * len(text) / _count(text))
    at = random.randrange(len(text))
    return (text * 2)[at : at + length].strip()


def sentences(text: str) -> list[str]:
    """The sentences of a text that say something."""
    parts = re.split(r"(?<=[.!?。！？])\s*|\n+", text)
    return [each.strip() for each in parts if len(each.strip()) > 12]


def summed_up(prompt: str) -> JsonObject:
    """What the model answers about a segment: two sentences for each part."""
    of_user, of_agent = (
        sentences("\n".join(re.findall(rf'<said by="{role}">\n(.*?)\n</said>', prompt, re.DOTALL)))
        for role in ("user", "assistant")
    )
    parts = {"discussed": of_user[:2], "decided": of_agent[:2], "concluded": of_agent[-2:]}
    return {name: " ".join(each) for name, each in parts.items()}


def overview(prompt: str) -> JsonObject:
    """What the model answers about all summaries: a few sentences, and one entry of each list for each summary."""
    each = [sentences(one) for one in re.findall(r"<summary>\n(.*?)\n</summary>", prompt, re.DOTALL)]
    known = [one for one in each if one]
    return {
        "overview": " ".join(one[0] for one in known[:3]),
        "decisions": [one[len(one) // 2] for one in known],
        "todos": [one[-1] for one in known[-3:]],
        "agreements": [one[0] for one in known[-3:]],
    }


async def measure() -> Saved:
    """Hold the sessions, ask the questions."""
    saved = Saved()
    with tempfile.TemporaryDirectory() as folder, embedding_endpoint() as endpoint:
        endpoint.chat.says({"items": []})
        endpoint.chat.says(summed_up, to="<said by=")
        endpoint.chat.says(overview, to="<summary>")
        models = {
            "KLEDGER_MODEL_URL": endpoint.url,
            "KLEDGER_MODEL": _LARGE,
            "KLEDGER_MODEL_SUMMARISE": _SMALL,
            "KLEDGER_MODEL_EXTRACT": _SMALL,
            "KLEDGER_MODEL_KEY": "none",
        }
        async with running_node(Path(folder), **models) as node, AsyncLedgerClient(f"http://{node.http}") as ledger:
            for language in CONVERSATIONS:
                await _hold(saved, ledger, language)
            light = saved.rows["light models before the large one"]
            small = sum(_count(each.text) for each in endpoint.chat.asked if each.model == _SMALL)
            light.raw = light.ours + small
            for language, count in CONVERSATIONS.items():
                for conversation in list(conversations(language))[:count]:
                    await _recall(saved, ledger, conversation)
    return saved


async def _hold(saved: Saved, ledger: AsyncLedgerClient, language: Language) -> None:
    """One session from its first message to its last."""
    session = ledger.acting_as(user=f"holder-{language}").session(f"held-{language}")
    said = seeded_session(language)
    costs = {message["id"]: cost_of({k: v for k, v in message.items() if k != "id"}, _count) for message in said}
    roles = {message["id"]: message["role"] for message in said}
    told: dict[str, tuple[int, int]] = {}
    sent: list[JsonObject] = []
    for message in said:
        await session.append([message])
        sent.append(message)
        if message["role"] not in ("user", "tool"):
            continue
        cut = await _settled(session)
        used, plain = int(cut["used"]), sum(costs[each["id"]] for each in sent)
        saved.levels[cut["level"]] = saved.levels.get(cut["level"], 0) + 1
        saved.rows["progressive compression"].add(used, plain)
        saved.rows["light models before the large one"].ours += used
        if cut["level"] == 1:
            shown = [(each["tokens"], costs[each["id"]], roles[each["id"]]) for each in cut["messages"]]
            saved.rows["tool results"].add(sum(one for one, _, _ in shown), sum(whole for _, whole, _ in shown))
            of_tools = [(one, whole) for one, whole, role in shown if role == "tool"]
            saved.tool_text.add(sum(one for one, _ in of_tools), sum(whole for _, whole in of_tools))
        numbered = [each["id"] for each in sent]
        for each in cut["summaries"]:
            originals = sum(costs[name] for name in numbered[each["first"] - 1 : each["last"]])
            told[each["id"]] = (_count(each["content"]) + 4, originals)
    for ours, raw in told.values():
        saved.rows["summaries instead of originals"].add(ours, raw)
    saved.summaries += len(told)


async def _settled(session: Any) -> Mapping[str, Any]:
    """The context when the small model has answered what the context before asked of it."""
    async with asyncio.timeout(SETTLE_SECONDS):
        while True:
            cut: Mapping[str, Any] = await session.context(WINDOW)
            if cut["pending"] is None:
                return cut
            await asyncio.sleep(0.02)


async def _recall(saved: Saved, ledger: AsyncLedgerClient, conversation: Conversation) -> None:
    """The questions of one conversation, the last session of which is going on."""
    turns = items(conversation)
    reader = ledger.acting_as(user="asker", project=conversation.name)
    await ledger.save_many(turns)
    last = conversation.turns[-1].session
    messages = [
        {"id": turn.id, "role": "user", "content": turn.text} for turn in conversation.turns if turn.session == last
    ]
    await reader.session(last).append(messages)
    everything = _count(_text(turns, conversation))
    for question in conversation.questions:
        plain = await reader.recall(question.text, language=conversation.language, record=False)
        beside = await reader.recall(question.text, session=last, language=conversation.language, record=False)
        saved.rows["recall on demand"].add(_count(plain["text"]), everything)
        shown = {each["id"] for each in beside["results"]}
        fresh = [each for each in plain["results"] if each["id"] in shown]
        saved.rows["shared context not repeated"].add(_count(_text(fresh, conversation)), _count(plain["text"]))
        saved.refilled.add(_count(beside["text"]), _count(plain["text"]))
        saved.recalls += 1


def _text(known: Sequence[Mapping[str, Any]], conversation: Conversation) -> str:
    """The `<memory>` document of these items."""
    now = datetime.now(UTC)
    told = [Told({"eval": {"confidence": 0.5}, **item}, "plain", 1, stated=now.isoformat()) for item in known]
    return memory_text(told, conversation.language, now)[0]


def notes(saved: Saved) -> dict[str, str]:
    """What each row was measured on."""
    tools = saved.tool_text
    levels = ", ".join(f"level {level}: {count}" for level, count in sorted(saved.levels.items()))
    return {
        "progressive compression": f"contexts of a window of {WINDOW:,} beside the whole session; {levels}",
        "summaries instead of originals": f"{saved.summaries} segments, each summary at most six sentences",
        "light models before the large one": "tokens that a small model reads (summaries, extraction), of all read",
        "recall on demand": f"the text of {saved.recalls} recalls of five beside all that is known there",
        "tool results": f"contexts at level 1, all that they show; of the tools' own text {_share(tools):.0%}",
        "shared context not repeated": f"of {saved.recalls} recalls, what the session that goes on holds, "
        f"which said a quarter of it all; others take its place: the text is {_share(saved.refilled):.0%} shorter",
    }


def _share(tokens: Tokens) -> float:
    return 1 - tokens.ours / tokens.raw if tokens.raw else 0.0


def rows_of(saved: Saved) -> list[dict[str, Any]]:
    """The rows of the table; a figure outside the source's range says so."""
    about = notes(saved)
    rows = []
    for name, tokens in saved.rows.items():
        bounds, share = RANGES[name], _share(tokens)
        note = f"{about[name]}; {tokens.ours:,} of {tokens.raw:,} tokens"
        if bounds is not None and not bounds[0] <= share <= bounds[1]:
            note += f"; {'above' if share > bounds[1] else 'below'} the source's range"
        rows.append(
            {
                "row": f"tokens saved: {name}",
                "ours": round(share, 3),
                "raw": None,
                "unit": "share",
                "ratio": None,
                "target": f"{bounds[0]:.0%}-{bounds[1]:.0%}" if bounds is not None else None,
                "note": note,
            }
        )
    return rows


def run() -> list[dict[str, Any]]:
    """The rows of `python -m bench`."""
    return rows_of(uvloop.run(measure()))


if __name__ == "__main__":
    for line in run():
        print(orjson.dumps(line).decode())
