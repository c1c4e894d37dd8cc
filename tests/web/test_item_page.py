"""The page of one item: what it says and said, what changed, and what a person may do with it and undo."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest

from kledger import LedgerClient
from producers.web.rendering import item_page, page_of
from tests.journeys.running_node import RunningNode, caught_up
from tests.web.visitor import Visitor, undone, visitor, words

FIRST, SECOND = "Deploy on Friday night, when nobody looks.", "Deploy on Tuesday before noon."


@pytest.fixture
def ledger(shared_node: RunningNode) -> Iterator[LedgerClient]:
    with shared_node.client() as client:
        yield client


@pytest.fixture
def ivo(shared_node: RunningNode) -> Iterator[Visitor]:
    with visitor(shared_node.url, user="ivo") as person:
        yield person


def saved(ledger: LedgerClient, name: str, content: str = FIRST, user: str = "ivo", **more: Any) -> LedgerClient:
    """Save an item of a user's; returns the client of that user."""
    owner = ledger.acting_as(user=user)
    owner.save(f"the task of {name}", content, ["strategy"], id=name, **more)
    owner.get(name)  # the view has it, for whoever asks
    return owner


def form_of(page: str, action: str) -> dict[str, str]:
    """The fields of the form of a page that is sent to this address, as a browser fills them in."""
    found = re.search(rf'<form method="post" action="{re.escape(action)}".*?</form>', page, re.S)
    assert found is not None, action
    fields = {
        unescape(name): unescape(value) for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', found[0])
    }
    areas = re.findall(r'<textarea name="([^"]+)"[^>]*>\n(.*?)</textarea>', found[0], re.S)
    return fields | {name: unescape(text).replace("\n", "\r\n") for name, text in areas}


def revised(person: Visitor, name: str, **changed: str) -> str:
    """Fill the form of revision in and send it; the page that comes of it."""
    form = form_of(person.get(item_page(name)).text, item_page(name, "revise"))
    return person.post(item_page(name, "revise"), {**form, **changed}).text


def test_each_version_shows_who_changed_what_word_by_word_and_why(ledger: LedgerClient, ivo: Visitor) -> None:
    owner = saved(ledger, "versions").within(trace_id="trace-of-versions")
    owner.revise("versions", content=SECOND, types=["tool"], reason="the night was long")
    page = ivo.get(item_page("versions", show="versions")).text
    assert "<del>Friday night, when nobody looks</del>" in page
    assert "<ins>Tuesday before noon</ins>" in page
    assert "<del>strategy</del><ins>tool</ins>" in page
    assert "the night was long" in page
    assert 'href="/ui/traces/trace-of-versions"' in page
    assert words(page).index("version 2") < words(page).index("version 1")


def test_chinese_is_compared_by_character(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "chinese", "迁移前备份数据").revise("chinese", content="迁移后备份数据")
    assert "迁移<del>前</del><ins>后</ins>备份数据" in ivo.get(item_page("chinese", show="versions")).text


def test_of_a_long_life_each_page_shows_ten_versions_and_leads_on(ledger: LedgerClient, ivo: Visitor) -> None:
    owner = saved(ledger, "long-life")
    for number in range(2, 14):
        owner.revise("long-life", content=f"version number {number}")
    seen = []
    address: str | None = item_page("long-life", show="versions")
    while address:
        page = ivo.get(address).text
        seen += [int(each) for each in re.findall(r'id="version-(\d+)"', page)]
        onward = re.search(r'rel="next" href="([^"]+)"', page)
        address = unescape(onward[1]) if onward else None
    assert seen == list(range(13, 0, -1))


def test_the_slider_shows_the_item_as_it_was_at_a_position(ledger: LedgerClient, ivo: Visitor) -> None:
    owner = saved(ledger, "slider")
    first = owner.get("slider")["position"]
    owner.revise("slider", content=SECOND)
    second = owner.get("slider")["position"]
    now, then = ivo.get(item_page("slider")).text, ivo.get("/ui/items/slider", as_of=first).text
    assert SECOND in words(now)
    assert f'min="{first}" max="{second}" value="{second}"' in now
    assert f'href="/ui/items/slider?as_of={first}"' in now
    assert f"{FIRST} What changed since" in words(then)
    assert f'value="{first}"' in then
    assert f'rel="next" href="/ui/items/slider?as_of={second}"' in then
    assert 'rel="prev"' not in then


def test_a_moment_is_as_good_as_a_position_and_one_without_an_offset_is_in_utc(
    ledger: LedgerClient, ivo: Visitor
) -> None:
    saved(ledger, "moments").revise("moments", content=SECOND)
    made = ledger.history("moments")["versions"][0]["valid_from_time"]
    for moment in (made, made.removesuffix("Z")):
        assert FIRST in words(ivo.get("/ui/items/moments", as_of=moment).text)
    before = ivo.get("/ui/items/moments", as_of="2001-01-01T00:00")
    assert before.status_code == 200
    assert "did not exist" in words(before.text) or "was not" in words(before.text), words(before.text)[:1500]
    assert ivo.get("/ui/items/moments", as_of="yesterday").status_code == 422


def test_the_slider_needs_no_script(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "plain-slider")
    page = ivo.get(item_page("plain-slider")).text
    form = re.search(r'<form class="slider" action="/ui/items/plain-slider">(.*?)</form>', page, re.S)
    assert form is not None
    assert 'type="range" name="as_of"' in form[1]
    assert "<button>" in form[1]


def test_verdicts_come_with_their_cases_and_say_whether_the_item_had_been_served(
    ledger: LedgerClient, ivo: Visitor
) -> None:
    saved(ledger, "judged")
    ivo.get(item_page("judged"))
    form = form_of(ivo.get(item_page("judged")).text, item_page("judged", "rate"))
    page = ivo.post(
        item_page("judged", "rate"),
        {**form, "verdict": "harmful", "task": "release 45", "outcome": "broken", "trace_id": "trace-45"},
    ).text
    assert "Your verdict is kept." in words(page)
    page = ivo.get(item_page("judged", show="verdicts")).text
    assert all(text in words(page) for text in ("harmful release 45 broken", "user:ivo", "it had not been served"))
    assert 'href="/ui/traces/trace-45"' in page


def test_verdicts_are_counted_as_they_were_given_and_nobodys_are_none(ledger: LedgerClient, ivo: Visitor) -> None:
    owner = saved(ledger, "counted", scopes=["user:ivo", "team:counted"])
    count = r'class="sr">(?:helpful|harmful)</span> (\d+)<'
    card = ivo.get("/ui/knowledge", scopes="team:counted").text
    assert re.findall(count, card) == ["0", "0"]
    assert "not judged yet" in words(ivo.get(item_page("counted")).text)
    assert "0 helpful, 0 harmful Nobody has judged it yet." in words(
        ivo.get(item_page("counted", show="verdicts")).text
    )
    for verdict in ("helpful", "harmful"):
        owner.rate("counted", verdict, task="a case")
    owner.get("counted")
    assert re.findall(count, ivo.get("/ui/knowledge", scopes="team:counted").text) == ["1", "1"]
    for show in ("now", "verdicts"):
        assert "1 helpful, 1 harmful" in words(ivo.get(item_page("counted", show=show)).text)


def test_a_form_that_is_sent_twice_counts_once_and_a_fresh_one_again(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "twice")
    before = ledger.get("twice")["eval"]["helpful"]
    for more in (1, 2):
        form = form_of(ivo.get(item_page("twice")).text, item_page("twice", "rate"))
        for _ in range(2):
            ivo.post(item_page("twice", "rate"), {**form, "verdict": "helpful", "task": "the same"})
        assert ledger.get("twice")["eval"]["helpful"] == before + more


def test_retiring_is_undone_by_restoring(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "retired")
    ivo.get(item_page("retired"))
    page = ivo.post(item_page("retired", "retire"), reason="no longer so").text
    assert ledger.get("retired")["status"] == "retired"
    assert "no longer so" in ivo.get(item_page("retired", show="versions")).text
    ivo.post(item_page("retired", "restore"))
    page = ivo.post(item_page("retired", "retire")).text
    undone(ivo, page)
    assert ledger.get("retired")["status"] == "active"


def test_a_revision_changes_what_was_written_alone_and_is_undone(ledger: LedgerClient, ivo: Visitor) -> None:
    content = "\n first line\nsecond line \n"
    saved(ledger, "revised", content, tags={"area": "release"}, scopes=["user:ivo", "team:web"])
    before = ledger.get("revised")
    page = revised(ivo, "revised", task="another task", reason="clearer")
    after = ledger.get("revised")
    assert after["task"] == "another task"
    assert [after[name] for name in ("content", "tags", "scopes", "source")] == [
        before[name] for name in ("content", "tags", "scopes", "source")
    ]
    undone(ivo, page)
    assert ledger.get("revised")["task"] == before["task"]
    assert ledger.get("revised")["version"] == 3


def test_a_form_in_which_nothing_was_written_changes_nothing(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "untouched", tags={"a": [1, {"b": "ü"}]}, source={"name": "somewhere", "urls": ["https://a.example"]})
    assert "nothing was changed" in words(revised(ivo, "untouched"))
    assert ledger.get("untouched")["version"] == 1


def test_where_somebody_was_faster_both_texts_are_shown_and_the_person_decides(
    ledger: LedgerClient, ivo: Visitor
) -> None:
    owner = saved(ledger, "raced", "The gate is closed at night.")
    form = form_of(ivo.get(item_page("raced")).text, item_page("raced", "revise"))
    owner.revise("raced", content="The gate is open at night.")
    answer = ivo.post(item_page("raced", "revise"), {**form, "content": "The gate is closed at noon."})
    assert answer.status_code == 409
    assert "is <del>open </del>at <del>night</del>" in answer.text
    assert "is <ins>closed </ins>at <ins>noon</ins>" in answer.text
    assert ledger.get("raced")["content"] == "The gate is open at night."
    ivo.post(item_page("raced", "revise"), form_of(answer.text, item_page("raced", "revise")))
    assert ledger.get("raced")["content"] == "The gate is closed at noon."


def test_what_cannot_be_kept_comes_back_with_the_reason_and_with_what_was_written(
    ledger: LedgerClient, ivo: Visitor
) -> None:
    saved(ledger, "mended")
    for field, wrong in (("tags", "{broken"), ("tags", "[1]"), ("types", "not a type!"), ("scopes", "nobody")):
        page = revised(ivo, "mended", content="my long work", **{field: wrong})
        assert 'role="alert"' in page
        assert "my long work" in page
    assert ledger.get("mended")["version"] == 1


def test_an_earlier_version_comes_back_and_that_is_undone(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "reverted").revise("reverted", content=SECOND)
    form = form_of(ivo.get(item_page("reverted", show="versions")).text, item_page("reverted", "revert"))
    page = ivo.post(item_page("reverted", "revert"), form).text
    assert ledger.get("reverted")["content"] == FIRST
    undone(ivo, page)
    assert ledger.get("reverted")["content"] == SECOND


def test_sharing_and_a_score_are_undone(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "shared", acl=[{"entity": "user:ann", "permission": "read"}])
    ivo.get(item_page("shared", show="access"))
    rows: dict[str, str | list[str]] = {
        "entity": ["user:ann", "team:web", ""],
        "permission": ["read_write", "read", "read"],
    }
    page = ivo.post(item_page("shared", "share"), rows).text
    assert ledger.get("shared")["acl"] == [
        {"entity": "user:ann", "permission": "read_write"},
        {"entity": "team:web", "permission": "read"},
    ]
    undone(ivo, page)
    assert ledger.get("shared")["acl"] == [{"entity": "user:ann", "permission": "read"}]
    undone(ivo, ivo.post(item_page("shared", "score"), score="5").text)
    assert ledger.get("shared")["eval"]["score"] == 3


def test_a_memory_is_confirmed(ledger: LedgerClient, ivo: Visitor) -> None:
    ledger.acting_as(user="ivo").remember("Ivo likes tea.", "short", kind="preference", id="tea")
    ivo.get(item_page("tea"))
    assert "semantic memory" in words(ivo.post(item_page("tea", "confirm"), task="breakfast").text)
    assert ledger.memory("tea")["layer"] == "semantic"


def test_who_sees_it_and_through_what_is_said(ledger: LedgerClient, shared_node: RunningNode) -> None:
    saved(ledger, "seen", scopes=["team:web"], acl=[{"entity": "user:ann", "permission": "read_write"}])
    with visitor(shared_node.url, user="ann") as ann:
        page = words(ann.get(item_page("seen", show="access")).text).replace("( ", "(").replace(" )", ")")
    assert "because it is shared with user:ann (who may write)" in page
    assert "Also read by team:web" in page
    assert "You are one who may write" in page
    assert "Share it" not in page


def test_an_outsider_sees_nothing_and_changes_nothing(ledger: LedgerClient, shared_node: RunningNode) -> None:
    saved(ledger, "hidden", "what only ivo knows", scopes=["user:ivo"])
    saved(ledger, "open-to-all", scopes=["public"])
    with visitor(shared_node.url, user="eve") as eve:
        for show in ("now", "versions", "verdicts", "recalls", "lineage", "access", "revise"):
            answer = eve.get(item_page("hidden", show=show))
            assert answer.status_code == 404
            assert "what only ivo knows" not in answer.text
            assert "the task of hidden" not in answer.text
        page = eve.get(item_page("open-to-all")).text
        assert "/open-to-all/revise" not in page
        assert "/open-to-all/retire" not in page
        changes = {
            "retire": {},
            "restore": {},
            "revert": {"to_version": "1", "expected_version": "1"},
            "share": {"acl": "user:eve read_write"},
            "revise": {"content": "eve was here", "expected_version": "1"},
            "rate": {"verdict": "harmful"},
            "score": {"score": "1"},
        }
        for verb, fields in changes.items():
            assert eve.post(item_page("hidden", verb), fields).status_code == 404, verb
            if verb not in ("rate", "score", "restore"):
                assert eve.post(item_page("open-to-all", verb), fields).status_code == 403, verb
    for name in ("hidden", "open-to-all"):
        assert ledger.get(name)["version"] == 1
        assert ledger.get(name)["eval"]["harmful"] == 0


HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>' onfocus=alert(1) x='",
    "{{ 7 * 7 }}{% raw %}",
    "</textarea></pre><script>alert(2)</script>",
    "\u202eevil\u2066\u200f👩‍👩‍👧‍👦\ufe0f\u0001\x1b[31m",
    "--><svg/onload=alert(3)>",
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_words_are_text_wherever_they_stand(ledger: LedgerClient, ivo: Visitor, hostile: str) -> None:
    name = f"hostile-{HOSTILE.index(hostile)}"
    urls = ["javascript:alert(1)", "data:text/html,<script>alert(4)</script>", " JavaScript:alert(1)", "//evil.example"]
    owner = ledger.acting_as(user="ivo").within(trace_id="".join(filter(str.isprintable, hostile)))
    owner.save(
        hostile,
        hostile * 2,
        ["tool"],
        id=name,
        tags={hostile: hostile},
        source={"name": hostile, "category": hostile, "urls": [*urls, "https://a.example/\"onclick='x'"]},
        resource_ids=[hostile],
    )
    owner.revise(name, content=hostile + " again", reason=hostile)
    owner.rate(name, "harmful", task=hostile, query=hostile, outcome=hostile, reason=hostile)
    for show in ("now", "versions", "verdicts", "lineage", "access", "revise"):
        answer = ivo.get(item_page(name, show=show))
        assert answer.status_code == 200
        markup = answer.text
        scripts = re.findall(r"<script[^>]*>", markup)
        assert all(re.fullmatch(r'<script src="/ui/static/[^"]+" defer>', each) for each in scripts)
        assert not re.search(r"<(img|svg/)", markup)
        tags = re.findall(r"<[a-z][^>]*>", markup)
        assert not any(re.search(r"\son[a-z]+\s*=", re.sub(r'"[^"]*"', "", each)) for each in tags)
        links = [unescape(each) for each in re.findall(r'href="([^"]*)"', markup)]
        assert all(each.startswith(("/ui", "#", "https://a.example/")) for each in links), links
        assert ">49<" not in markup
    assert 'rel="noreferrer noopener external"' in ivo.get(item_page(name)).text


@pytest.mark.parametrize("dated", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2016-12-31T23:59:60Z"])
def test_a_date_that_the_calendar_does_not_have_in_utc_is_shown_as_it_was_written(
    ledger: LedgerClient, ivo: Visitor, dated: str
) -> None:
    name = f"dated-{dated[:4]}"
    saved(ledger, name, source={"timestamp": dated}).rate(name, "helpful", task="t", timestamp=dated)
    for show in ("now", "versions", "verdicts", "lineage"):
        answer = ivo.get(item_page(name, show=show))
        assert answer.status_code == 200, words(answer.text)
    assert dated in words(ivo.get(item_page(name)).text)


def test_a_megabyte_of_text_is_shown_in_part_and_whole_where_it_is_asked_for(
    ledger: LedgerClient, ivo: Visitor
) -> None:
    content = "知识 word " * 60_000
    saved(ledger, "huge", content).revise("huge", content=content + "the end")
    for show in ("now", "versions", "verdicts", "lineage", "access"):
        assert len(ivo.get(item_page("huge", show=show)).text) < 120_000, show
    page = ivo.get(item_page("huge")).text
    assert "480,007 characters" in words(page).replace("All ", "")
    assert "the end" not in page
    assert "the end" in ivo.get(item_page("huge", text="whole")).text
    page = ivo.get(item_page("huge", show="revise")).text
    form = form_of(page, item_page("huge", "revise"))
    assert ivo.post(item_page("huge", "revise"), {**form, "content": "short now"}).status_code == 200
    assert ledger.get("huge")["content"] == "short now"


def test_a_link_that_names_another_item_beside_its_path_is_not_followed(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "this-one")
    saved(ledger, "that-one")
    assert "the task of this-one" in ivo.get("/ui/items/this-one?id=that-one").text
    assert ivo.get("/ui/items/-?id=that-one").status_code in (200, 404)
    assert "the task of that-one" not in ivo.get("/ui/items/-?id=that-one").text


def test_an_item_looked_up_by_its_id_is_found(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "looked/up")
    assert "the task of looked/up" in ivo.get("/ui/traces", kind="item", find="looked/up").text
    assert "the task of looked/up" in ivo.get(f"/ui/items?id={quote('looked/up', safe='')}").text


def test_relations_to_other_items_are_links(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "older")
    owner = ledger.acting_as(user="ivo")
    owner.remember("Deploy on Monday.", "semantic", id="newer", supersedes="older")
    assert 'href="/ui/items/newer"' in ivo.get(item_page("older")).text
    assert 'href="/ui/items/older"' in ivo.get(item_page("newer")).text
    page = ivo.get(item_page("older", show="lineage")).text
    assert 'href="/ui/items/newer"' in page


def test_the_page_is_there_in_chinese(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "in-chinese").revise("in-chinese", content=SECOND)
    ivo.http.headers["Accept-Language"] = "zh-CN"
    for show, text in (("now", "您可以做的"), ("versions", "已修订"), ("verdicts", "评价"), ("access", "谁能看到")):
        assert text in words(ivo.get(item_page("in-chinese", show=show)).text)


def test_looks_at_pages_are_counted_and_do_not_hide_what_agents_were_served(ledger: LedgerClient, ivo: Visitor) -> None:
    owner = saved(ledger, "looked-at", content="The quince is ripe in October.")
    recalled = owner.search("when is the quince ripe")["recall_id"]
    for _ in range(3):
        ivo.get("/ui/knowledge", q="quince ripe October")
    caught_up(ledger)
    page = ivo.get(item_page("looked-at", show="lineage")).text
    assert "when is the quince ripe" in words(page)
    assert f'href="/ui/recalls/{recalled}"' in page
    assert "looked at on a page" not in words(page)
    assert "3 looks at pages , which count for nothing" in words(page)
    recalls = ivo.get(item_page("looked-at", show="recalls")).text
    assert "1 recall of yours served it" in words(recalls)
    assert "quince ripe October" not in words(recalls)
    looks = ivo.get(item_page("looked-at", show="recalls", looks=1)).text
    assert words(looks).count("quince ripe October") == 3
    assert "quince ripe October" not in words(ivo.get("/ui/traces").text)


def test_an_item_says_who_told_it_for_whom_and_where_with_links(ledger: LedgerClient, ivo: Visitor) -> None:
    agent = ledger.acting_as(user="ivo", agent="coder")
    agent.session("talk-of-ivo").append([{"id": "ivo-said", "role": "user", "content": "I like rye."}])
    agent.within(trace_id="ivo-trace", message_id="ivo-said").remember(
        "Ivo likes rye.", "short", kind="preference", id="rye", session="talk-of-ivo"
    )
    agent.get("rye")
    page = ivo.get(item_page("rye")).text
    assert "Told by agent:coder for user:ivo in the session talk-of-ivo message ivo-said trace ivo-trace" in words(page)
    for link in ("/ui/sessions/talk-of-ivo", "/ui/messages/ivo-said", "/ui/traces/ivo-trace"):
        assert f'href="{link}"' in page
        assert ivo.get(link).status_code == 200
    assert "604800" not in page
    assert re.search(r"Expires \d{4}-\d\d-\d\d", words(page))


def test_an_item_out_of_force_says_on_its_front_who_made_it_so_and_why(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "out-of-force").retire("out-of-force", reason="the shop closed")
    ledger.get("out-of-force")
    assert re.search(r"retired : by user:ivo , .*: the shop closed", words(ivo.get(item_page("out-of-force")).text))


def test_a_proposal_says_that_it_waits_and_is_not_judged(ledger: LedgerClient, shared_node: RunningNode) -> None:
    scribe = ledger.acting_as(agent="ivos-scribe", project="ivos-house")
    ledger.assign_roles("ivos-house", "user:ivo", ["coordinator"])
    scribe.remember("Doors are locked.", "semantic", kind="convention", id="doors", scopes=["project:ivos-house"])
    caught_up(ledger)
    with visitor(shared_node.url, user="ivo", project="ivos-house") as ivo:
        page = ivo.get(item_page("doors")).text
        assert "until a coordinator of its project approves it" in words(page)
        assert 'href="/ui/review?tab=approvals"' in page
        assert "It helped" not in words(page)
        assert "Confirm that it holds" not in words(page)


def test_a_title_that_was_made_from_the_text_follows_it(ledger: LedgerClient, ivo: Visitor) -> None:
    ledger.acting_as(user="ivo").remember("The gate is green. It is old.", "semantic", id="gate")
    ledger.get("gate")
    revised(ivo, "gate", content="The gate is blue. It is old.")
    assert ledger.get("gate")["task"] == "The gate is blue"
    revised(ivo, "gate", task="About the gate", content="The gate is red.")
    revised(ivo, "gate", content="The gate is gone.")
    assert ledger.get("gate")["task"] == "About the gate"


def test_who_retires_without_a_reason_learns_that_it_is_not_held(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "no-reason")
    assert "With a reason it is held" in words(ivo.get(item_page("no-reason")).text)
    assert "Without a reason it is not held" in words(ivo.post(item_page("no-reason", "retire")).text)
    ivo.post(item_page("no-reason", "restore"))
    page = ivo.post(item_page("no-reason", "retire"), reason="over").text
    assert "Without a reason" not in words(page)


def test_who_gives_an_item_away_is_told_that_it_was_done(ledger: LedgerClient, ivo: Visitor) -> None:
    saved(ledger, "given-to-bob")
    page = revised(ivo, "given-to-bob", owner="user:bob2", scopes="user:bob2")
    assert "Revised. You do not see it any more" in words(page)
    assert ledger.get("given-to-bob")["owner"] == "user:bob2"


def test_a_lineage_that_is_not_whole_says_so_on_the_page_of_the_item_and_of_the_event(
    ledger: LedgerClient, ivo: Visitor
) -> None:
    caused = first_of_a_chain(ledger)
    ledger.acting_as(user="ivo").get("link-70")
    caught_up(ledger)
    more = "There may be more than this"
    assert more in words(ivo.get(item_page("link-70", show="lineage")).text)
    assert more in words(ivo.get(page_of("events", caused)).text)
    saved(ledger, "alone")
    assert more not in words(ivo.get(item_page("alone", show="lineage")).text)


def first_of_a_chain(ledger: LedgerClient) -> str:
    """Keep 71 items of ivo's, each caused by the one before; the id of the first event."""
    owner, first, last = ledger.acting_as(user="ivo"), "", ""
    for number in range(71):
        writer = owner.within(causation_id=last) if last else owner
        last = writer.save(f"link {number}", f"the link {number}", ["strategy"], id=f"link-{number}")["event_id"]
        first = first or last
    return first
