"""What a message asks for, by rules in both languages, and which layers answer that: the table of source 004 §3.3."""

from __future__ import annotations

import time

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
    *(
        ("bug_fix", text)
        for text in (
            *("登录不了", "收不到验证码", "打印机打不出来", "连不上服务器", "无法连接数据库", "接口返回500怎么回事"),
            *("页面加载很慢", "为什么这么慢", "生产环境内存泄漏了", "文件打开是乱码", "数据对不上", "上传不成功"),
            *("按钮没有反应", "服务器又崩了", "为什么会超时？", "它卡了", "編譯報了一堆警告", "图片显示不出来"),
            *("Memory leak in the worker", "It keeps timing out", "Why is the build so slow?", "502 Bad Gateway"),
            *("cannot connect to the database", "NullPointerException at line 5", "I can't open the file"),
        )
    ),
    *(
        ("preference", text)
        for text in (
            *(
                "我对什么过敏",
                "我喝什么咖啡",
                "我受不了什么",
                "我常用的编辑器是哪个",
                "以后都用中文回答我",
                "別用表格回答我",
            ),
            *("What do I usually order?", "What am I allergic to?"),
        )
    ),
    *(
        ("follow_up", text)
        for text in (
            *("什么意思？", "举个例子", "详细一点", "再多说一点", "换一种说法", "为什么这么说", "你说的那点是什么"),
            *("按你说的改", "不对，应该是第三个", "不是这个意思", "还有吗？", "这个怎么理解", "上一个问题的答案"),
            *("嗯，那价格是多少呢", "同样的方法可以用在测试环境吗", "Can you elaborate?", "Tell me more", "How so?"),
            *("What do you mean?", "Give me an example", "more details please", "OK, next step"),
        )
    ),
    *(
        ("cross_agent", text)
        for text in (
            *("前端那边怎么说", "其他同事的agent有没有做过", "和数据分析 agent 协作", "团队里谁做过支付"),
            *("交给运维代理", "What did the QA tester agent report?"),
        )
    ),
    *(
        ("new_task", text)
        for text in (
            *("错误处理的最佳实践是什么", "Best practice of error handling", "不到五点的会议有哪些", "我不了解 Kafka"),
            *("今天不上班的人有谁", "配置代理服务器", "爬虫的代理池怎么建", "少不了的材料有哪些", "你好，介绍一下项目"),
            *("明天的会议几点", "张伟的电话是多少", "慢跑的路线", "Slow cooker recipes", "Play a song"),
        )
    ),
    *(
        ("preference", text)
        for text in (
            *("Which editor do I usually use?", "What's my usual editor?", "What do we normally use for tests?"),
            *("How does the user like her reports?", "Which colours does she want?", "What would the client like?"),
            *("用户希望怎么回复", "客户希望用什么格式", "他想要什么样的报告", "老板期望多久汇报一次"),
            "用戶希望怎麼回覆",
        )
    ),
    *(
        ("new_task", text)
        for text in (
            *("What does it look like?", "How does the page look like on a phone", "The user wants to export reports"),
            *("用户希望能导出报表", "客户要求支持微信登录怎么做", "Set the usual headers of a response"),
        )
    ),
    *(
        ("follow_up", text)
        for text in ("Can you clarify that?", "Please clarify", "能澄清一下吗", "澄清一下第二条", "请说清楚一点")
    ),
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


@pytest.mark.parametrize("run", ["a", "不", "那", "用", "报了", "can not ", "嗯，", "what did the ", "a,", "Next.js"])
def test_a_long_message_takes_time_as_its_length_and_not_as_the_square_of_it(run: str) -> None:
    began = time.process_time()
    intent_of(run * (40_000 // len(run)))
    assert time.process_time() - began < 2
