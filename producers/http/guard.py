"""The guard around every route: a request is let in, measured, and never left unanswered.

HEAD is answered as GET: the server leaves the body out. Pages for people do so themselves, as one of them never ends.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kledger.contract.errors import LedgerError
from ledger.runtime import tracing
from producers.http import errors
from producers.http.admission import Admission
from producers.http.bodies import header_of
from producers.http.metrics import Metrics
from producers.http.routes.direct import Direct
from producers.web.addresses import is_page

_NO_ROUTE = "none"


class Guard:
    """The outermost layer of the app."""

    def __init__(self, app: ASGIApp, metrics: Metrics, admission: Admission, direct: Sequence[Direct]) -> None:
        self.app = app
        self.metrics = metrics
        self.admission = admission
        self.direct = direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Matched as it was sent: %2F in an id is no path separator, and the route decodes it.
        scope["path"] = scope["raw_path"].decode("latin-1").partition("?")[0]
        began = time.perf_counter()
        asked_with = scope["method"]
        status = 0
        hung_up = False

        async def take() -> Message:
            nonlocal hung_up
            message = await receive()
            hung_up = hung_up or (message["type"] == "http.disconnect" and not status)
            return message

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = errors.HUNG_UP if hung_up else message["status"]
            await send(message)

        with tracing.door(asked_with, _traceparent(scope)) as span:
            try:
                self.admission.let_in(scope)
                if asked_with == "HEAD" and not is_page(scope["path"]):
                    scope = {**scope, "method": "GET"}  # another one: the server looks at its own
                found = self.app
                for direct in self.direct:
                    if direct.takes(scope):
                        found = await direct.answer(scope, take, self.app)
                        break
                await found(scope, take, answer)
            except LedgerError as error:
                await errors.answer(error)(scope, receive, answer)
            except Exception as error:
                if status:  # the answer is on its way: the connection is cut, and the server logs why
                    raise
                if hung_up:  # there is nobody to answer, and nothing of the node's that failed
                    status = errors.HUNG_UP
                    return
                await errors.failed(error, f"{asked_with} {scope['path']}")(scope, receive, answer)
            finally:
                route = getattr(scope.get("route"), "path", _NO_ROUTE)
                method = asked_with if route != _NO_ROUTE else ""
                self.metrics.answered(method, route, str(status), time.perf_counter() - began)
                tracing.answered(span, f"{method} {route}", status)


def _traceparent(scope: Scope) -> str | None:
    """The caller's span, looked for only when spans are made."""
    return header_of(scope, b"traceparent") if tracing.under_way() else None
