"""What people do at the pages, from the first look to what came of it, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from kledger import LedgerClient
from tests.browser.furnished import LAMPS, TRACE, USER
from tests.browser.window import Window
from tests.journeys.running_node import RunningNode, caught_up
from tests.patience import PATIENCE

Open = Callable[..., Window]
expect.set_options(timeout=PATIENCE * 1000)


def test_an_item_is_found_and_corrected_and_its_old_text_stays_readable(
    window: Open, operator: Any, node: RunningNode
) -> None:
    with node.client() as ledger:
        ledger.acting_as(user=USER).save("Where the ferry lands", "At the northern pier.", ["plan"], id="ferry")
        caught_up(ledger)
    page = window(signed_in=operator).open("/ui")
    page.keyboard.press("Tab")
    page.get_by_role("link", name="Knowledge", exact=True).click()
    page.get_by_role("searchbox").fill("where does the ferry land")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Where the ferry lands", exact=True).click()
    page.get_by_text("Write another version").click()
    page.get_by_label("Content").fill("At the southern pier, since spring.")
    page.get_by_label("Why you change it").fill("the pier was moved")
    page.get_by_role("button", name="Keep this").click()
    expect(page.locator("#notices").get_by_role("button", name="Undo")).to_be_visible()
    expect(page.locator("main")).to_contain_text("At the southern pier, since spring.")
    page.get_by_role("link", name="Versions").click()
    expect(page.locator("main del").first).to_contain_text("northern")
    expect(page.locator("main ins").first).to_contain_text("southern")
    expect(page.locator("main")).to_contain_text("the pier was moved")
    page.get_by_role("link", name="Its text").click()
    page.get_by_role("link", name="Earlier").click()
    expect(page.locator("main")).to_contain_text("At the northern pier.")


def test_a_trace_leads_from_what_was_asked_to_what_the_agent_saw(window: Open, operator: Any) -> None:
    page = window(signed_in=operator).open("/ui/traces")
    page.get_by_role("searchbox").fill(TRACE)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/ui/traces/{TRACE}"))
    page.locator("main a[href*='/ui/recalls/']").first.click()
    expect(page.locator("main")).to_contain_text("deploy at night")
    expect(page.locator("main")).to_contain_text("Deploy on Friday night, when nobody uses the service.")


def test_a_conflict_is_decided_and_the_side_that_lost_is_out_of_recall(
    window: Open, operator: Any, node: RunningNode
) -> None:
    page = window(signed_in=operator).open("/ui")
    page.get_by_role("link", name=re.compile("Conflicting")).click()
    expect(page.locator(".side")).to_have_count(2)
    page.locator(".side").filter(has_text="electric").get_by_role("button", name="Keep this one").click()
    expect(page.locator("#notices")).not_to_be_empty()
    with node.client() as ledger:
        statuses = {name: ledger.get(name)["status"] for name in LAMPS}
    assert sorted(statuses.values()) == ["active", "retired"]
    assert statuses[LAMPS[1]] == "active"


def test_a_bulk_is_previewed_done_and_undone(window: Open, operator: Any, node: RunningNode) -> None:
    ids = [f"buoy-{number}" for number in range(3)]
    with node.client() as ledger:
        for name in ids:
            ledger.acting_as(user=USER).save(
                f"A buoy, {name}", "Red and white.", ["definition"], id=name, tags={"kind": "buoy"}
            )
        caught_up(ledger)

    def statuses() -> set[str]:
        with node.client() as ledger:
            return {ledger.get(name)["status"] for name in ids}

    page = window(signed_in=operator).open("/ui/knowledge?tags=buoy")
    for box in page.get_by_label(re.compile("Choose A buoy")).all():
        box.check()
    page.get_by_role("button", name="See what would happen").click()
    expect(page.locator("main")).to_contain_text("3 would change.")
    assert statuses() == {"active"}
    page.get_by_role("button", name="Retire 3 items").click()
    expect(page.locator("#notices")).to_contain_text("3")
    assert statuses() == {"retired"}
    page.locator("#notices").get_by_role("button", name="Undo").click()
    expect(page.locator("#notices")).not_to_be_empty()
    assert statuses() == {"active"}


def test_the_keyboard_goes_on_where_it_was_after_a_form_or_at_what_is_said_of_it(
    window: Open, operator: Any, node: RunningNode
) -> None:
    """It began at the top of the page again, after each verdict and each press of a button of the header."""
    with node.client() as ledger:
        ledger.acting_as(user="jonas").save("A rope", "Coil it.", ["tool"], id="a-rope", scopes=["public"])
        caught_up(ledger)
    page = window(signed_in=operator).open("/ui/items/a-rope")
    for name in ("theme", "language", "language", "theme"):
        page.focus(f"header button[name={name}]")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.name") == name
    page.get_by_role("button", name="It helped").focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "Your verdict is kept." in page.locator("#notices").inner_text()
    assert page.evaluate("document.activeElement.id") == "notices"
    page.reload()
    assert page.evaluate("document.activeElement.tagName") == "BODY"


def test_a_rebuild_is_watched_to_its_end(window: Open, operator: Any) -> None:
    page = window(signed_in=operator).open("/ui/audit")
    page.locator("button[name=kind][value=rebuild]").click()
    expect(page).to_have_url(re.compile("/ui/audit/jobs/"))
    expect(page.locator("#job-title")).to_contain_text("finished")
    expect(page.locator("#job progress")).to_have_count(0)


def test_two_people_see_each_others_change_marked_and_nothing_jumps(window: Open, node: RunningNode) -> None:
    with node.client() as ledger:
        ledger.acting_as(user="ann").save(
            "The bell at the quay", "It rings at six.", ["plan"], id="bell", scopes=["team:quay"]
        )
        caught_up(ledger)
    ann, ben = window(), window()
    ann.sign_in(user="ann", team="quay")
    ben.sign_in(user="ben", team="quay")
    watching = ben.open("/ui/knowledge?scopes=team:quay")
    card = watching.locator("[data-item=bell]")
    expect(card).to_contain_text("It rings at six.")
    editing = ann.open("/ui/items/bell?show=revise")
    editing.get_by_label("Content").fill("It rings at seven.")
    editing.get_by_role("button", name="Keep this").click()
    expect(editing.locator("main")).to_contain_text("It rings at seven.")
    expect(watching.locator("#live-note")).to_be_visible()
    expect(card).to_have_class(re.compile("changed"))
    expect(card).to_contain_text("It rings at six.")
    watching.locator("#live-note a").click()
    expect(watching.locator("[data-item=bell]")).to_contain_text("It rings at seven.")


def test_what_somebody_writes_stays_while_they_look_at_what_others_changed(window: Open, node: RunningNode) -> None:
    ann = window()
    with node.client() as ledger:
        owner = ledger.acting_as(user="ann")
        owner.save("The buoy at the pier", "It is red.", ["plan"], id="buoy")
        caught_up(ledger)
        ann.sign_in(user="ann")
        page = ann.open("/ui/items/buoy")
        page.get_by_text("Write another version").click()
        page.get_by_label("Content").fill("what I wrote for an hour")
        owner.revise("buoy", content="It is green.")
    note = page.get_by_role("link", name=re.compile("Show them in another tab"))
    expect(note).to_be_visible()
    with ann.context.expect_page() as opened:
        note.click()
    expect(opened.value.locator("main")).to_contain_text("It is green.")
    expect(page.get_by_label("Content")).to_have_value("what I wrote for an hour")


def test_a_person_without_rights_sees_and_changes_nothing(window: Open, node: RunningNode) -> None:
    with node.client() as ledger:
        ann = ledger.acting_as(user="ann")
        ann.save("Where the spare key is", "Under the third stone.", ["plan"], id="spare-key")
        ledger.acting_as(user="ann").save(
            "What all may read", "The gate opens at six.", ["plan"], id="gate", scopes=["public"]
        )
        caught_up(ledger)
    eve = window()
    eve.sign_in(user="eve")
    for address in ("/ui", "/ui/knowledge?q=spare+key", "/ui/items/spare-key", "/ui/why?q=spare+key", "/ui/traces"):
        assert "third stone" not in eve.open(address).content(), address
    page = eve.open("/ui/items/gate")
    expect(page.locator("main")).to_contain_text("The gate opens at six.")
    assert page.get_by_role("button", name="Retire").count() == 0
    assert page.get_by_text("Write another version").count() == 0
    for address in ("/ui/audit", "/ui/sql"):
        answer = eve.page.goto(address)
        assert answer is not None
        assert answer.status == 403, address


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    "{{ 7 * 7 }} {% include 'base.html' %}",
    "\u202eevil\u2066 \U0001f469\u200d\U0001f469\u200d\U0001f467 <b hx-get=/ui/sign-out hx-trigger=load>",
    "' onfocus=alert(1) autofocus x='",
)


@pytest.fixture(scope="module")
def hostile(node: RunningNode) -> str:
    """The id of an item whose every field holds hostile words."""
    words = " ".join(HOSTILE)

    def saved(ledger: LedgerClient) -> str:
        mallory = ledger.acting_as(user="mallory").within(
            trace_id="<script>alert(2)</script>", message_id="'><svg onload=alert(3)>"
        )
        item = mallory.save(
            words, words + "x" * 600_000, ["plan"], id="<b>'\"/..%2f?#&", scopes=["public"],
            tags={HOSTILE[0]: HOSTILE[1], "list": list(HOSTILE)},
            source={"name": HOSTILE[1], "urls": ["javascript:alert(4)", "https://example.org/<script>"]},
        )["id"]  # fmt: skip
        mallory.search(words, record=True)
        mallory.rate(item, "harmful", task=words, outcome=words, reason=words, query=words)
        mallory.revise(item, content=words, reason=words)
        mallory.session("<i>'").append([{"id": "<u>", "role": "user", "content": words}])
        caught_up(ledger)
        return item

    with node.client() as ledger:
        return saved(ledger)


def test_hostile_words_in_every_field_do_nothing_anywhere(window: Open, operator: Any, hostile: str) -> None:
    own = window(signed_in=operator)
    page = own.open("/ui/knowledge?owner=user:mallory")
    page.locator("article a, h3 a").first.click()
    expect(page.locator("h1")).to_contain_text("<script>alert(1)</script>")
    item = page.url.partition("?")[0]
    addresses = [f"{item}?show={part}" for part in ("versions", "verdicts", "recalls", "lineage", "access", "revise")]
    addresses += [
        "/ui", "/ui/knowledge?view=table&owner=user:mallory", "/ui/knowledge?q=" + "<script>alert(5)</script>",
        "/ui/why?q=<script>alert(6)</script>", "/ui/traces", "/ui/traces/%3Cscript%3Ealert(2)%3C%2Fscript%3E",
        "/ui/sessions", "/ui/sessions/%3Ci%3E'", "/ui/review?tab=<script>", "/ui/sql?query='<script>alert(7)</script>'",
    ]  # fmt: skip
    for address in addresses:
        own.open(address)
        assert (
            page.locator("main script, main [onerror], main [onload], main [onfocus], main [hx-trigger=load]").count()
            == 0
        )
        assert page.locator("a[href^='javascript:' i]").count() == 0, address
    assert not [each for each in own.requested if "sign-out" in each]
