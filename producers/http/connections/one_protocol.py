"""One protocol: a request that offers to go on in another one is read as if it did not.

`java.net.http` offers HTTP/2 by default, and a server may ignore that (RFC 9110, 7.8). To the parser such a
request ends with its head, and what follows belongs to the other protocol. So its body would be lost, and where it
comes in a segment of its own, be read as the next request. Its head is parsed once more instead, without the offer.
"""

from __future__ import annotations

import structlog
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ledger.runtime.log_once import Seldom

_seldom = Seldom(structlog.get_logger(__name__))
_OFFER = b"upgrade"


class OneProtocol(HttpToolsProtocol):
    """A connection that speaks HTTP/1.1 to its end."""

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        self._unset_keepalive_if_required()
        try:
            while data:
                data = self._after_offer(data)
        except HttpParserError:
            _seldom.warning("a request cannot be read", kind="unreadable", client=(self.client or ("unknown",))[0])
            self.send_400_response("Invalid HTTP request received.")

    def _after_offer(self, data: bytes) -> bytes:
        """Parse up to the next offer; returns what is to be parsed from there on. Raises HttpParserError."""
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            if not self._offers_another():
                raise HttpParserError("a tunnel is asked for") from upgrade
            head = self._head_without_offer()
            self.parser = HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            return head + data[upgrade.args[0] :]
        return b""

    def _head_without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != _OFFER]
        return b"\r\n".join([*lines, b"", b""])

    def _offers_another(self) -> bool:
        return self.parser.should_upgrade() and any(name == _OFFER for name, _ in self.headers)

    def on_headers_complete(self) -> None:
        """A head is there, perhaps one that is parsed once more."""
        if not self._offers_another():
            self.on_head()

    def on_message_complete(self) -> None:
        """A request is there, perhaps one whose head is parsed once more."""
        if not self._offers_another():
            self.on_end()

    def on_head(self) -> None:
        """The head of a request is there."""
        super().on_headers_complete()

    def on_end(self) -> None:
        """The whole request is there."""
        super().on_message_complete()
