"""The stream of a follower, as server-sent events; it ends when its page is gone."""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from producers.web.headers import OF_A_PAGE
from producers.web.live.follower import Follower
from producers.web.live.followers import Followers

_OPENED = b": open\n\n"


class Stream(Response):
    """What a follower is told, until it ends."""

    media_type = "text/event-stream"

    def __init__(self, followers: Followers, follower: Follower) -> None:
        # A proxy that gathers an answer before it passes it on would gather this one for ever.
        super().__init__(headers={**OF_A_PAGE, "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._followers = followers
        self._follower = follower

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until there is nothing more, or nobody."""
        gone = asyncio.create_task(self._gone(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] == "HEAD":
                self._follower.end()
            else:
                await send({"type": "http.response.body", "body": _OPENED, "more_body": True})
            while (content := await self._follower.next()) is not None:
                await send({"type": "http.response.body", "body": content, "more_body": True})
            await send({"type": "http.response.body", "body": self._follower.last})
        finally:
            gone.cancel()
            self._followers.leave(self._follower)

    async def _gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._follower.end()
