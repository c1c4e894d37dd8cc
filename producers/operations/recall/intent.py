"""Intent of a message (source 004, section 3.3): what it asks for, and which layers answer that.

By rules in English and Chinese, the first that fits. The table test pins them (tests/recall/test_intent.py). Where a
small model is set, it is asked instead, and the rules answer when it does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from kledger.contract.recall import Intent
from kledger.contract.words import RecallLayer
from projections.vectors.tokens import one_form

INTENTS: tuple[Intent, ...] = get_args(Intent)


@dataclass(frozen=True, slots=True)
class Reads:
    """The layers that answer an intent: the main one, and the one that is read as well."""

    main: RecallLayer
    also: RecallLayer


READS: Mapping[Intent, Reads] = {
    "new_task": Reads("semantic", "procedural"),
    "follow_up": Reads("working", "episodic"),
    "bug_fix": Reads("episodic", "document"),
    "preference": Reads("semantic", "short"),
    "cross_agent": Reads("shared", "procedural"),
}
"""The table of source 004, section 3.3."""


# An English word stands alone where Chinese touches it: 这个error怎么办.
_BEGINS, _ENDS = "(?<![0-9A-Za-z_])", "(?![0-9A-Za-z_])"


def _words(english: str, chinese: str) -> re.Pattern[str]:
    return re.compile(rf"{_BEGINS}(?:{english}){_ENDS}|{chinese}", re.IGNORECASE)


# Of a short question in Chinese: a whole word in other letters, such as `PostgreSQL`, counts as a character.
_WORD = r"[0-9A-Za-z_+/-]+(?:\.[0-9A-Za-z_+/-]+)*"
_ANY = rf"(?>{_WORD}|[^0-9A-Za-z_+/-])"
_OF_ONE_PART = rf"(?>{_WORD}|[^，。！？,.!?0-9A-Za-z_+/-])"


_RULES: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    (
        "cross_agent",
        _words(
            r"(?:other|another|which) agents?|(?:ask|have|let|hand over to|tell) the \w+ agent|"
            r"the \w+ agent (?:knows?|did|does|decided|said|found|wrote)|"
            r"what (?:do|does|did) the (?:team|others?|\w+ agent)",
            r"(?:其他|其它|别的|另一个|哪个)\s*(?:agent|智能体|代理)|(?:架构|测试|审查|开发|运维|协调)\s*(?:agent|智能体)"
            r"|团队(?:里|的)?(?:其他|别的)|(?:交给|让|叫|请|问|告诉|通知).{0,8}(?:agent|智能体)"
            r"|[\u4e00-\u9fff]{2,4}\s*(?:agent|智能体)\s*(?:知道|说|写|做|发现|决定)",
        ),
    ),
    (
        "bug_fix",
        _words(
            r"bugs?|fix(?:e[sd]|ing)?|errors?|exceptions?|crash(?:e[sd]|ing)?|broken|fail(?:s|ed|ing|ure|ures)?|traceback|"
            r"regressions?|(?:does ?n.t|not) work(?:ing)?|debug(?:ging)?|hangs?|stack ?trace",
            r"bug|报错|出错|错误|修复|修一下|修好|怎么修|异常|崩溃|挂了|挂掉|坏了|失败|不工作|不能用|用不了|排查|故障"
            r"|(?:打|点|按)不(?:开|动)|(?:起|连|登[录陆]?)不[来上]|跑不(?:起来|动|通)|启动不了|(?:编译|构建|测试)(?:不(?:通)?过|过不了)"
            r"|不(?:起作用|生效|好使)|没反应|无响应|卡死|卡住|闪退|死机|当机|宕机|白屏|黑屏|出问题|出了问题|调试|堆栈"
            r"|(?:总是|一直|老是|经常|又)超时|超时(?:了|怎么)",
        ),
    ),
    (
        "preference",
        _words(
            r"prefer(?:s|red|ence|ences)?|favou?rites?|(?:do|would|what|how) (?:I|we) (?:usually )?(?:like|want)|"
            r"(?:I|we) (?:usually )?like|my (?:style|taste|habits?)|remember that I|dislikes?|hates?",
            r"偏好|偏爱|喜欢|习惯|爱好|最爱|爱[吃喝看听玩用穿]|讨厌|中意|更愿意|倾向|口味|我想要|我的风格|记住我"
            r"|我们?(?:通常|一般|平时|平常)",
        ),
    ),
    (
        "follow_up",
        re.compile(
            # a name such as Next.js does not go on with anything
            rf"^\W*(?:and|also|then|so|continue|go on|next|again|what about|how about|what else|why){_ENDS}(?![.-]\w)"
            rf"|{_BEGINS}(?:as (?:I|we|you) (?:said|discussed|agreed)|last time|earlier|just now|previous(?:ly)?|"
            r"that one|the same|the (?:first|second|third|other|latter|former) one|"
            r"you (?:said|mentioned)|we (?:talked|spoke|discussed)|where were we|continue|"
            rf"go on){_ENDS}"
            r"|^\W*那(?:么)?(?:它|她|他|这|呢|怎么|为什么|如果|要是|第)|第[一二两三四五六七八九十]个呢|后者|前者"
            rf"|^\W*那(?![种个些里位边儿]){_OF_ONE_PART}{{1,12}}?呢\W*$"
            rf"|^(?!.*(?:哪|什么|怎|谁|几|多少)){_ANY}{{1,8}}?呢\W*$"
            r"|^\W*为(?:什么|啥|何)[呢啊]?\W*$|(?:展开|具体|详细)[讲说]"
            # behind what happens, 之前 says before that, and goes on with nothing
            r"|(?<![\u4e00-\u9fff])之前(?!端)|(?<=[们我你您咱他她])之前|前面[说提讲聊那的]|[昨前]天[说提讲聊]"
            r"|继续|接着|然后呢|还有呢|刚才|刚刚|上次|上一次|上面说|那个|再(?:来|说|试|讲|解释|详细|具体)|下一步",
            re.IGNORECASE,
        ),
    ),
)


def intent_of(message: str, *, target_agent: str | None = None) -> Intent:
    """What a message asks for, by rules, in either Chinese script; a named target agent asks across agents."""
    if target_agent is not None:
        return "cross_agent"
    words = one_form(message)
    return next((intent for intent, pattern in _RULES if pattern.search(words)), "new_task")
