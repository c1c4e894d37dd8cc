"""Session check of Quack: whether a token is valid, checked when a session attaches and at every statement."""

from __future__ import annotations

import hmac
import threading
from collections import OrderedDict
from collections.abc import Callable

# (token, whether it is the server's own) -> whether it is valid; never raises.
Admits = Callable[[str, bool], bool]

_KEPT = 10_000
"""The most sessions; the oldest one beyond has to attach again."""


class Sessions:
    """The sessions of one served view, and the token that each was opened with; safe from any thread."""

    def __init__(self, admits: Admits) -> None:
        self._admits = admits
        self._lock = threading.Lock()
        self._opened: OrderedDict[str, tuple[str, bool]] = OrderedDict()

    def open(self, session: str, token: str | None, own: str | None) -> bool:
        """Whether `token` opens a session; `own` is the server's."""
        if not token:
            return False
        is_own = hmac.compare_digest(token.encode("utf-8", "replace"), (own or "").encode())
        if not self._admits(token, is_own):
            return False
        with self._lock:
            self._opened[session] = (token, is_own)
            while len(self._opened) > _KEPT:
                self._opened.popitem(last=False)
        return True

    def may_go_on(self, session: str) -> bool:
        """Whether the token of a session is still good."""
        with self._lock:
            opened = self._opened.get(session)
        return opened is not None and self._admits(*opened)
