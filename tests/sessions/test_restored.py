"""Words of a backup beside a log that ends before them: a session is as that log has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ledger.backup.sessions import keep_sessions, restore_sessions
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.sessions.head import Head
from ledger.sessions.jetstream import JetStreamSessions, ensure_sessions_stream
from ledger.sessions.store import SessionStore
from ledger.sessions.subjects import SessionKey
from tests.conftest import remove_streams

KEPT, AGAIN, LATER = (SessionKey("default", "agent:coder", name) for name in ("kept", "again", "later"))
END = 5
"""Where the restored log ends."""


async def test_what_was_opened_again_after_the_log_ends_is_closed_and_what_began_then_is_not_there(
    embedded_server: EmbeddedServer, tmp_path: Path
) -> None:
    access = embedded_server.access
    await remove_streams(access)
    await ensure_sessions_stream(access)
    stream = await JetStreamSessions.open(access)
    admin = await BrokerConnection.open(access, "admin")
    try:
        store = SessionStore(stream, None)
        for key, opened in ((KEPT, 2), (AGAIN, 3), (LATER, END + 1)):
            said = [{"id": "head", "role": "user", "content": f"a word of {key.session_id}"}]
            head = (await store.append(key, Head(opened=opened, begun=opened), said, 1)).head
            if key is AGAIN:
                await store.put_head(key, replace(head, opened=END + 2))
        await keep_sessions(stream, tmp_path)
        for key in (KEPT, AGAIN, LATER):
            await store.purge(key)
        assert await restore_sessions(access, admin, tmp_path, END) == 4
        heads = [await store.head(key) for key in (KEPT, AGAIN, LATER)]
        assert [head and (head.state, head.opened, head.count) for head in heads] == [
            *(("open", 2, 1), ("closed", 3, 1), None),
        ]
        assert [each.content for each in await store.page(AGAIN, 0, 10)] == ["a word of again"]
    finally:
        await admin.close()
        await stream.close()
