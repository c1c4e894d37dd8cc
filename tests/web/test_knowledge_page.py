"""The list of knowledge: filters narrow it, every state has an address, and what authors write is shown as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest

from kledger import LedgerClient
from tests.journeys.running_node import RunningNode, caught_up
from tests.web.visitor import Visitor, visitor, words

TEAM = "project:lighthouse"
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7*7 }}"


@pytest.fixture(scope="module")
def node(shared_node: RunningNode) -> RunningNode:
    """A node with a few items of a team."""
    with shared_node.client() as ledger:
        mei = ledger.acting_as(user="lh-mei", project="lighthouse")
        mei.save(
            "Light the lamp", "At dusk.", ["strategy"], id="lh-lamp", scopes=[TEAM], tags={"area": "lamp"}, score=5
        )
        mei.save(
            "Clean the lens", "Every week.", ["tool"], id="lh-lens", scopes=[TEAM], tags={"area": "glass"}, score=3
        )
        mei.remember("The keeper prefers tea.", "semantic", id="lh-tea", scopes=[TEAM], tags=["taste"])
        mei.remember("The storm of March broke a pane.", "episodic", id="lh-storm", scopes=[TEAM])
        mei.save("A secret of mei", "Nobody else reads it.", ["tool"], id="lh-secret")
        mei.save("Old horn", "It is gone.", ["tool"], id="lh-horn", scopes=[TEAM])
        mei.retire("lh-horn")
        mei.search("clean the lens every week", top_k=1)
        caught_up(ledger)
    return shared_node


@pytest.fixture
def mei(node: RunningNode) -> Iterator[Visitor]:
    with visitor(node.url, user="lh-mei", project="lighthouse") as person:
        yield person


def shown(page: str) -> set[str]:
    """The items on a page."""
    return {unescape(each) for each in re.findall(r'data-item="([^"]+)"', page)}


ALL = {"lh-lamp", "lh-lens", "lh-tea", "lh-storm"}
NARROWED = {
    f"scopes={TEAM}": ALL,
    f"scopes={TEAM}&types=tool": {"lh-lens"},
    f"scopes={TEAM}&types=tool,strategy": {"lh-lens", "lh-lamp"},
    f"scopes={TEAM}&types=tool&types=strategy": {"lh-lens", "lh-lamp"},
    f"scopes={TEAM}&tags=lamp": {"lh-lamp"},
    f"scopes={TEAM}&tags=taste": {"lh-tea"},
    f"scopes={TEAM}&layer=semantic": {"lh-tea"},
    f"scopes={TEAM}&layer=semantic&layer=episodic": {"lh-tea", "lh-storm"},
    f"scopes={TEAM}&layer=no-layer": ALL,
    f"scopes={TEAM}&min_score=4": {"lh-lamp"},
    f"scopes={TEAM}&status=retired": {"lh-horn"},
    f"scopes={TEAM}&status=all": {*ALL, "lh-horn"},
    f"scopes={TEAM}&concern=never_recalled": {"lh-lamp", "lh-tea", "lh-storm"},
    f"scopes={TEAM}&since=2020-01-01&until=2099-12-31": ALL,
    f"scopes={TEAM}&until=2020-01-01": set(),
    f"scopes={TEAM}&since=2099-12-31": set(),
    "owner=user:lh-mei": {*ALL, "lh-secret"},
    "owner=user:lh-mei&visibility=private": {"lh-secret"},
    "owner=user:lh-mei&visibility=shared": ALL,
    "owner=user:lh-mei&visibility=public": set(),
    "owner=user:nobody-of-lighthouse": set(),
}


@pytest.mark.parametrize("form", ["cards", "table"])
@pytest.mark.parametrize("query", NARROWED)
def test_filters_narrow_the_list_in_either_form(mei: Visitor, query: str, form: str) -> None:
    page = mei.http.get(f"/ui/knowledge?{query}&view={form}")
    assert page.status_code == 200
    assert shown(page.text) == NARROWED[query]


def test_a_search_is_narrowed_by_the_same_filters(mei: Visitor) -> None:
    found = shown(mei.get("/ui/knowledge", q="clean the lens", scopes=TEAM).text)
    assert "lh-lens" in found
    assert found <= ALL
    assert shown(mei.get("/ui/knowledge", q="clean the lens", scopes=TEAM, tags="lamp").text) == {"lh-lamp"}
    assert shown(mei.get("/ui/knowledge", q="clean the lens", scopes=TEAM, layer="episodic").text) <= {"lh-storm"}
    assert shown(mei.get("/ui/knowledge", q="clean the lens", scopes=TEAM, until="2020-01-01").text) == set()
    assert shown(mei.get("/ui/knowledge", q="clean the lens", owner="user:lh-mei", visibility="private").text) == {
        "lh-secret"
    }


def test_every_filter_is_a_chip_whose_link_takes_it_alone_away(mei: Visitor) -> None:
    query = f"types=tool&types=strategy&scopes={TEAM}&tags=lamp&min_score=4&visibility=shared&view=table"
    page = mei.http.get(f"/ui/knowledge?{query}").text
    chips = re.search(r'<ul class="chips".*?</ul>', page, re.DOTALL)
    assert chips is not None
    links = [unescape(each) for each in re.findall(r'class="badge" href="([^"]+)"', chips[0])]
    assert len(links) == 6
    for link in links:
        assert "view=table" in link
        assert mei.get(link).text.count('class="badge" href=') == 5
    without_tag = next(link for link in links if "tags=" not in link)
    assert "types=tool" in without_tag
    assert "min_score=4" in without_tag


def test_a_facet_says_how_many_there_are_and_leads_to_just_these(mei: Visitor) -> None:
    page = mei.get("/ui/knowledge", scopes=TEAM).text
    facets = re.search(r"<aside.*?</aside>", page, re.DOTALL)
    assert facets is not None
    links = re.findall(r'<a href="([^"]+)"[^>]*><span>([^<]+)</span> <span class="count">(\d+)</span>', facets[0])
    assert {name for _, name, _ in links} >= {"tool", "strategy", "lamp", "taste", "user:lh-mei"}
    for link, name, count in links:
        narrowed = mei.get(unescape(link)).text
        if name != TEAM:  # chosen already: its link takes it away
            assert len(shown(narrowed)) == int(count), name


def test_a_card_and_its_filter_tell_who_may_see_an_item(mei: Visitor) -> None:
    page = mei.get("/ui/knowledge", owner="user:lh-mei", visibility="private").text
    card = re.search(r'data-item="lh-secret".*?</article>', page, re.DOTALL)
    assert card is not None
    assert "Visibility: one person" in words(card[0])
    chosen = re.search(r'<select name="visibility">.*?</select>', page, re.DOTALL)
    assert chosen is not None
    assert re.findall(r'value="(\w*)"( selected)?', chosen[0]) == [
        ("", ""),
        ("private", " selected"),
        ("shared", ""),
        ("org", ""),
        ("public", ""),
    ]
    assert "Visibility: one person" in words(page[page.index('<ul class="chips"') :])


def test_the_tabs_are_the_layers_and_the_one_that_is_shown_is_marked(mei: Visitor) -> None:
    mei.post("/ui/settings", language="zh", back="/ui")
    page = mei.get("/ui/knowledge", layer="episodic").text
    tabs = re.search(r'<nav class="tabs".*?</nav>', page, re.DOTALL)
    assert tabs is not None
    assert words(tabs[0]) == "全部记忆 语义记忆 情景记忆 程序记忆 短期记忆 共享记忆 知识库 普通知识"
    assert re.findall(r'aria-current="page">.*?</svg>(.*?)</a>', tabs[0]) == ["情景记忆"]
    card = re.search(r'data-item="lh-storm".*?</article>', page, re.DOTALL)
    assert card is not None
    assert "置信度: " in card[0]


def test_the_pages_of_a_project_show_what_it_reads_and_of_others_nothing(mei: Visitor) -> None:
    assert shown(mei.get("/org/harbour/ws/lighthouse/memory").text) == {"lh-tea", "lh-storm"}
    assert shown(mei.get("/org/harbour/ws/lighthouse/knowledge").text) == ALL
    assert shown(mei.get("/org/harbour/ws/lighthouse/memory", layer="episodic").text) == {"lh-storm"}
    # What the address narrows to is not widened by a parameter.
    assert shown(mei.get("/org/harbour/ws/lighthouse/knowledge", scopes="public,user:lh-mei").text) == ALL
    assert shown(mei.get("/org/harbour/ws/lighthouse/knowledge", q="clean the lens").text) <= ALL
    empty = mei.get("/org/harbour/ws/no-such-project/memory")
    assert empty.status_code == 200
    assert shown(empty.text) == set()


def test_the_memory_of_a_project_has_the_health_of_all_that_its_reader_sees_on_top(
    node: RunningNode, mei: Visitor
) -> None:
    mei.post("/ui/settings", language="zh", back="/ui")
    with node.client() as operator:
        health = operator.acting_as(user="lh-mei", project="lighthouse").memory_health()
    page = mei.get("/org/harbour/ws/lighthouse/memory").text
    panel = re.search(r'<div class="numbers".*?</div>', page, re.DOTALL)
    assert panel is not None
    assert page.index(panel[0]) < page.index('<nav class="tabs"')
    certain = f"{health['mean_confidence'] or 0:.0%}"
    told = f"总记忆条数 {health['total']} 平均置信度 {certain} 过期记忆 0 待清理 冲突记忆 0 待解决"
    assert words(panel[0]) == told
    links = [unescape(link) for link in re.findall(r'href="([^"]+)"', panel[0])]
    assert shown(mei.get(links[0]).text) >= {"lh-tea", "lh-storm"}
    for link in links:
        assert mei.get(link).status_code == 200
    assert 'class="numbers"' not in mei.get("/org/harbour/ws/lighthouse/knowledge").text


def test_who_is_in_no_scope_of_it_sees_nothing_of_it(node: RunningNode) -> None:
    with visitor(node.url, user="lh-stranger") as stranger:
        for path in ("/ui/knowledge", f"/ui/knowledge?scopes={TEAM}", "/org/harbour/ws/lighthouse/memory"):
            page = stranger.get(path).text
            assert not shown(page) & {*ALL, "lh-secret"}
            assert "lh-mei" not in words(page).replace(TEAM, "")


def test_pages_lead_to_newer_and_older_ones_without_a_gap_while_others_save(node: RunningNode) -> None:
    with node.client() as ledger, visitor(node.url, user="lh-pager") as pager:
        own = ledger.acting_as(user="lh-pager")
        own.save_many(
            [{"id": f"lh-page-{n:02}", "task": "t", "content": f"c {n}", "types": ["tool"]} for n in range(60)]
        )
        caught_up(ledger)
        seen: list[str] = []
        page = pager.get("/ui/knowledge", owner="user:lh-pager").text
        while True:
            seen += re.findall(r'data-item="([^"]+)"', page)
            own.save("t", f"saved meanwhile {len(seen)}", ["tool"])
            older = re.search(r'rel="next" href="([^"]+)"', page)
            if older is None:
                break
            page = pager.get(unescape(older[1])).text
        assert seen == [f"lh-page-{n:02}" for n in reversed(range(60))]
        newer = re.search(r'rel="prev" href="([^"]+)"', page)
        assert newer is not None
        assert re.findall(r'data-item="([^"]+)"', pager.get(unescape(newer[1])).text) == seen[24:48]


def test_what_authors_write_is_shown_as_text_in_every_field(node: RunningNode) -> None:
    with node.client() as ledger:
        ledger.acting_as(user="lh-evil").save(
            HOSTILE, HOSTILE, ["tool"], id=HOSTILE[:60], tags={HOSTILE: HOSTILE}, source={"name": HOSTILE},
        )  # fmt: skip
        caught_up(ledger)
    with visitor(node.url, user="lh-evil") as evil:
        for view in ("cards", "table"):
            page = evil.get("/ui/knowledge", view=view, q=HOSTILE, tags=HOSTILE.replace(",", ""), owner="user:lh-evil")
            listed = evil.get("/ui/knowledge", view=view, owner="user:lh-evil")
            for answer in (page, listed):
                assert answer.status_code == 200
                assert "<script>alert" not in answer.text
                assert "<img" not in answer.text
                assert "{{ 7*7 }}" in unescape(answer.text)
            assert shown(listed.text) == {HOSTILE[:60]}


def test_a_day_that_is_none_is_refused_with_the_reason(mei: Visitor) -> None:
    answer = mei.get("/ui/knowledge", since="yesterday")
    assert answer.status_code == 422
    assert "write a day, such as 2026-03-05" in words(answer.text)


def test_a_look_is_recorded_as_a_look_and_one_from_another_site_is_not(node: RunningNode, mei: Visitor) -> None:
    with node.client() as ledger:
        before = ledger.status()["stream"]["head"]
        mei.http.get(
            "/ui/knowledge?q=lens",
            headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
        )
        mei.get("/ui/knowledge", scopes=TEAM)
        assert ledger.status()["stream"]["head"] == before
        mei.get("/ui/knowledge", q="lens")
        caught_up(ledger)
        rows = ledger.sql(f"SELECT DISTINCT kind FROM recalls WHERE position > {before}")["rows"]
        assert rows == [["page"]]


def test_an_item_is_retired_from_its_card_and_comes_back_by_the_undo(node: RunningNode) -> None:
    with node.client() as ledger, visitor(node.url, user="lh-pia") as pia:
        ledger.acting_as(user="lh-pia").save("Paint the door", "Red.", ["plan"], id="lh-door")
        caught_up(ledger)
        where = "/ui/knowledge?types=plan&owner=user%3Alh-pia"
        page = pia.get(where).text
        assert 'action="/ui/items/lh-door/retire"' in page
        after = pia.post("/ui/items/lh-door/retire", back=where)
        assert str(after.url).endswith(where)
        assert shown(after.text) == set()
        undo = re.search(r'<form method="post" action="([^"]+/restore)"', after.text)
        assert undo is not None
        assert shown(pia.post(unescape(undo[1]), back=where).text) == {"lh-door"}
        assert ledger.get("lh-door")["status"] == "active"


def test_nobody_is_shown_a_button_for_what_is_not_theirs(node: RunningNode) -> None:
    with visitor(node.url, user="lh-jonas", project="lighthouse") as jonas:
        page = jonas.get("/ui/knowledge", scopes=TEAM).text
        assert shown(page) == ALL
        assert "/retire" not in page
        assert "#revise" not in page
        assert jonas.post("/ui/items/lh-lamp/retire").status_code == 403


def test_what_fits_nothing_is_said_to_be_the_nearest_and_is_short(node: RunningNode, mei: Visitor) -> None:
    with node.client() as ledger:
        keeper = ledger.acting_as(user="lh-many")
        keeper.save_many({"task": f"Stone {n} of the pier", "content": "Granite.", "types": ["tool"]} for n in range(9))
        caught_up(ledger)
    with visitor(node.url, user="lh-many") as many:
        page = many.get("/ui/knowledge", q="zebra unicorn").text
        assert "Nothing fits well; the nearest are:" in words(page)
        assert len(shown(page)) == 3
        found = many.get("/ui/knowledge", q="stone of the pier").text
        assert "Nothing fits well" not in words(found)
        assert len(shown(found)) == 9


def test_empty_fields_of_a_form_are_not_in_the_address(mei: Visitor) -> None:
    answer = mei.get("/ui/knowledge?q=lens&types=&tags=&owner=&min_score=&scopes=" + TEAM)
    assert str(answer.url).partition("?")[2] == "q=lens&scopes=project%3Alighthouse"


def test_a_procedure_is_called_by_its_name_and_a_title_is_not_said_twice(node: RunningNode, mei: Visitor) -> None:
    with node.client() as ledger:
        keeper = ledger.acting_as(user="lh-steps")
        keeper.remember(
            None,
            "procedural",
            id="lh-trim",
            name="Trim the wick",
            trigger="The flame smokes",
            steps=["1. Cut it.", "2、Light it."],
        )
        keeper.remember("The oil is from Bergen.", "semantic", id="lh-oil")
        caught_up(ledger)
    with visitor(node.url, user="lh-steps") as steps:
        page = words(steps.get("/ui/knowledge").text)
        assert "Trim the wick The flame smokes Cut it. Light it." in page
        assert page.count("The oil is from Bergen") == page.count("Retire The oil is from Bergen") + 2, page


def _remembered(ledger: LedgerClient) -> None:
    mei = ledger.acting_as(user="lh-source", agent="协调Agent")
    mei.remember("用户偏好使用 TypeScript", "semantic", id="lh-source,1", tags=["tech_stack"])
    mei.remember("用户喜欢简短的回答", "semantic", id="lh-source-2")
    mei.save("A plain item", "of a book", ["tool"], source={"name": "A Book"}, id="lh-source-3")
    for name in ("a", "b"):
        ledger.acting_as(user="lh-source", agent=name).confirm("lh-source,1")
    caught_up(ledger)


def test_a_card_tells_how_many_conversations_a_memory_is_from_and_through_which_agent(
    shared_node: RunningNode,
) -> None:
    with shared_node.client() as ledger:
        _remembered(ledger)
    with visitor(shared_node.url, user="lh-source") as page:
        cards = words(page.get("/ui/knowledge").text)
        assert "Sources: 3 conversations Agent: 协调Agent user:lh-source Tags: tech_stack" in cards
        assert "Source: 1 conversation Agent: 协调Agent user:lh-source" in cards
        assert "Source: A Book" in cards
        page.post("/ui/settings", language="zh", back="/ui")
        assert "来源: 3次对话" in words(page.get("/ui/knowledge", q="用户偏好 TypeScript").text)
        assert "来源: 3次对话" in words(page.get("/ui/knowledge", view="table").text)
