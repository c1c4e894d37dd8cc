"""One visit of a page: who looks, what is asked, and in which language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

from starlette.requests import Request

from kledger.client.clients import AsyncLedgerClient
from kledger.contract.errors import InvalidPayload
from kledger.contract.language import Language
from kledger.contract.lists import split_words
from producers.web.addresses import DOTS, HOME, NAMED_BESIDE, SOURCES
from producers.web.sessions import Notice, Session
from producers.web.words import Words, words_of

FOLLOWED = (*(f"{HOME}/{name}" for name in ("knowledge", "items/", "traces/", "review")), f"{SOURCES}/")
"""Where the addresses of pages begin that show items."""
Theme = Literal["auto", "light", "dark"]
MOST_TEXT = 4_000
"""Characters of one parameter; longer texts are sent in a form."""
MOST_DIGITS = 16


@dataclass(slots=True)
class Visit:
    """What a page is made for. `form` are the fields of a change, empty for a look."""

    request: Request
    signed_in: Session | None
    language: Language
    theme: Theme
    from_elsewhere: bool
    """A link on another site led here: what is shown is not recorded as read."""
    reached: int = 0
    """The position of the view when the visit began."""
    form: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def session(self) -> Session:
        """The session of the person; pages that need none do not ask for it."""
        assert self.signed_in is not None  # whoever has none was sent to sign in
        return self.signed_in

    @property
    def ledger(self) -> AsyncLedgerClient:
        """The node, asked in the name of the person."""
        return self.session.ledger.in_language(self.language)

    @property
    def position(self) -> int:
        """What is shown is not older than this: where the view was, or what the person wrote, which reads wait for."""
        return max(self.reached, self.session.ledger.wire.connection.written)

    @property
    def follows(self) -> bool:
        """Whether the page shows items as they are now, so that its reader wants to know when they change."""
        path: str = self.request.scope["path"]
        return path.startswith(FOLLOWED) and "as_of" not in self.request.query_params

    @property
    def words(self) -> Words:
        """Texts in the language of the person."""
        return words_of(self.language)

    @property
    def address(self) -> str:
        """The path and query of this page, as a link."""
        query: bytes = self.request.scope["query_string"]
        path: str = self.request.scope["path"]
        return path + ("?" + query.decode("latin-1") if query else "")

    @property
    def partial(self) -> bool:
        """Only a part of the page is wanted, by a script that puts it in its place."""
        return self.request.headers.get("hx-request") == "true" and "hx-history-restore-request" not in (
            self.request.headers
        )

    def part(self, name: str) -> str:
        """A part of the path, decoded. Raises InvalidPayload."""
        if self.request.path_params[name] == NAMED_BESIDE and (beside := self.request.query_params.get(name)) in DOTS:
            return beside
        try:
            return unquote(self.request.path_params[name], errors="strict")
        except UnicodeDecodeError as error:
            raise InvalidPayload("the id in the address is not percent-encoded UTF-8", errors=[]) from error

    def text(self, name: str) -> str | None:
        """A parameter of the address, without blanks around it; None where it is absent or empty."""
        value = self.request.query_params.get(name, "").strip()
        if len(value) > MOST_TEXT:
            raise InvalidPayload(f"{name} has more than {MOST_TEXT:,} characters", errors=[])
        return value or None

    def texts(self, name: str) -> list[str]:
        """Every value of a parameter that may be repeated, or written with commas (kledger/contract/lists.py)."""
        values = self.request.query_params.getlist(name)
        return list(dict.fromkeys(word for value in values for word in split_words(value)))

    def one_of(self, name: str, known: tuple[str, ...], default: str) -> str:
        """A parameter that is one of these; the default for anything else."""
        value = self.request.query_params.get(name, "")
        return value if value in known else default

    def number(self, name: str, default: int, least: int = 0, most: int = 2**53) -> int:
        """A parameter that is a whole number within bounds; the default for what is none."""
        value = self.request.query_params.get(name, "").strip()
        if not value.isascii() or not value.isdecimal() or len(value) > MOST_DIGITS:
            return default
        return max(least, min(most, int(value)))

    def said(self, name: str, default: str = "") -> str:
        """A field of the form, without blanks around it."""
        values = self.form.get(name)
        return values[0].strip() if values else default

    def said_number(self, name: str) -> int:
        """A field of the form that is a whole number. Raises InvalidPayload."""
        stated = self.said(name)
        if not (stated.isascii() and stated.isdecimal() and len(stated) <= MOST_DIGITS):
            raise InvalidPayload(f"{name} has to be a whole number", errors=[{"field": name}])
        return int(stated)

    def said_many(self, name: str) -> list[str]:
        """Every value of a field that may be there several times."""
        return [value for value in self.form.get(name, []) if value]

    def notify(self, text: str, *, undo: str | None = None, bad: bool = False, **fields: str) -> None:
        """Show this on the next page."""
        self.session.tell(Notice(text, undo, fields, bad))
