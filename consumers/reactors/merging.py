"""Merging of a slim's groups and its reversal, group by group, in atomic batches.

A group whose items have changed since it was proposed is skipped, and the slim records why.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from consumers.reactors.work import Work
from kledger.contract.errors import VersionConflict
from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeAbsorbed, KnowledgeMerged, KnowledgeUnmerged
from ledger.events.slim import Skipped
from projections.similar import ask
from projections.similar.ask import Merged, Proposed, Standing
from projections.similar.outdated import items_of, outdated, resources_of
from projections.views.knowledge.versions import Version, versions_of
from projections.views.processes.ask import Process

ATTEMPTS = 6
"""Tries for one group while others write to its items."""
EVENTS_AT_ONCE = 250
"""Events of whole groups in one atomic batch, which takes the same time whether small or large."""

Standings = Mapping[str, Standing]
Planned = tuple[list[NewEvent], str]
"""The events of a group, and the reason why not all of it is done; empty where all is."""
Plan = Callable[[Sequence[Proposed], Standings], Awaitable[list[Planned]]]


class Merging:
    """Applies and reverts slims."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def apply(self, process: Process) -> tuple[int, list[Skipped]]:
        """Merge every group that is not merged yet; returns the number of merged groups, and the skipped ones."""
        groups, merged = await self._groups(process)

        async def plan(some: Sequence[Proposed], now: Standings) -> list[Planned]:
            reasons = [outdated(process.owner, group, now) for group in some]
            return [
                ([] if why else self._merge(process, group, now), why) for group, why in zip(some, reasons, strict=True)
            ]

        todo = [group for group in groups if group.survivor not in merged]
        skipped = await self._carry_out(process, todo, plan)
        return len(groups) - len(skipped), skipped

    async def revert(self, process: Process) -> tuple[int, list[Skipped]]:
        """Revert every merged group; returns the number of those that are as before, and what is left of the others."""
        groups, merged = await self._groups(process)

        async def plan(some: Sequence[Proposed], now: Standings) -> list[Planned]:
            wanted = {group.survivor: group.survivor_version for group in some}
            before = await self._work.view.ask(versions_of, self._work.org, wanted)
            return [
                self._unmerge(process, group, merged[group.survivor], before.get(group.survivor), now) for group in some
            ]

        applied = [group for group in groups if group.survivor in merged]
        skipped = await self._carry_out(process, [g for g in applied if not merged[g.survivor].reverted], plan)
        return len(applied) - len(skipped), skipped

    async def _groups(self, process: Process) -> tuple[list[Proposed], dict[str, Merged]]:
        """The proposed groups, and those that are merged according to the log."""
        await self._reach_head()
        groups = await self._work.view.ask(ask.proposed_groups, self._work.org, process.id)
        merged = await self._work.view.ask(ask.absorbed_by, self._work.org, process.id)
        return groups, merged

    async def _reach_head(self) -> None:
        await self._work.view.wait_for((await self._work.ledger.head()).position)

    async def _carry_out(self, process: Process, groups: Sequence[Proposed], plan: Plan) -> list[Skipped]:
        skipped: list[Skipped] = []
        part: list[Proposed] = []
        size = 0
        for group in groups:
            own = 1 + len(group.merged)
            if part and size + own > EVENTS_AT_ONCE:
                skipped += await self._together(process, part, plan)
                part, size = [], 0
            part.append(group)
            size += own
        return skipped + (await self._together(process, part, plan) if part else [])

    async def _together(self, process: Process, groups: Sequence[Proposed], plan: Plan) -> list[Skipped]:
        """Process some groups in one batch; after a conflict with another writer, in halves."""
        for attempt in range(ATTEMPTS):
            skipped: list[Skipped] = []
            events: list[NewEvent] = []
            now = await self._standings(groups, exactly=attempt > 0)
            for group, (planned, why) in zip(groups, await plan(groups, now), strict=True):
                events += planned
                if why:
                    skipped.append(Skipped(group=group.group, reason=why))
            try:
                await self._work.keep(events)
            except VersionConflict:
                await self._reach_head()
                if len(groups) > 1:
                    half = len(groups) // 2
                    halves = (groups[:half], groups[half:])
                    return [each for some in halves for each in await self._together(process, some, plan)]
                continue
            return skipped
        return [Skipped(group=group.group, reason="others kept writing to its items") for group in groups]

    async def _standings(self, groups: Sequence[Proposed], *, exactly: bool) -> dict[str, Standing]:
        """The state of the groups' items; `exactly`: with last positions from the log, which include refused events."""
        items = await self._work.view.ask(ask.standings, self._work.org, items_of(groups))
        if not exactly:
            return items
        last = {name: await self._work.ledger.last_position_of(self._work.org, "knowledge", name) for name in items}
        return {name: each.at(last[name]) for name, each in items.items()}

    def _merge(self, process: Process, group: Proposed, now: Standings) -> list[NewEvent]:
        names = [name for name, _, _ in group.merged]
        survivor = now[group.survivor]
        resources = resources_of(group, now)
        fact = KnowledgeAbsorbed(
            slim=process.id,
            merged=names,
            types=group.types,
            task=group.task,
            content=group.content,
            tags=group.tags,
            resource_ids=resources if resources != survivor.resource_ids else None,
        )
        return [
            self._work.event(
                process,
                fact,
                f"absorbed:{group.group}",
                entity_id=group.survivor,
                expects=survivor.position,
            ),
            *(
                self._work.event(
                    process,
                    KnowledgeMerged(into=group.survivor, slim=process.id),
                    f"merged:{group.group}:{name}",
                    entity_id=name,
                    expects=now[name].position,
                )
                for name in names
            ),
        ]

    def _unmerge(
        self, process: Process, group: Proposed, merged: Merged, before: Version | None, now: Standings
    ) -> Planned:
        """Bring back what was merged, and the survivor as it was before, where nobody has changed it since."""
        if before is None or before.erased:
            return [], f"what {group.survivor} said before was erased"
        survivor = now.get(group.survivor)
        names = [
            name
            for name, _, _ in group.merged
            if name in now and now[name].status == "merged" and now[name].merged_into == group.survivor
        ]
        own = [name for name in names if now[name].owner == process.owner]
        fact = KnowledgeUnmerged(slim=process.id)
        back = [
            self._work.event(
                process, fact, f"unmerged:{group.group}:{name}", entity_id=name, expects=now[name].position
            )
            for name in own
        ]
        if survivor is None or survivor.status != "active" or survivor.version != merged.version:
            return back, f"{group.survivor} has changed since it took the others in"
        if survivor.owner != process.owner:
            return back, f"{group.survivor} has another owner now"
        reverted = self._work.event(
            process,
            before.stated_anew(process.id),
            f"reverted:{group.group}",
            entity_id=group.survivor,
            expects=survivor.position,
        )
        given_away = next((f"{name} has another owner now" for name in names if name not in own), "")
        return [reverted, *back], given_away
