"""Near-duplicates and near-misses of real items, generated from a seed.

A near-duplicate says the same in other words: synonyms, typos, another order, case and punctuation, courtesies,
function words; two or three such edits at once. A near-miss differs in one fact: a number, a flag, a negation,
a name, an opposite. Commands and names of a near-duplicate are unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_CHINESE_RUN = re.compile(r"[\u4e00-\u9fff]{4,}")
_PROSE_WORD = re.compile(r"(?<![\w`{\-/.<|@$=\"'])[A-Za-z][a-z]{3,}(?![\w`}\-/>|@=(])(?!\.\w)")
_FLAG = re.compile(r"(?<=\s)--?[A-Za-z][\w-]*")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)*(?![\w.])")

_ENGLISH_SYNONYMS = [
    ("Show", "Display"), ("Display", "Show"), ("Print", "Display"), ("List", "Show"), ("Delete", "Remove"),
    ("Remove", "Delete"), ("Create", "Make"), ("Start", "Launch"), ("Stop", "Terminate"), ("Change", "Modify"),
    ("Edit", "Modify"), ("Find", "Locate"), ("Search", "Look"), ("Use", "Utilize"), ("Run", "Execute"),
    ("Execute", "Run"), ("Check", "Verify"), ("Get", "Obtain"), ("Generate", "Create"), ("directory", "folder"),
    ("utility", "tool"), ("tool", "utility"), ("specific", "particular"), ("specified", "given"),
    ("given", "specified"), ("several", "multiple"), ("multiple", "several"), ("information", "info"),
    ("documentation", "docs"), ("configuration", "config"), ("application", "app"), ("current", "present"),
    ("errors", "faults"), ("additional", "extra"), ("using", "utilizing"), ("command", "instruction"),
]  # fmt: skip
_CHINESE_SYNONYMS = [
    ("显示", "展示"), ("列出", "显示"), ("打印", "输出"), ("删除", "移除"), ("创建", "新建"), ("使用", "利用"),
    ("启动", "运行"), ("停止", "终止"), ("修改", "更改"), ("编辑", "修改"), ("查找", "搜索"), ("查看", "查阅"),
    ("获取", "取得"), ("检查", "检验"), ("选择", "挑选"), ("指定", "给定"), ("命令", "指令"), ("文件夹", "目录"),
    ("所有", "全部"), ("信息", "资料"), ("多个", "若干"), ("当前", "目前"), ("另请参阅", "参见"), ("工具", "程序"),
    ("配置", "设置"), ("生成", "创建"),
]  # fmt: skip
_OPPOSITES = [
    ("enable", "disable"), ("install", "uninstall"), ("start", "stop"), ("add", "remove"), ("create", "delete"),
    ("before", "after"), ("first", "last"), ("all", "no"), ("with", "without"), ("compress", "decompress"),
    ("encrypt", "decrypt"), ("local", "remote"), ("input", "output"), ("read", "write"), ("import", "export"),
    ("启用", "禁用"), ("安装", "卸载"), ("添加", "删除"), ("压缩", "解压"), ("本地", "远程"), ("输入", "输出"),
    ("导入", "导出"), ("加密", "解密"), ("第一", "第三"), ("所有", "部分"),
]  # fmt: skip

Edit = Callable[[str, Random], str]


@dataclass(frozen=True, slots=True)
class Planted:
    """An item derived from another one: `origin` is the index of that one, `kind` names the edits."""

    origin: int
    text: str
    kind: str


def near_duplicates(texts: Sequence[str], count: int, seed: int = 1) -> list[Planted]:
    """`count` texts, each with the same meaning as one of `texts`."""
    random = Random(seed)
    return _planted(texts, count, random, lambda text: _reworded(text, random))


def near_misses(texts: Sequence[str], count: int, seed: int = 2) -> list[Planted]:
    """`count` texts that differ from one of `texts` in one fact."""
    random = Random(seed)
    return _planted(texts, count, random, lambda text: _changed(text, random))


def _planted(
    texts: Sequence[str], count: int, random: Random, edit: Callable[[str], tuple[str, str] | None]
) -> list[Planted]:
    made: list[Planted] = []
    taken: set[int] = set()
    while len(made) < count:
        origin = random.randrange(len(texts))
        if origin in taken and len(taken) < len(texts):
            continue
        taken.add(origin)
        edited = edit(texts[origin])
        if edited is not None:
            made.append(Planted(origin, *edited))
    return made


def _reworded(text: str, random: Random) -> tuple[str, str] | None:
    edits = _CHINESE_EDITS if len(_CHINESE.findall(text)) > len(text) / 10 else _ENGLISH_EDITS
    edited, kinds = text, []
    for name in random.sample(sorted(edits), len(edits)):
        before, edited = edited, edits[name](edited, random)
        if edited != before:
            kinds.append(name)
        if len(kinds) == 3 or (len(kinds) == 2 and random.random() < 0.5):
            break
    return (edited, "+".join(kinds)) if edited != text else None


def _changed(text: str, random: Random) -> tuple[str, str] | None:
    for name in random.sample(sorted(_FACTS), len(_FACTS)):
        edited = _FACTS[name](text, random)
        if edited != text:
            return edited, name
    return None


def _replaced(text: str, match: re.Match[str], word: str) -> str:
    return text[: match.start()] + word + text[match.end() :]


def _one_of(pattern: re.Pattern[str], text: str, random: Random) -> re.Match[str] | None:
    matches = list(pattern.finditer(text))
    return random.choice(matches) if matches else None


def _prose_words(text: str) -> list[re.Match[str]]:
    """Plain words outside of commands: those of each line before its last `: `, the label in front left alone."""
    matches, at = [], 0
    for number, line in enumerate(text.split("\n")):
        first = line.find(": ") if number == 0 else 0
        last = len(line) if number == 0 or ": " not in line else line.rfind(": ")
        words = (word for word in _PROSE_WORD.finditer(text, at, at + len(line)))
        matches += [word for word in words if first <= word.start() - at < last]
        at += len(line) + 1
    return matches


def _synonyms(table: Sequence[tuple[str, str]], english: bool) -> Edit:
    def edit(text: str, random: Random) -> str:
        for one, other in random.sample(table, len(table))[: len(table) // 2]:
            if not english:
                text = text.replace(one, other)
                continue
            for match in _prose_words(text):
                if match.group().lower() == one.lower():
                    word = other if match.group()[0].isupper() else other.lower()
                    text = _replaced(text, match, word)
                    break
        return text

    return edit


def _typo(text: str, random: Random) -> str:
    words = [word for word in _prose_words(text) if len(word.group()) >= 6 and word.group().islower()]
    if not words:
        return text
    match = random.choice(words)
    word = match.group()
    at = random.randrange(1, len(word) - 1)
    wrong = random.choice(
        (
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            word[:at] + random.choice("aeiostrn") + word[at + 1 :],
        )
    )
    return _replaced(text, match, wrong)


def _neighbours_swapped(text: str, random: Random) -> str:
    words = _prose_words(text)
    near = [(a, b) for a, b in pairwise(words) if text[a.end() : b.start()] == " "]
    if not near:
        return text
    one, other = random.choice(near)
    return text[: one.start()] + f"{other.group()} {one.group()}" + text[other.end() :]


def _lines_shuffled(text: str, random: Random) -> str:
    first, *rest = text.split("\n")
    random.shuffle(rest)
    return "\n".join([first, *rest])


def _case(text: str, random: Random) -> str:
    change = random.choice((str.lower, str.upper, str.title))
    for match in _prose_words(text):
        text = _replaced(text, match, change(match.group()))
    return text


def _punctuation(text: str, random: Random) -> str:
    marks = random.choice((((". ", "; "), (", ", "; ")), ((".\n", "\n"), (", ", " ")), ((".\n", "!\n"), (", ", " , "))))
    for mark, other in marks:
        text = text.replace(mark, other)
    return text


def _courtesy(text: str, random: Random) -> str:
    before = random.choice(("Please note: ", "Hello, ", "Hi! ", ""))
    return before + text + random.choice(("", " Thanks!", "\nThank you.", " please")) if before else text + " Thanks."


def _articles(text: str, random: Random) -> str:
    if random.random() < 0.5:
        return re.sub(r" (?:the|a|an) (?=[a-z])", " ", text)
    return re.sub(r"\b(all|to|in|of|from) (?!the |a )(?=[a-z]{4,} )", r"\1 the ", text, count=3)


def _chinese_courtesy(text: str, random: Random) -> str:
    return random.choice(("您好，", "请", "请注意：", "")) + text + random.choice(("谢谢。", "，谢谢！", "。谢谢"))


def _chinese_punctuation(text: str, random: Random) -> str:
    for mark, other in random.choice(
        ((("。", "."), ("，", ", ")), (("。", ""), ("，", " ")), (("：", ":"), ("、", "，")))
    ):
        text = text.replace(mark, other)
    return text


def _chinese_swap(text: str, random: Random) -> str:
    match = _one_of(_CHINESE_RUN, text, random)
    if match is None:
        return text
    run = match.group()
    at = random.randrange(len(run) - 1)
    return _replaced(text, match, run[:at] + run[at + 1] + run[at] + run[at + 2 :])


def _chinese_particles(text: str, random: Random) -> str:
    return (
        text.replace("的", "", 2) if random.random() < 0.5 else re.sub(r"(显示|列出|删除|创建)", r"\1了", text, count=2)
    )


_ENGLISH_EDITS: dict[str, Edit] = {
    "synonyms": _synonyms(_ENGLISH_SYNONYMS, english=True),
    "typo": _typo,
    "neighbours swapped": _neighbours_swapped,
    "lines shuffled": _lines_shuffled,
    "case": _case,
    "punctuation": _punctuation,
    "courtesy": _courtesy,
    "articles": _articles,
}
_CHINESE_EDITS: dict[str, Edit] = {
    "synonyms": _synonyms(_CHINESE_SYNONYMS, english=False),
    "lines shuffled": _lines_shuffled,
    "punctuation": _chinese_punctuation,
    "courtesy": _chinese_courtesy,
    "characters swapped": _chinese_swap,
    "particles": _chinese_particles,
}


def _number(text: str, random: Random) -> str:
    match = _one_of(_NUMBER, text, random)
    if match is None:
        return text
    last = match.group().rpartition(".")[2]
    return text[: match.end() - len(last)] + str(int(last) + random.randrange(1, 4)) + text[match.end() :]


def _flag(text: str, random: Random) -> str:
    match = _one_of(_FLAG, text, random)
    if match is None:
        return text
    flag = match.group()
    other = random.choice(
        ("", f"{flag}-with-lease", "--dry-run", flag.swapcase() if len(flag) == 2 else f"--no{flag[1:]}")
    )
    return _replaced(text, match, other)


def _negation(text: str, random: Random) -> str:
    if _CHINESE.search(text):
        return re.sub(
            r"(显示|列出|删除|创建|使用|打印|查看|启动)",
            lambda m: random.choice("不未勿")[0] + m.group(),
            text,
            count=1,
        )
    words = [word for word in _prose_words(text) if word.group().islower()]
    if not words:
        return text
    match = random.choice(words)
    return _replaced(text, match, random.choice(("not ", "never ", "without ")) + match.group())


def _name(text: str, random: Random) -> str:
    match = random.choice((_LABEL.match(text), _one_of(_QUOTED, text, random)))
    if match is None:
        return text
    name = match.group().strip("`")
    other = random.choice((f"x{name}", f"{name}2", f"{name}-stable", name[:-1] or "q", f"{name[::-1]}q"))
    return (
        text.replace(name, other)
        if random.random() < 0.5
        else _replaced(text, match, match.group().replace(name, other))
    )


_LABEL = re.compile(r"[^\s:]+(?=: )")
_QUOTED = re.compile(r"`[^`\s]+`")


def _opposite(text: str, random: Random) -> str:
    for pair in random.sample(_OPPOSITES, len(_OPPOSITES)):
        one, other = random.sample(pair, 2)
        if one.isascii():
            match = _one_of(re.compile(rf"\b{one}\b", re.IGNORECASE), text, random)
            if match is not None:
                return _replaced(text, match, other.title() if match.group().istitle() else other)
        elif one in text:
            return text.replace(one, other, 1)
    return text


_FACTS: dict[str, Edit] = {
    "number": _number,
    "flag": _flag,
    "negation": _negation,
    "name": _name,
    "opposite": _opposite,
}
