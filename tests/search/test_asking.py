"""Phrases around a question that only ask for an answer: they change nothing of what is known."""

from __future__ import annotations

import re

import pytest

from kledger.contract.recall import MOST_FLOOR, floor_of
from projections.search.asking import Among, among, shortened, what_is_asked
from projections.search.match import Heard, covered, passages, weighed
from projections.vectors.question import Question, embedded_of, terms_of
from projections.vectors.tokens import query_terms

CHINESE = (
    *("请问{}", "请问一下，{}", "請問{}", "你好，请问{}？", "不好意思打扰一下，{}", "能不能告诉我{}"),
    *(
        "可以告诉我们{}吗？",
        "请你告诉我一下{}好吗",
        "帮我查一下{}",
        "帮我查下{}",
        "麻烦你帮我看看{}，谢谢！",
        "幫我查一下{}",
    ),
    *(
        "可以跟我讲讲{}吗",
        "给我介绍一下{}",
        "能否介绍一下{}",
        "我想知道{}",
        "想请教一下，{}",
        "我想问一下{}",
        "我想了解一下{}",
    ),
    *(
        "对了，{}",
        "早上好，{}？",
        "我忘了，{}",
        "顺便问一下{}",
        "再问一下，{}",
        "想问下{}",
        "我想起来问你{}",
        "好奇问一句，{}",
    ),
    *(
        "有个问题想请教，{}",
        "问个问题，{}",
        "帮忙看下{}",
        "你看看{}",
        "{}，告诉我一下",
        "{}，你知道不",
        "{}？急用",
        "{}来着",
    ),
    *("你知道{}吗？", "你还记得{}吗", "有人知道{}吗", "谁知道{}呢？", "还记得{}吗", "{}，可以吗？", "{}？多谢了"),
)
ENGLISH = (
    *("Please tell me {}", "Could you please tell me {}?", "Can you tell us more about {}", "Tell me {}, please."),
    *("Hi there! Could you remind me {}? Thanks!", "Can you help me find out {}?", "Do you happen to know {}?"),
    *("Does anyone know {}?", "I'd like to know {}.", "I want to know {}", "I was wondering {}", "I wonder if {}"),
    *("Hey, do you maybe remember {}?", "Ok so {}"),
    *("btw {}?", "By the way, {}", "Sorry to bother you again, but {}?"),
    *("One more thing: {}", "Quick reminder please: {}", "Just checking: {}", "Not sure if I told you, but {}"),
    *(
        "Can I ask {}?",
        "Can you check {}?",
        "Could you look up {} for me?",
        "I forgot, {}",
        "{}, if you know",
        "{}? asap thx",
    ),
    *("Any idea {}?", "Let me know {}", "Quick question: {}", "What do you remember about {}?", "Show me {}"),
)


@pytest.mark.parametrize("phrase", CHINESE)
@pytest.mark.parametrize("question", ["生产数据库的端口", "家里的wifi密码"])
def test_a_question_in_chinese_matches_as_it_does_without_phrases_that_ask(phrase: str, question: str) -> None:
    item = passages("", "生产数据库的端口是5433，家里的wifi密码写在冰箱上。")
    assert covered(weighed(phrase.format(question)), item) == pytest.approx(1.0)


@pytest.mark.parametrize("phrase", ENGLISH)
def test_a_question_in_english_matches_as_it_does_without_phrases_that_ask(phrase: str) -> None:
    item = passages("", "The port of the staging database is 5433.")
    assert covered(weighed(phrase.format("the port of the staging database")), item) == pytest.approx(1.0)


@pytest.mark.parametrize("phrase", [*CHINESE, *ENGLISH])
def test_asking_for_an_answer_is_no_answer(phrase: str) -> None:
    asked = "月季什么时候修剪" if phrase in CHINESE else "when to prune old roses"
    item = passages("", "小王请我帮他查一下，请告诉我，谢谢。 Please let me know, could you help me, thanks.")
    assert covered(weighed(phrase.format(asked)), item) < MOST_FLOOR


@pytest.mark.parametrize(
    "message",
    [
        *("请求超时怎么设置", "请假流程是什么", "请客的地方在哪", "请帖发给谁", "麻烦的客户是哪位", "能源部的电话"),
        *("告诉我的人是谁", "帮我搬家的人是谁", "帮我找到的房子在哪"),
        *("给我妈买的礼物", "跟我说的话", "跟我说话的同事"),
        *("介绍信怎么开", "说明书在哪", "看下雨的预报", "查看日志", "查找重复的文件", "你知道的人有哪些"),
        "谢谢你这首歌",
        *(
            "再问题库里找",
            "问个人的电话",
            "有个人找你",
            "忘了带钥匙怎么办",
            "对了一半的题",
            "看看书架",
            "急用药品清单",
        ),
        *(
            "so far so good",
            "well water quality",
            "quick sort",
            "look and feel of the page",
            "asap rocky",
        ),
        *(
            "checking account number",
            "one more thing to buy",
            "good morning song",
            "ok button color",
            "ask the plumber",
        ),
        *("可以带狗吗", "你好世界怎么写", "想念的人", "会不会下雨", "服务器好吗", "还清楚账单的日期"),
        *("hello world in rust", "helpful commands", "pleased customers", "tell a joke", "needs of the customer"),
        *("thank you letter", "sorry page of the site", "show menu", "wonder woman", "Do you like tea?"),
    ],
)
def test_words_of_the_subject_are_no_phrase_that_asks(message: str) -> None:
    assert what_is_asked(message) == message


@pytest.mark.parametrize(
    "message", ["请问", "帮我查一下", "你知道吗？", "谢谢！", "Please.", "Could you tell me?", "Tell me why"]
)
def test_a_message_that_only_asks_is_read_as_it_is(message: str) -> None:
    assert covered(weighed(message), passages("", message)) == pytest.approx(1.0)


@pytest.mark.parametrize("run", ["!", "请", "谢谢!", "please ", "hi, ", "帮我", "，", "吗,", "谁", "?"])
def test_a_long_run_of_such_phrases_is_looked_at_at_its_ends_alone(run: str) -> None:
    what_is_asked(run * 50_000)
    among(run * 50_000)


BEFORE_AND_AFTER = (
    *(
        "今天天气不错，我刚吃完早饭。{}？",
        "我正在准备明天的汇报，领导催得很急。对了，{}是什么",
        "{}是多少？我昨天找了半天也没有找到。",
    ),
    *("我刚换了一台新电脑，什么都还没有装。帮我查一下{}。", "I had a long day at work. {}? Thanks!"),
)


@pytest.mark.parametrize("sentences", BEFORE_AND_AFTER)
@pytest.mark.parametrize("question", ["生产数据库的连接端口号", "the connection port of the production database"])
def test_a_question_is_known_whatever_is_said_beside_it(sentences: str, question: str) -> None:
    item = passages("", "生产数据库的连接端口号 5433。 The connection port of the production database is 5433.")
    assert covered(weighed(sentences.format(question)), item) >= 0.7


def test_a_message_matches_as_a_whole_or_by_its_question_whichever_is_better() -> None:
    message = "Our cat Momo sheds a lot of hair since spring. What helps against the hair on the sofa?"
    assert covered(weighed(message), passages("", message)) == pytest.approx(1.0)
    answer = passages("", "Against hair on the sofa a rubber glove helps.")
    assert covered(weighed(message), answer) > 0.6
    about = passages("", "Our cat Momo sheds a lot of hair since spring.")
    assert covered(weighed(message), about) > 0.5


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ("我家的猫最近总是掉毛。怎么办？", "打印机卡纸了怎么办：打开后盖。"),
        ("我家的猫最近总是掉毛。怎么解决？", "登录失败已经解决。"),
        ("My cat loses hair since spring. How do I fix it?", "Fix the flaky test."),
        ("My cat loses hair since spring. Any ideas?", "Write ideas on the board."),
    ],
)
def test_a_question_that_says_little_makes_nothing_known_by_itself(message: str, content: str) -> None:
    assert covered(weighed(message), passages("", content)) < MOST_FLOOR


CHAT = (
    "Yesterday I had lunch with two friends from university, and we talked about films, holidays and rain. My "
    "sister called because her train was late and she had to wait in the rain. This morning the coffee machine broke, "
    "so I walked to the bakery at the corner, met my neighbour with his dog, and bought bread, cheese and a paper. "
)
LOG = "".join(
    f"2026-11-28T10:00:{n % 60:02}.12Z INFO [worker-{n % 7}] GET /orders?page={n} lease {n * 7919 % 1000} renewed\n"
    for n in range(120)
)
FAULT = "2026-11-28T10:59:59.001Z ERROR [nightly] connect ECONNREFUSED 127.0.0.1:6379\n"
MENDED = passages(
    "", "The nightly job failed with ECONNREFUSED 127.0.0.1:6379: redis was down; the unit starts at boot."
)
PORT = passages("", "The staging database of the shop is Postgres 15, port 5433.")


@pytest.mark.parametrize("phrase", [*CHINESE, *ENGLISH])
def test_the_paths_search_without_phrases_that_ask(phrase: str) -> None:
    searched = Heard(phrase.format("port of the staging database")).searched
    assert isinstance(searched, str)
    assert searched.strip("?？。. ") == "port of the staging database"


@pytest.mark.parametrize(
    "message", ["the port of staging", "请问", "Please.", "Where is it?", "Momo is a cat. Where is she?"]
)
def test_a_plain_message_and_one_of_a_few_sentences_is_searched_for_as_it_is(message: str) -> None:
    assert Heard(message).searched == message.lower() or Heard(message).searched == message


def test_much_that_is_said_far_from_a_question_counts_for_less_than_what_stands_next_to_it() -> None:
    searched = Heard(f"{CHAT}I use rsync at work. How do I keep the dates of the files?").searched
    assert isinstance(searched, Question)
    assert "rsync" in searched.near
    assert "lunch" not in searched.near
    assert 0 < searched.rest < 0.8


@pytest.mark.parametrize("addresses", ["GET /orders?page=2 took 3 ms.", "see http://a.example/x?y=1."])
def test_the_question_mark_of_an_address_asks_nothing(addresses: str) -> None:
    found = among(f"{addresses} Where is the key?")
    assert isinstance(found, Among)
    assert found.questions == "where is the key?"


@pytest.mark.parametrize(
    "message",
    [
        f"{LOG}\nWhich port is the staging database of the shop on?",
        f"Which port is the staging database of the shop on? Here is my log:\n{LOG * 20}",
        f"{LOG}\nHow do I reach the shop?\nWhich port is the staging database of the shop on?\n{LOG[:2000]}",
    ],
)
def test_a_question_is_known_whatever_is_pasted_with_it(message: str) -> None:
    asked = shortened(message, 4_000)
    assert len(asked) <= 4_000 < len(message)
    assert "Which port is the staging database of the shop on?" in asked
    assert covered(weighed(asked), PORT) > 0.6
    assert covered(weighed(asked), MENDED) < MOST_FLOOR


@pytest.mark.parametrize(
    "question", ["Why does this happen?", "这是怎么回事？", "帮我看看这个报错是怎么回事？", "How do I fix this error?"]
)
@pytest.mark.parametrize(
    "pasted", [f"{{}}\n{LOG}{FAULT}{LOG[:500]}", f"{LOG}{FAULT}\n{{}}", f"{{}}\n{FAULT * 3}Some more of it.\n"]
)
def test_a_question_about_a_pasted_fault_is_answered_by_what_mended_it(question: str, pasted: str) -> None:
    asked = weighed(shortened(pasted.format(question), 4_000))
    assert covered(asked, MENDED) > MOST_FLOOR
    assert covered(asked, PORT) < MOST_FLOOR


@pytest.mark.parametrize("pasted", ["{}\n" + LOG, LOG + "{}", "{}\n" + LOG[:3000], LOG[:3000] + "\n{}"])
def test_what_is_said_before_or_behind_a_pasted_log_is_known_without_a_question(pasted: str) -> None:
    message = pasted.format("Connect to the port of the staging database of the shop")
    assert covered(weighed(shortened(message, 4_000)), PORT) > 0.6
    searched = Heard(shortened(message, 4_000)).searched
    assert isinstance(searched, Question)
    assert searched.near == "connect to the port of the staging database of the shop"


CODE = "".join(
    f"is_{n} = where(n for n in range({n}))\nif n:\n    do(n)\nelse how:\nis within {n} of it\nhow far it goes\n"
    for n in range(70)
)


@pytest.mark.parametrize("pasted", ["{}\n" + CODE, CODE + "{}", "{} see\n```\n" + CODE + "\n```"])
def test_lines_of_code_that_begin_as_questions_do_ask_nothing_beside_one(pasted: str) -> None:
    message = shortened(pasted.format("Which port is the staging database of the shop on?"), 4_000)
    assert covered(weighed(message), PORT) > 0.6


@pytest.mark.parametrize("beside", ["help", "pls", "看看"])
def test_a_traceback_with_a_word_beside_it_is_answered_by_what_mended_it(beside: str) -> None:
    trace = "".join(f"  File 'mod{n}.py', line {n * 7}, in step\n    return self.next(payload)\n" for n in range(70))
    message = shortened(f"Traceback (most recent call last):\n{trace}{FAULT}\n{beside}", 4_000)
    assert covered(weighed(message), MENDED) > MOST_FLOOR


def test_a_log_alone_makes_nothing_known_that_it_does_not_name() -> None:
    assert covered(weighed(shortened(LOG, 4_000)), PORT) < MOST_FLOOR


@pytest.mark.parametrize(
    ("question", "pasted"),
    [
        ("Which port does the staging database listen on?", LOG),
        ('So, which port does the staging database listen on?" he asked.', LOG),
        ("why does the staging database not listen on its port 5432?", "GET /orders?page=2&sort=asc 200\n"),
        ("It is new. Which port does the staging database listen on?", f"Was it so? It was. {'They went on. ' * 40}"),
        ("预发数据库监听哪个端口？", LOG),
        ("预发数据库监听哪个端口？", f"他来了吗？没有来。{'他们继续走。' * 60}"),
    ],
)
def test_a_question_in_the_middle_of_a_very_long_message_is_searched_for(question: str, pasted: str) -> None:
    half = f"{pasted}\n" * (50_000 // len(pasted))
    text = shortened(f"{half}{question}\n{half}", 4_000)
    (asked,) = re.findall(r"[^.]*[?？]", question)
    assert asked.strip() in text
    assert len(text) <= 4_000
    answer = passages(
        "", "The staging database listens on the port 5432." if asked.isascii() else "预发数据库监听端口5432。"
    )
    assert covered(weighed(text), answer) >= floor_of(100)


@pytest.mark.parametrize(
    "run", ["a", "? ", "x? ", "？", "x？\n", "error\n", "错误", "\n", " ", "2026-11-28 ", "[(", "é"]
)
def test_a_message_of_a_megabyte_is_shortened_by_its_ends_alone(run: str) -> None:
    message = run * (1_000_000 // len(run))
    assert len(shortened(message, 4_000)) <= 4_000
    assert shortened("where?", 4_000) == "where?"


def test_a_model_embeds_the_question_and_not_the_log_beside_it() -> None:
    searched = Heard(f"{LOG[:3000]}\nWhich port is the staging database on?").searched
    assert embedded_of(searched) == "which port is the staging database on?"
    assert embedded_of("the port") == "the port"


def test_words_of_a_log_count_once_and_those_of_the_question_in_full() -> None:
    terms = terms_of(Question("lease lease lease port", "port", 0.25))
    weights = dict(zip(terms.indices.tolist(), terms.values.tolist(), strict=True))
    alone = {word: query_terms(word, words_only=True).indices.tolist()[0] for word in ("lease", "port")}
    assert weights[alone["lease"]] == pytest.approx(0.25)
    assert weights[alone["port"]] == pytest.approx(1.0)
