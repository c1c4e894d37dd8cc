"""What is said of documents in the histories that the laws are tried on."""

from __future__ import annotations

from hypothesis import strategies as st

from ledger.event import Fact
from ledger.events.document import DocumentIngested, DocumentRemoved

DOCUMENTS = ("d1", "手册/安装.md", "../d")
_CHUNKS = ("k1", "k2", "论/文.1", "chunk-1")


@st.composite
def _ingested(
    draw: st.DrawFn, texts: st.SearchStrategy[str], scopes: st.SearchStrategy[list[str]], owners: st.SearchStrategy[str]
) -> DocumentIngested:
    chunks = draw(st.lists(st.sampled_from(_CHUNKS), min_size=1, unique=True))
    starts = [0, *draw(st.lists(st.integers(0, len(chunks)), max_size=2).map(sorted))]
    short = texts.map(lambda text: text[:200])
    return DocumentIngested(
        title=draw(short.filter(bool)),
        content_type=draw(st.sampled_from(["text/plain", "application/pdf"])),
        url=draw(st.none() | st.just("https://example.com/d")),
        summary=draw(short),
        headings=[draw(short) for _ in starts],
        levels=[draw(st.integers(1, 6)) for _ in starts],
        starts=starts,
        summaries=[draw(short) for _ in starts],
        chunks=chunks,
        digests=" ".join(draw(st.sampled_from(["aa", "bb"])) for _ in chunks),
        characters=draw(st.integers(0, 1_000)),
        resource_ids=draw(st.lists(st.just("documents/d1/original"), max_size=1)),
        scopes=draw(scopes),
        owner=draw(owners),
    )


def about_documents(
    texts: st.SearchStrategy[str], scopes: st.SearchStrategy[list[str]], owners: st.SearchStrategy[str]
) -> st.SearchStrategy[Fact]:
    """Facts about a document, out of what histories are made of: more that state it than others."""
    saves = _ingested(texts, scopes, owners)
    return st.one_of(saves, saves, st.builds(DocumentRemoved, reason=st.none() | texts))
