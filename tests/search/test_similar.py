"""What says the same is found, and what differs in a fact is not (mission K5)."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.near_duplicates import near_duplicates
from bench.recall import data_directory
from bench.slim import quality, texts_of
from kledger.contract.bounds import THRESHOLD
from projections.similar.groups import Item, similar
from projections.similar.neighbours import LOOKS, neighbours
from projections.similar.sameness import one_slip_apart, similarity
from projections.similar.statements import statement

TLDR = data_directory() / "tldr" / "knowledge.jsonl"

SAME = [
    ("Delete a branch on the server: git push -d", "Remove a branch on the server: git push -d"),
    ("Retry failed requests three times at most.", "Please retry failed requests three times, at most. Thanks!"),
    ("Look at the slowest consumer first", "LOOK AT THE SLOWEST CONSUMER FIRST"),
    ("Use a durable consumer for the projector", "Use a durable consumer for the projectr"),
    ("Don't restart the broker under load.", "Do not restart the broker under load"),
    ("Keep raw answers.\nMeasure on the real machine.", "Measure on the real machine.\nKeep raw answers."),
    ("先看最慢的消费者，再考虑增加新的。", "请先看最慢消费者,再考虑增加新的"),
    ("删除所有未使用的镜像: docker image prune -a", "移除全部未使用的镜像: docker image prune -a"),
    ("使用 git 查看提交历史", "利用 git 查看提交的历史，谢谢"),
    ("ＧＩＴ：查看提交历史", "git: 查看提交历史"),
    ("請在部署之前執行所有測試並通過評審", "请在部署之前运行全部测试并通过评审"),
    ("每天夜里备份数据库和日志", "数据库和日志每天夜里备份"),
    ("王小明和王小红负责支付模块", "王小红和王小明负责支付模块"),
    ("支持登录、注册、退出三种操作", "支持退出、注册、登录三种操作"),
    ("先看监控，再看日志，最后重启服务", "最后重启服务，先看监控，再看日志"),
    ("星期天下午三点清理服务器日志", "周日下午三点清理服务器日志"),
    ("停止容器之后清理卷和网络", "终止容器之后清理卷和网络"),
    ("Stop the container before the volume is mounted", "Halt the container before the volume is mounted"),
    ("The tool is used to archive the old logs", "This tool is used to archive old logs"),
    ("Every night the vault is backed up to the cellar", "The vault is backed up to the cellar every night"),
    ("Logs are rotated by logrotate every night", "Every night logs are rotated by logrotate"),
    ("The search supports login, logout and exit", "The search supports exit, logout and login"),
    ("The backups are deleted after 7 days", "Delete the backups after 7 days"),
]
DIFFERENT = [
    ("Overwrite the remote branch: git push --force", "Overwrite the remote branch: git push --force-with-lease"),
    ("The client works with version 1.2 of the server", "The client works with version 1.3 of the server"),
    ("List the files: ls -r", "List the files: ls -R"),
    ("The cache is shared between the workers", "The cache is not shared between the workers"),
    ("You can restart the broker under load", "You can't restart the broker under load"),
    ("Ask Alice before you deploy the service", "Ask Bob before you deploy the service"),
    ("alice reports to bob in the second team", "bob reports to alice in the second team"),
    ("Copy the backup from alpha to beta every night", "Copy the backup from beta to alpha every night"),
    ("Server A mirrors all that server B has", "Server B mirrors all that server A has"),
    ("The vault is backed up by `restic`", "The vault is backed up by `rclone`"),
    ("zgrep: search in compressed files", "zegrep: search in compressed files"),
    ("Wait for 10 seconds before the retry", "Wait for 100 seconds before the retry"),
    ("Enable the cache in production always", "Disable the cache in production always"),
    ("Delete the rows before the import", "Delete the rows after the import"),
    ("该命令删除所有文件", "该命令不删除所有文件"),
    ("单击图标打开设置页面", "双击图标打开设置页面"),
    ("每三小时备份一次数据库", "每五小时备份一次数据库"),
    ("张三批准李四的发布申请", "王五批准李四的发布申请"),
    ("关闭远程计算机的防火墙", "关闭本地计算机的防火墙"),
    ("启用缓存可以提高速度", "禁用缓存可以提高速度"),
    ("把日志从甲机复制到乙机", "把日志从乙机复制到甲机"),
    ("上线之前don't使用缓存", "上线之前使用缓存"),
    ("生產環境沒有開啟快取功能", "生產環境有開啟快取功能"),
    ("無需重啟伺服器即可更新憑證", "需重啟伺服器即可更新憑證"),
    ("數據庫每天夜裡備份兩次", "數據庫每天夜裡備份"),
    ("王小明欠李小红三百块钱", "李小红欠王小明三百块钱"),
    ("小明喜欢小红送的那本书", "小红喜欢小明送的那本书"),
    ("张三是李四的直属经理", "李四是张三的直属经理"),
    ("甲方付款，乙方发货，三方签字", "乙方付款，甲方发货，三方签字"),
    ("客户端调用服务端的接口", "服务端调用客户端的接口"),
    ("发布之前必须跑完所有测试", "发布之前可以跑完所有测试"),
    ("代码评审至少需要两个人同意", "代码评审需要两个人同意"),
    ("小明打了小红", "小明被小红打了"),
    *(
        (f"{turns}使用旧版本的支付接口处理订单", "使用旧版本的支付接口处理订单")
        for turns in ("停止", "避免", "拒绝", "取消")
    ),
    *((f"这个功能{turns}在本季度内完成开发", "这个功能在本季度内完成开发") for turns in ("很难", "几乎", "有时")),
    ("我曾经在上海浦东张江高科技园区工作", "我在上海浦东张江高科技园区工作"),
    *((f"每周{day}下午三点清理服务器日志", "每周下午三点清理服务器日志") for day in "一日末"),
    ("每月一号早上自动生成财务报表", "每月早上自动生成财务报表"),
    *(
        (f"{turns} old payment API for orders of the shop", "Use the old payment API for orders of the shop")
        for turns in ("Stop using the", "Avoid using the", "Refuse to use the", "We rarely use the", "Cease to use the")
    ),
    ("The weekly meeting on Thursday is at ten", "The weekly meeting on Thursday at ten is cancelled"),
    ("The nightly export of the orders failed", "The nightly export of the orders almost failed"),
    ("Tom hit Ann", "Tom was hit by Ann"),
    ("Tom hit Ann in the car park", "Ann hit Tom in the car park"),
    ("In the review Tom praised Ann for the page", "In the review Tom was praised by Ann for the page"),
    ("The merge broke the build on Monday", "The merge was broken by the build on Monday"),
    ("The client was charged twice for the invoice", "The client charged twice for the invoice"),
    ("We were asked to ship on Friday", "We asked to ship on Friday"),
    ("the dog chased the cat", "the cat chased the dog"),
    ("My brother lent my sister the car", "My sister lent my brother the car"),
    ("The supplier owes the client 500 euros", "The client owes the supplier 500 euros"),
    ("billing calls the auth service at startup", "the auth service calls billing at startup"),
    ("billing调用auth的接口", "auth调用billing的接口"),
    ("I owe you 50 euros", "You owe me 50 euros"),
    ("我欠你五十块钱", "你欠我五十块钱"),
    ("Li is the manager of Zhang", "Zhang is the manager of Li"),
    ("小王表扬了小李的工作", "小王受到小李表扬的工作"),
    ("老板批评了小王", "老板挨了小王批评"),
    *(
        (f"I {before} for the harbour authority in Rotterdam", "I work for the harbour authority in Rotterdam")
        for before in ("used to work", "formerly worked")
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_says_the_same_in_other_words_is_one_group(one: str, other: str) -> None:
    (group,) = similar([Item("first", one, created_position=1), Item("second", other, created_position=2)]).groups
    assert (group.survivor, [member.id for member in group.merged]) == ("first", ["second"])
    assert THRESHOLD <= group.merged[0].similarity <= 1


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_a_number_a_flag_a_negation_or_a_name_keeps_two_items_apart(one: str, other: str) -> None:
    # also in a long text, where a word more or less makes little difference
    context = (
        "\nKeep this beside the other notes about the deployment of the service.\n部署之后请检查监控面板上的错误数量。"
    )
    for before in ("", context * 4):
        assert similar([Item("first", one + before), Item("second", other + before)]).groups == ()


def test_an_item_that_is_better_survives_then_the_more_certain_then_the_oldest() -> None:
    text = "Keep the raw answer beside the parsed one"
    items = [
        Item("young", text, quality=4, confidence=0.5, created_position=9),
        Item("certain", text, quality=4, confidence=0.9, created_position=7),
        Item("good", text, quality=6, confidence=0.1, created_position=8),
        Item("old", text, quality=4, confidence=0.5, created_position=1),
    ]
    assert similar(items).groups[0].survivor == "good"
    assert similar([items[0], items[1], items[3]]).groups[0].survivor == "certain"
    assert similar([items[0], items[3]]).groups[0].survivor == "old"


def test_items_of_different_types_are_not_merged() -> None:
    text = "Keep the raw answer beside the parsed one"
    assert similar([Item("a", text, ("tool",)), Item("b", text, ("user_profile",))]).groups == ()
    assert len(similar([Item("a", text, ("tool",)), Item("b", text, ("plan", "tool"))]).groups) == 1


def test_resemblance_is_not_handed_on() -> None:
    told = "keep every parsed answer beside its source message and write down which trace caused what in it"
    words = told.split()
    chain = [Item(str(at), " ".join(words[at : at + 12]), created_position=at) for at in range(len(words) - 11)]
    used_by = Counter[str]()
    statements = {item.id: statement(item.text) for item in chain}
    for group in similar(chain).groups:
        for member in group.merged:
            alike = similarity(statements[group.survivor], statements[member.id], used_by)
            assert alike is not None, (group.survivor, member.id)
            assert alike >= THRESHOLD


def test_a_thousand_copies_of_one_text_are_one_group() -> None:
    items = [
        Item(f"copy-{at:04}", "Keep the raw answer beside the parsed one", created_position=at) for at in range(999)
    ]
    (group,) = similar(items).groups
    assert (group.survivor, len(group.merged)) == ("copy-0000", 998)


def test_vectors_that_contradict_keep_two_items_apart() -> None:
    items = [
        Item("a", "Keep the raw answer beside the parsed one"),
        Item("b", "Keep the raw answer beside the parsed one"),
    ]
    apart = np.array([[1, 0], [0, 1]], np.float32)
    assert similar(items, vectors=apart).groups == ()
    unknown = np.array([[1, 0], [0, 0]], np.float32)  # an embedding that was never asked for contradicts nothing
    assert len(similar(items, vectors=unknown).groups) == 1


def test_no_text_has_more_neighbours_than_its_keys_allow() -> None:
    same = [np.arange(20, dtype=np.uint32)] * 300
    pairs = neighbours(same, np.ones((300, 4), np.float32))
    assert len(pairs) <= 300 * LOOKS  # however many share a key
    assert (pairs[:, 0] < pairs[:, 1]).all()


_SOME_WORDS = "keep raw answer parsed beside trace 10 --force not Alice 消息 删除 不"
_words = st.lists(st.sampled_from(_SOME_WORDS.split()), max_size=12)


@given(st.lists(_words.map(" ".join), max_size=12), st.randoms(use_true_random=False))
def test_groups_do_not_depend_on_the_order_and_share_no_item(texts: list[str], random: Random) -> None:
    items = [Item(f"item-{at}", text, quality=at % 3, created_position=at) for at, text in enumerate(texts)]
    groups = similar(items).groups
    named = [name for group in groups for name in (group.survivor, *(member.id for member in group.merged))]
    assert len(named) == len(set(named))
    random.shuffle(items)
    assert similar(items).groups == groups


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_two_texts_can_be_compared_and_a_text_is_like_itself(one: str, other: str) -> None:
    first, second = statement(one), statement(other)
    assert similarity(first, first, Counter()) == 1.0
    assert similarity(first, second, Counter()) == similarity(second, first, Counter())


@pytest.mark.parametrize(
    ("one", "other", "slip"),
    [
        ("command", "comand", True),
        ("command", "commmand", True),
        ("command", "comamnd", True),
        ("command", "conmand", True),
        ("command", "commando", True),
        ("command", "demand", False),
        ("grep", "egrep", False),
        ("form", "from", False),
        ("command", "command", False),
    ],
)
def test_one_slip_of_the_pen_is_a_typo(one: str, other: str, slip: bool) -> None:
    assert one_slip_apart(one, other) is slip
    assert one_slip_apart(other, one) is slip


def test_among_real_items_what_was_planted_is_found_and_nothing_else() -> None:
    if not TLDR.exists():
        pytest.skip("the real items are not beside this copy: ../shared/data/tldr/knowledge.jsonl")
    texts = texts_of(TLDR)
    texts = Random(7).sample(texts, 1_500)
    told = quality(texts, 400, seed=11)
    assert told.found >= 0.95 * told.planted, told.not_found[:5]
    assert told.merged_misses + told.merged_originals < 0.01 * (told.misses + told.originals), told.wrongly_merged


def test_the_same_seed_plants_the_same() -> None:
    texts = ["Show the list of all running services in the cluster.\nDelete a service: svc rm {{name}}"] * 20
    assert near_duplicates(texts, 20) == near_duplicates(texts, 20)
