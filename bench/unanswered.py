"""Questions that nothing in the benchmarks' corpora answers, to measure whether recall knows that it knows nothing.

Questions of everyday life: the corpora are manuals of command-line tools, encyclopaedic sentences in Chinese, and
conversations between friends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_ENGLISH: Mapping[str, Sequence[str]] = {
    "How do I bake {} at home?": (
        *("sourdough bread", "a lemon tart", "gluten-free bagels", "an apple strudel", "rye crackers", "macarons"),
        *("focaccia", "a wedding cake", "cinnamon rolls", "cheese scones"),
    ),
    "When is the best time to prune {}?": (
        *("roses", "an old apple tree", "lavender", "hydrangeas", "grapevines", "a fig tree", "wisteria"),
        *("raspberry canes", "boxwood hedges", "olive trees"),
    ),
    "What should I wear to {}?": (
        *("a winter funeral", "a job interview at a bank", "a beach wedding", "the opera", "a hot yoga class"),
        *("a graduation ceremony", "a safari", "an ice hockey game", "a christening", "a job fair"),
    ),
    "How much does it cost to {}?": (
        *("rent a moving van", "adopt a greyhound from abroad", "replace a bathroom sink", "get married in Vegas"),
        *("tune a grand piano", "have wisdom teeth removed", "fly first class to Tokyo", "insure a teenage driver"),
        *("build a swimming pool", "re-roof a cottage"),
    ),
    "Who won the {}?": (
        *(
            "1966 World Cup final",
            "Eurovision contest in 1974",
            "last Tour de France",
            "Wimbledon ladies' title in 1988",
        ),
        *("Nobel Peace Prize in 1993", "first Super Bowl", "election for mayor of Chicago", "spelling bee in 2015"),
        *("Booker Prize in 1981", "chess match between Spassky and Fischer"),
    ),
    "Why does my {} keep making that noise?": (
        *("dishwasher", "left knee", "bicycle chain", "tumble dryer", "baby", "refrigerator", "violin bow"),
        *("chimney", "lawn mower", "ceiling fan"),
    ),
    "Can you recommend a {}?": (
        *(
            "quiet hotel near the Alps",
            "good dentist in Leeds",
            "thriller for a long flight",
            "vegan restaurant in Rome",
        ),
        *("gentle yoga teacher", "tent for four people", "museum for toddlers", "wine with roast duck"),
        *("plumber for the weekend", "piano piece for beginners"),
    ),
    "What are the symptoms of {}?": (
        *(
            "a vitamin D deficiency",
            "measles in adults",
            "a mild concussion",
            "hay fever",
            "heat stroke",
            "lead poisoning",
        ),
        *("appendicitis", "an underactive thyroid", "food poisoning from oysters", "carpal tunnel syndrome"),
    ),
    "How long does {} take?": (
        *("a letter from Peru to Norway", "a sprained ankle to heal", "the ferry to Sardinia", "wool to dry indoors"),
        *("a kitten to be house-trained", "cement to harden", "a tomato plant to bear fruit", "jet lag to pass"),
        *("a citizenship application", "a hip operation"),
    ),
    "What did our {} say about the garden party?": (
        *("landlady", "vicar", "babysitter", "wedding planner", "uncle Gerald", "florist", "caterer"),
        *("piano tuner", "bridesmaid", "gardener"),
    ),
}

_CHINESE: Mapping[str, Sequence[str]] = {
    "在家怎么做{}？": (
        *("红烧排骨", "葱油饼", "戚风蛋糕", "糖醋里脊", "酸梅汤", "担担面", "蛋挞", "粽子", "麻婆豆腐", "奶黄包"),
    ),
    "{}什么时候修剪最好？": (
        *("月季", "老苹果树", "薰衣草", "绣球花", "葡萄藤", "无花果树", "紫藤", "石榴", "冬青篱笆", "桂花树"),
    ),
    "{}应该穿什么衣服？": (
        *(
            "参加冬天的葬礼",
            "去银行面试",
            "沙滩婚礼",
            "听歌剧",
            "上瑜伽课",
            "孩子的满月酒",
            "去滑雪",
            "相亲",
            "爬雪山",
            "拍证件照",
        ),
    ),
    "{}大概要花多少钱？": (
        *(
            "租一辆搬家车",
            "装修一个卫生间",
            "给钢琴调音",
            "拔智齿",
            "头等舱飞东京",
            "请月嫂",
            "换屋顶",
            "补一颗牙",
            "办护照",
            "洗一块地毯",
        ),
    ),
    "我的{}为什么老是响？": (
        *("洗碗机", "左膝盖", "自行车链条", "烘干机", "冰箱", "吊扇", "烟囱", "割草机", "电热水器", "旧沙发"),
    ),
    "能推荐一个{}吗？": (
        *("山边安静的酒店", "靠谱的牙医", "坐飞机看的悬疑小说", "素食餐厅", "瑜伽老师", "四人帐篷", "适合幼儿的博物馆"),
        *("周末能来的水管工", "配烤鸭的红酒", "钢琴入门曲"),
    ),
    "{}有哪些症状？": (
        *(
            "缺维生素D",
            "成人麻疹",
            "轻微脑震荡",
            "花粉症",
            "中暑",
            "铅中毒",
            "阑尾炎",
            "甲减",
            "吃牡蛎食物中毒",
            "鼠标手",
        ),
    ),
    "{}需要多长时间？": (
        *(
            "扭伤的脚踝恢复",
            "寄信到秘鲁",
            "坐轮渡到烟台",
            "羊毛衫晾干",
            "训练小猫上厕所",
            "水泥变硬",
            "番茄结果",
            "倒时差",
        ),
        *("申请入籍", "做髋关节手术"),
    ),
    "{}对花园聚会说了什么？": (
        *("房东太太", "牧师", "保姆", "婚礼策划师", "三叔", "花店老板", "送餐师傅", "调琴师", "伴娘", "园丁"),
    ),
    "{}谁得了第一名？": (
        *("去年的厨艺比赛", "小区的象棋赛", "上届环法自行车赛", "孩子学校的运动会", "昨晚的歌唱节目", "县里的龙舟赛"),
        *("全国拼写大赛", "公司的羽毛球赛", "镇上的钓鱼比赛", "这次的摄影展"),
    ),
}


def questions(language: str) -> list[str]:
    """A hundred questions in English ("en") or Chinese ("zh")."""
    patterns = _ENGLISH if language == "en" else _CHINESE
    return [pattern.format(each) for pattern, fillings in patterns.items() for each in fillings]
