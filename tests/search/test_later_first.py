"""What was said later about one thing stands before what was said earlier, where it answers as well."""

from __future__ import annotations

from typing import Any

import pytest

from projections.similar.later_first import later_first

RENEWED = [
    ("The deploy port is 8080.", "The deploy port is 9090 now, no longer 8080.", 0.8),
    ("The weekly meeting is on Monday at ten.", "The weekly meeting moved to Thursday at nine.", 1.0),
    ("The staging host is stage-01.", "The staging host is stage-02.", 1.0),
    ("Tom works at Acme as a nurse.", "Tom has left Acme and works at Brightcare now.", 0.7),
    ("部署端口是8080。", "部署端口改成9090了，不再用8080。", 0.8),
    ("周会在周一上午十点。", "周会改到周四上午九点。", 1.0),
    ("李雷在远景上班，是护士。", "李雷离开了远景，现在在康桥上班。", 0.8),
    ("部署端口是8080。", "部署端口是9090。", 1.0),
    ("I live in Gdynia with Olek.", "Now living with Olek in Sopot.", 1.0),
    ("My phone number is 5550.", "The phone number changed to 5551.", 1.0),
    ("我住在三楼。", "现在住在五楼。", 1.0),
    ("The discount that we agreed on is 12 percent.", "The agreed discount is 15 percent since the renewal.", 0.9),
]
CHANGED = [
    # in the words of a change: each answers less well than what it changes
    ("The standup is at 9 in room Blue.", "From Monday on the standup is at 10 in room Blue.", 0.8),
    ("We rent the office in Main Street.", "We gave up the office in Main Street and rent one in Park Lane.", 0.8),
    ("Tom leads the data team.", "Tom quit leading the data team, Ana leads it.", 0.8),
    ("The gym membership costs 40 euros a month.", "The gym membership went up to 48 euros a month.", 0.8),
    ("The server has 16 GB of memory.", "The server was upgraded to 32 GB of memory.", 0.8),
    ("Mia's flight is on Friday.", "Mia's flight was rescheduled to Saturday.", 0.8),
    ("The meeting with Lin is at three.", "The meeting with Lin was cancelled.", 0.8),
    ("The limit is 500 requests.", "The limit was raised to 800 requests.", 0.8),
    ("The price of the plan is 20 euros.", "The price of the plan was lowered to 15 euros.", 0.8),
    ("The shop closes at 8 in the evening.", "The shop closes at 9 in the evening, starting next week.", 0.8),
    ("The deadline of the report is the 3rd.", "The deadline of the report was extended to the 10th.", 0.8),
    ("Our contact at Acme is Joe.", "Our contact at Acme is Kim, Joe has quit.", 0.8),
    ("Sam is a vegetarian.", "Sam is not a vegetarian any longer.", 0.8),
    ("The wifi password is blue-42.", "The wifi password was reset to green-77.", 0.8),
    ("The team has 8 people.", "The team grew to 11 people.", 0.8),
    ("We ship with DHL.", "We ship with UPS since March.", 0.8),
    ("I smoke ten cigarettes a day.", "I stopped smoking cigarettes.", 0.8),
    ("I take the bus to work.", "I stopped taking the bus, I cycle to work.", 0.8),
    ("The rent is 900 euros.", "The rent increased to 950 euros in May.", 0.8),
    ("The build takes 12 minutes.", "The build was shortened to 7 minutes.", 0.8),
    ("Lea lives with her parents.", "Lea no more lives with her parents.", 0.8),
    ("Lea pays with a card.", "Since last week Lea pays with her phone.", 0.8),
    ("月租是三千元。", "月租涨到三千五百元了。", 0.8),
    ("预算是五万元。", "预算降到四万元了。", 0.8),
    ("服务器内存是16G。", "服务器内存升级到32G了。", 0.8),
    ("客服用微信联系客户。", "客服停用微信了，用飞书联系客户。", 0.8),
    ("小赵负责签收快递。", "小赵离职了，小孙负责签收快递。", 0.8),
    ("门禁密码是1234。", "门禁密码重置为5678。", 0.8),
    ("截止日期是3号。", "截止日期延长到10号。", 0.8),
    ("老王每天抽烟。", "老王戒烟了。", 0.8),
    ("健身卡每月200元。", "健身卡涨价了，每月250元。", 0.8),
    ("团队有8个人。", "团队增加到11个人。", 0.8),
    ("构建用的是Jenkins。", "构建迁移到Actions了。", 0.8),
    ("王医生是我的牙医。", "王医生退休了，何医生是我的牙医。", 0.8),
    ("例会是周一。", "例会从下周起是周二。", 0.8),
    ("小李是组长。", "小李升任经理，不当组长了。", 0.8),
    ("会员价是99元。", "会员价变成129元了。", 0.8),
    ("孩子读三年级。", "孩子升到四年级了。", 0.8),
]
CORRECTED = [
    # the later one says that it corrects, and the earlier one may say that it was a belief
    ("The well is 34 metres deep.", "Surveyed again by the new team in spring: the well is 31 metres deep.", 1.0),
    ("The hall seats 420 guests.", "As it turned out at the rehearsal with the choir, the hall seats 390 guests.", 1.0),
    ("The ferry takes bicycles.", "Erratum to the brochure of last year: the ferry takes no bicycles on board.", 0.9),
    ("Rhea's flat has four rooms.", "Actually Rhea's flat has three rooms and a small kitchen on the yard.", 0.9),
    ("The glaze melts at 1,210 degrees.", "Recalculated with both sensors, the glaze melts at 1,180 degrees.", 0.9),
    (
        "We first thought that the leak comes from the valve.",
        "Correction: the leak comes from a crack in the pipe, not from the valve.",
        1.0,
    ),
    (
        "Initially I assumed the noise is caused by the fan.",
        "The noise is caused by a loose screw, I was wrong about the fan.",
        1.0,
    ),
    ("井深三十四米。", "更正：春天新队伍复查过，井深三十一米。", 0.9),
    ("礼堂能坐四百人。", "其实礼堂只能坐三百九十人，彩排那天数过。", 0.9),
    ("我们起初以为漏水是阀门坏了。", "漏水其实是管子裂了，不是阀门坏了。", 0.9),
]
NOT_CORRECTED = [
    ("The well is 34 metres deep.", "Surveyed again: the fence of the garden is 80 metres long.", 0.9),
    ("The hall seats 420 guests.", "Actually the hall has no lift.", 0.6),
    ("We first thought that the leak comes from the valve.", "Correction: the concert is on Sunday.", 0.9),
    ("礼堂能坐四百人。", "其实礼堂没有电梯。", 0.6),
]
SAME_SUBJECT = [
    ("Tom lives in Kiel.", "Tom Becker lives in Bonn now.", 1.0),
    ("Tom Becker works at Acme.", "Tom has left Acme.", 1.0),
    ("The price of the plan is 20 euros.", "The price of the plan is 15 euros.", 1.0),
    ("Room B2 has the spare parts.", "Room B2 has the old printers now.", 1.0),
    ("The rent of my flat is 900 euros.", "The rent is 960 euros now.", 1.0),
    ("我的房租是3000元。", "现在房租是3300元。", 1.0),
    ("部署端口是8080。", "部署端口是9090。", 1.0),
    ("王芳老师的生日是3月5日。", "王芳的生日是3月6日。", 1.0),
    ("I like Jazz.", "I like Rock now.", 1.0),
    ("Use Slack to reach me.", "Use Signal to reach me from now on.", 1.0),
    ("I have 3 cats.", "I have 4 cats now.", 1.0),
    ("Call Olek about the keys.", "Call Mira about the keys now.", 1.0),
    ("I work at Acme in Kiel.", "I work at Bright in Kiel now.", 1.0),
]
ANOTHER_SUBJECT = [
    ("Tom Becker's phone number is 0176 5550199.", "Tom Baker's phone number is 0176 5550288.", 1.0),
    (
        "Anna Petrov of Northwind wants to be contacted by email.",
        "Anna Petrov of Fjordbrød wants to be contacted on the phone.",
        1.0,
    ),
    ("Anna Petrov of Northwind pays in euros.", "Anna Petrov of Fjordbrød pays in kroner now.", 1.0),
    ("The invoice of March was paid on 2 April.", "The invoice of April was paid on 6 May.", 1.0),
    ("Room B2 has the spare parts.", "Room B12 has the spare chairs.", 1.0),
    ("The warranty of the Aqua 900 is three years.", "The warranty of the Aqua 700 is two years.", 1.0),
    ("The key of the red door hangs on the left hook.", "The key of the blue door hangs on the right hook.", 1.0),
    ("Tom Baker lives in Kiel.", "Tom Becker lives in Bonn now.", 1.0),
    ("王芳老师的生日是3月5日。", "王芳医生的生日是9月12日。", 1.0),
    ("上海的李伟的电话是13800001111。", "上海的王芳的电话是13677778888。", 1.0),
    ("红色门的钥匙是左边那把。", "红色箱的钥匙是右边那把。", 1.0),
    ("三月的账单是200元。", "三月的房租是900元。", 1.0),
]
DENIED = [
    ("I am allergic to penicillin.", "I am not allergic to penicillin, said the doctor after a test.", 0.8),
    ("Olek doesn't eat meat.", "Olek eats meat, as he told me on Friday over lunch in Sopot.", 0.8),
    ("The barge has never been to Tczew.", "The barge has been to Tczew, with coal and two guests.", 0.8),
    ("我对青霉素过敏。", "我对青霉素不过敏，医生说检查结果是阴性的。", 0.8),
    ("老陈不吃肉。", "老陈吃肉，昨天他在饭桌上跟大家讲的。", 0.8),
    ("我每天早上吃20毫克的药。", "医生把药减到10毫克了，每天早上吃。", 0.7),
]
OTHER = [
    ("Mei likes oolong.", "Mei does not like the smell of the office.", 1.0),
    ("The barge sails to Tczew on Fridays.", "The barge does not sail in winter.", 0.8),
    ("小梅喜欢喝乌龙茶。", "小梅不喜欢办公室的味道。", 1.0),
    ("It is what it is.", "The deploy port is 9090 now.", 1.0),
    ("I like green tea.", "Olek likes green tea now.", 1.0),
    ("I pay with a card.", "Olek pays with a card.", 1.0),
    ("我对花粉过敏。", "老陈对花粉过敏。", 1.0),
    ("我住在三楼。", "小陈现在住在三楼。", 1.0),
    ("The port is 8080.", "The report is due on Monday now.", 1.0),
    ("The server has 16 GB of memory.", "The server was upgraded to Debian 13 in May.", 0.8),
    ("The team has 8 people.", "The team quit the tournament.", 0.8),
    ("I take the bus to work.", "I stopped at the bakery on the way.", 0.8),
    ("The limit is 500 requests.", "The limit of the parking deck was raised.", 0.8),
    ("Mia's flight is on Friday.", "Mia's hotel was cancelled.", 0.8),
    ("Tom leads the data team.", "Tom has quit sugar.", 0.8),
    ("The rent is 900 euros.", "The rent is due on the first since May.", 0.8),
    ("Lea pays with a card.", "Lea increased her savings.", 0.8),
    ("The shop closes at 8 in the evening.", "The shop sells bread.", 0.8),
    ("Our contact at Acme is Joe.", "Our contract with Acme was extended.", 0.8),
    ("月租是三千元。", "月租每月一号交。", 0.8),
    ("服务器内存是16G。", "服务器放在三楼机房。", 0.8),
    ("健身卡每月200元。", "健身房延长营业时间了。", 0.8),
    ("团队有8个人。", "团队增加了预算。", 0.8),
    ("孩子读三年级。", "孩子升旗时发言。", 0.8),
    ("预算是五万元。", "预算下降到审批环节。", 0.8),
    ("小赵负责签收快递。", "小赵买的快递停在门口。", 0.8),
    ("Leo likes football.", "Nina likes football and chess.", 1.0),
    ("李雷喜欢喝红茶。", "小雨喜欢喝红茶和咖啡。", 1.0),
    ("The deploy port is 8080.", "The deploy key is kept in the vault of the team.", 0.6),
    ("I drink my coffee black.", "The coffee machine at the office is broken.", 1.0),
    ("The staging host is stage-01.", "The staging host is rebooted on Sundays.", 0.7),
    ("In the morning Mei drinks oolong.", "In the evening Mei drinks rooibos.", 1.0),
    ("小梅早上喝乌龙茶。", "小梅晚上吃两片面包。", 1.0),
    ("我家猫叫豆豆。", "我家地址是文三路48号。", 0.9),
]


def fact(name: str, content: str, second: int, match: float = 1.0, **stated: Any) -> dict[str, Any]:
    at = f"2026-03-05T12:00:{second:02}Z"
    confidence = {"confidence": stated.pop("confidence", 0.5)}
    told = {"id": name, "content": content, "layer": "semantic", "owner": "user:ann", "match": match}
    return {**told, "created_at": at, "updated_at": at, "eval": confidence, **stated}


@pytest.mark.parametrize(("earlier", "later", "match"), [*RENEWED, *CHANGED, *CORRECTED, *DENIED, *SAME_SUBJECT])
def test_a_later_statement_stands_before_the_earlier_one_which_names_it(earlier: str, later: str, match: float) -> None:
    between = fact("between", "The garden has roses.", 0)
    first, second, third = later_first([fact("old", earlier, 1), between, fact("new", later, 2, match)])
    assert (first["id"], second["id"], third["id"]) == ("new", "old", "between")
    assert second["later"] == "new"
    assert "later" not in first


@pytest.mark.parametrize("layers", [("plain", "plain"), ("plain", "short"), ("semantic", "plain")])
def test_a_profile_is_said_anew_as_a_preference_is(layers: tuple[str, str]) -> None:
    """An extraction makes a profile of what somebody prefers, and a short memory of what they have come to prefer."""
    said = ("用户偏好使用 React 框架", "用户现在偏好使用 Vue")
    earlier, later = (
        fact(name, content, at, layer=layer, types=["user_profile"] if layer == "plain" else [layer])
        for at, (name, content, layer) in enumerate(zip(("old", "new"), said, layers, strict=True))
    )
    first, second = later_first([earlier, later])
    assert (first["id"], second["later"]) == ("new", "new")


@pytest.mark.parametrize(("earlier", "later", "match"), [*OTHER, *NOT_CORRECTED, *ANOTHER_SUBJECT])
def test_a_statement_about_something_else_or_somebody_else_keeps_its_place(
    earlier: str, later: str, match: float
) -> None:
    results = [fact("old", earlier, 1), fact("new", later, 2, match)]
    assert later_first(results) == results


@pytest.mark.parametrize(
    "stated",
    [
        {"owner": "user:bob"},
        {"layer": "episodic"},
        {"layer": "plain"},
        {"confidence": 0.3},
        {"created_at": "2026-03-05T12:00:00Z"},
        {"content": f"The deploy port is 9090 now. {'It is so. ' * 40}"},
    ],
)
def test_what_another_said_what_happened_or_is_less_sure_renews_nothing(stated: dict[str, Any]) -> None:
    results = [fact("old", "The deploy port is 8080.", 1), fact("new", "The deploy port is 9090 now.", 2) | stated]
    if "confidence" in stated:
        results[1]["eval"] = stated
    assert later_first(results) == results


@pytest.mark.parametrize(
    ("upheld", "renewed"),
    [({}, True), ({"old": "2026-03-05T12:00:01Z"}, True), ({"old": "2026-03-05T12:00:03Z"}, False)],
)
def test_what_was_stated_or_supported_since_is_no_earlier_statement(upheld: dict[str, str], renewed: bool) -> None:
    """`updated_at` is of any verdict, and that it harmed is none for it."""
    results = [fact("old", "The deploy port is 8080.", 1), fact("new", "The deploy port is 9090 now.", 2)]
    results[0]["updated_at"] = "2026-03-05T12:00:03Z"
    told = later_first(results, upheld)
    assert [each["id"] for each in told] == (["new", "old"] if renewed else ["old", "new"])


def test_an_earlier_statement_that_stands_behind_already_names_the_later_one_too() -> None:
    old, new = fact("old", "The deploy port is 8080.", 1), fact("new", "The deploy port is 9090 now.", 2)
    between = fact("between", "The garden has roses.", 0)
    assert later_first([new, between, old]) == [new, between, {**old, "later": "new"}]


def test_of_many_statements_about_one_thing_the_last_one_is_first() -> None:
    texts = [fact(str(n), f"The deploy port is 80{n}0 now.", n) for n in range(1, 9)]
    assert next(each["id"] for each in later_first(texts)) == "8"
    assert [each["id"] for each in later_first(texts[::-1])] == [str(n) for n in range(8, 0, -1)]
    assert len(later_first(texts)) == 8


def test_words_of_a_session_with_the_id_of_an_item_stay_where_they_are() -> None:
    said = {"id": "new", "content": "The deploy port is 9090 now.", "layer": "working", "match": 1.0}
    old, new = fact("old", "The deploy port is 8080.", 1), fact("new", "The deploy port is 9090 now.", 2)
    assert later_first([said, old, new]) == [said, new, {**old, "later": "new"}]


def test_an_answer_without_facts_is_as_it_was() -> None:
    results = [fact(str(n), f"note {n}", n, layer="plain") for n in range(30)]
    assert later_first(results) == results
    assert later_first([]) == []
