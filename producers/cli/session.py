"""The session of one command: the node, the caller, and the format of the answer."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kledger.contract.errors import IllegalScope, LedgerError, Unauthenticated
from kledger.contract.language import language_of_terminal
from producers.cli.encoding import plain

if TYPE_CHECKING:  # it costs a good part of the time that `kledger --help` takes
    from kledger import LedgerClient
    from kledger.client.wire import Wire

SETTLED_WITHIN = 5.0  # seconds


@dataclass
class Session:
    """One run of one command."""

    url: str
    as_json: bool
    caller: dict[str, str | None] = field(default_factory=dict)
    token_file: Path | None = None
    further: list[str] = field(default_factory=list)
    empty: str | None = None  # the environment variable that should name the caller, and is empty
    token_file_set: bool = False  # by the environment
    settled: bool = False  # the command has waited for the views itself

    @cached_property
    def ledger(self) -> LedgerClient:
        """A client of the node for the caller; closed when the command ends."""
        from kledger import LedgerClient

        client = LedgerClient(self.url, token=self._token())
        if sys.stderr.isatty():  # a person sees why nothing happens yet
            client.wire.connection.waits = _say
        return client.acting_as(**self._named(), scopes=self.further).in_language(language_of_terminal())

    @property
    def wire(self) -> Wire:
        """A connection to the node for the caller, of an asynchronous command, which closes it itself."""
        from kledger import AsyncLedgerClient

        client = AsyncLedgerClient(self.url, token=self._token())
        return client.acting_as(**self._named(), scopes=self.further).in_language(language_of_terminal()).wire

    def _named(self) -> dict[str, str | None]:
        if self.empty is not None:
            # Many programs treat it as unset; here a script whose substitution failed would act as the operator.
            raise IllegalScope(f"{self.empty} is empty: name somebody, or unset it", errors=[])
        return self.caller

    def _token(self) -> str | None:
        if self.token_file_set and os.environ.get("KLEDGER_TOKEN", "").strip():
            raise Unauthenticated("KLEDGER_TOKEN and KLEDGER_TOKEN_FILE are both set: unset one, or give --token-file")
        return None if self.token_file is None else _token_in(self.token_file)

    def settle(self) -> None:
        """Return when every view has what this command wrote, so that the next command sees it.

        The write is durable already: a timeout, and a refused status request, are ignored.
        """
        if self.settled or "ledger" not in self.__dict__ or not self.ledger.written:
            return
        from kledger.client.admin import pauses

        until = time.monotonic() + SETTLED_WITHIN
        try:
            for pause in pauses():  # growing pauses do not slow a view that folds thousands
                views = self.ledger.acting_as().status()["views"]
                if all(view["position"] >= self.ledger.written for view in views) or time.monotonic() + pause > until:
                    return
                time.sleep(pause)
        except LedgerError:
            return

    def close(self) -> None:
        """Close the connection if one was opened."""
        if "ledger" in self.__dict__:
            self.ledger.close()


def _say(line: str) -> None:
    sys.stderr.write(f"{plain(line)}\n")
    sys.stderr.flush()


def _token_in(file: Path) -> str:
    try:
        token = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise Unauthenticated(
            f"the token file {file} cannot be read ({reason}): check its name, in --token-file or KLEDGER_TOKEN_FILE"
        ) from error
    if not token:  # as where the command that was to write it failed
        raise Unauthenticated(
            f"the token file {file} is empty: write a token of the node into it (kledger token create)"
        )
    return token
