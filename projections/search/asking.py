"""What a message asks: its questions, without the phrases that only ask for an answer.

请问, 能不能告诉我 and "could you please tell me" stand around a question and say nothing of its subject, as words that
ask do (`POINTING_WORDS` of projections/words.py). One is left out where it is whole and at an end of the
message: 请求 has no 请问 in it, 告诉我的人 is somebody, and "hello world" is no greeting.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from projections.similar.first_person import asks_of_itself
from projections.vectors.tokens import normalise
from projections.words import CJK

_MARK = r"[\s,.:;!?~、，。：；！？…—-]"

# Chinese: who is asked how, for whom, what is to be done, for a moment.
_SHALL = (
    "(?:请|麻烦|劳烦|烦请|拜托|劳驾|你们?|您|谁|有没有人|有人|能不能|能否|能|可不可以|可否|是否可以|可以|会不会|再|先)"
)
_FOR_ME = "[帮给替跟向为](?:我们|我|咱们|咱)"
_TELL = "说说|讲讲|说|讲|介绍|解释|回忆|回想"
_LOOK = "查询|查找|查看|查查|查|找找|找|看看|看|问问|问|搜索|搜|想想|确认|了解"
_KNOW = "(?:知不知道|记不记得|清不清楚|知道|记得|清楚|了解)"
_A_BIT = "(?:一下子?|一声)"
_CHINESE = (
    f"(?:顺便|顺带|再|好奇|随便|插一句|我?(?:突然)?想起来要?|我?想){_SHALL}*(?:问|请教|打听)"
    "(?:一下|一句|你们?|您|下(?![周个次班课雨雪午月]))++",
    f"请问(?:{_A_BIT}|下)?+",
    f"{_SHALL}*告诉(?:我们|我|咱们)?+(?:{_A_BIT}|下)?+",
    f"{_SHALL}*(?:{_FOR_ME})?+(?:{_TELL}|{_LOOK}){_A_BIT}",
    f"{_SHALL}*{_FOR_ME}(?>{_TELL}|{_LOOK})下?+(?![话明法书病])",
    f"我?(?:想要|想|需要|希望){_SHALL}*(?:知道|请教|打听|了解|确认|问|查){_A_BIT}?+(?:你们|你|您)?+",
    f"(?:你们?|您|谁|有没有人|有人)(?:还|是否|到底)*{_KNOW}不?+",
    "还(?:知道|记得)不?+",
    f"(?:我?(?:还|又)?有|{_SHALL}*问)(?:一个|个|件)(?:问题|事情|事)"
    f"(?:我?(?:想|要|得)*{_SHALL}*(?:请教|咨询|问))?{_A_BIT}?+(?:你们?|您)?",
    f"{_SHALL}*帮忙(?>{_LOOK}){_A_BIT}?+下?+(?![话明法书病])",
    "你(?:看看|查查|找找)(?![书病])",
)
_NOT_OF_IT = "(?![的者了过到出回])"  # 告诉我的人, 帮我找到的房子
_GREETING = (
    "(?:(?:大家|你们|你|您|早上|上午|中午|下午|晚上)好|早安|晚安|嗨|哈喽|不好意思|抱歉|打扰一下|打扰了)[呀啊]?"
    "|(?:对了|话说|哎|诶|我?忘(?:记|了)+)[呀啊]?"
    "|(?:hi|hello|hey)(?: there| all| everyone)?|good (?:morning|afternoon|evening)|excuse me"
    "|(?:ok|okay|well|so|oh|btw)"
    "|sorry(?: to (?:bother|disturb|ask)(?: you)?(?: again)?)?|(?:a |one )?quick (?:question|one|reminder)(?: please)?"
    "|(?:one (?:more|last|other|quick)|another) (?:thing|question)|just (?:checking|asking|curious)|i (?:forgot|forget)"
    "|i (?:can ?not|can|don.t|do not|do) (?:remember|recall)"
    "|not sure (?:if|whether) i (?:told|asked|mentioned)(?: you)?"
)

_COULD = "(?:please|kindly|just|(?:can|could|would|will) (?:you|anyone|anybody|someone))"
_ENGLISH = (
    "please|by the way|btw|ok(?:ay)? so|but",
    f"(?:{_COULD} )+(?:check|look up|look)(?: for (?:me|us))?(?: (?:if|whether))?",
    "(?:can|could|may|might) i (?:just |quickly )?ask(?: you)?",
    "(?:do you have )?any idea(?= (?:who|what|when|where|why|how|which|if))",
    f"(?:{_COULD} )*(?:tell|remind|show) (?:me|us)(?: (?:more )?about)?",
    f"(?:{_COULD} )*help (?:me|us)(?: to)?(?: (?:find out|figure out|understand|remember|look up))?",
    "(?:do|does|can|could|would) (?:you|anyone|anybody|someone) (?:still |happen to |maybe |perhaps |by any chance )*"
    "(?:know|remember|recall)(?: (?:about|if|whether))?",
    "what (?:do you know|do you remember|can you tell (?:me|us)) about",
    "(?:i|we) (?:would |really |just )*(?:like|want|need) to (?:know|ask|find out|hear|learn)(?: (?:more )?about)?",
    "(?:i|we) (?:was |were |am |are |just )*wonder(?:ing|ed)?(?: (?:about|if|whether))?",
    "let (?:me|us) know",
    "any ideas?",
)
_BEFORE = re.compile(
    rf"(?:{_MARK}|(?:{_GREETING})+(?=\s*[,.:;!?~、，。：；！？…—-])"
    rf"|(?:{'|'.join(_CHINESE)}){_NOT_OF_IT}|(?:{'|'.join(_ENGLISH)})(?![0-9a-z_]))+"
)
_THANKS = (
    "(?:非常感谢|感谢|多谢|谢谢)(?:大家|你们|你|您|啦|了)?|(?:麻烦|辛苦|拜托)(?:大家|你们|你|您)?[啦了]"
    "|(?:thanks|thank you|thx|cheers)(?: (?:a lot|so much|very much|in advance))?|please|asap"
)
_TOLD = "(?:请|麻烦)?告诉(?:我们|我)(?:一下|下)?|你?(?:知道|记得)[不吗么]|急用?|在线等|if you (?:know|remember)|for me"
_AFTER = re.compile(rf"(?:{_MARK}+(?:{_THANKS}|{_TOLD}|[好行]吗|可以吗|好不好|行不行))+{_MARK}*$|来着{_MARK}*$")
_ASKS = re.compile(rf"(?:[好行]吗|可以吗|好不好|行不行|[吗嘛呢]|来着){_MARK}*$")
_SENTENCE = re.compile(r"(?<=[!。;\n])|(?<=\?)(?![a-z0-9_/&=%.-])|(?<=\.)\s+")  # /orders?page=2 asks nothing
_ENDS = re.compile(r"[!！。;；\n]+|[?？]+(?![a-z0-9_/&=%.-])|\.(?=\s)")
_MOMENT = re.compile(r"^[\s\[(]*\d{2,4}[-/.]\d{1,2}[-/.]\d{1,2}[t\s]*[\d:.,]*\s?(?:z|[+-]\d{2}:?\d{2})?[\])]*")
_QUESTION = re.compile(
    r"\?\W*$|(?:什么|哪|谁)(?![^，,]{0,3}[都也])|怎么|怎样|如何|几(?!乎)|多少|多[大久长远高重深]|为何|是否|是不是|有没有|[吗呢]\W*$|请问"
    r"|^\W*(?:what|who|whom|whose|when|where|why|how|which|do|does|did|is|are|was|were|can|could|should|will|would|has"
    r"|have)(?![0-9a-z_])"
)
_ASKING = re.compile(
    r"[是在有要用叫到去]?(?:什么(?:时候|地方|名字|样)?|哪[里儿些个位种]?|几(?!乎)|多少|多[久大长远高重深宽快贵]"
    r"|怎么[办样做]?|怎样|如何|为何|谁)"
    r"|是不是|有没有|能不能|会不会|要不要|可不可以|能否|是否|可否|[吗嘛呢](?=\W*$)"
)
_FAULT = re.compile(
    r"(?<![a-z])(?:error|[a-z0-9_]*exception|[a-z0-9_]+error|fail(?:s|ed|ure)?|fatal|panic|refused|denied|killed"
    r"|timed out|timeout|traceback"
    r"|cannot|unable to|not found|segfault|critical)(?![a-z])|报错|出错|错误|异常|失败|拒绝|超时|崩溃"
)
MOST_FAULTS = 3
"""Lines that tell of a fault which are read beside questions that say little: the last ones, as a log ends with it."""
_CHINESE_LETTER = re.compile(f"[{CJK}]")
_PASTED = re.compile(r"[\[\]{}<>=|\\/]|\d{3}")
"""What a line of a log or of code has, and a sentence of a person seldom."""
PHRASES = (
    *(_BEFORE.pattern, _AFTER.pattern, _ASKS.pattern, _SENTENCE.pattern, _QUESTION.pattern),
    *(_ENDS.pattern, _FAULT.pattern, _MOMENT.pattern, _PASTED.pattern, _ASKING.pattern),
)
_LONG, _MANY = 1_000, 8
"""Characters and sentences beyond which a message without a question may have been pasted."""
_AT_AN_END = 10_000
"""Characters at each end of a long message in which its questions and faults are looked for."""
_LONGEST = 400
"""Characters of a sentence that is looked at there: a longer one is a part of what was pasted."""
_MOST_LOOKED_AT = 500
"""Sentences that are looked at there."""
_MARKED = tuple(re.compile(rf"{mark}(?=[\s\"'`)\]\u201d\u300d]|\Z)") for mark in (r"\?", "\uff1f"))
_MOST_MARKS = 500
"""Sentences with a question mark that are looked at between the ends, of each kind."""
_SENTENCE_ENDS = "\n.!?;\u3002\uff01\uff1f\uff1b"
_READ = 200
"""Characters at an end of a message in which such phrases are looked for; a long run of marks would take its square."""


def what_is_asked(message: str) -> str:
    """The message without the phrases around it that only ask; itself where there are none."""
    whole = normalise(message)
    asked = _without(_AFTER, whole)
    before = _before(asked)
    if before:
        asked = _without(_ASKS, asked[before:])
    return message if asked == whole else asked


def without_words_that_ask(asked: str) -> str | None:
    """What is asked with a stop in the place of each Chinese word that asks, such as 什么时候, which is no word of an
    answer and makes pairs with the characters beside it; None where there is none."""
    if asked.isascii():
        return None
    plain = normalise(asked)
    bare = _ASKING.sub("\u3002", plain)
    return None if bare == plain else bare


class Among(NamedTuple):
    """The questions of a message that says other things too, without phrases that only ask."""

    questions: str
    near: str | None
    """The questions with the sentences right before and after each on its line, which tell what they are about; None
    where these are all."""


def among(message: str) -> Among | None:
    """The questions among other sentences; None where a message says nothing else, or asks nothing.

    Among much that was pasted, where lines of code begin with `is` and `where`, a question has its mark, or is in
    Chinese. Without one the sentence before it and the one behind it ask.
    """
    lines = enumerate(normalise(message).split("\n"))
    sentences = [(line, each) for line, text in lines for each in _SENTENCE.split(text) if re.search(r"\w", each)]
    asking = [at for at, (_, each) in enumerate(sentences) if _asks(each)]
    if len(message) > _LONG and len(sentences) > _MANY:
        asking = [at for at in asking if _asks_surely(sentences[at][1])]
        asking = asking or [at for at in (0, len(sentences) - 1) if not _PASTED.search(sentences[at][1])]
    if not asking or len(asking) == len(sentences):
        return None
    # what was pasted begins a line of its own
    near = sorted(
        {
            at
            for place in asking
            for at in (place - 1, place, place + 1)
            if 0 <= at < len(sentences) and sentences[at][0] == sentences[place][0]
        }
    )
    questions, beside = ("\n".join(what_is_asked(sentences[at][1]) for at in places) for places in (asking, near))
    return Among(questions, None if len(near) == len(sentences) else beside)


def faults_among(message: str) -> str:
    """The last different lines of a message that tell of a fault and ask nothing, as those of a log."""
    lines = (each for each in normalise(message).split("\n") if _FAULT.search(each) and not _asks(each))
    return "\n".join(list(dict.fromkeys(map(_without_moment, lines)))[-MOST_FAULTS:])


def is_about_a_fault(question: str) -> bool:
    """Whether a question speaks of an error, which then stands beside it."""
    return _FAULT.search(normalise(question)) is not None


def shortened(message: str, most: int) -> str:
    """A message of `most` characters at most: the sentences that ask and the lines that tell of a fault near its ends,
    sentences between with a question mark, then its beginning and its end, each in its place. A shorter message is
    itself."""
    if len(message) <= most:
        return message
    message = message.strip()
    read = [(span, normalise(message[span[0] : span[1]])) for span in _near_the_ends(message)]
    asking = [span for span, plain in read if _asks(plain) and _asks_surely(plain)]
    faults = [span for span, plain in read if _FAULT.search(plain)]
    asking += [span for span in _asked_between(message) if _asks_surely(normalise(message[span[0] : span[1]]))]
    once = {message[at:end].strip(): (at, end) for at, end in reversed(asking)}  # the first of equal ones, in order
    asking = [span for span in asking if once[message[span[0] : span[1]].strip()] == span]
    kept = [*_within(asking, most // 4), *_within(sorted(faults, reverse=True), most // 4)]
    left = most - sum(end - at + 1 for at, end in set(kept)) - 2
    kept += [(0, left // 2), (len(message) - left // 2, len(message))]
    return "\n".join(message[at:end] for at, end in _joined(kept))[:most]


def _near_the_ends(message: str) -> list[tuple[int, int]]:
    """Where each sentence begins and ends, those at the ends of a message first."""
    spans: list[tuple[int, int]] = []
    first = min(len(message), _AT_AN_END)
    for begin, end in ((0, first), (max(first, len(message) - _AT_AN_END), len(message))):
        at = begin
        for cut in _ENDS.finditer(message, begin, end):
            spans.append((at, cut.end()))
            at = cut.end()
        spans.append((at, end))
    spans = [(at, end) for at, end in spans if 0 < end - at <= _LONGEST and re.search(r"\w", message[at:end])]
    return sorted(spans, key=lambda span: min(span[0], len(message) - span[1]))[:_MOST_LOOKED_AT]


def _asked_between(message: str) -> list[tuple[int, int]]:
    """Where the sentences with a question mark behind them begin and end that are not near the ends of a message: those
    that look like a person's first, then those nearer to an end."""
    spans = []
    for mark in chain.from_iterable(
        islice(each.finditer(message, _AT_AN_END, len(message) - _AT_AN_END), _MOST_MARKS) for each in _MARKED
    ):
        at = mark.start()
        begin = max(message.rfind(end, at - _LONGEST, at) for end in _SENTENCE_ENDS) + 1
        if begin and re.search(r"\w", message[begin:at]):
            spans.append((begin, mark.end()))

    def placed(span: tuple[int, int]) -> tuple[bool, int]:
        pasted = _PASTED.search(message, *span) is not None
        return pasted, min(span[0], len(message) - span[1])

    return sorted(spans, key=placed)


def _within(spans: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """The first of these that have so many characters together."""
    kept: list[tuple[int, int]] = []
    for at, end in spans:
        most -= end - at + 1
        if most < 0:
            break
        kept.append((at, end))
    return kept


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same places, in order and each once."""
    joined: list[tuple[int, int]] = []
    for at, end in sorted(spans):
        if joined and at <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((at, end))
    return joined


def _asks(plain: str) -> bool:
    return bool(_QUESTION.search(plain)) or _begins_by_asking(plain)


def _asks_surely(plain: str) -> bool:
    """Whether a sentence asks also where it stands among lines of code or of a log."""
    if plain.rstrip(" \n`'\")").endswith("?"):
        return True
    return _CHINESE_LETTER.search(plain) is not None and _PASTED.search(plain) is None


def _without_moment(line: str) -> str:
    """A line of a log without the time that it begins with."""
    return _MOMENT.sub("", line).strip()


def _begins_by_asking(sentence: str) -> bool:
    return 0 < _before(sentence) < len(sentence)


def _before(asked: str) -> int:
    """Where what is asked begins, behind phrases that only ask; 0 where there are none."""
    found = _BEFORE.match(asked, 0, _READ)
    return found.end() if found and re.search(r"\w", found[0]) else 0


def _without(at_the_end: re.Pattern[str], text: str) -> str:
    found = at_the_end.search(text, max(0, len(text) - _READ))
    return text[: found.start()] if found else text


@lru_cache(maxsize=64)
def asks_of_its_user(message: str) -> bool:
    """Whether a message asks of whoever says it, as *what is my number* does and *show me the logs* does not."""
    return asks_of_itself(what_is_asked(message))
