"""Reading files: what each format says, and the bounds within which a hostile or broken one ends with a clear error."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kledger.contract.documents import HTML, MARKDOWN, MOST_CHUNKS, MOST_FILE, PDF, TEXT, WORD
from kledger.contract.errors import LedgerError, PayloadTooLarge, UnreadableDocument
from producers.documents.converting import Bounds, Converted, convert
from tests.documents.made_files import document_part, page_of, pdf, pdf_of, word, word_of

LIMIT = Bounds(seconds=20)


async def said(content: bytes | str, content_type: str) -> list[tuple[str, int, list[str]]]:
    told = await convert(content.encode() if isinstance(content, str) else content, content_type)
    return [(each.heading, each.level, each.chunks) for each in told.sections]


async def refused(content: bytes, content_type: str, bounds: Bounds = LIMIT) -> str:
    with pytest.raises(UnreadableDocument) as refusal:
        await convert(content, content_type, bounds)
    return refusal.value.message


async def test_markdown_has_its_headings_and_a_hash_in_code_is_none() -> None:
    text = (
        "---\ntitle: 'The guide'\n---\nBefore.\n\n# One `x`\n\n```sh\n# no heading\n\nls\n```\n\nTwo\n===\n\n- a\n- b\n"
    )
    assert await said(text, MARKDOWN) == [
        ("", 1, ["Before."]),
        ("One x", 1, ["```sh\n# no heading\n\nls\n```"]),
        ("Two", 1, ["- a\n- b"]),
    ]
    assert (await convert(text.encode(), MARKDOWN)).title == "The guide"


async def test_small_text_is_read_without_a_process_and_everything_else_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    async def no_process(*arguments: object, **_settings: object) -> None:
        started.append(arguments)
        raise OSError("a process was started")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", no_process)
    assert await said("# One\n\nTwo.", MARKDOWN) == [("One", 1, ["Two."])]
    assert await said("One.\n\nTwo.", TEXT) == [("", 1, ["One.\n\nTwo."])]
    with pytest.raises(UnreadableDocument, match="UTF-8"):
        await convert(b"\xff\xfeabc\xd8", TEXT)
    assert not started
    for content, content_type in (
        (b"a b. " * 20_000, MARKDOWN),
        (b"a b. " * 20_000, TEXT),
        (b"<p>One", HTML),
        (pdf([["One"]]), PDF),
        (word_of(document_part("<w:p/>")), WORD),
    ):
        with pytest.raises(OSError, match="a process was started"):
            await convert(content, content_type)


async def test_text_is_paragraphs_also_with_a_mark_and_line_ends_of_windows() -> None:
    assert await said("# one\r\n\r\ntwo".encode("utf-8-sig"), TEXT) == [("", 1, ["# one\n\ntwo"])]
    assert await said("一\n\n二".encode("utf-16"), TEXT) == [("", 1, ["一\n\n二"])]
    assert "UTF-8" in await refused(b"\xff\xfeabc\xd8", TEXT)


async def test_html_is_what_a_reader_sees_of_it() -> None:
    page = """<!doctype html><title>The page</title><style>p{}</style><body><h1>Head&shy;ing</h1>
        <p>One <b>bold</b>  word<script>alert(1)</script><ul><li>first<li>second</ul>
        <table><tr><td>a<td>b</tr></table><h2>Next</h2><pre>x\n  y</pre><p>unclosed <i>tags"""
    assert await said(page, HTML) == [
        ("Head\xading", 1, ["One bold word\n\n- first\n\n- second\n\na | b"]),
        ("Next", 2, ["x\n  y\n\nunclosed tags"]),
    ]
    assert (await convert(page.encode(), HTML)).title == "The page"
    assert await said('<meta charset="gb2312"><p>中文'.encode("gb2312"), HTML) == [("", 1, ["中文"])]
    for stated, written, text in (
        ("gb2312", "gb18030", "镕基說㐂"),
        ("GBK", "gb18030", "镕基㐂"),
        ("big5", "big5hkscs", "嘅喺度"),
        ("Shift_JIS", "cp932", "①髙"),
        ("iso-8859-1", "cp1252", "5 €"),
    ):
        assert await said(f'<meta charset="{stated}"><p>{text}'.encode(written), HTML) == [("", 1, [text])]


async def test_a_pdf_has_the_bookmarks_of_its_outline_as_headings() -> None:
    content = pdf(
        [["Setting up", "Install it.", "Then start", "it."], ["Running", "Run it twice."]],
        [("Setting up", 0), ("Running", 1)],
        "Manual",
    )
    assert await said(content, PDF) == [
        ("Setting up", 1, ["Install it.\n\nThen start it."]),
        ("Running", 1, ["Run it twice."]),
    ]
    assert (await convert(content, PDF)).title == "Manual"


async def test_a_word_file_has_the_headings_of_its_styles() -> None:
    assert await said(word([(0, "Before."), (1, "一"), (0, "说明"), (2, "Two"), (0, "More & more.")]), WORD) == [
        ("", 1, ["Before."]),
        ("一", 1, ["说明"]),
        ("Two", 2, ["More & more."]),
    ]


async def test_a_long_text_is_cut_at_paragraphs_and_sentences_and_nothing_of_it_is_lost() -> None:
    text = "\n\n".join(f"Paragraph {n} says {'this and ' * (n % 40)}that. It ends." for n in range(300))
    text += "\n\n" + "无空格的很长的一段" * 900
    ((_, _, chunks),) = await said(text, TEXT)
    assert max(len(chunk.encode()) for chunk in chunks) < 2_100
    assert len(chunks) > 20
    assert "".join("".join(chunks).split()) == "".join(text.split())


async def test_a_change_in_the_middle_of_a_long_text_leaves_the_chunks_behind_it_as_they_were() -> None:
    paragraphs = [f"Paragraph {n} says what it has to say about the number {n * n}. " * 3 for n in range(200)]
    ((_, _, before),) = await said("\n\n".join(paragraphs), TEXT)
    paragraphs[20] += "And something new, which moves all that follows."
    ((_, _, after),) = await said("\n\n".join(paragraphs), TEXT)
    assert len(set(after) - set(before)) <= 3
    assert len(set(before) - set(after)) <= 3


async def test_headings_beyond_the_bound_become_text() -> None:
    text = "".join(f"# {n}\n\nmain\n\n## part {n}\n\nbody\n\n" for n in range(250))
    sections = await said(text, MARKDOWN)
    assert len(sections) == 250
    assert "part 7" in sections[7][2][0]


def zeros(size: int) -> Iterator[bytes]:
    """A part of a file that packs a thousandfold."""
    yield from (b"<w>" + b"0" * (2**20) for _ in range(size // 2**20))


LAUGHS = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12)
)


@pytest.mark.parametrize(
    ("content", "content_type", "why"),
    [
        (lambda: word_of(zeros(300 * 2**20)), WORD, "unpacked"),
        (lambda: word_of(LAUGHS + "]><l>&m;</l>"), WORD, "broken"),
        (lambda: word([(0, "x" * 10_000)])[:-400], WORD, "cut or broken"),
        (lambda: b"PK\x03\x04" + b"\0" * 100, WORD, "cut or broken"),
        (lambda: pdf_of([page_of(["a page"])] * 10_000), PDF, "10,000 pages"),
        (lambda: pdf([["a page"] * 30])[:300], PDF, "no PDF"),
        (lambda: b"%PDF-1.7\n" + bytes(range(256)) * 40, PDF, "no PDF"),
        (lambda: pdf([[]]), PDF, "holds no text"),
        (lambda: b"", TEXT, "holds no text"),
        (lambda: b"\x80\x81\x82", MARKDOWN, "UTF-8"),
        (lambda: b"a" * 1_000_001, TEXT, "characters"),
        (lambda: b"# h\n\nx\n\n" * 301, MARKDOWN, "sections"),
        (lambda: "\n\n".join("字" * 660 for _ in range(MOST_CHUNKS + 50)).encode(), TEXT, "chunks"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
async def test_what_is_hostile_broken_or_too_large_ends_with_a_clear_error(
    content: Callable[[], bytes], content_type: str, why: str
) -> None:
    message = await refused(content(), content_type)
    assert why in message
    assert len(message) < 300


async def test_a_pdf_whose_page_unpacks_to_a_gigabyte_ends_within_its_bounds() -> None:
    packer = zlib.compressobj(9)
    drawing = b"".join(packer.compress(b"BT (a) Tj ET\n" * 2**20) for _ in range(80)) + packer.flush()
    assert len(drawing) < MOST_FILE
    with pytest.raises(LedgerError):
        await convert(pdf_of([drawing]), PDF, Bounds(seconds=10))


@pytest.mark.parametrize("opening", ["<div>", "<ul><li>", "> ", "[", "*a "])
async def test_what_is_nested_a_hundred_thousand_deep_is_read_or_refused(opening: str) -> None:
    content = (opening * 100_000 + "x").encode()
    content_type = HTML if opening.startswith("<") else MARKDOWN
    try:
        told: Converted | None = await convert(content, content_type, Bounds(seconds=20))
    except UnreadableDocument:
        told = None
    assert told is None or "x" in told.sections[0].chunks[-1]


async def test_reading_that_takes_too_long_is_ended_and_leaves_no_process() -> None:
    slow = ("| a " * 2_000 + "|\n" + "|-" * 2_000 + "|\n" + ("| b " * 2_000 + "|\n") * 200).encode()
    assert "more than 1 s" in await refused(slow, MARKDOWN, Bounds(seconds=1))
    assert reading_now() == []


def reading_now() -> list[str]:
    """The processes of this one that read a file."""
    own = Path("/proc/self/task")
    children = [pid for task in own.iterdir() for pid in (task / "children").read_text().split()]
    commands = [Path(f"/proc/{pid}/cmdline") for pid in children]
    return [said for each in commands if each.exists() and "producers.documents" in (said := each.read_text())]


async def test_reading_that_takes_too_much_memory_is_ended() -> None:
    packed = zlib.compress(b"BT (a) Tj ET\n" * 2**22, 9)
    assert "of memory" in await refused(pdf_of([packed]), PDF, Bounds(memory=128 * 2**20))


async def test_a_file_beyond_the_bound_is_not_read_at_all() -> None:
    with pytest.raises(PayloadTooLarge):
        await convert(b"x" * (MOST_FILE + 1), TEXT)


async def test_a_cancelled_request_ends_the_process() -> None:
    slow = asyncio.create_task(convert(pdf([["x y z"] * 60] * 1_500), PDF))
    while not reading_now():  # noqa: ASYNC110 - the process table has no event
        await asyncio.sleep(0)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert reading_now() == []


async def test_a_small_word_file_with_a_huge_table_is_given_up_at_the_bounds_of_its_type() -> None:
    row = "<w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc></w:tr>"
    huge = word_of(document_part(f"<w:tbl>{row * 300_000}</w:tbl>"))
    assert len(huge) < 100_000
    # A fast machine meets the bound of memory first, a slow one that of time.
    with pytest.raises(UnreadableDocument, match=r"more than 10 s|MiB of memory|too much memory"):
        await convert(huge, WORD)
