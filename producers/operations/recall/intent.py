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


# What somebody cannot do: 登录不了, 收不到, 打不出来; 少不了 and 不到五点 say something else.
_CANNOT = (
    r"(?![少免受大忘离比舍算想我你您他她它们])[\u4e00-\u9fff]不"
    r"(?:了(?![解起])|出来|到(?![一二三四五六七八九十两\d])|上(?![班学课]))"
)
_PERSON = r"(?:the|my|our) (?:user|customer|client|boss)s?|he|she|they"
_AGENT = r"(?:agent|智能体|代理(?![池商]|服务|地址|设置|配置|\s*ip))"

_RULES: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    (
        "cross_agent",
        _words(
            r"(?:other|another|which) agents?|(?:ask|have|let|hand over to|tell) the \w+ agent|"
            r"the \w+ agent (?:knows?|did|does|decided|said|found|wrote|report(?:s|ed)?)|"
            r"what (?:do|does|did) the (?:team|others?|(?:\w+ )?\w+ agent)",
            rf"(?:其他|其它|别的|另一个|哪个)(?:同事的|人的|团队的)?\s*{_AGENT}|(?:架构|测试|审查|开发|运维|协调)\s*{_AGENT}"
            rf"|团队(?:里|的|中)?(?:其他|别的|谁|哪位|有没有人)|(?:交给|让|叫|请|问|告诉|通知).{{0,8}}(?:agent|智能体)"
            rf"|[\u4e00-\u9fff]{{2,4}}\s*(?:agent|智能体)\s*(?:知道|说|写|做|发现|决定|协作|合作|的结论|的意见)"
            r"|[\u4e00-\u9fff]{2}那边(?:怎么|说|定)",
        ),
    ),
    (
        "bug_fix",
        _words(
            r"bugs?|fix(?:e[sd]|ing)?|errors?(?! handl)|exceptions?|[0-9A-Za-z_]+(?:exception|error)|"
            r"crash(?:e[sd]|ing)?|broken|fail(?:s|ed|ing|ure|ures)?|traceback|"
            r"regressions?|(?:does ?n.t|not) work(?:ing)?|debug(?:ging)?|hangs?|stuck|frozen|freez(?:es|ing)|"
            r"stack ?trace|segfaults?|leak(?:s|ed|ing)?|(?:so|too|very|is|are) slow|slows down|"
            r"tim(?:es|ed|ing) out|bad gateway|(?:can ?not|can.t|unable to) "
            r"(?:connect|open|load|log ?in|start|read|find|reach|see|install|build|run|send)",
            r"bug|报错|报了.{0,6}(?:异常|警告)|出错|错误(?!处理)|修复|修一下|修好|怎么修|异常|崩(?:溃|了)|挂了|挂掉|坏了|失败|不工作"
            r"|不能用|用不了|排查|故障|无法|不成功|怎么回事"
            r"|(?:打|点|按)不(?:开|动)|(?:起|连|登[录陆]?)不[来上]|跑不(?:起来|动|通)|启动不了|(?:编译|构建|测试)(?:不(?:通)?过|过不了)"
            r"|不(?:起作用|生效|好使)|没有?反应|无响应|卡[死住顿了]|闪退|死机|当机|宕机|白屏|黑屏|出问题|出了问题|调试|堆栈"
            r"|(?:总是|一直|老是|经常|又|会)超时|超时(?:了|怎么)|泄[漏露]|溢出|乱码|乱了|丢(?:了|失)|死循环|死锁|飙到|对不上"
            rf"|(?:很|太|好|变|这么|那么|有点|越来越|加载|响应|查询)慢|{_CANNOT}",
        ),
    ),
    (
        "preference",
        _words(
            r"prefer(?:s|red|ence|ences)?|favou?rites?|(?:do|would|what|how) (?:I|we) (?:usually )?(?:like|want)|"
            r"(?:I|we) (?:usually )?like|my (?:style|taste|habits?)|remember that I|dislikes?|hates?|"
            r"(?:do|would) (?:I|we) (?:usually |normally |always )?(?:drink|eat|order|wear|listen|watch|play)|"
            r"(?:I|we) (?:usually|normally|typically)|my usual|"
            rf"(?:do(?:es)?|did|would) (?:{_PERSON}) (?:usually |normally )?(?:like|want)(?! to{_ENDS})|"
            r"allerg(?:ic|y|ies)",
            r"偏好|偏爱|喜欢|习惯|爱好|最爱|爱[吃喝看听玩用穿]|讨厌|中意|更愿意|倾向|口味|我想要|我的风格|记住我|过敏|忌口|受不了"
            r"|我们?(?:通常|一般|平时|平常|常)|(?:用户|客户|老板|领导|他|她)(?:希望|想要|要求|期望).{0,2}(?:怎|如何|什么|哪|多少|多久|几)|我[吃喝穿听玩](?:什么|哪|啥)|我怕|以后(?:都|请|别|不要)|用.{1,6}(?:回答|回复)我",
        ),
    ),
    (
        "follow_up",
        re.compile(
            # a name such as Next.js does not go on with anything
            rf"^\W*(?:and|also|then|so|continue|go on|next|again|what about|how about|what else|why|"
            rf"how so){_ENDS}(?![.-]\w)"
            rf"|{_BEGINS}(?:as (?:I|we|you) (?:said|discussed|agreed)|last time|earlier|just now|previous(?:ly)?|"
            r"that one|the same|the (?:first|second|third|other|latter|former) one|"
            r"you (?:said|mentioned|mean)|we (?:talked|spoke|discussed)|where were we|continue|"
            r"elaborate|clarify|tell me more|more details?|(?:give|show) (?:me|us) an example|explain (?:that|this|it)|"
            rf"next step|go on){_ENDS}"
            r"|^\W*那(?:么)?(?:它|她|他|这|呢|怎么|为什么|如果|要是|第)|第[一二两三四五六七八九十]个呢|后者|前者"
            rf"|^\W*(?:(?:嗯|哦|好的?|行|明白了?)\W+)?那(?![种个些里位边儿]){_OF_ONE_PART}{{1,12}}?呢\W*$"
            rf"|^(?!.*(?:哪|什么|怎|谁|几|多少)){_ANY}{{1,8}}?呢\W*$"
            r"|^\W*为(?:什么|啥|何)(?:[呢啊]|这么说)?\W*$|(?:展开|具体|详细)[讲说]|澄清|说清楚|^\W*(?:再?详细|具体)一?[点些]\W*$"
            r"|^\W*(?:不对|不是[这那]|还有(?:吗|没有|别的)|同样的|什么意思|啥意思|举个?例|换(?:一?种|个)说法)"
            r"|(?<![的个])你(?:说|讲|提到)的|[按照]你说|^\W*这个?(?:怎么|为什么|什么意思)|上一个"
            # behind what happens, 之前 says before that, and goes on with nothing
            r"|(?<![\u4e00-\u9fff])之前(?!端)|(?<=[们我你您咱他她])之前|前面[说提讲聊那的]|[昨前]天[说提讲聊]"
            r"|继续|接着|然后呢|还有呢|刚才|刚刚|上次|上一次|上面说|那个|再(?:来|说|试|讲|解释|详细|具体|多说)|下一步",
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
