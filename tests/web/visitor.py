"""Somebody who looks at the pages without scripts: follows links, fills forms in, and keeps cookies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape

import httpx

_CSRF = re.compile(r'name="csrf" value="([^"]+)"')
_UNDO = re.compile(r'<div class="notice.*?<form method="post" action="([^"]+)">((?:(?!</form>).)*)</form>', re.DOTALL)
_FIELD = re.compile(r'name="([^"]+)" value="([^"]*)"', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


class Visitor:
    """A person at the pages of one node."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.csrf = ""

    def get(self, path: str, **parameters: str | int | list[str]) -> httpx.Response:
        """Open a page, wherever it leads."""
        answer = self.http.get(path, params=parameters or None, follow_redirects=True)
        self._learn(answer)
        return answer

    def post(self, path: str, fields: Mapping[str, str | list[str]] | None = None, **more: str) -> httpx.Response:
        """Send a form of this session, and follow where it leads."""
        answer = self.http.post(path, data={"csrf": self.csrf, **(fields or {}), **more}, follow_redirects=True)
        self._learn(answer)
        return answer

    def sign_in(self, token: str = "", **who: str) -> httpx.Response:
        """Sign in by the form: with a token, as somebody, or as the operator where nobody is named."""
        self.get("/ui/sign-in")
        named = who or ({} if token else {"as": "operator"})
        return self.post("/ui/sign-in", {"token": token, **named})

    def _learn(self, answer: httpx.Response) -> None:
        if found := _CSRF.search(answer.text):
            self.csrf = unescape(found[1])


@contextmanager
def visitor(url: str, token: str = "", *, signed_in: bool = True, **who: str) -> Iterator[Visitor]:
    """Somebody at the pages of the node at `url`."""
    with httpx.Client(base_url=url, timeout=60, headers={"Accept": "text/html"}) as http:
        person = Visitor(http)
        if signed_in:
            answer = person.sign_in(token, **who)
            assert answer.status_code == 200, words(answer.text)
        yield person


def words(page: str) -> str:
    """The text of a page, without its tags."""
    return " ".join(unescape(_TAG.sub(" ", page)).split())


def undo_of(page: str) -> tuple[str, dict[str, str]]:
    """Where the button of a notice that undoes leads, and what it sends."""
    found = _UNDO.search(page)
    assert found is not None, words(page)[:2000]
    return unescape(found[1]), {unescape(name): unescape(value) for name, value in _FIELD.findall(found[2])}


def undone(person: Visitor, page: str) -> str:
    """Press the button of a notice that undoes; the page that comes of it."""
    answer = person.post(*undo_of(page))
    assert answer.status_code == 200, words(answer.text)
    return answer.text
