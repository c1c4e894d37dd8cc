"""Models of a node by work: what is set, whether it answers, and what works without it."""

from __future__ import annotations

from collections.abc import Mapping

from kledger.answers.models import ModelOfWork, ModelsOfNode
from kledger.contract.scopes import Caller
from kledger.contract.words import ModelWork
from producers.operations.admin.jobs import require_operator
from producers.operations.desk import Desk

WITHOUT: Mapping[ModelWork, str] = {
    "evolve": "nothing is rewritten by feedback: kledger revise states a new version",
    "extract": "nothing is found in what was said: agents save what they learn themselves",
    "slim": "near-duplicates are found, and the best item of each group is kept instead of a merged one",
    "summarise": "sessions fit by shortened tool outputs and the window; documents show sentences of theirs",
    "route": "searches rank by words, meaning and freshness, as they do by default",
    "intent": "the intent of a message is told by rules, in English and Chinese",
    "rewrite": "a recall asks in the caller's words alone",
    "hyde": "a recall compares items with the question, not with a possible answer",
    "embed": "meaning goes by hashed n-grams: words and similar spellings, no paraphrases",
    "rerank": "results stand in the order of the ranking",
}
"""What works where no model is set for a work."""


def setting_of(work: ModelWork) -> str:
    """The environment variable that sets the model of a work."""
    if work == "embed":
        return "KLEDGER_EMBEDDING_MODEL"
    return "KLEDGER_RERANK_URL" if work == "rerank" else f"KLEDGER_MODEL_{work.upper()}"


async def models(desk: Desk, caller: Caller, *, call: bool = False) -> ModelsOfNode:
    """What is set for each work; with `call` each model is called once. Raises NotOwner."""
    require_operator(caller)
    tried = await desk.tiers.tried() if call else {}
    told = desk.tiers.told()
    return ModelsOfNode(
        models=[
            ModelOfWork(work=work, setting=setting_of(work), without=without, tried=tried.get(work), **told[work])
            for work, without in WITHOUT.items()
        ]
    )
