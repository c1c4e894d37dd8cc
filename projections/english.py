"""Stems of English words, by Snowball's library in C. It is loaded with the first word.

Snowball knows endings alone: for a form that has none, as `bought`, there is a table; and one for words that are
spelled in two ways, as `colour` is.
"""

from __future__ import annotations

import threading
from typing import Any

# A base and its irregular forms, without those that are as often another word: left, found, felt, saw, lay, rose, led.
_IRREGULAR = """
become became, begin began begun, bend bent, bite bitten, bleed bled, blow blew blown, break broke broken, breed bred,
bring brought, build built, buy bought, catch caught, choose chose chosen, come came, creep crept, deal dealt, dig dug,
draw drew drawn, drink drank, drive drove driven, eat ate eaten, fall fallen, fight fought, flee fled, fly flew flown,
forbid forbade forbidden, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got gotten,
give gave given, go went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept,
know knew known, lend lent, lose lost, make made, mean meant, meet met, overcome overcame, pay paid, prove proven,
ride rode ridden, ring rang, rise risen, run ran, say said, seek sought, sell sold, send sent, shake shook shaken,
shine shone, show shown, sing sang sung, sink sank sunk, sit sat, sleep slept, speak spoken, spend spent, stand stood,
steal stole stolen, stick stuck, strike struck, swear swore sworn, sweep swept, swim swam swum, take took taken,
teach taught, tear tore torn, tell told, think thought, throw threw thrown, understand understood, wake woke woken,
wear wore worn, weep wept, win won, withdraw withdrew withdrawn, write wrote written,
child children, foot feet, goose geese, knife knives, man men, mouse mice, shelf shelves, thief thieves, tooth teeth,
wife wives, wolf wolves, woman women
"""
# Of two spellings, the British one with s and the American one with z; without words that are only spelled with s.
_IZED = """
apolog author categor central character container critic custom digital emphas equal final general global
initial item legal local maxim memor minim mobil modern normal optim organ parallel parametr personal priorit
random real recogn sanit serial special stabil standard subsid summar symbol synchron token util virtual
visual
"""
_SPELLED = """
analyze analyse, analyzed analysed, analyzing analysing, color colour, favor favour, favorite favourite,
behavior behaviour, neighbor neighbour, neighborhood neighbourhood, labor labour, honor honour, humor humour,
flavor flavour, harbor harbour, rumor rumour, vapor vapour, armor armour, odor odour, endeavor endeavour,
center centre, theater theatre, meter metre, kilometer kilometre, centimeter centimetre, millimeter millimetre,
liter litre, milliliter millilitre, fiber fibre, caliber calibre, gray grey, license licence, defense defence,
offense offence, program programme, catalog catalogue, dialog dialogue, jewelry jewellery, aluminum aluminium,
mom mum, pajamas pyjamas, plow plough, skeptical sceptical, cozy cosy, airplane aeroplane, mold mould,
donut doughnut, practice practise, artifact artefact, enroll enrol, fulfill fulfil, installment instalment,
skillful skilful, aging ageing, judgment judgement, acknowledgment acknowledgement, yogurt yoghurt, tire tyre,
cancel cancelled cancelling canceled canceling, travel travelled travelling traveller traveled traveling traveler,
label labelled labelling labeled labeling, model modelled modelling modeled modeling, fuel fuelled fueled,
signal signalled signaled, channel channelled channeled, level levelled leveled
"""
_ENDS_OF_IZED = ("e", "es", "ed", "ing", "er", "ers", "ation", "ations")


def _with_plurals(base: str, forms: list[str]) -> list[tuple[str, str]]:
    return [*((form, base) for form in forms), *((f"{form}s", f"{base}s") for form in forms)]


BASES = {
    **{f"{word}is{end}": f"{word}iz{end}" for word in _IZED.split() for end in _ENDS_OF_IZED},
    **dict(
        pair for line in _SPELLED.split(",") for base, *forms in [line.split()] for pair in _with_plurals(base, forms)
    ),
    **{form: base for line in _IRREGULAR.split(",") for base, *forms in [line.split()] for form in forms},
}
"""The base of each irregular form, and the American spelling of words that have two."""

_own = threading.local()  # a stemmer serves one thread at a time, as its library says


def stem(word: str) -> str:
    """The stem of a lower-case word."""
    stemmer: Any = getattr(_own, "stemmer", None)
    if stemmer is None:
        import Stemmer

        # Each word is asked for once in the caches above it.
        stemmer = _own.stemmer = Stemmer.Stemmer("english", 0)
    return str(stemmer.stemWord(word))
