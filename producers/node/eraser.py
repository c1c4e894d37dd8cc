"""Eraser: forgets a person by destroying their key and rebuilding everything that was derived from their text.

Each step is idempotent, and the order to forget survives a crash: at its start a node completes its own pending orders,
and those that other nodes recorded in the log. What a node began that never comes back, another one ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import structlog

from kledger.contract.errors import (
    BrokerUnavailable,
    IllegalState,
    LedgerError,
    ServiceFailed,
    UnknownReference,
    ViewBehind,
)
from ledger.event import JsonObject, NewEvent
from ledger.events.subject import SubjectForgotten
from ledger.named_ids import named_id
from ledger.privacy.keyring import Keyring
from ledger.privacy.personal import is_person
from ledger.privacy.secure_body import key_name
from ledger.privacy.vault import Tombstone
from ledger.privacy.vault_jetstream import JetStreamVault
from ledger.progress import Progress, silent
from ledger.sessions.store import SessionStore
from ledger.wire.seal_mac import Unsworn
from producers.node.rebuilds import Rebuilds
from producers.node.receipts import Order, Receipts, moment, new_order
from producers.operations.publish import NAMESPACE
from producers.operations.sealing import SealingLedger
from projections.analysts.snapshot import copy_frozen
from projections.engine.seals_without_mac import Examination
from projections.live import persons
from projections.live.files import discard_others
from projections.vectors.embedding.forget_kept import forget_embeddings
from projections.vectors.renewal import renew
from projections.views.lineage.ask import kept_events

log = structlog.get_logger(__name__)

_OLD_FILE_SECONDS = 10.0
_FOLDED_WITHIN_SECONDS = 60.0
_RETRY_SECONDS = 5.0
_READ_EVENTS = 10_000
_COMPARISONS = 3
_DONE_WITHIN_SECONDS = 300.0
_POLL_SECONDS = 0.1
_LOOKS_EVERY_SECONDS = 600.0


@dataclass(slots=True)
class Eraser:
    """Forgets persons on one node."""

    rebuilds: Rebuilds
    vault: JetStreamVault
    keyring: Keyring
    sealing: SealingLedger
    sessions: SessionStore
    receipts: Receipts
    org: str
    master: bytes = field(repr=False)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One forgetting at a time."""
    trouble: str | None = None
    """Why a pending order is not done yet; None where none is pending."""
    looked: bool = False
    """Whether the vault was looked through for keys that have to be gone."""
    looks_for_untold: bool = True
    """Whether it is time to look for orders that another node began and never told."""
    destroyed: int = 0
    """How many key destructions were announced."""
    begun_before: set[str] = field(init=False)
    """The receipts of orders that were pending at the start."""

    def __post_init__(self) -> None:
        self.begun_before = {order.receipt for order in self.receipts.pending()}

    def reasons(self) -> list[str]:
        """Why the node is not healthy, as far as persons are to be forgotten."""
        if self.trouble is not None:
            return [f"a person is to be forgotten, which is not done and is tried again: {self.trouble}"]
        self.begun_before = set(filter(self.receipts.is_pending, self.begun_before))
        if not self.begun_before:
            return []
        return [
            "a person is to be forgotten, which was begun before the node's start and goes on: until it is done, "
            "answers may hold what was theirs"
        ]

    async def forget(self, subject: str, by: str, progress: Progress) -> JsonObject:
        """Forget a person; returns the receipt. Idempotent: a repeat returns the first receipt, or completes the order.

        What is said of the person meanwhile waits, and is refused then. Raises IllegalState (not a person; what is
        being said of them does not end), UnknownReference (nobody here has this name), ViewBehind, BrokerUnavailable.
        """
        if not is_person(subject):
            raise IllegalState(
                f"{subject} is not a person: only a user can be forgotten, and user:local is whoever names nobody",
                subject=subject,
            )
        async with self.turn:
            held = (await self.vault.look([subject])).get(subject)
            if isinstance(held, Tombstone):
                if (done := self.receipts.found(held.receipt)) is not None:
                    return done
                return await self._carry_out(Order(held.receipt, subject, held.by, held.at), progress)
            pending = next((order for order in self.receipts.pending() if order.subject == subject), None)
            if pending is None and held is None and not await self.rebuilds.view.ask(persons.left_in_clear, subject):
                raise UnknownReference(f"nothing here is {subject}'s: check the spelling", ref=subject)
            return await self._carry_out(pending or new_order(subject, by), progress)

    async def keep_private(self, backup: str) -> JsonObject:
        """Copy the words of sessions and the vault to the backup at an address; the number of records of each.

        No order is carried out meanwhile.
        """
        from ledger.backup.beside import keep_beside
        from ledger.backup.opening import opened

        async with self.turn:
            with contextlib.ExitStack() as stack:
                place = await asyncio.to_thread(stack.enter_context, opened(backup))
                kept = await keep_beside(self.vault.connection, self.sessions.stream, place)
                return {"session_records": kept.words, "keys": kept.keys}

    async def run(self) -> None:
        """Complete pending orders and those of other nodes, until cancelled."""
        announced = asyncio.Event()
        loop = asyncio.get_running_loop()

        def on_destroyed() -> None:
            self.destroyed += 1
            loop.call_soon_threadsafe(announced.set)

        self.keyring.when_forgotten(on_destroyed)
        while True:
            try:
                await self._complete_orders()
            except Exception as error:  # an order is retried after any error
                self.trouble = str(error) or repr(error)
                log.error("forgetting is not done and is tried again", error=repr(error))
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self.trouble = None
            try:
                async with asyncio.timeout(_LOOKS_EVERY_SECONDS):
                    await announced.wait()
            except TimeoutError:
                self.looks_for_untold = True
                continue
            announced.clear()
            waiting = partial(self._later_than, self.rebuilds.view.position)
            with contextlib.suppress(TimeoutError):  # announced while the batch is folded: wait until it is
                async with asyncio.timeout(_RETRY_SECONDS):
                    await self.rebuilds.view.until(waiting)

    def _later_than(self, position: int) -> bool:
        return self.rebuilds.view.position > position

    async def stable_comparison(self, compare: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        """A comparison of the view with the log, repeated where a person was forgotten meanwhile.

        Where a key is destroyed while the log is folded beside the view, or before the view is rebuilt, the two
        differ without being damaged.
        """
        for _ in range(_COMPARISONS):
            before = self.destroyed
            result = await compare()
            if result["equal"] or not await self._disturbed(before):
                return result
            log.info("what was compared is compared again: a person was forgotten meanwhile")
        return result

    async def _disturbed(self, before: int) -> bool:
        """Whether an order was carried out since `before` destructions; waits until it is done."""
        under_way = self.destroyed != before or self.turn.locked() or bool(self.receipts.pending())
        with contextlib.suppress(LedgerError, TimeoutError):
            await self.rebuilds.view.wait_for((await self.rebuilds.ledger.head()).position)
            async with asyncio.timeout(_DONE_WITHIN_SECONDS):
                while self.turn.locked() or self.receipts.pending() or await self._unfinished():
                    under_way = True
                    await asyncio.sleep(_POLL_SECONDS)
        return under_way or self.destroyed != before

    async def _unfinished(self) -> list[tuple[str, str, int]]:
        """Subject, receipt and position of orders in the log that this node has not carried out."""
        forgotten: list[tuple[str, str, int]] = await self.rebuilds.view.ask(persons.forgotten)
        return [each for each in forgotten if self.receipts.found(each[1]) is None]

    async def _complete_orders(self) -> None:
        async with self.turn:
            for order in self.receipts.pending():
                log.warning("a forgetting that was begun goes on", receipt=order.receipt)
                await self._carry_out(order)
            for subject, receipt, position in await self._unfinished():
                held = (await self.vault.look([subject])).get(subject)
                if isinstance(held, Tombstone) and held.receipt == receipt:
                    self.sealing.forget(subject)
                    self.sessions.drop()
                    order = Order(receipt, subject, held.by, held.at)
                    if await self._has_nothing_of(subject):
                        self.receipts.finish(order, _receipt(order, position, self.rebuilds.view.position))
                    else:
                        await self._carry_out(order)
            if not self.looked:
                await self._erase_left_keys()
                self.looked = True
            if self.looks_for_untold:
                untold = list[Order]()
                with contextlib.suppress(BrokerUnavailable, ViewBehind):  # looked for again later
                    untold = await self._untold()
                for order in untold:
                    log.warning("a forgetting whose node is lost goes on here", receipt=order.receipt)
                    await self._carry_out(order)
                self.looks_for_untold = False
            if self.receipts.unreadable:
                files = ", ".join(self.receipts.unreadable)
                raise ServiceFailed(f"{files} cannot be read: forget the person again, and remove the file")

    async def _erase_left_keys(self) -> None:
        """Erase the keys that stand beside their tombstone, each with a receipt of its own.

        A restore by an earlier version has left them. Nothing was made of them since: a vault with a tombstone gives
        no key.
        """
        for name in await self.vault.left_keys():
            stone = (await self.vault.look([name])).get(name)
            if not isinstance(stone, Tombstone):
                continue
            order = replace(new_order(name, stone.by), at=stone.at)
            log.warning("the key of a forgotten person was left in the vault and is erased", receipt=order.receipt)
            await self.vault.destroy(name, by=stone.by, at=stone.at, receipt=stone.receipt)
            position = self.rebuilds.view.position
            self.receipts.finish(order, _receipt(order, position, position) | {"first_receipt": stone.receipt})

    async def _untold(self) -> list[Order]:
        """The orders that a node began and never told: it destroyed a key, and was lost before the log had the order.

        One that is still at it tells the same, as a receipt has one event. Raises BrokerUnavailable, ViewBehind.
        """
        view, untold = self.rebuilds.view, list[Order]()
        await view.wait_for((await self.rebuilds.ledger.head()).position, _FOLDED_WITHIN_SECONDS)
        told = {subject for subject, _, _ in await view.ask(persons.forgotten)}
        for name in filter(is_person, await self.vault.gone()):
            if name in told or not await view.ask(persons.left_in_clear, name):
                continue
            stone = (await self.vault.look([name])).get(name)
            if isinstance(stone, Tombstone) and self.receipts.found(stone.receipt) is None:
                untold.append(Order(stone.receipt, name, stone.by, stone.at))
        return untold

    async def _carry_out(self, order: Order, progress: Progress = silent) -> JsonObject:
        view = self.rebuilds.view
        async with self.sealing.holding.held_back(order.subject):
            order = await self._listed(order)
            self.receipts.begin(order)
            secrets = [key_name(resource_id) for resource_id in await view.ask(persons.resources_of, order.subject)]
            for name in secrets:
                await self.vault.destroy(name, by=order.by, at=order.at, receipt=order.receipt)
            tombstone = await self._destroy(order)
            self.sealing.forget(order.subject)
            self.keyring.forget(order.subject)
            self.sessions.drop()
        if tombstone.receipt != order.receipt:  # two nodes got the request at once, and the other was first
            own_order, order = order, replace(order, receipt=tombstone.receipt, by=tombstone.by, at=tombstone.at)
            if (done := self.receipts.found(order.receipt)) is None:
                self.receipts.begin(order)
            self.receipts.drop(own_order)
            if done is not None:
                return done
        await self.sessions.purge_owner(self.org, order.subject)
        position = await self._record(order)
        embeddings = await forget_embeddings(self.vault.connection, order.hashes)
        async with self.rebuilds.beside:
            file = await self._renew_view(progress)
            await renew(self.rebuilds.feed, view, self.rebuilds.data / "vectors", order.items)
            # What was being embedded as the first were erased has been stored since.
            embeddings += await forget_embeddings(self.vault.connection, order.hashes)
            snapshots = await self._renew_snapshots()
        in_clear = await view.ask(persons.left_in_clear, order.subject)
        if in_clear:
            log.warning("events that were never sealed stay readable", receipt=order.receipt, events=len(in_clear))
        receipt = _receipt(order, position, view.position)
        receipt["view"]["file"], receipt["vectors"] = file.name, "made anew"
        receipt["embeddings_removed"], receipt["snapshots_removed"] = embeddings, snapshots
        receipt["secrets_destroyed"], receipt["left_in_clear"] = len(secrets), in_clear
        return self.receipts.finish(order, receipt)

    async def _listed(self, order: Order) -> Order:
        """The order with all that has to be erased, as the log has it now. Raises ViewBehind.

        One that was begun before keeps what it listed then: the view may have lost it since.
        """
        view = self.rebuilds.view
        await view.wait_for((await self.rebuilds.ledger.head()).position, _FOLDED_WITHIN_SECONDS)
        hashes, items = await view.ask(persons.embedded_hashes, order.subject), await self._items(order)
        return replace(order, hashes=sorted({*order.hashes, *hashes}), items=sorted({*order.items, *items}))

    async def _destroy(self, order: Order) -> Tombstone:
        """Destroy the person's key; returns its tombstone, the first one where another node's order came before."""
        name = order.subject
        held = (await self.vault.look([name])).get(name)
        unsworn = None if isinstance(held, Tombstone) else await self._unsworn(name)
        return await self.vault.destroy(name, by=order.by, at=order.at, receipt=order.receipt, unsworn=unsworn)

    async def _unsworn(self, name: str) -> Unsworn:
        """The seals without a MAC that verify with the person's key. Reads the log."""
        self.keyring.take({name: await self.vault.obtain(name)})  # concurrent sealing uses the same key
        examination = Examination(name, self.keyring.look)
        async with contextlib.aclosing(self.rebuilds.ledger.read(1, batch=_READ_EVENTS)) as batches:
            async for events in batches:
                await asyncio.to_thread(examination.read, events)
        return examination.found

    async def _has_nothing_of(self, subject: str) -> bool:
        """Whether nothing has to be erased: the log was folded without the key, and so were the vectors of it.

        A view that was made anew since has nothing; vectors that are from before, and snapshots, may have something.
        """
        if self.rebuilds.feed.from_before or any((self.rebuilds.data / "snapshots").glob("view-*")):
            return False
        return not await self.rebuilds.view.ask(persons.left_in_clear, subject)

    async def _items(self, order: Order) -> list[str]:
        items: list[str] = await self.rebuilds.view.ask(persons.items_of, order.subject)
        return items

    async def _record(self, order: Order) -> int:
        """The position of the event that records the order; appended unless the log has it."""
        event = NewEvent(
            SubjectForgotten(subject=order.subject, receipt=order.receipt),
            order.subject,
            order.by,
            self.org,
            id=named_id(NAMESPACE, order.receipt),
        )
        existing = (await self.rebuilds.view.ask(kept_events, self.org, [event.actor], [event.id])).get(event.id)
        position = existing.position if existing is not None else (await self.rebuilds.ledger.append(event)).position
        await self.rebuilds.view.wait_for(position, _FOLDED_WITHIN_SECONDS)
        return position

    async def _renew_view(self, progress: Progress) -> Path:
        """Fold the whole log into a fresh file, and remove the old one."""
        rebuilds = self.rebuilds
        old = rebuilds.view.instance
        async with rebuilds.fresh_view(progress, await rebuilds.decided()) as (fresh, _):
            await rebuilds.serve(fresh)
        path = fresh.path
        assert path is not None  # it was opened from a file
        await asyncio.to_thread(_until_gone, old.path)
        discard_others(path.parent, path)
        return path

    async def _renew_snapshots(self) -> list[str]:
        """Remove the snapshots; where there were some, take a new one."""
        directory = self.rebuilds.data / "snapshots"
        removed = sorted(path.name for path in directory.glob("view-*.duckdb*"))
        if not directory.is_dir():
            return removed
        async with self.rebuilds.projector.paused():
            await asyncio.to_thread(shutil.rmtree, directory)
            if removed:
                await asyncio.to_thread(copy_frozen, self.rebuilds.view.instance, directory)
        return removed


def _receipt(order: Order, position: int, folded: int) -> JsonObject:
    """The receipt once the key is destroyed, where nothing had to be rebuilt."""
    return {
        "id": order.receipt,
        "subject": order.subject,
        "asked_by": order.by,
        "asked_at": order.at,
        "done_at": moment(),
        "key": "destroyed",
        "position": position,
        "view": {"file": None, "position": folded},
        "vectors": "as they were",
        "embeddings_removed": 0,
        "snapshots_removed": [],
        "archive": "sealed, as the log is",
        "secrets_destroyed": 0,
        "left_in_clear": [],
    }


def _until_gone(path: Path | None) -> None:
    """Wait until the last query on a replaced file has ended, up to _OLD_FILE_SECONDS."""
    deadline = time.monotonic() + _OLD_FILE_SECONDS
    while path is not None and path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
