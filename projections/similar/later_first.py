"""What was said later about one thing stands before what was said earlier, where it answers as well.

The deploy port is 8080; the deploy port is 9090 now. Both cover the question, and the shorter one, which is the older,
had the higher relevance. Nothing is left out: whether the earlier one still holds is for its reader, who is told which
one it is. Only memories of one owner are compared, and only what nobody has touched since the later one was said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from ledger.event import JsonObject
from projections.similar.change_words import CHANGE
from projections.similar.said import said
from projections.similar.subject import differ, subject
from projections.views.knowledge.layers import PROFILE_TYPE, layer_of

LAYERS = frozenset(("semantic", "short", "shared"))
"""Facts and preferences, which may be said anew, as profiles may; what happened stays, and steps are another matter."""
MOST = 10
"""The best results, among which is looked."""
AS_WELL, CHANGES = 0.9, 0.5
"""The least match of the later one, of that of the earlier: where it says nothing of a change, and where it does."""
ALIKE = 0.5
"""Of the words of the shorter one, those that both have."""
ONE_VALUE = 0.6
"""Of the words of the longer one, those that both have, where the later one says nothing of a change: they differ in a
value. Mei drinks oolong in the morning and rooibos in the evening."""
LESS_SURE = 0.2
"""A later one that is less certain by so much renews nothing, as among what a project shares."""
_READ = 300
"""Characters of a statement that are compared; a longer one says more than one thing."""


def later_first(results: Sequence[JsonObject], upheld: Mapping[str, str] = MappingProxyType({})) -> list[JsonObject]:
    """The results, each earlier statement behind the later one about the same; it names that in `later`.

    `upheld` says of items when they were last stated or supported (RFC 3339); of others nothing has become since they
    were saved.
    """
    order = list(results)
    facts = [item for item in order[:MOST] if len(item["content"]) <= _READ and _is_said_anew(item)]
    for earlier in facts:
        for later in facts:
            at, place = _place(order, later), _place(order, earlier)
            if "later" not in order[place] and _renews(later, earlier, upheld):
                order[place] = {**earlier, "later": later["id"]}
                if place < at:
                    order.insert(place, order.pop(at))
                break
    return order


def _is_said_anew(item: JsonObject) -> bool:
    """Whether an item is a fact or a preference: what is found of somebody is a profile, and no memory."""
    layer = _layer(item)
    return layer in LAYERS or (layer == "plain" and PROFILE_TYPE in item.get("types", ()))


def _place(order: Sequence[JsonObject], item: JsonObject) -> int:
    # the id of a message of a session may be that of an item
    return next(at for at, each in enumerate(order) if each["id"] == item["id"] and _layer(each) == _layer(item))


def _layer(item: JsonObject) -> str:
    return str(item.get("layer") or layer_of(item))


def _match(item: JsonObject) -> float:
    """How well a result answers; where nothing was asked, as well as any other."""
    return float(item.get("match", 1.0))


def _renews(later: JsonObject, earlier: JsonObject, upheld: Mapping[str, str]) -> bool:
    """Whether a result was said after another one, by the same owner and about the same, and answers as well."""
    if later["owner"] != earlier["owner"] or _match(later) < CHANGES * _match(earlier):
        return False
    if later["eval"]["confidence"] <= earlier["eval"]["confidence"] - LESS_SURE:
        return False
    mine, others = said(later["content"]), said(earlier["content"])
    if not others.about or others.about not in (mine.words if others.about in others.words else mine.plain):
        return False
    if others.of_itself and not mine.of_itself and mine.names_another(others):
        return False
    if differ(subject(later["content"], others.about), subject(earlier["content"], others.about)):
        return False
    lengths, both = sorted((len(mine.words), len(others.words))), len(mine.words & others.words)
    if both < ALIKE * lengths[0]:
        return False
    another_value = _match(later) >= AS_WELL * _match(earlier) and both >= ONE_VALUE * lengths[1]
    if not another_value and not CHANGE.search(mine.plain) and not mine.denies(others):
        return False
    last = upheld.get(earlier["id"], earlier["created_at"])
    return datetime.fromisoformat(later["created_at"]) > datetime.fromisoformat(last)
