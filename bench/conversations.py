"""Conversations made by a seeded recipe, to measure recall over turns: one item a turn, `source.trace_id` its session.

Two people talk over several sessions. A fact is told in two turns: one asks or leads over, the other answers, and the
answer (the evidence) often shares no word with the question that is asked of the memory later. Questions come in three
forms: in words of the turn before the answer, in words of the answer, and paraphrased. Turns that distract: the same
subject told by the other person with another value, the same subject turned down, and small talk. The same seed gives
the same conversations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from ledger.event import JsonObject

Language = Literal["en", "zh"]
CONVERSATIONS: dict[Language, int] = {"en": 20, "zh": 10}
SESSIONS = 4
ASKED_EACH = 18
"""Questions of one conversation."""
SMALL_TALK = 8
"""Turns of a session that tell nothing."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that people tell each other: a turn that leads to it, the answer, and three questions about it.

    `{who}` is the one who answers, `{value}` what only the answer tells. `near` asks in words of the lead, `told` in
    words of the answer, `other` in neither's. `declined` answers the lead without telling anything.
    """

    lead: str
    answer: str
    declined: str
    near: str
    told: str
    other: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation."""

    id: str
    session: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the one turn that answers it; `form` says whose words it has."""

    text: str
    evidence: str
    form: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in their order, and questions about them."""

    name: str
    language: Language
    turns: Sequence[Turn]
    questions: Sequence[Question]


ENGLISH = (
    Subject(
        "How did your holiday go, {who}?",
        "Lovely, nine days in {value} and I ate far too much fish.",
        "We had to cancel it, maybe next year.",
        "Where did {who} spend the holiday?",
        "Where did {who} eat too much fish for nine days?",
        "Which place did {who} travel to?",
        ("Lisbon", "Crete", "Bergen", "Oaxaca", "Hokkaido", "Galway", "Zadar", "Madeira"),
    ),
    Subject(
        "Did you settle on a pet in the end?",
        "Yes! We brought home a {value} from the shelter on Friday.",
        "No, the landlord said no.",
        "What pet did {who} settle on?",
        "What did {who} bring home from the shelter?",
        "Which animal lives with {who} now?",
        ("greyhound", "tabby kitten", "parrot", "tortoise", "beagle", "rabbit", "ferret", "border collie"),
    ),
    Subject(
        "How is the new job treating you?",
        "Better than I feared, they put me in charge of the {value}.",
        "I did not take it after all.",
        "What does {who} do in the new job?",
        "What was {who} put in charge of?",
        "What is {who} responsible for at work?",
        ("night shift", "archive", "payments team", "greenhouse", "front desk", "summer school", "fleet", "test lab"),
    ),
    Subject(
        "What are you reading at the moment?",
        "I am halfway through {value} and can hardly put it down.",
        "Nothing, I fall asleep after a page.",
        "What is {who} reading?",
        "What can {who} hardly put down?",
        "Which book is {who} into?",
        ("Middlemarch", "Solaris", "The Leopard", "Kindred", "Dune", "Persuasion", "Beloved", "The Trial"),
    ),
    Subject(
        "Have the doctors found out what it is?",
        "They say it is {value}, so no running for six weeks.",
        "They found nothing and sent me home.",
        "What have the doctors found out about {who}?",
        "Why is there no running for {who} for six weeks?",
        "What is {who}'s diagnosis?",
        ("a torn meniscus", "anaemia", "asthma", "a stress fracture", "shingles", "tendonitis", "gout"),
    ),
    Subject(
        "When is the wedding of your sister?",
        "It has been moved to {value}, the hall was flooded.",
        "They broke it off, sadly.",
        "When does the sister of {who} have her wedding?",
        "What date was it moved to after the hall of {who}'s family was flooded?",
        "On which day will {who}'s sibling marry?",
        ("the ninth of May", "Midsummer", "the last Saturday of June", "October", "New Year's Eve"),
    ),
    Subject(
        "What instrument are the lessons for?",
        "It is the {value}, and my neighbours already hate me.",
        "I gave the lessons up.",
        "Which instrument does {who} take lessons in?",
        "What do the neighbours of {who} hate?",
        "What music does {who} learn to play?",
        ("trumpet", "cello", "banjo", "accordion", "oboe", "drums", "harp", "clarinet"),
    ),
    Subject(
        "What will you cook for the guests tonight?",
        "I am making {value}, my grandmother left me the recipe.",
        "Nothing, we order pizza.",
        "What does {who} cook for the guests?",
        "Which recipe did the grandmother leave {who}?",
        "What dish is {who} going to serve?",
        ("moussaka", "borscht", "paella", "pierogi", "gumbo", "ramen", "tagine", "lasagne"),
    ),
    Subject(
        "Is the car repaired by now?",
        "The garage had to replace the {value}, it cost a fortune.",
        "No, I sold it for scrap.",
        "What was repaired in the car of {who}?",
        "What did the garage replace for a fortune for {who}?",
        "Which part of {who}'s vehicle was broken?",
        ("gearbox", "clutch", "radiator", "alternator", "timing belt", "exhaust", "fuel pump", "steering column"),
    ),
    Subject(
        "And where do you volunteer these days?",
        "Every Tuesday at the {value}, mostly washing dishes.",
        "I have no time for that any more.",
        "Where does {who} volunteer?",
        "Where does {who} wash dishes every Tuesday?",
        "Which charity gets {who}'s help?",
        ("soup kitchen", "animal shelter", "hospice", "library", "refugee centre", "food bank", "youth club", "museum"),
    ),
    Subject(
        "Any plans for your birthday?",
        "We rent {value} and stay the whole weekend.",
        "I will ignore it this year.",
        "What are the plans for the birthday of {who}?",
        "What does {who} rent for the whole weekend?",
        "How is {who} going to celebrate?",
        ("a canal boat", "a lighthouse", "a lake sauna", "a barn", "a mountain hut", "a castle tower"),
    ),
    Subject(
        "Which school did your son choose?",
        "He goes to {value} from September, he is thrilled.",
        "He wants to work first.",
        "Which school did the son of {who} choose?",
        "Where does he go from September, {who}'s thrilled boy?",
        "Where will {who}'s child study?",
        ("Ashfield", "the Steiner school", "Saint Anne's", "the ballet academy", "Kingsmead", "the maths college"),
    ),
    Subject(
        "Why did you leave the choir?",
        "Honestly, {value}, I could not stand it any longer.",
        "I have not left, I was only ill.",
        "Why did {who} leave the choir?",
        "What could {who} not stand any longer?",
        "What made {who} quit singing with the others?",
        ("the gossip", "the new conductor", "the endless Bach", "the cold church", "the politics", "the long drive"),
    ),
    Subject(
        "What colour did the kitchen become?",
        "In the end {value}, with white shelves.",
        "We left it as it was.",
        "What colour is the kitchen of {who}?",
        "What goes with the white shelves of {who}?",
        "How did {who} paint the room they cook in?",
        ("sage green", "mustard", "navy", "terracotta", "pale pink", "charcoal", "turquoise", "lilac"),
    ),
    Subject(
        "How far did you get in the race?",
        "I stopped at {value}, my knee gave up.",
        "I did not start, it rained too hard.",
        "How far did {who} get in the race?",
        "Where did {who} stop because the knee gave up?",
        "At which point did {who} drop out of the run?",
        ("mile nine", "the river bridge", "kilometre thirty", "the second hill", "the stadium gate", "mile twenty"),
    ),
    Subject(
        "Who taught you to sew like that?",
        "It was {value}, on a machine from the fifties.",
        "Nobody, I bought it.",
        "Who taught {who} to sew?",
        "Who had a machine from the fifties, {who} said?",
        "From whom did {who} learn to make clothes?",
        ("my aunt Rosa", "a sailor", "our old neighbour", "my grandfather", "a nun", "my first landlady"),
    ),
    Subject(
        "Did the bank say yes?",
        "They did, so {value} opens in spring!",
        "They want more papers.",
        "What did the bank say yes to for {who}?",
        "What opens in spring for {who}?",
        "Which business is {who} starting?",
        ("the bakery", "our bike shop", "the pottery studio", "the bookshop", "my cafe", "the climbing gym"),
    ),
    Subject(
        "Are you still allergic to everything?",
        "These days only to {value}, luckily.",
        "Do not ask, I sneeze all day.",
        "What is {who} still allergic to?",
        "What is the only thing these days, luckily, for {who}?",
        "Which food or plant can {who} not tolerate?",
        ("hazelnuts", "birch pollen", "shellfish", "penicillin", "sesame", "cat hair", "kiwis", "wool"),
    ),
    Subject(
        "What was the first thing that you did in the new flat?",
        "I hung {value} over the sofa, then it felt like mine.",
        "I slept for two days.",
        "What did {who} do first in the new flat?",
        "What hangs over the sofa of {who}?",
        "How did {who} decorate the apartment?",
        ("a whale map", "my father's guitar", "the red kilim", "an old clock", "a photo of Naples", "two kites"),
    ),
    Subject(
        "Is your mother feeling better?",
        "Much, she has taken up {value} at eighty-one.",
        "Not really, we take turns with her.",
        "Is the mother of {who} feeling better, and what does she do?",
        "What has she taken up at eighty-one, {who}'s relative?",
        "Which hobby does {who}'s mum have?",
        ("archery", "chess", "watercolours", "tai chi", "beekeeping", "swimming", "the ukulele", "Italian"),
    ),
    Subject(
        "What do you save your money for?",
        "For {value}, three hundred a month.",
        "I do not save at all.",
        "What does {who} save money for?",
        "What are three hundred a month of {who} for?",
        "What does {who} want to afford some day?",
        ("a sailing boat", "a deposit on a house", "a year off", "a grand piano", "a camper van", "a trip abroad"),
    ),
    Subject(
        "And how did the interview end?",
        "They asked about {value} and I went blank.",
        "It was put off again.",
        "How did the interview of {who} end?",
        "What was {who} asked about before going blank?",
        "Which topic did {who} fail on?",
        ("Bayes' theorem", "my gap year", "tax law", "thermodynamics", "their competitors", "conflict at work"),
    ),
)

ENGLISH_TALK = (
    "Good to hear from you, {other}!",
    "Sorry for the late reply, it was a mad week.",
    "Ha, that is so like you.",
    "The weather here is awful, by the way.",
    "I have to run, the bus is coming.",
    "Tell me more next time we meet.",
    "Oh, that reminds me of our time at school.",
    "I was thinking of you the other day, {other}.",
    "You should have seen the traffic this morning.",
    "Let us have a coffee soon.",
    "I slept badly, the neighbours had a party.",
    "Congratulations, I am so happy for you!",
    "That must have been hard.",
    "Same here, nothing new on my side.",
    "Did you see the match on Sunday?",
    "My phone died, that is why I did not answer.",
)

CHINESE = (
    Subject(
        "{who}，你这次休假过得怎么样？",
        "特别好，在{value}待了九天，天天吃海鲜。",
        "临时取消了，明年再说吧。",
        "{who}休假过得怎么样，去了哪里？",
        "{who}在哪里天天吃海鲜？",
        "{who}去什么地方旅行了？",
        ("青岛", "三亚", "厦门", "大连", "舟山", "北海", "威海"),
    ),
    Subject(
        "你们家最后养宠物了吗？",
        "养了，周五从收容站抱回来一只{value}。",
        "没有，房东不同意。",
        "{who}家养了什么宠物？",
        "{who}从收容站抱回来什么？",
        "{who}家里有哪种小动物？",
        ("柯基", "橘猫", "鹦鹉", "乌龟", "兔子", "边牧", "仓鼠"),
    ),
    Subject(
        "新工作还顺利吗？",
        "比想的好，让我负责{value}。",
        "最后没去，还在原来的公司。",
        "{who}的新工作是做什么的？",
        "公司让{who}负责什么？",
        "{who}在单位管哪一块？",
        ("夜班调度", "档案室", "支付模块", "前台接待", "暑期培训", "车队", "测试实验室"),
    ),
    Subject(
        "最近在看什么书？",
        "看《{value}》看到一半，放不下来。",
        "没看，一翻书就睡着。",
        "{who}最近在看什么书？",
        "{who}看到一半放不下来的是什么？",
        "{who}迷上了哪部小说？",
        ("平凡的世界", "三体", "活着", "围城", "白鹿原", "边城", "城南旧事"),
    ),
    Subject(
        "医生查出来是什么毛病了吗？",
        "说是{value}，六个星期不能跑步。",
        "什么也没查出来，让我回家休息。",
        "医生查出{who}是什么毛病？",
        "{who}为什么六个星期不能跑步？",
        "{who}得了什么病？",
        ("半月板撕裂", "贫血", "哮喘", "应力性骨折", "带状疱疹", "痛风", "腰椎间盘突出"),
    ),
    Subject(
        "你姐姐的婚礼定在哪天？",
        "改到{value}了，原来的酒店漏水。",
        "他们分手了。",
        "{who}姐姐的婚礼定在哪天？",
        "因为酒店漏水，{who}家里的事改到什么时候？",
        "{who}的姐姐什么时候结婚？",
        ("五月九号", "端午节", "十月初", "元旦前夜", "四月三号", "立夏那天"),
    ),
    Subject(
        "你报的是什么乐器课？",
        "学{value}，邻居已经受不了我了。",
        "课我退掉了。",
        "{who}报了什么乐器课？",
        "{who}的什么让邻居受不了？",
        "{who}在练习演奏什么？",
        ("小号", "大提琴", "手风琴", "唢呐", "架子鼓", "古筝", "单簧管"),
    ),
    Subject(
        "今晚请客打算做什么菜？",
        "做{value}，奶奶留下来的方子。",
        "不做了，叫外卖。",
        "{who}今晚请客做什么菜？",
        "奶奶给{who}留下了什么方子？",
        "{who}要给大家端上什么吃的？",
        ("佛跳墙", "狮子头", "酸菜鱼", "东坡肉", "臭鳜鱼", "手抓羊肉", "过桥米线"),
    ),
    Subject(
        "车修好了没有？",
        "修理厂换了{value}，花了一大笔钱。",
        "没修，当废铁卖了。",
        "{who}的车修了哪里？",
        "修理厂给{who}换了什么，花了一大笔钱？",
        "{who}的汽车哪个零件坏了？",
        ("变速箱", "离合器", "散热器", "发电机", "正时皮带", "排气管", "燃油泵"),
    ),
    Subject(
        "你现在还去做志愿者吗？",
        "每周二在{value}，主要是洗碗。",
        "没时间了，早就不去了。",
        "{who}在哪里做志愿者？",
        "{who}每周二在哪里洗碗？",
        "{who}给哪个公益机构帮忙？",
        ("社区食堂", "动物救助站", "图书馆", "敬老院", "少年宫", "博物馆"),
    ),
    Subject(
        "生日准备怎么过？",
        "租{value}，住一个周末。",
        "今年不过了。",
        "{who}的生日准备怎么过？",
        "{who}租了什么住一个周末？",
        "{who}打算如何庆祝？",
        ("一条小船", "一座灯塔", "湖边的木屋", "山上的小院", "两顶帐篷", "一间老宅"),
    ),
    Subject(
        "你儿子选了哪所学校？",
        "九月去{value}，他高兴坏了。",
        "他想先工作。",
        "{who}的儿子选了哪所学校？",
        "{who}家谁九月高兴坏了，去哪里？",
        "{who}的孩子去哪里念书？",
        ("实验中学", "舞蹈学院", "外国语学校", "育才小学", "职业技术学校", "数学英才班"),
    ),
    Subject(
        "你怎么退出合唱团了？",
        "说实话，{value}，我实在受不了了。",
        "没退，只是病了几天。",
        "{who}为什么退出合唱团？",
        "{who}实在受不了什么？",
        "{who}不再跟大家一起唱歌的原因是什么？",
        ("闲话太多", "新指挥太凶", "教室太冷", "路太远", "总唱同一首"),
    ),
    Subject(
        "厨房最后刷成什么颜色？",
        "最后定了{value}，配白色的架子。",
        "没动，还是原来那样。",
        "{who}的厨房是什么颜色？",
        "{who}拿什么配白色的架子？",
        "{who}做饭的屋子涂成了哪种色调？",
        ("灰绿", "芥末黄", "藏青", "砖红", "浅粉", "炭灰"),
    ),
    Subject(
        "攒钱想买什么？",
        "想买{value}，每个月存三千。",
        "我一分钱也存不下来。",
        "{who}攒钱想买什么？",
        "{who}每个月存三千是为了什么？",
        "{who}将来希望拥有什么？",
        ("一艘帆船", "一架三角钢琴", "一辆房车", "一套小房子", "一台望远镜"),
    ),
    Subject(
        "你现在对什么过敏？",
        "就剩{value}了，还好。",
        "别提了，整天打喷嚏。",
        "{who}对什么过敏？",
        "{who}就剩什么了，还好？",
        "{who}不能碰哪种东西？",
        ("花生", "海鲜", "花粉", "青霉素", "芝麻", "猫毛", "芒果"),
    ),
    Subject(
        "面试结果怎么样？",
        "问到{value}，我脑子一片空白。",
        "又推迟了。",
        "{who}的面试结果怎么样？",
        "问到什么时{who}脑子一片空白？",
        "{who}在哪个题目上没答出来？",
        ("贝叶斯定理", "税法", "热力学", "竞争对手", "空窗期", "职业规划"),
    ),
    Subject(
        "搬进新家第一件事做了什么？",
        "在沙发上面挂了{value}，一下就有家的感觉。",
        "睡了两天。",
        "{who}搬进新家第一件事做了什么？",
        "{who}的沙发上面挂了什么？",
        "{who}怎么布置屋子的？",
        ("一张鲸鱼地图", "父亲的吉他", "一条红毯子", "老挂钟", "两只风筝"),
    ),
    Subject(
        "你妈妈身体好些了吗？",
        "好多了，八十一岁还学起了{value}。",
        "还是老样子，我们轮流照顾。",
        "{who}的妈妈身体好些了吗，在做什么？",
        "八十一岁学起了什么，{who}说的？",
        "{who}的母亲有什么爱好？",
        ("射箭", "象棋", "水彩", "太极", "养蜂", "游泳", "意大利语"),
    ),
)

CHINESE_TALK = (
    "{other}，好久没联系了！",
    "不好意思回得晚，这周太忙了。",
    "哈哈，真是你的风格。",
    "这边天气糟透了。",
    "先不说了，车来了。",
    "下次见面细聊。",
    "这让我想起上学的时候。",
    "前两天还想到你呢，{other}。",
    "早上堵车堵得厉害。",
    "哪天一起喝杯咖啡吧。",
    "昨晚没睡好，楼上太吵。",
    "恭喜恭喜，真替你高兴！",
    "那一定很不容易。",
    "我也一样，没什么新鲜事。",
    "周日的球赛看了吗？",
    "手机没电了，所以没回你。",
)

_NAMES: dict[Language, tuple[str, ...]] = {
    "en": (
        *("Alma", "Boris", "Clara", "Dmitri", "Edith", "Farid", "Greta", "Hassan", "Ines", "Jonas", "Kamala", "Luca"),
        *("Mina", "Niels", "Olive", "Pavel", "Quentin", "Rosalind", "Samir", "Tilda", "Umberto", "Vera", "Wanda"),
        *("Xenia", "Yusuf", "Zelda", "Arthur", "Bettina", "Cyril", "Dora", "Emil", "Flora", "Gustav", "Helga", "Igor"),
        *("Judith", "Konrad", "Leila", "Marcel", "Nadia"),
    ),
    "zh": (
        *("李雷", "韩梅", "王芳", "赵强", "陈静", "刘洋", "周敏", "吴涛", "郑爽", "孙丽"),
        *("马超", "朱琳", "胡军", "林娜", "何斌", "高洁", "罗勇", "梁燕", "宋伟", "唐雪"),
    ),
}
_SUBJECTS: dict[Language, tuple[Subject, ...]] = {"en": ENGLISH, "zh": CHINESE}
_TALK: dict[Language, tuple[str, ...]] = {"en": ENGLISH_TALK, "zh": CHINESE_TALK}


def conversations(language: Language, seed: int = 16) -> Iterator[Conversation]:
    """The conversations of one language."""
    names = _NAMES[language]
    for number in range(CONVERSATIONS[language]):
        yield _conversation(f"{language}-{number}", language, names[2 * number : 2 * number + 2], Random(seed + number))


def items(conversation: Conversation) -> list[JsonObject]:
    """One save payload for each turn, in the order of the turns; their scope is the conversation's."""
    return [
        {
            "id": turn.id,
            "types": ["experience"],
            "task": turn.speaker,
            "content": turn.text,
            "scopes": [scope(conversation)],
            "owner": "org:bench",
            "source": {"name": "conversation", "trace_id": turn.session, "message_id": turn.id},
        }
        for turn in conversation.turns
    ]


def scope(conversation: Conversation) -> str:
    """The scope in which a conversation's turns are read."""
    return f"project:{conversation.name}"


def _conversation(name: str, language: Language, people: Sequence[str], random: Random) -> Conversation:
    told = [(subject, who) for subject in _SUBJECTS[language] for who in people]
    random.shuffle(told)
    by_session: list[list[list[tuple[str, str, Question | None]]]] = [[] for _ in range(SESSIONS)]
    asked = 0
    for at, (subject, who) in enumerate(told):
        declines = asked >= ASKED_EACH and random.random() < 0.4
        question = None
        value = random.choice(subject.values)
        answer = subject.declined if declines else subject.answer.format(value=value)
        if not declines and asked < ASKED_EACH:
            form = ("near", "told", "other")[asked % 3]
            question = Question(getattr(subject, form).format(who=who), "", form)
            asked += 1
        other = people[1 - people.index(who)]
        lead = (other, subject.lead.format(who=who), None)
        by_session[at % SESSIONS].append([lead, (who, answer, question)])
    turns: list[Turn] = []
    questions: list[Question] = []
    for number, exchanges in enumerate(by_session):
        for _ in range(SMALL_TALK):
            speaker = random.choice(people)
            text = random.choice(_TALK[language]).format(other=people[1 - people.index(speaker)])
            exchanges.append([(speaker, text, None)])
        random.shuffle(exchanges)
        for speaker, text, question in (turn for exchange in exchanges for turn in exchange):
            turn = Turn(f"{name}-{len(turns)}", f"{name}-session-{number}", speaker, text)
            turns.append(turn)
            if question is not None:
                questions.append(Question(question.text, turn.id, question.form))
    return Conversation(name, language, turns, questions)
