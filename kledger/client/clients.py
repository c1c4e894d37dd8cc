"""The clients: the endpoints of every family, on both faces."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kledger.client.admin import AdminEndpoints, RefusedEndpoints
from kledger.client.arguments import require_text
from kledger.client.connection import Connection, address_of
from kledger.client.documents import DocumentEndpoints
from kledger.client.evolutions import EvolutionEndpoints
from kledger.client.faces import AsyncFace, Runner, SyncFace
from kledger.client.knowledge import KnowledgeEndpoints
from kledger.client.memory import MemoryEndpoints
from kledger.client.overview.bulk import BulkEndpoints
from kledger.client.overview.reading import OverviewEndpoints
from kledger.client.pages import AsyncEveryResource, AsyncItems, SyncEveryResource, SyncItems
from kledger.client.profiles import ProfileEndpoints
from kledger.client.projects import ProjectEndpoints
from kledger.client.recall import RecallEndpoints, RecordedRecallEndpoints
from kledger.client.resources import ResourceEndpoints
from kledger.client.searchable import SearchableEndpoints
from kledger.client.sessions import SessionEndpoints, SessionListEndpoints
from kledger.client.sharing import SharingEndpoints
from kledger.client.slims import SlimEndpoints
from kledger.client.slips.other_names import telling_what_it_takes
from kledger.client.transport.nearby import is_reached_plainly
from kledger.client.transport.waiting import OnTheCallersThread
from kledger.client.wire import Wire

if TYPE_CHECKING:
    from kledger.client.tools.clients import AsyncTools, SyncTools


class LedgerEndpoints(
    KnowledgeEndpoints,
    OverviewEndpoints,
    BulkEndpoints,
    MemoryEndpoints,
    SearchableEndpoints,
    SharingEndpoints,
    ProjectEndpoints,
    EvolutionEndpoints,
    SlimEndpoints,
    RecallEndpoints,
    SessionListEndpoints,
    AdminEndpoints,
    RefusedEndpoints,
):
    """What a client asks of a node itself, beside its `profiles`, `resources`, `documents`, `recalls` and `tools`."""


class AsyncProfiles(AsyncFace, ProfileEndpoints):
    """`client.profiles` of the async client."""


class SyncProfiles(SyncFace, ProfileEndpoints):
    """`client.profiles` of the sync client."""


class AsyncResources(AsyncEveryResource, ResourceEndpoints):
    """`client.resources` of the async client."""


class SyncResources(SyncEveryResource, ResourceEndpoints):
    """`client.resources` of the sync client."""


class AsyncDocuments(AsyncFace, DocumentEndpoints):
    """`client.documents` of the async client."""


class SyncDocuments(SyncFace, DocumentEndpoints):
    """`client.documents` of the sync client."""


class AsyncRecalls(AsyncFace, RecordedRecallEndpoints):
    """`client.recalls` of the async client."""


class SyncRecalls(SyncFace, RecordedRecallEndpoints):
    """`client.recalls` of the sync client."""


class AsyncSession(AsyncFace, SessionEndpoints):
    """`client.session(id)` of the async client."""


class SyncSession(SyncFace, SessionEndpoints):
    """`client.session(id)` of the sync client."""


class AsyncLedgerClient(AsyncItems, LedgerEndpoints):
    """A node of the ledger, for async callers. Use it in `async with`, or call `aclose` in the end.

    `url` is that of the node (None: the environment's KLEDGER_URL, else DEFAULT_URL). `timeout` is seconds of silence
    that end an attempt: an answer that goes on coming is waited for, and the `wait` of a call comes on top. What is
    safe to repeat is sent again for `retry_for` seconds (None: the environment's KLEDGER_RETRY_FOR, else 30, and 3
    where nothing has answered yet), at most `retries` times. With `read_your_writes` every read sees what this client
    wrote, or says in `degraded` that it does not. `token` is needed where the node has tokens; without one it is the
    environment's KLEDGER_TOKEN.
    """

    @telling_what_it_takes
    def __init__(
        self,
        url: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int | None = None,
        read_your_writes: bool = True,
        token: str | None = None,
        retry_for: float | None = None,
    ) -> None:
        super().__init__(
            Wire(Connection(address_of(url), timeout, retries, read_your_writes, token, retry_for=retry_for))
        )

    @classmethod
    def over(cls, wire: Wire) -> Self:
        """A client that speaks through a wire that is there already."""
        client = cls.__new__(cls)
        AsyncItems.__init__(client, wire)
        return client

    @property
    def profiles(self) -> AsyncProfiles:
        """The two profiles of the acting user: what is remembered of them, `user` and `work`."""
        return AsyncProfiles(self._wire)

    @property
    def resources(self) -> AsyncResources:
        """What knowledge refers to: code, credentials, cookies."""
        return AsyncResources(self._wire)

    @property
    def documents(self) -> AsyncDocuments:
        """Documents, each of whose chunks is an item."""
        return AsyncDocuments(self._wire)

    @property
    def recalls(self) -> AsyncRecalls:
        """What was served before, to whom, and what it said."""
        return AsyncRecalls(self._wire)

    def session(self, session_id: str) -> AsyncSession:
        """One session of the caller's: what is said in it, and what of that fits a model's window.

        Raises InvalidPayload for an id that is no text.
        """
        require_text("session_id", session_id)
        return AsyncSession(replace(self._wire, session_id=session_id))

    @property
    def tools(self) -> AsyncTools:
        """The tools of an agent."""
        from kledger.client.tools.clients import AsyncTools

        return AsyncTools(self._wire)

    async def aclose(self) -> None:
        """Close the connection for good, for every client derived from this one as well."""
        await self._wire.connection.close()

    async def __aenter__(self) -> Self:
        self._wire.connection.require_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _runner(connection: Connection) -> Runner:
    if connection.blocking:
        return OnTheCallersThread()
    from kledger.client.transport.portal import Portal  # with asyncio, which takes longer to load than the client

    return Portal()


class LedgerClient(SyncItems, LedgerEndpoints):
    """A node of the ledger, for callers that do not await; safe to share between threads.

    Use it in `with`, or call `close` in the end. The arguments are those of AsyncLedgerClient.
    """

    @telling_what_it_takes
    def __init__(
        self,
        url: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int | None = None,
        read_your_writes: bool = True,
        token: str | None = None,
        retry_for: float | None = None,
    ) -> None:
        connection = Connection(address_of(url), timeout, retries, read_your_writes, token, retry_for=retry_for)
        connection.blocking = is_reached_plainly(connection.address)
        super().__init__(Wire(connection), _runner(connection))

    @property
    def profiles(self) -> SyncProfiles:
        """The two profiles of the acting user: what is remembered of them, `user` and `work`."""
        return SyncProfiles(self._wire, self._runner)

    @property
    def resources(self) -> SyncResources:
        """What knowledge refers to: code, credentials, cookies."""
        return SyncResources(self._wire, self._runner)

    @property
    def documents(self) -> SyncDocuments:
        """Documents, each of whose chunks is an item."""
        return SyncDocuments(self._wire, self._runner)

    @property
    def recalls(self) -> SyncRecalls:
        """What was served before, to whom, and what it said."""
        return SyncRecalls(self._wire, self._runner)

    def session(self, session_id: str) -> SyncSession:
        """One session of the caller's: what is said in it, and what of that fits a model's window.

        Raises InvalidPayload for an id that is no text.
        """
        require_text("session_id", session_id)
        return SyncSession(replace(self._wire, session_id=session_id), self._runner)

    @property
    def tools(self) -> SyncTools:
        """The tools of an agent."""
        from kledger.client.tools.clients import SyncTools

        return SyncTools(self._wire, self._runner)

    def close(self) -> None:
        """Close the connection for good, for every client derived from this one as well."""
        self._runner.run(self._wire.connection.close())
        self._runner.close()

    def __enter__(self) -> Self:
        self._wire.connection.require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
