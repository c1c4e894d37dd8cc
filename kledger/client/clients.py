"""The clients, and the tables of their endpoints; each line is one, on both faces."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from kledger.client import admin, knowledge, profiles, recall, resources, searchable, sharing
from kledger.client import evolutions as evolving
from kledger.client import refused as parking
from kledger.client import slims as slimming
from kledger.client.connection import DEFAULT_URL, Connection
from kledger.client.faces import AsyncFace, Endpoint, Portal, SyncFace
from kledger.client.pages import AsyncEveryResource, AsyncItems, SyncEveryResource, SyncItems
from kledger.client.tools import functions as tools
from kledger.client.wire import Wire


class LedgerEndpoints:
    """Knowledge and its lineage, and what the operator asks of the node."""

    search = Endpoint(knowledge.search)
    save = Endpoint(knowledge.save)
    save_many = Endpoint(knowledge.save_many)
    revise = Endpoint(knowledge.revise)
    wait_searchable = Endpoint(searchable.wait_searchable)
    rate = Endpoint(knowledge.rate)
    rate_many = Endpoint(knowledge.rate_many)
    score = Endpoint(knowledge.score)
    retire = Endpoint(knowledge.retire)
    restore = Endpoint(knowledge.restore)
    get = Endpoint(knowledge.get)
    list = Endpoint(knowledge.list_items)
    history = Endpoint(knowledge.history)
    lineage = Endpoint(knowledge.lineage)
    share = Endpoint(sharing.share)
    why_visible = Endpoint(sharing.why_visible)
    scope_types = Endpoint(sharing.scope_types)
    register_scope_type = Endpoint(sharing.register_scope_type)

    evolve = Endpoint(evolving.evolve)
    evolution = Endpoint(evolving.evolution)
    evolutions = Endpoint(evolving.evolutions)
    apply_evolution = Endpoint(evolving.apply_evolution)
    reject_evolution = Endpoint(evolving.reject_evolution)
    revert_evolution = Endpoint(evolving.revert_evolution)
    revert = Endpoint(evolving.revert)
    extract = Endpoint(evolving.extract)
    extraction = Endpoint(evolving.extraction)
    conflicts = Endpoint(evolving.conflicts)
    resolve_conflict = Endpoint(evolving.resolve_conflict)

    slim = Endpoint(slimming.slim)
    slims = Endpoint(slimming.slims)
    slim_get = Endpoint(slimming.slim_get)
    slim_apply = Endpoint(slimming.slim_apply)
    slim_reject = Endpoint(slimming.slim_reject)
    slim_revert = Endpoint(slimming.slim_revert)

    startup = Endpoint(recall.startup)
    focus = Endpoint(recall.focus)
    goal = Endpoint(recall.goal)
    prompts = Endpoint(recall.prompts)
    prompt = Endpoint(recall.prompt)

    status = Endpoint(admin.status)
    health = Endpoint(admin.health)
    sql = Endpoint(admin.sql)
    attach = Endpoint(admin.attach)
    start_job = Endpoint(admin.start_job)
    prove = Endpoint(admin.prove)
    job = Endpoint(admin.job)
    wait_job = Endpoint(admin.wait_job)

    refused = Endpoint(parking.refused)
    retry_parked = Endpoint(parking.retry_parked)
    dismiss_parked = Endpoint(parking.dismiss_parked)


class ProfileEndpoints:
    """The two profiles of the acting user: what is remembered of them, `user` and `work`."""

    both = Endpoint(profiles.both)
    get = Endpoint(profiles.get)
    put = Endpoint(profiles.put)
    patch = Endpoint(profiles.patch)
    disable = Endpoint(profiles.disable)
    register = Endpoint(profiles.register)
    prompt = Endpoint(profiles.prompt)
    history = Endpoint(profiles.history)


class ResourceEndpoints:
    """What knowledge refers to: code, credentials, cookies."""

    save = Endpoint(resources.save)
    get = Endpoint(resources.get)
    list = Endpoint(resources.list_resources)
    history = Endpoint(resources.history)
    retire = Endpoint(resources.retire)
    restore = Endpoint(resources.restore)


class ToolEndpoints:
    """The tools of an agent, by the names and defaults that the MCP server gives them too."""

    knowledge_search = Endpoint(tools.knowledge_search)
    knowledge_save = Endpoint(tools.knowledge_save)
    knowledge_update = Endpoint(tools.knowledge_update)
    knowledge_batch_update = Endpoint(tools.knowledge_batch_update)
    knowledge_list = Endpoint(tools.knowledge_list)
    knowledge_slim = Endpoint(tools.knowledge_slim)
    resource_save = Endpoint(tools.resource_save)
    resource_get = Endpoint(tools.resource_get)
    goal_focus = Endpoint(tools.goal_focus)
    knowledge_startup = Endpoint(tools.knowledge_startup)
    get_knowledge = knowledge_search  # the same tool by another name
    save_knowledge = knowledge_save


class AsyncProfiles(AsyncFace, ProfileEndpoints):
    """`client.profiles` of the async client."""


class SyncProfiles(SyncFace, ProfileEndpoints):
    """`client.profiles` of the sync client."""


class AsyncResources(AsyncEveryResource, ResourceEndpoints):
    """`client.resources` of the async client."""


class SyncResources(SyncEveryResource, ResourceEndpoints):
    """`client.resources` of the sync client."""


class AsyncTools(AsyncFace, ToolEndpoints):
    """`client.tools` of the async client."""


class SyncTools(SyncFace, ToolEndpoints):
    """`client.tools` of the sync client."""


class AsyncLedgerClient(AsyncItems, LedgerEndpoints):
    """A node of the ledger, for async callers. Use it in `async with`, or call `aclose` in the end.

    `timeout` is seconds for one attempt. What is safe to repeat is sent again for `retry_for` seconds (None: the
    environment's KLEDGER_RETRY_FOR, else 30, and 3 where nothing has answered yet), at most `retries` times. With
    `read_your_writes` every read sees what this client wrote, or says in `degraded` that it does not. `token` is
    needed where the node has tokens; without one it is the environment's KLEDGER_TOKEN.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        timeout: float = 30.0,
        retries: int | None = None,
        read_your_writes: bool = True,
        token: str | None = None,
        retry_for: float | None = None,
    ) -> None:
        super().__init__(Wire(Connection(url, timeout, retries, read_your_writes, token, retry_for=retry_for)))

    @property
    def profiles(self) -> AsyncProfiles:
        """The two profiles of the acting user: what is remembered of them, `user` and `work`."""
        return AsyncProfiles(self._wire)

    @property
    def resources(self) -> AsyncResources:
        """What knowledge refers to: code, credentials, cookies."""
        return AsyncResources(self._wire)

    @property
    def tools(self) -> AsyncTools:
        """The tools of an agent."""
        return AsyncTools(self._wire)

    async def aclose(self) -> None:
        """Close the connection, for every client derived from this one as well."""
        await self._wire.connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class LedgerClient(SyncItems, LedgerEndpoints):
    """The same for callers that do not await; safe to share between threads.

    Use it in `with`, or call `close` in the end. The arguments are those of AsyncLedgerClient.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        timeout: float = 30.0,
        retries: int | None = None,
        read_your_writes: bool = True,
        token: str | None = None,
        retry_for: float | None = None,
    ) -> None:
        super().__init__(
            Wire(Connection(url, timeout, retries, read_your_writes, token, retry_for=retry_for)), Portal()
        )

    @property
    def profiles(self) -> SyncProfiles:
        """The two profiles of the acting user: what is remembered of them, `user` and `work`."""
        return SyncProfiles(self._wire, self._portal)

    @property
    def resources(self) -> SyncResources:
        """What knowledge refers to: code, credentials, cookies."""
        return SyncResources(self._wire, self._portal)

    @property
    def tools(self) -> SyncTools:
        """The tools of an agent."""
        return SyncTools(self._wire, self._portal)

    def close(self) -> None:
        """Close the connection, for every client derived from this one as well."""
        self._portal.run(self._wire.connection.close())
        self._portal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
