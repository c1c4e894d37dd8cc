"""HTML: headings and paragraphs, as the parser of the standard library finds them; broken HTML too."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from producers.documents.blocks import Read, decoded

_CHARSET = re.compile(rb"charset=[\"']?([\w-]+)", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")
_UNSHOWN = {"script", "style", "template", "noscript", "svg", "object", "iframe"}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BREAKS = {
    *("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset"),
    *("figcaption", "figure", "footer", "form", "header", "hr", "html", "li", "main", "nav", "ol", "p", "pre"),
    *("section", "summary", "table", "tbody", "thead", "tr", "ul", *_HEADINGS),
}


def read(content: bytes) -> Read:
    """What a reader of the page sees; scripts and styles are not text."""
    stated = _CHARSET.search(content[:2_048])
    return read_text(decoded(content, stated[1].decode("ascii", "replace") if stated else "latin-1"))


def read_text(text: str) -> Read:
    """What a reader of a page sees, of HTML that is text already."""
    parser = _Parser()
    parser.feed(text)
    parser.close()
    parser.end_block()
    return parser.told


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.told = Read()
        self._said: list[str] = []
        self._level = self._unshown = self._pre = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - no attribute says text
        if tag in _UNSHOWN:
            self._unshown += 1
        elif tag == "title":
            self._in_title = True
        elif tag == "br":
            self._said.append("\n")
        elif tag in ("td", "th") and self._said:
            self._said.append(" | ")
        elif tag in _BREAKS:
            self.end_block()
            self._level = _HEADINGS.get(tag, 0)
            self._pre += tag == "pre"
            if tag == "li":
                self._said.append("- ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("br", "hr"):
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSHOWN:
            self._unshown = max(0, self._unshown - 1)
        elif tag == "title":
            self._in_title = False
        elif tag in _BREAKS:
            self.end_block()
            self._level = 0
            self._pre = max(0, self._pre - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.told.title = _BLANKS.sub(" ", (self.told.title or "") + data).strip() or None
        elif not self._unshown:
            self._said.append(data if self._pre else _BLANKS.sub(" ", data))

    def end_block(self) -> None:
        """Add what was said since the last block."""
        said = "".join(self._said)
        self._said.clear()
        if said.strip(" -|\n"):
            self.told.add(self._level, _BLANKS.sub(" ", said) if self._level else said)
