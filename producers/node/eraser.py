"""How is a person forgotten? Their key is destroyed, and everything that was made of their words is made anew.

Each step may be done again, and the order to forget outlives a crash: a node that starts carries out what it finds
begun, and what another node began and told in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from kledger.contract.errors import IllegalState, LedgerError, UnknownReference
from ledger.backup.keys import keep_keys
from ledger.event import JsonObject, NewEvent
from ledger.events.subject import SubjectForgotten
from ledger.privacy.keyring import Keyring
from ledger.privacy.personal import is_person
from ledger.privacy.seal_witness import Unsworn
from ledger.privacy.secure_body import key_name
from ledger.privacy.vault import Tombstone
from ledger.privacy.vault_jetstream import JetStreamVault
from ledger.runtime.subprocess_job import Progress
from producers.node.receipts import Order, Receipts, moment, new_order
from producers.operations.publish import NAMESPACE
from producers.operations.sealing import SealingLedger
from projections.analysts.snapshot import copy_frozen
from projections.engine.seals_without_mac import Examination
from projections.live.files import discard_others
from projections.vectors.embedding.forget_kept import forget_embeddings
from projections.vectors.renewal import renew
from projections.views import persons
from projections.views.lineage.ask import kept_events

if TYPE_CHECKING:
    from producers.node.operator import Operator

log = structlog.get_logger(__name__)

_OLD_FILE_SECONDS = 10.0
_AGAIN_SECONDS = 5.0
_READ_EVENTS = 10_000
_FORGETTINGS_AWAITED = 3
_DONE_WITHIN_SECONDS = 300.0
_LOOKS_EVERY_SECONDS = 0.1


@dataclass(slots=True)
class Eraser:
    """Forgets persons on one node."""

    operator: Operator
    vault: JetStreamVault
    keyring: Keyring
    sealing: SealingLedger
    receipts: Receipts
    org: str
    master: bytes = field(repr=False)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One forgetting at a time."""
    trouble: str | None = None
    """Why a forgetting that was begun is not done; None while none is, or all are."""
    heard: int = 0
    """How often a key was told to be gone."""

    async def forget(self, subject: str, by: str, progress: Progress) -> JsonObject:
        """Forget a person; the receipt. Asked again it answers the first receipt, or ends what was begun.

        Raises IllegalState (not a person), UnknownReference (nobody here has this name), BrokerUnavailable.
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
            begun = next((order for order in self.receipts.pending() if order.subject == subject), None)
            if begun is None and held is None and not await self.operator.view.ask(persons.left_in_clear, subject):
                raise UnknownReference(f"nothing here is {subject}'s: check the spelling", ref=subject)
            return await self._carry_out(begun or new_order(subject, by), progress)

    async def keep_keys(self, backup: Path) -> int:
        """Put the vault as it is now beside a backup; how many records. No forgetting is under way meanwhile."""
        async with self.turn:
            return await keep_keys(self.vault.connection, backup)

    async def run(self) -> None:
        """End what was begun before this start, and what other nodes tell, until cancelled."""
        told = asyncio.Event()
        loop = asyncio.get_running_loop()

        def tell() -> None:
            self.heard += 1
            loop.call_soon_threadsafe(told.set)

        self.keyring.when_forgotten(tell)
        while True:
            try:
                await self._end_what_was_begun()
            except Exception as error:  # whatever it is: a promise to forget is not dropped
                self.trouble = str(error) or repr(error)
                log.error("forgetting is not done and is tried again", error=repr(error))
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            self.trouble = None
            await told.wait()
            told.clear()
            before = self.operator.view.position
            with contextlib.suppress(TimeoutError):  # it is told while the batch is folded: let it be
                async with asyncio.timeout(_AGAIN_SECONDS):
                    await self.operator.view.until(lambda at=before: self.operator.view.position > at)  # type: ignore[misc]

    async def undisturbed(self, compare: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        """What a comparison of the view with the log says; once more where a person was forgotten meanwhile.

        A key that goes while the log is folded beside the view, or whose words the view is yet to lose, makes the two
        differ, and is no damage.
        """
        for _ in range(_FORGETTINGS_AWAITED):
            heard = self.heard
            told = await compare()
            if told["equal"] or not await self._disturbed(heard):
                return told
            log.info("what was compared is compared again: a person was forgotten meanwhile")
        return told

    async def _disturbed(self, heard: int) -> bool:
        """Whether a forgetting was under way since; waits until it is done."""
        under_way = self.heard != heard or self.turn.locked() or bool(self.receipts.pending())
        with contextlib.suppress(LedgerError, TimeoutError):
            await self.operator.view.wait_for((await self.operator.ledger.head()).position)
            async with asyncio.timeout(_DONE_WITHIN_SECONDS):
                while self.turn.locked() or self.receipts.pending() or await self._unfinished():
                    under_way = True
                    await asyncio.sleep(_LOOKS_EVERY_SECONDS)
        return under_way or self.heard != heard

    async def _unfinished(self) -> list[tuple[str, str, int]]:
        """Who was forgotten, by which receipt, told of at which position, where this node has yet to forget."""
        forgotten: list[tuple[str, str, int]] = await self.operator.view.ask(persons.forgotten)
        return [each for each in forgotten if self.receipts.found(each[1]) is None]

    async def _end_what_was_begun(self) -> None:
        async with self.turn:
            for order in self.receipts.pending():
                log.warning("a forgetting that was begun goes on", receipt=order.receipt)
                await self._carry_out(order)
            for subject, receipt, position in await self._unfinished():
                held = (await self.vault.look([subject])).get(subject)
                if isinstance(held, Tombstone) and held.receipt == receipt:
                    self.sealing.forget(subject)
                    order = Order(receipt, subject, held.by, held.at)
                    if await self._knows_nothing_of(subject):
                        self.receipts.finish(order, _receipt(order, position, self.operator.view.position))
                    else:
                        await self._carry_out(order)

    async def _carry_out(self, order: Order, progress: Progress = lambda _done, _total, _rate: None) -> JsonObject:
        view = self.operator.view
        if not order.hashes and not order.items:
            hashes, items = await view.ask(persons.embedded_hashes, order.subject), await self._items(order)
            order = replace(order, hashes=hashes, items=items)
        self.receipts.begin(order)
        secrets = [key_name(resource_id) for resource_id in await view.ask(persons.resources_of, order.subject)]
        for name in secrets:
            await self.vault.destroy(name, by=order.by, at=order.at, receipt=order.receipt)
        stone = await self._destroyed(order)
        if stone.receipt != order.receipt:  # of two nodes that were asked at once the other one was first
            mine, order = order, replace(order, receipt=stone.receipt, by=stone.by, at=stone.at)
            if (done := self.receipts.found(order.receipt)) is None:
                self.receipts.begin(order)
            self.receipts.drop(mine)
            if done is not None:
                return done
        self.sealing.forget(order.subject)
        self.keyring.forget(order.subject)
        position = await self._tell(order)
        embeddings = await forget_embeddings(self.vault.connection, order.hashes)
        async with self.operator.beside:
            file = await self._renew_view(progress)
            await renew(self.operator.feed, view, self.operator.data / "vectors", order.items)
            snapshots = await self._renew_snapshots()
        left = await view.ask(persons.left_in_clear, order.subject)
        if left:
            log.warning("events that were never sealed stay readable", receipt=order.receipt, events=len(left))
        receipt = _receipt(order, position, view.position)
        receipt["view"]["file"], receipt["vectors"] = file.name, "made anew"
        receipt["embeddings_removed"], receipt["snapshots_removed"] = embeddings, snapshots
        receipt["secrets_destroyed"], receipt["left_in_clear"] = len(secrets), left
        return self.receipts.finish(order, receipt)

    async def _destroyed(self, order: Order) -> Tombstone:
        """The tombstone of the person's key, which is gone; the first one, where another node's order came before."""
        name = order.subject
        held = (await self.vault.look([name])).get(name)
        unsworn = None if isinstance(held, Tombstone) else await self._unsworn(name)
        return await self.vault.destroy(name, by=order.by, at=order.at, receipt=order.receipt, unsworn=unsworn)

    async def _unsworn(self, name: str) -> Unsworn:
        """Which seals without a MAC verify while the person's key is there. Reads the log."""
        self.keyring.take({name: await self.vault.obtain(name)})  # whoever seals at this moment gets the same key
        examination = Examination(name, self.keyring.look)
        async with contextlib.aclosing(self.operator.ledger.read(1, batch=_READ_EVENTS)) as batches:
            async for events in batches:
                await asyncio.to_thread(examination.read, events)
        return examination.found

    async def _knows_nothing_of(self, subject: str) -> bool:
        """True on a node that folded the log after the key was gone, and has no frozen file: nothing is to be done."""
        if any((self.operator.data / "snapshots").glob("view-*")):
            return False
        return not await self.operator.view.ask(persons.left_in_clear, subject)

    async def _items(self, order: Order) -> list[str]:
        found: list[str] = await self.operator.view.ask(persons.items_of, order.subject)
        return found

    async def _tell(self, order: Order) -> int:
        """The position of the event that tells of it; appended unless the log has it."""
        event = NewEvent(
            SubjectForgotten(subject=order.subject, receipt=order.receipt),
            order.subject,
            order.by,
            self.org,
            id=str(uuid.uuid5(NAMESPACE, order.receipt)),
        )
        kept = (await self.operator.view.ask(kept_events, self.org, [event.actor], [event.id])).get(event.id)
        position = kept.position if kept is not None else (await self.operator.ledger.append(event)).position
        await self.operator.view.wait_for(position, 60.0)
        return position

    async def _renew_view(self, progress: Callable[[int, int, float], None]) -> Path:
        """Fold everything anew into a fresh file, and remove the one that knows too much."""
        operator = self.operator
        old = operator.view.instance
        async with operator.made_anew(progress, await operator.decided()) as (fresh, _):
            await operator.serve(fresh)
        path = fresh.path
        assert path is not None  # it was opened from a file
        await asyncio.to_thread(_until_gone, old.path)
        discard_others(path.parent, path)
        for spilled in path.parent.glob("*.tmp"):
            if spilled.name != f"{path.name}.tmp":
                shutil.rmtree(spilled, ignore_errors=True)
        return path

    async def _renew_snapshots(self) -> list[str]:
        """Remove the frozen files; where there were some, freeze the present."""
        directory = self.operator.data / "snapshots"
        removed = sorted(path.name for path in directory.glob("view-*.duckdb*"))
        if not directory.is_dir():
            return removed
        async with self.operator.projector.paused():
            await asyncio.to_thread(shutil.rmtree, directory)
            if removed:
                await asyncio.to_thread(copy_frozen, self.operator.view.instance, directory)
        return removed


def _receipt(order: Order, position: int, folded: int) -> JsonObject:
    """What is true once the key is destroyed, where nothing had to be made anew."""
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
        "secrets_destroyed": 0,
        "left_in_clear": [],
    }


def _until_gone(path: Path | None) -> None:
    """Wait until the last question on a file that was replaced has its answer, but not for ever."""
    deadline = time.monotonic() + _OLD_FILE_SECONDS
    while path is not None and path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
