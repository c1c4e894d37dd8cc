"""What a message asks: its questions, without the phrases that only ask for an answer.

请问, 能不能告诉我 and "could you please tell me" stand around a question and say nothing of its subject, as words that
ask do (`POINTING_WORDS` of projections/vectors/tokens.py). One is left out where it is whole and at an end of the
message: 请求 has no 请问 in it, 告诉我的人 is somebody, and "hello world" is no greeting.
"""

from __future__ import annotations

import re

from projections.vectors.tokens import normalise

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
    f"请问(?:{_A_BIT}|下)?+",
    f"{_SHALL}*告诉(?:我们|我|咱们)?+(?:{_A_BIT}|下)?+",
    f"{_SHALL}*(?:{_FOR_ME})?+(?:{_TELL}|{_LOOK}){_A_BIT}",
    f"{_SHALL}*{_FOR_ME}(?>{_TELL}|{_LOOK})下?+(?![话明法书病])",
    f"我?(?:想要|想|需要|希望){_SHALL}*(?:知道|请教|打听|了解|确认|问|查){_A_BIT}?+(?:你们|你|您)?+",
    f"(?:你们?|您|谁|有没有人|有人)(?:还|是否|到底)*{_KNOW}不?+",
    "还(?:知道|记得)不?+",
)
_NOT_OF_IT = "(?![的者了过到出回])"  # 告诉我的人, 帮我找到的房子
_GREETING = (
    "(?:(?:大家|你们|你|您)好|嗨|哈喽|不好意思|抱歉|打扰一下|打扰了)[呀啊]?"
    "|(?:hi|hello|hey)(?: there| all| everyone)?|excuse me|sorry|(?:a )?quick question"
)

_COULD = "(?:please|kindly|just|(?:can|could|would|will) (?:you|anyone|anybody|someone))"
_ENGLISH = (
    "please",
    f"(?:{_COULD} )*(?:tell|remind|show) (?:me|us)(?: (?:more )?about)?",
    f"(?:{_COULD} )*help (?:me|us)(?: to)?(?: (?:find out|figure out|understand|remember|look up))?",
    "(?:do|does|can|could|would) (?:you|anyone|anybody|someone) (?:still |happen to )?(?:know|remember|recall)"
    "(?: (?:about|if|whether))?",
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
    "|(?:thanks|thank you)(?: (?:a lot|so much|very much|in advance))?|please"
)
_AFTER = re.compile(rf"(?:{_MARK}+(?:{_THANKS}|[好行]吗|可以吗|好不好|行不行))+{_MARK}*$")
_ASKS = re.compile(rf"(?:[好行]吗|可以吗|好不好|行不行|[吗嘛呢]){_MARK}*$")
_SENTENCE = re.compile(r"(?<=[?!。;\n])|(?<=\.)\s+")
_QUESTION = re.compile(
    r"\?\W*$|(?:什么|哪|谁)(?![^，,]{0,3}[都也])|怎么|怎样|如何|几(?!乎)|多少|多[大久长远高重深]|为何|是否|是不是|有没有|[吗呢]\W*$|请问"
    r"|^\W*(?:what|who|whom|whose|when|where|why|how|which|do|does|did|is|are|was|were|can|could|should|will|would|has"
    r"|have)(?![0-9a-z_])"
)
PHRASES = (_BEFORE.pattern, _AFTER.pattern, _ASKS.pattern, _SENTENCE.pattern, _QUESTION.pattern)
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


def questions_among(message: str) -> str | None:
    """The questions of a message that says other things too; None where it says nothing else, or asks nothing."""
    sentences = [each for each in _SENTENCE.split(normalise(message)) if re.search(r"\w", each)]
    questions = [each for each in sentences if _QUESTION.search(each) or _begins_by_asking(each)]
    if not questions or len(questions) == len(sentences):
        return None
    return "\n".join(map(what_is_asked, questions))


def _begins_by_asking(sentence: str) -> bool:
    return 0 < _before(sentence) < len(sentence)


def _before(asked: str) -> int:
    """Where what is asked begins, behind phrases that only ask; 0 where there are none."""
    found = _BEFORE.match(asked, 0, _READ)
    return found.end() if found and re.search(r"\w", found[0]) else 0


def _without(at_the_end: re.Pattern[str], text: str) -> str:
    found = at_the_end.search(text, max(0, len(text) - _READ))
    return text[: found.start()] if found else text
