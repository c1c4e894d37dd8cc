"""Conversations made by a seeded recipe, to measure recall over turns: one item a turn, `source.trace_id` its session.

Two people talk over several sessions. A fact is told in two turns: one asks or leads over, the other answers, and the
answer (the evidence) often shares no word with the question that is asked of the memory later. Questions come in three
forms: in words of the turn before the answer, in words of the answer, and paraphrased. Turns that distract: the same
subject told by the other person with another value, the same subject turned down, and small talk. The same seed gives
the same conversations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from bench.conversation_words import NAMES, SUBJECTS, TALK, Language
from ledger.event import JsonObject

CONVERSATIONS: dict[Language, int] = {"en": 20, "zh": 10}
SESSIONS = 4
ASKED_EACH = 18
"""Questions of one conversation."""
SMALL_TALK = 8
"""Turns of a session that tell nothing."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation."""

    id: str
    session: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the one turn that answers it; `form` says whose words it has."""

    text: str
    evidence: str
    form: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in their order, and questions about them."""

    name: str
    language: Language
    turns: Sequence[Turn]
    questions: Sequence[Question]


def conversations(language: Language, seed: int = 16) -> Iterator[Conversation]:
    """The conversations of one language."""
    names = NAMES[language]
    for number in range(CONVERSATIONS[language]):
        yield _conversation(f"{language}-{number}", language, names[2 * number : 2 * number + 2], Random(seed + number))


def items(conversation: Conversation) -> list[JsonObject]:
    """One save payload for each turn, in the order of the turns; their scope is the conversation's."""
    return [
        {
            "id": turn.id,
            "types": ["experience"],
            "task": turn.speaker,
            "content": turn.text,
            "scopes": [scope(conversation)],
            "owner": "org:bench",
            "source": {"name": "conversation", "trace_id": turn.session, "message_id": turn.id},
        }
        for turn in conversation.turns
    ]


def scope(conversation: Conversation) -> str:
    """The scope in which a conversation's turns are read."""
    return f"project:{conversation.name}"


class _Said(NamedTuple):
    """What somebody says, and the question that it answers where one is asked of it."""

    speaker: str
    text: str
    question: str | None = None
    form: str = ""


def _conversation(name: str, language: Language, people: Sequence[str], random: Random) -> Conversation:
    told = _told(language, people, random)
    turns: list[Turn] = []
    questions: list[Question] = []
    for session in range(SESSIONS):
        exchanges = [*told[session::SESSIONS], *([said] for said in _small_talk(language, people, random))]
        random.shuffle(exchanges)
        for said in (said for exchange in exchanges for said in exchange):
            turn = Turn(f"{name}-{len(turns)}", f"{name}-session-{session}", said.speaker, said.text)
            turns.append(turn)
            if said.question is not None:
                questions.append(Question(said.question, turn.id, said.form))
    return Conversation(name, language, turns, questions)


def _told(language: Language, people: Sequence[str], random: Random) -> list[list[_Said]]:
    """Every subject between the two, told by each: one leads to it, the other answers.

    The first ASKED_EACH are asked for; of the others, some are declined.
    """
    subjects = [(subject, who) for subject in SUBJECTS[language] for who in people]
    random.shuffle(subjects)
    exchanges: list[list[_Said]] = []
    for number, (subject, who) in enumerate(subjects):
        asked = number < ASKED_EACH
        declined = not asked and random.random() < 0.4
        value = random.choice(subject.values)
        answer = _Said(who, subject.declined if declined else subject.answer.format(value=value))
        if asked:
            form = ("near", "told", "other")[number % 3]
            answer = answer._replace(question=getattr(subject, form).format(who=who), form=form)
        exchanges.append([_Said(_other(people, who), subject.lead.format(who=who)), answer])
    return exchanges


def _small_talk(language: Language, people: Sequence[str], random: Random) -> Iterator[_Said]:
    for _ in range(SMALL_TALK):
        speaker = random.choice(people)
        yield _Said(speaker, random.choice(TALK[language]).format(other=_other(people, speaker)))


def _other(people: Sequence[str], one: str) -> str:
    return people[1 - people.index(one)]
