"""Context of a session: what of a conversation fits a model's window. A pure function of messages, budget and counter.

Kept in this order: system prompts (the latest of each) > the last message of the user > tool results > the rest, the
newest first. At most so many of the last messages are there in full. Above a share of the budget the conversation is
made smaller, level by level: tool outputs become a line (1), segments their summaries (2), everything one overview (3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ledger.event import JsonObject
from ledger.sessions.forms import Count, Form, fitted, trimmed, whole
from ledger.sessions.head import SYSTEM
from ledger.sessions.settings import SessionSettings
from ledger.sessions.summaries import Summary
from ledger.sessions.units import Unit, units_of
from ledger.sessions.words import Message

By = Literal["window", "level 1", "level 2", "level 3", "budget", "call", "erased"]
"""Why a message is not in the context; `call`: the call that it answers is not."""
_LEAST_PROMPT = 48
"""Tokens below which a system prompt is left out rather than shortened."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is known of a session: its last messages, older system prompts, and the summaries that stand for the rest.

    `last_user` is the last message of the user, which may be older than the others; `total` counts all messages.
    """

    messages: Sequence[Message]
    total: int
    prompts: Sequence[Message] = ()
    last_user: Message | None = None
    summaries: Sequence[Summary] = ()
    overview: Summary | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What fits. `level` was applied; `wanted` would be, if everything older were summed up."""

    budget: int
    used: int
    level: int
    wanted: int
    messages: list[JsonObject]
    summaries: list[Summary]
    overview: Summary | None
    left_out: list[JsonObject]


@dataclass(slots=True)
class _Room:
    """What is chosen so far, by the number of the message, and the tokens that are left."""

    left: int
    forms: dict[int, Form] = field(default_factory=dict)
    summaries: list[Summary] = field(default_factory=list)
    overview: Summary | None = None

    def add(self, forms: Sequence[Form]) -> bool:
        """Take these together, if they fit."""
        new = [form for form in forms if form.message.number not in self.forms]
        cost = sum(form.cost for form in new)
        if cost > self.left:
            return False
        self.left -= cost
        self.forms |= {form.message.number: form for form in new}
        return True


def context_of(conversation: Conversation, budget: int, count: Count, settings: SessionSettings) -> Context:
    """The messages and summaries to send to a model: at most `budget` tokens by `count`.

    The last message of the user is there whatever the budget is, if only as the mark of what was left out.
    """
    return _Cutting(conversation, budget, count, settings).context()


class _Cutting:
    """One conversation on its way into one budget."""

    def __init__(self, conversation: Conversation, budget: int, count: Count, settings: SessionSettings) -> None:
        self.of, self.budget, self.count, self.settings = conversation, budget, count, settings
        there = {message.number: message for message in (*conversation.prompts, *conversation.messages)}
        if conversation.last_user is not None:
            there[conversation.last_user.number] = conversation.last_user
        readable = [there[number] for number in sorted(there) if not there[number].erased]
        self.all_prompts = [message for message in readable if message.role in SYSTEM]
        self.prompts = latest_prompts(self.all_prompts)
        dialogue = [message for message in readable if message.role not in SYSTEM]
        dialogue = dialogue[-settings.messages :] if settings.messages < len(dialogue) else dialogue
        users = [message for message in readable if message.role == "user"]
        self.user = users[-1] if users else None
        if self.user is not None and self.user not in dialogue:
            dialogue = [self.user, *dialogue]
        self.units, self.torn = units_of(dialogue)
        self.dialogue = sorted((m for unit in self.units for m in unit.messages), key=lambda message: message.number)
        self.whole = {message.number: whole(message, count) for message in (*self.all_prompts, *self.dialogue)}
        self.trimmed = {number: trimmed(form.message, count, form) for number, form in self.whole.items()}
        # Its results are what the model is to read next.
        newest = self.units[-1] if self.units else None
        if newest is not None and newest.has_results and newest.last == self.dialogue[-1].number:
            self.trimmed |= {message.number: self.whole[message.number] for message in newest.messages}

    def context(self) -> Context:
        """Choose the level, then what has room."""
        level, wanted = self._levels()
        kept = {2: self.settings.kept_2, 3: self.settings.kept_3}.get(level)
        recent = {message.number for message in self.dialogue[-kept:]} if kept else {m.number for m in self.dialogue}
        overview = self.of.overview if level == 3 else None
        summaries = self._after(overview)
        covered = self._stood_for(summaries, overview)
        room = _Room(self.budget)
        self._prompts(room, level)
        self._last_user(room, level)
        units = [unit for unit in reversed(self.units) if self._is_kept(unit, recent, covered, level)]
        for unit in units:
            if unit.has_results:
                self._unit(room, unit, unit.last in recent and level != 1, level)
        if overview is not None and overview.cost(self.count) <= room.left:
            room.left -= overview.cost(self.count)
            room.overview = overview
        for near in (True, False):
            for unit in units:
                if not unit.has_results and (unit.last in recent) == near:
                    self._unit(room, unit, near and level != 1, level)
            if near:
                self._summaries(room, summaries, {number for number in room.forms if number in recent})
        return self._made(room, level, wanted)

    def _levels(self) -> tuple[int, int]:
        """The level to apply, and the one that would be applied with all summaries."""
        share = self.settings
        plain = sum(self.whole[message.number].cost for message in (*self.all_prompts, *self.dialogue))
        if plain <= share.level_1 * self.budget:
            return 0, 0
        prompts = sum(self.whole[message.number].cost for message in self.prompts)
        if prompts + sum(self.trimmed[m.number].cost for m in self.dialogue) <= share.level_2 * self.budget:
            return 1, 1
        summaries = self._after(None)
        recent = self.dialogue[-share.kept_2 :]
        second = prompts + sum(self.whole[message.number].cost for message in recent)
        second += sum(each.cost(self.count) for each in summaries)
        covered = self._stood_for(summaries, None)
        older = [m for m in self.dialogue[: -share.kept_2] if m.number not in covered]
        missing = sum(self.trimmed[message.number].cost for message in older)
        wanted = 3 if second > share.level_3 * self.budget else 2
        if wanted == 3 and self.of.overview is not None:
            return 3, 3
        if not summaries:
            return 1, wanted
        return (2, wanted) if second + missing <= share.level_3 * self.budget or self.of.overview is None else (3, 3)

    def _after(self, overview: Summary | None) -> list[Summary]:
        """The summaries that stand for what the overview does not."""
        upto = overview.last_number if overview is not None else 0
        return [each for each in self.of.summaries if each.last_number > upto]

    def _stood_for(self, summaries: Sequence[Summary], overview: Summary | None) -> set[int]:
        """The numbers of the dialogue that these stand for."""
        upto = overview.last_number if overview is not None else 0
        covered = _covered(summaries, self.dialogue[0].number if self.dialogue else 1)
        return {m.number for m in self.dialogue if m.number <= upto or m.number in covered}

    def _is_kept(self, unit: Unit, recent: set[int], covered: set[int], level: int) -> bool:
        """Whether a unit is to be shown in its own words."""
        numbers = {message.number for message in unit.messages}
        return level < 2 or bool(numbers & recent) or not numbers <= covered

    def _prompts(self, room: _Room, level: int) -> None:
        reserved = min(self.budget // 2, self.whole[self.user.number].cost) if self.user is not None else 0
        room.left -= reserved
        for message in reversed(self.prompts if level else self.all_prompts):
            if not room.add([self.whole[message.number]]) and room.left >= _LEAST_PROMPT:
                short = fitted(message, room.left, self.count)
                if short is not None:
                    room.add([short])
        room.left += reserved

    def _last_user(self, room: _Room, level: int) -> None:
        if self.user is None:
            return
        number = self.user.number
        if not room.add([self.trimmed[number] if level == 1 else self.whole[number]]):
            short = fitted(self.user, room.left, self.count)
            if short is not None:
                room.add([short])

    def _unit(self, room: _Room, unit: Unit, verbatim: bool, level: int) -> None:
        if (level == 0 or verbatim) and room.add([self.whole[message.number] for message in unit.messages]):
            return
        if not room.add([self.trimmed[message.number] for message in unit.messages]):
            room.add([trimmed(message, self.count) for message in unit.messages])

    def _summaries(self, room: _Room, summaries: Sequence[Summary], shown: set[int]) -> None:
        """Take the newest summaries that have room, of what is not shown in its own words."""
        for summary in reversed(summaries):
            if not summary.numbers() <= shown and (cost := summary.cost(self.count)) <= room.left:
                room.left -= cost
                room.summaries.insert(0, summary)

    def _made(self, room: _Room, level: int, wanted: int) -> Context:
        shown = [room.forms[number] for number in sorted(room.forms)]
        prompts = [form.shown() for form in shown if form.message.role in SYSTEM]
        rest = [form.shown() for form in shown if form.message.role not in SYSTEM]
        return Context(
            budget=self.budget,
            used=self.budget - room.left,
            level=level,
            wanted=wanted,
            messages=[*prompts, *rest],
            summaries=room.summaries,
            overview=room.overview,
            left_out=self._left_out(room, level),
        )

    def _left_out(self, room: _Room, level: int) -> list[JsonObject]:
        """Groups of what is not there, each with the reason, in the order of their first message."""
        known = {message.number: message for message in (*self.of.prompts, *self.of.messages)}
        repeated = {m.number for m in self.all_prompts} - {m.number for m in self.prompts} if level else set()
        prompts = {number for number, message in known.items() if message.role in SYSTEM}
        reasons: list[tuple[By, set[int]]] = [
            ("erased", {number for number, message in known.items() if message.erased}),
            ("level 2", _covered(room.summaries, 1)),
        ]
        upto = room.overview.last_number if room.overview is not None else 0
        rest: list[tuple[By, set[int]]] = [
            ("call", {message.number for message in self.torn}),
            ("level 1", repeated),
            ("budget", prompts | {message.number for message in self.dialogue}),
        ]
        told = set(room.forms)
        groups: list[JsonObject] = []
        for by, numbers in reasons:
            groups += _group(by, numbers - told)
            told |= numbers
        groups += _rest_of("level 3", 1, upto, told)
        for by, numbers in rest:
            left = {number for number in numbers - told if number > upto}
            groups += _group(by, left)
            told |= left
        groups += _rest_of("window", upto + 1, self.of.total, told)
        return sorted(groups, key=lambda group: (group["first"], group["by"]))


def latest_prompts(prompts: Iterable[Message]) -> list[Message]:
    """The latest version of each system prompt, in order; two with the same role and first line are the same prompt."""
    latest = {(message.role, message.content.strip().partition("\n")[0]): message for message in prompts}
    return sorted(latest.values(), key=lambda message: message.number)


def _covered(summaries: Iterable[Summary], first: int) -> set[int]:
    """The numbers from `first` on that summaries stand for."""
    return {number for each in summaries if each.last_number >= first for number in each.numbers()}


def _group(by: By, numbers: set[int]) -> list[JsonObject]:
    return [{"by": by, "messages": len(numbers), "first": min(numbers), "last": max(numbers)}] if numbers else []


def _rest_of(by: By, first: int, last: int, told: set[int]) -> list[JsonObject]:
    """The group of all numbers from `first` to `last` but for those of `told`, without looking at each."""
    count = max(0, last - first + 1) - sum(first <= number <= last for number in told)
    if not count:
        return []
    while first in told:
        first += 1
    while last in told:
        last -= 1
    return [{"by": by, "messages": count, "first": first, "last": last}]
