"""Ten files of five formats, ingested, edited and ingested again: only what changed is appended."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from html import escape

import pytest

from tests.documents.made_files import Said, pdf, word
from tests.doors.http_door import ALICE, Door, http_door

GUIDE: tuple[tuple[int, str], ...] = (
    (1, "Setting up the workshop"),
    (0, "The workshop has three benches and one saw. Who uses the saw wears goggles."),
    (2, "The saw"),
    (0, "Switch the extraction on before the saw. The blade is changed on Mondays."),
    (0, "A dull blade burns the wood; the smell tells it."),
    (2, "The benches"),
    (0, "Each bench has a vice and a lamp. Bench two is for finishing only."),
)
RULES: tuple[tuple[int, str], ...] = (
    (1, "House rules"),
    (0, "Doors are closed at ten in the evening."),
    (1, "Guests"),
    (0, "Guests sign the book at the desk and leave by eight."),
    (1, "Kitchen"),
    (0, "Who empties the kettle fills it again."),
)
TEA: tuple[tuple[int, str], ...] = (
    (1, "泡茶"),
    (0, "水烧开以后等两分钟再泡绿茶,水温大约八十五度。"),
    (2, "红茶"),
    (0, "红茶用刚烧开的水,泡三到五分钟。"),
    (2, "保存"),
    (0, "茶叶要放在阴凉干燥的地方,避免阳光直射。"),
)


def markdown(said: Said) -> bytes:
    return "\n\n".join("#" * level + " " * bool(level) + text for level, text in said).encode() + b"\n"


def text(said: Said) -> bytes:
    return "\r\n\r\n".join(each for _, each in said).encode()


def html(said: Said) -> bytes:
    tags = [(f"h{level}" if level else "p", escape(each)) for level, each in said]
    body = "\n".join(f"<{tag}>{each}</{tag}>" for tag, each in tags)
    return f"<!doctype html><html><head><meta charset=utf-8></head><body>{body}</body></html>".encode()


def paper(said: Said) -> bytes:
    """A PDF, a page for each heading, with an outline of them."""
    pages: list[list[str]] = []
    outline: list[tuple[str, int]] = []
    for level, each in said:
        if level:
            outline.append((each, len(pages)))
            pages.append([])
        pages[-1] += [f"{sentence.strip().rstrip('.')}." if not level else each for sentence in each.split(". ")]
    return pdf(pages, outline)


@dataclass(frozen=True)
class File:
    """A file, what is edited in it, and how many chunks the edit makes new and ends."""

    name: str
    made: Callable[[Said], bytes]
    said: Said
    edited: Said
    chunks: int
    saved: int
    retired: int


def edited(said: Said, old: str, new: str) -> Said:
    """The same with one sentence changed."""
    assert any(old in each for _, each in said)
    return [(level, each.replace(old, new)) for level, each in said]


def with_more(said: Said, *more: tuple[int, str]) -> Said:
    return [*said, *more]


FILES = (
    File("guide.md", markdown, GUIDE, edited(GUIDE, "Mondays", "Fridays"), 3, 1, 1),
    File("rules.markdown", markdown, RULES, RULES[:2] + RULES[4:], 3, 0, 1),
    File("tea.md", markdown, TEA, with_more(TEA, (2, "白茶"), (0, "白茶不用洗。")), 3, 1, 0),
    File("notes.txt", text, GUIDE, edited(GUIDE, "one saw", "two saws"), 1, 1, 1),
    File("guide.html", html, GUIDE, edited(GUIDE, "a lamp", "two lamps"), 3, 1, 1),
    File("tea.htm", html, TEA, edited(TEA, "两分钟", "三分钟"), 3, 1, 1),
    File("rules.pdf", paper, RULES, edited(RULES, "by eight", "by nine"), 3, 1, 1),
    File("guide.pdf", paper, GUIDE, with_more(GUIDE, (2, "The door"), (0, "It is locked at night.")), 3, 1, 0),
    File("rules.docx", word, RULES, edited(RULES, "at ten", "at eleven"), 3, 1, 1),
    File("tea.docx", word, TEA, TEA[:4], 3, 0, 1),
)


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def ingested(door: Door, file: File, said: Said) -> dict[str, int]:
    sent = {"name": file.name, "content": base64.b64encode(file.made(said)).decode()}
    answer = await door.post("/api/documents", json={"id": f"shelf/{file.name}", "file": sent}, headers=ALICE)
    assert answer.status_code == 201, answer.text
    told: dict[str, int] = answer.json()
    await door.desk.view.wait_for(await door.head())
    return told


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
async def test_after_an_edit_only_what_changed_of_a_file_is_appended(door: Door, file: File) -> None:
    first = await ingested(door, file, file.said)
    assert (first["saved"], first["unchanged"], first["retired"]) == (file.chunks, 0, 0)
    head = await door.head()
    again = await ingested(door, file, file.said)
    assert (again["saved"], again["unchanged"], again["duplicate"]) == (0, file.chunks, True)
    assert await door.head() == head
    after = await ingested(door, file, file.edited)
    assert (after["saved"], after["retired"]) == (file.saved, file.retired)
    original_and_document = 2
    assert await door.head() == head + original_and_document + file.saved + file.retired


async def test_a_chunk_of_each_file_leads_to_its_document_and_the_document_to_it(door: Door) -> None:
    for file in FILES:
        await ingested(door, file, file.said)
        document = (await door.get(f"/api/documents/shelf/{file.name}", headers=ALICE)).json()
        assert document["total"] == file.chunks
        for chunk in document["chunks"]:
            item = (await door.get(f"/api/knowledge/{chunk['id']}", headers=ALICE)).json()
            assert item["part"]["document"] == document["id"]
            assert item["content"] == chunk["content"]
            heading = document["sections"][chunk["section"]]["heading"]
            assert item["part"]["headings"][-1:] == ([heading] if heading else [])
    listed = (await door.get("/api/documents?limit=20", headers=ALICE)).json()
    assert listed["total"] == len(FILES)
