"""Whose something is that a question asks for: Tom's phone number is nobody else's, 舅舅的生日 is not that of 爷爷.

Names are known by how they stand in a question: English ones by a capital letter and *'s*, Chinese ones as kin or as
小李 at its beginning. So most questions name nobody, and are matched by their words alone. Of Nadia's brother other
items may tell than those that name her.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.similar.first_person import FIRST_PERSON, speaks_of_itself
from projections.vectors.tokens import fragments_by_word, normalise, query_terms, word_terms

ANOTHERS = 0.05
"""Of its match, that of an item which names neither whom the question names nor anybody as *she*, 用户 or *I*: a true
answer seldom leaves out all of these."""
_FEWEST_FRAGMENTS = 2
"""Fragments of a name that say that it is there with a slip."""
_RELATED = (
    "(?:wife|husband|partner|spouse|fianc[eé]e?|(?:girl|boy)?friends?|brothers?|sisters?|mother|father|mom|mum|dad|sons?"
    "|daughters?|child|children|kids?|parents?|uncle|aunt|cousins?|grand(?:ma|pa|mother|father|son|daughter|parents)"
    "|boss|manager|colleagues?|team|company|employer|assistant|landlord|neighbou?rs?|roommates?|teacher|doctor|dentist"
    "|therapist|lawyer|dogs?|cats?|pets?)"
)
_OWNER = re.compile(
    r"(?<![^\W_])(?<!\bof )([A-Z][a-z\u00e0-\u024f]+)"
    r"(?:['\u2019\u02bc]s(?![^\W_])|(?<=s)['\u2019\u02bc](?=\s))"
    rf"(?!\s+(?:[a-z]+\s+)?{_RELATED}(?:['\u2019\u02bc]s)?\s+\w)"  # what is asked is then of the brother
)
_NO_NAMES = """
what who that there let he she where how here when why this one it today yesterday tomorrow user everyone everybody
someone somebody mom mum mother dad father wife husband son daughter brother sister grandma grandpa grandmother
grandfather aunt uncle monday tuesday wednesday thursday friday saturday sunday
"""
_NOBODY = frozenset(_NO_NAMES.split())
_KIN = (
    *("爸爸 父亲 老爸 爸", "妈妈 母亲 老妈 妈", "爷爷 祖父", "奶奶 祖母", "外公 姥爷", "外婆 姥姥", "哥哥 大哥"),
    *("姐姐 大姐", "弟弟", "妹妹", "叔叔", "舅舅", "舅妈", "姑姑 姑妈", "姑父", "姨妈", "伯父 伯伯", "伯母", "表妹"),
    *("表弟", "表姐", "表哥", "堂哥", "堂弟", "堂姐", "堂妹", "儿子", "女儿", "老公 丈夫 先生", "老婆 妻子 太太"),
    *("姐夫", "妹夫", "嫂子", "岳父", "岳母", "公公", "婆婆", "孙子", "孙女", "侄子", "外甥"),
)
_SAME_KIN = {name: each.split() for each in _KIN for name in each.split()}
_ANY_KIN = "|".join(sorted(_SAME_KIN, key=len, reverse=True))
_CHINESE_RELATED = "同事|朋友|同学|邻居|老板|领导|老师|医生|大夫|公司|单位|房东|男友|女友|家人|孩子|狗|猫|宠物"
_CHINESE_OWNER = re.compile(
    rf"(?:我们?的?|咱们?的?|你们?的?|您的?)?(?:({_ANY_KIN})(?![们妈爸])"
    rf"|([小老阿](?![区时说学孩心吃米程是师板家年店狗猫里人])[\u4e00-\u9fff])(?=的))(?!的?(?:{_ANY_KIN}|{_CHINESE_RELATED}))"
)
_WORD = re.compile(r"[^\W_]+")
_MAY_NAME = re.compile(f"[小老阿媽爺孫姪兒{''.join(sorted({name[0] for name in _SAME_KIN}))}]")
_SENTENCE = re.compile(r"[。.!?;\n，,]\s*")
_MARKS = re.compile("['\u2019\u02bc]")
_ANYBODY = ("he", "she", "him", "his", "her", "user", "用户", "他", "她")
_ITSELF = 0
"""Among the terms of a passage: it says *I* or 我, and so may be what the named one said. No term is 0."""
PATTERNS = (
    *(_OWNER.pattern, _CHINESE_OWNER.pattern, _NO_NAMES, " ".join(_KIN), " ".join(_ANYBODY)),
    FIRST_PERSON.pattern,
)


class Named(NamedTuple):
    """Somebody whom a question names, as `name`. One of the terms of `alone` says that an item is about them, or two
    of those of `parts`."""

    name: str
    alone: NDArray[np.uint32]
    parts: NDArray[np.uint32]


def whose(message: str, asked: str) -> tuple[Named, ...]:
    """Those whose something is asked for in `asked`, which is the message or its questions as they are matched."""
    names = {name.lower() for name in _OWNER.findall(message)} - _NOBODY if _MARKS.search(message) else set()
    if not names and (asked.isascii() or not _MAY_NAME.search(asked)):
        return ()
    plain = normalise(asked)
    words = set(_WORD.findall(plain)) if names else set()
    chinese = {one.name: one for each in _SENTENCE.split(plain) if (one := _chinese(each)) is not None}
    return (*map(_english, sorted(names & words)), *chinese.values())


def named_by(readers: str, named: Sequence[Named]) -> bool:
    """Whether an owner or a scope, as user:tom and project:quay, is the one that is named."""
    words = set(_WORD.findall(normalise(readers)))
    return all(one.name in words for one in named)


def share_of(named: Sequence[Named], passages: Sequence[NDArray[np.uint32]]) -> float:
    """What an item of these passages has of its match: all where it names each of them, or may speak of them as *she*
    or 用户, or as *I*."""
    about = any(_has(_anybody(), each).any() for each in passages) or all(
        any(_has(one.alone, each).any() or _has(one.parts, each).sum() >= _FEWEST_FRAGMENTS for each in passages)
        for one in named
    )
    return 1.0 if about else ANOTHERS


def marked(text: str, terms: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The terms of a passage, in order, with _ITSELF where it speaks in the first person."""
    return np.concatenate((np.array([_ITSELF], np.uint32), terms)) if speaks_of_itself(text) else terms


def _english(name: str) -> Named:
    parts = [fragment for word in fragments_by_word(name) for fragment in word]
    return Named(name, np.array([_ITSELF, *word_terms(name)], np.uint32), np.array(parts, np.uint32))


def _chinese(asked: str) -> Named | None:
    found = _CHINESE_OWNER.match(asked)
    if found is None:
        return None
    kin, name = found.groups()
    alone = [term for each in _SAME_KIN.get(kin, [name]) for term in _terms(each)]
    if name:  # what one says of oneself is not the uncle's
        alone.append(_ITSELF)
    return Named(kin or name, np.array(alone, np.uint32), np.zeros(0, np.uint32))


def _terms(name: str) -> list[int]:
    """The pair of characters, or the character, that a name is."""
    return word_terms(name) if len(name) > 1 else query_terms(name).indices.tolist()


def _has(wanted: NDArray[np.uint32], passage: NDArray[np.uint32]) -> NDArray[np.bool_]:
    if not len(passage):
        return np.zeros(len(wanted), np.bool_)
    return np.asarray(passage.take(passage.searchsorted(wanted), mode="clip") == wanted)


@cache
def _anybody() -> NDArray[np.uint32]:
    return np.array([term for each in _ANYBODY for term in _terms(each)], np.uint32)
