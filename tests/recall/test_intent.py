"""What a message asks for, by rules in both languages, and which layers answer that: the table of source 004 §3.3."""

from __future__ import annotations

import pytest

from kledger.contract.recall import Intent
from producers.operations.recall.intent import INTENTS, READS, intent_of

TABLE: tuple[tuple[Intent, str], ...] = (
    ("new_task", "Build a landing page for the shop"),
    ("new_task", "Write the release notes of version 4"),
    ("new_task", "How do we roll out to staging?"),
    ("new_task", "帮我写一个用户注册页面"),
    ("new_task", "设计一个订单表"),
    ("new_task", "给新同事准备入职清单"),
    ("new_task", "Next.js and TailwindCSS in a project"),
    ("new_task", "Next.js 项目怎么配置 TailwindCSS"),
    ("new_task", "So-called views of a shop"),
    ("follow_up", "Next: the second page"),
    ("follow_up", "Continue. The second page"),
    ("follow_up", "And what about the second one?"),
    ("follow_up", "Continue where you stopped"),
    ("follow_up", "As we discussed, take the smaller one"),
    ("follow_up", "What did you say last time?"),
    ("follow_up", "Take the second one"),
    ("follow_up", "那它的参数呢？"),
    ("follow_up", "第二个呢"),
    ("follow_up", "超时时间呢？"),
    ("follow_up", "那如果用户没有登录"),
    ("new_task", "那种订单表要怎么设计"),
    ("new_task", "服务器在哪里呢？"),
    ("new_task", "设计一个能放下第二个地址的订单表"),
    ("follow_up", "继续刚才的工作"),
    ("follow_up", "然后呢"),
    ("follow_up", "上次说的那个方案用哪个库"),
    ("bug_fix", "The login page crashes on submit"),
    ("bug_fix", "Fix the flaky test"),
    ("bug_fix", "It does not work on Safari"),
    ("bug_fix", "怎么修那个登录的 bug"),
    ("bug_fix", "注册接口报错 500"),
    ("bug_fix", "部署失败了，帮我排查"),
    ("preference", "Which style do I prefer for tests?"),
    ("preference", "What is my favourite editor?"),
    ("preference", "How do I like my reports?"),
    ("preference", "我喜欢什么样的代码风格"),
    ("preference", "用户的偏好是什么"),
    *(
        ("bug_fix", text)
        for text in ("登录页面打不开了", "服务起不来", "编译不过", "按钮点不动", "配置不生效", "接口又超时了")
    ),
    *(("bug_fix", text) for text in ("修復登入頁面的錯誤", "連線失敗怎麼辦", "程式閃退", "ＢＵＧ在哪里")),
    *(("bug_fix", text) for text in ("接口返回error怎么办", "登录fail了", "有个exception看不懂")),
    ("preference", "我的preference是什么"),
    ("follow_up", "next这个怎么做"),
    ("new_task", "怎么用error_handler做重定向"),
    ("new_task", "超时时间设多少"),
    *(("preference", text) for text in ("我最爱喝什么", "我爱吃什么", "我讨厌吃什么", "我平时用哪个编辑器")),
    *(
        ("preference", text)
        for text in ("我喜歡什麼顏色", "我習慣用什麼編輯器", "我偏愛哪家餐廳", "What do I dislike?")
    ),
    *(("follow_up", text) for text in ("为什么？", "再详细一点", "具体说说", "我们之前的方案", "昨天说的那件事")),
    *(("follow_up", text) for text in ("那预算是多少呢？", "那預算是多少呢", "那接口怎么测呢")),
    *(
        ("follow_up", text)
        for text in ("那 staging database password 呢？", "那PostgreSQL的超时呢", "Elasticsearch的呢")
    ),
    *(("follow_up", text) for text in ("那Next.js和Tailwind怎么配合呢", "TypeScript编译选项呢？", "好的，超时呢？")),
    *(("new_task", text) for text in ("Elasticsearch在哪里呢", "PostgreSQL的超时设为多少呢？")),
    *(("new_task", text) for text in ("那里的餐厅叫什么呢", "那位同事是谁呢")),
    *(("follow_up", text) for text in ("我們剛才說到哪裡", "繼續說", "之前提到的书叫什么")),
    *(("new_task", text) for text in ("部署之前要做什么", "为什么天空是蓝色的", "前面板的尺寸")),
    *(("cross_agent", text) for text in ("團隊裡其他人怎麼說", "請審查智能體看看")),
    ("cross_agent", "What did the review agent decide?"),
    ("cross_agent", "Ask another agent about the schema"),
    ("cross_agent", "Have the frontend agent deploy the site"),
    ("cross_agent", "让前端 agent 部署站点"),
    ("cross_agent", "数据智能体发现了什么"),
    ("new_task", "写一个能调用工具的智能体"),
    ("cross_agent", "架构 Agent 定了什么"),
    ("cross_agent", "问问其他智能体有没有做过"),
)


@pytest.mark.parametrize(("intent", "message"), TABLE)
def test_a_message_has_the_intent_that_its_words_tell(intent: Intent, message: str) -> None:
    assert intent_of(message) == intent


def test_a_target_agent_asks_across_agents_whatever_the_words_are() -> None:
    assert {intent_of(message, target_agent="reviewer") for _, message in TABLE} == {"cross_agent"}


def test_every_intent_reads_the_layers_of_the_source() -> None:
    assert {intent: (reads.main, reads.also) for intent, reads in READS.items()} == {
        "new_task": ("semantic", "procedural"),
        "follow_up": ("working", "episodic"),
        "bug_fix": ("episodic", "document"),
        "preference": ("semantic", "short"),
        "cross_agent": ("shared", "procedural"),
    }
    assert set(READS) == set(INTENTS)
