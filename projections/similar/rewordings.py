"""Word lists of the sameness check: function words, synonyms, and words that must not differ.

They are short and plain on purpose: a word that is not listed only matches itself. The words of one line are synonyms
in knowledge of this kind; the first names the line.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache
from itertools import permutations

from projections.english import stem

# Words whose presence or absence changes the meaning.
_SHARP_WORDS = """
not no nor never none neither without except unless only but instead cannot all any every each both either
always must mustn should optional before after until since above below up down left right first last
non min max minimum maximum half double twice one two three four five six seven eight nine ten hundred
thousand million
"""
SHARP_WORDS = frozenset(_SHARP_WORDS.split())
SHARP_CHARACTERS = frozenset("不没无非未勿别莫禁否仅只全每必总最至除二三四五六七八九十百千万亿两零半单双前后上下左右先")

# Words by which a statement says the opposite, or that it holds seldom, nearly or no more. Beside a synonym they are
# words as any; on one side alone they change the meaning.
_TURNING_WORDS = """
stop avoid refuse reject deny forbid prohibit prevent ban cancel postpone suspend abandon quit cease discontinue
deprecate obsolete formerly previously rarely seldom hardly barely scarcely almost nearly sometimes occasionally
"""
_TURNING_CHINESE = (
    "停止|停用|暂停|拒绝|避免|防止|取消|放弃|废弃|弃用|作废|撤销|推迟|延期"
    "|很难|难以|很少|极少|偶尔|有时|几乎|差点|险些|曾|被|受到|遭到|遭受|挨了?(?=[^着近])"
)
_FIRSTS = "周[一二三四五六日末]|[第初]一|一(?:号|日|月|点|时|年|期|级|楼|次)"
"""Days of the week, and ones that are a number: 一 is part of many words."""
SHARP_CHINESE = re.compile(f"{_TURNING_CHINESE}|{_FIRSTS}")
"""Chinese words that must not differ, beside SHARP_CHARACTERS; looked for where synonyms are one word."""
_WEEKDAY = re.compile("(?:星期|礼拜|周)([一二三四五六日天末])")
_USED_TO = re.compile(r"\b(I|we|you|he|she|they|it) used to(?= [a-z])", re.IGNORECASE)

# Function words and courtesies: they carry no fact of their own.
_LIGHT_WORDS = """
a an and are as at be been being by can could for from has have in into is it its may might of on or our so
such that the their then there these they this those to us via was we were when where which while will with
would you your i me my do does did please kindly thanks thank hello hi simply just also note that's basically
actually really very quite currently easily quickly if
hope helps useful short remember tip fyi summary again
"""
LIGHT_WORDS = frozenset(_LIGHT_WORDS.split())
LIGHT_CHARACTERS = frozenset("的地得了着吗呢吧啊呀哦嘛个该此这其之将会可以能是为并且和与及也就请您你我们来去把被")

_SYNONYMS = """
show display print list view see output
delete remove erase
create make generate build
use utilize employ utilise
start launch begin initiate run execute
stop halt terminate end
change modify alter edit
get obtain fetch retrieve acquire
find search locate look
fix repair mend resolve correct
check verify examine inspect ensure confirm
choose select pick
large big huge
small little tiny
quick fast rapid
help assist aid
need require
error fault failure mistake
folder directory
tool utility program
command instruction
specify give provide supply define
specified given provided
specific particular certain
current present
existing available
allow permit let enable
keep retain preserve
convert transform
several multiple various
about regarding concerning
information info details
documentation docs doc
configuration config settings setting
application app
repository repo
additional extra further more
whole entire complete
also too
manage handle administer
parameter argument
path location
"""

_CHINESE_SYNONYMS = """
显示 展示 打印 列出 查看 查阅 输出
删除 移除 清除 去除
创建 新建 建立 生成
使用 利用 采用 运用
启动 开启 运行 执行
停止 终止 结束
修改 更改 变更 编辑
获取 取得 得到
查找 搜索 寻找 检索
修复 修正 修理
检查 核对 检验
选择 挑选
指定 给定 特定
文件夹 目录
工具 程序
命令 指令
需要 须要
错误 差错 故障
信息 资料
配置 设置 设定
原 原始 原本
多个 若干
当前 目前 现在
帮助 协助
全部 所有 一切
关于 有关
通过 经由
另请参阅 参见 另见
软件 应用
账号 帐号 账户 帐户
登录 登陆
保存 存储
额外 附加
仅 只
"""

_CHINESE_LIGHT = re.compile(
    r"请注意|(?<!另)请(?![求假示客])|麻烦|您好|你好|谢谢|一下|非常|十分|其实|简单地|目前来说|可以|一个|一种|进行"
)


@cache
def _classes() -> dict[str, str]:
    """Each stem's class: lines that share a word are one class."""
    parent: dict[str, str] = {}

    def top(word: str) -> str:
        while parent.setdefault(word, word) != word:
            word = parent[word]
        return word

    for line in filter(None, _SYNONYMS.splitlines()):
        first, *others = map(stem, line.split())
        for other in others:
            parent[top(other)] = top(first)
    return {word: top(word) for word in parent}


_CHINESE_CLASS = {
    word: line.split()[0] for line in filter(None, _CHINESE_SYNONYMS.splitlines()) for word in line.split()
}
_CHINESE_WORDS = re.compile("|".join(sorted(_CHINESE_CLASS, key=len, reverse=True)))


@lru_cache(maxsize=1 << 16)
def meaning(word: str) -> str:
    """What a lower-case English word counts as: its stem, or the stem that stands for its synonyms."""
    own = stem(word)
    return _classes().get(own, own)


@cache
def turning() -> frozenset[str]:
    """The meanings of TURNING_WORDS."""
    return frozenset(map(meaning, _TURNING_WORDS.split()))


def one_wording(text: str) -> str:
    """A text with one word for the days of the week, and for what somebody used to do."""
    return _USED_TO.sub(r"\1 formerly", _WEEKDAY.sub(lambda day: f"周{day[1].replace('天', '日')}", text))


def without_courtesies(text: str) -> str:
    """Chinese text without polite and empty words."""
    return _CHINESE_LIGHT.sub("", text)


def plain_chinese(text: str) -> str:
    """Chinese text with one word for its synonyms and without courtesies."""
    return _CHINESE_WORDS.sub(lambda match: _CHINESE_CLASS[match.group()], without_courtesies(text))


def _exchanges() -> list[tuple[Counter[str], Counter[str]]]:
    """For two synonyms each: the characters that go and those that come when one stands for the other."""
    lines = [line.split() for line in _CHINESE_SYNONYMS.splitlines() if line]
    pairs = [(Counter(one), Counter(other)) for line in lines for one, other in permutations(line, 2)]
    exchanges = [(one - other, other - one) for one, other in pairs]
    return [(gone, come) for gone, come in exchanges if gone and come]


CHINESE_EXCHANGES = _exchanges()
