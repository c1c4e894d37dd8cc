"""Stems of English words, by Snowball's library in C. It is loaded with the first word.

Snowball knows endings alone: for a form that has none, as `bought`, there is a table.
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
BASES = {form: base for line in _IRREGULAR.split(",") for base, *forms in [line.split()] for form in forms}
"""The base of each irregular form."""

_own = threading.local()  # a stemmer serves one thread at a time, as its library says


def stem(word: str) -> str:
    """The stem of a lower-case word."""
    stemmer: Any = getattr(_own, "stemmer", None)
    if stemmer is None:
        import Stemmer

        # Each word is asked for once in the caches above it.
        stemmer = _own.stemmer = Stemmer.Stemmer("english", 0)
    return str(stemmer.stemWord(word))
