"""Markdown: its headings, and the blocks between them as they are written."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

from producers.documents.blocks import Read, decoded

_FRONT = re.compile(r"\A---[ \t]*\n(?P<fields>.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title:[ \t]*(?P<title>.+?)[ \t]*$", re.MULTILINE)


def read(content: bytes) -> Read:
    """A `#` in a code block is no heading; a front matter gives the title, and is no text."""
    text, told = decoded(content), Read()
    if front := _FRONT.match(text):
        if stated := _TITLE.search(front["fields"]):
            told.title = stated["title"].strip("'\"")
        text = text[front.end() :]
    lines = text.split("\n")
    tokens = MarkdownIt("commonmark", {"maxNesting": 40}).enable("table").parse(text)
    for number, token in enumerate(tokens):
        if token.level or token.map is None or token.nesting < 0:
            continue
        if token.type == "heading_open":
            inline = tokens[number + 1]
            said = "".join(part.content for part in inline.children or () if part.type != "html_inline")
            told.add(int(token.tag[1:]), said)
        else:
            told.add(0, "\n".join(lines[token.map[0] : token.map[1]]))
    return told
