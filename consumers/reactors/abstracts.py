"""Reactor of abstracts: a small model sums up a document and those of its sections that it has not summed up before.

One call for one request. What the document says meanwhile is read again when the answer is there: of an answer counts
what the document says still, beside what was known of its other sections.
"""

from __future__ import annotations

from consumers.model import Answer
from consumers.prompting import prompt
from consumers.reactors.material import escaped, one_line
from consumers.reactors.subscription import Request
from consumers.reactors.work import ProcessState, Work
from consumers.structured import Structured
from kledger.contract.documents import MOST_HEADING, MOST_SUMMARY
from kledger.contract.errors import Erased, LedgerError, ModelFailed, NotOwner, UnknownDocument
from ledger.events.summary import AbstractCompleted, AbstractFailed, AbstractStarted
from ledger.events.usage import Usage
from projections.views.documents.abstracts import NOTHING, Abstract, Outline, abstracts_of, lacking, outline
from projections.views.documents.ask import is_erased

OF_A_SECTION, OF_A_PROMPT = 4_000, 60_000
"""Characters in the prompt of a section, and of all together."""
_NONE = "-"
"""In the place of a digest, where nothing is said of a document as a whole."""


class SectionSummary(Structured):
    """What a model says of a section."""

    number: int
    summary: str


class DocumentSummary(Structured):
    """What a model says of a document."""

    summary: str
    sections: list[SectionSummary]


class Abstracting:
    """The reactor of `abstract.requested`; see consumers.reactors.subscription.Reactor."""

    name = "abstract"
    kind = "abstract"
    stages: tuple[str, ...] = ("requested",)
    at_once = 1

    def __init__(self, work: Work) -> None:
        self._work = work

    async def react(self, request: Request) -> None:
        """Have a model sum up what is asked for, and state it."""
        state = await self._work.under_way(self.kind, request.id)
        if state is None:
            return
        asked, said = await self._document(state)
        sections = [(part.digest, part.text) for part in asked.parts]
        numbers = lacking(said, asked.digest, sections)
        if numbers is None:
            await self._state(state, asked, said, None)
            return
        model = self._work.model.named("summarise", state.process.requested.get("model"))
        call = f"{request.id}:summarise"
        await self._work.call_begins(state, AbstractStarted(call=call, model=model))
        answer: Answer[DocumentSummary] = await self._work.ask(
            state.process,
            "summarise",
            prompt("abstract", _text(asked, said, numbers)),
            DocumentSummary,
            key=call,
            model=model,
        )
        try:
            made = _made(answer.value, asked, numbers)
            state = await self._work.state(self.kind, request.id) or state
            now, known = await self._document(state)
            whole = made if made.of == now.digest else known
            both = Abstract(whole.of, whole.summary, {**known.sections, **made.sections})
            await self._state(state, now, both, answer.usage)
        except LedgerError as error:
            error.details["usage"] = answer.usage.model_dump()
            raise

    async def fail(self, request: Request, error: LedgerError) -> None:
        """See Reactor.fail."""
        state = await self._work.under_way(self.kind, request.id)
        if state is not None:
            await self._work.record_failure(state, error, AbstractFailed)

    async def _document(self, state: ProcessState) -> tuple[Outline, Abstract]:
        """The document as it is, and what a model said of it. Raises UnknownDocument, NotOwner, Erased."""
        org, named, owner = self._work.org, state.process.requested["document"], state.process.owner
        found = await self._work.view.ask(outline, org, named)
        if found is None:
            raise UnknownDocument(f"the document that {state.process.id} is about is not there", id=named)
        if found.owner != owner:
            raise NotOwner(f"{owner} may not have a document of {found.owner} summed up")
        if await self._work.view.ask(is_erased, org, named):
            raise Erased(f"what {named} said was erased with the person it belonged to", id=named)
        said = await self._work.view.ask(abstracts_of, org, {named: owner})
        return found, said.get(named, NOTHING)

    async def _state(self, state: ProcessState, now: Outline, said: Abstract, usage: Usage | None) -> None:
        """State what is known of what the document says."""
        there = dict.fromkeys(part.digest for part in now.parts if part.digest in said.sections)
        fact = AbstractCompleted(
            summary=said.summary,
            summaries=[said.sections[digest] for digest in there],
            digests=" ".join([said.of or _NONE, *there]),
            scopes=now.scopes,
            owner=now.owner,
            usage=usage,
        )
        await self._work.keep([self._work.event(state.process, fact, "completed", expects=state.last)])


def _text(document: Outline, said: Abstract, numbers: list[int]) -> str:
    """The prompt text: what is asked for of what the sections say, and a sentence of each other one; half for each."""
    of_known = OF_A_PROMPT // 2 // max(1, len(document.parts) - len(numbers))
    of_asked = min(OF_A_SECTION, OF_A_PROMPT // 2 // max(1, len(numbers)))
    lines = [f"<title>{escaped(document.title)}</title>"]
    for number, part in enumerate(document.parts):
        if number in numbers:
            text = escaped(f"{part.heading}\n{part.text}"[:of_asked])
            lines.append(f'<section number="{number}">\n{text}\n</section>')
        else:
            sentence = said.sections.get(part.digest, part.sentence)
            lines.append(f"<known>{escaped(f'{part.heading}: {sentence}'[:of_known])}</known>")
    return "\n".join(lines)


def _made(answer: DocumentSummary, document: Outline, numbers: list[int]) -> Abstract:
    """What of an answer counts: one line of bounded length for what was asked. Raises ModelFailed for no words."""
    wanted = frozenset(numbers)
    sections = {
        document.parts[each.number].digest: text
        for each in answer.sections
        if each.number in wanted and (text := one_line(each.summary, MOST_HEADING))
    }
    summary = one_line(answer.summary, MOST_SUMMARY)
    if not summary and not sections:
        raise ModelFailed("the model summed a document up in no words: choose another model")
    return Abstract(document.digest, summary, sections)
