"""Requests about knowledge: search, save, revise, rate, read, and its lineage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from kledger.client.faces import Endpoint
from kledger.client.slips.own_advice import row_in_python
from kledger.client.wire import Wire, comma_joined, segment, without_none
from kledger.contract.errors import InvalidPayload
from kledger.contract.words import ItemFilter, ItemLayer, ItemSort, MemoryConcern, RecallPath, SearchKind, Verdict

if TYPE_CHECKING:
    from kledger.answers.knowledge import Changed, History, ItemList, RatedMany, SavedMany, SearchResults, WholeItem
    from kledger.answers.lineage import LineageOf, TraceList
    from kledger.answers.parts import Moved, Saved

KNOWLEDGE = "/api/knowledge"
ITEMS_A_BATCH = 1000  # the most that the node takes in one request
VERDICTS_A_BATCH = 5000

Moment = int | str | datetime  # a position, or a time (RFC 3339 when it is a text)


async def search(
    wire: Wire,
    query: str,
    *,
    top_k: int = 5,
    min_score: int = 3,
    min_match: float = 0.0,
    types: Sequence[str] | None = None,
    owner: str | None = None,
    visibility: Sequence[str] | None = None,
    scopes: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    layers: Sequence[ItemLayer] | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    concern: MemoryConcern | None = None,
    as_of: Moment | None = None,
    path: RecallPath = "fused",
    record: bool = True,
    kind: SearchKind = "search",
    route: bool | None = None,
    explain: bool = False,
) -> SearchResults:
    """The best items for `query` among those that the caller may see, best first.

    Each has its `match`, the share of the query that it covers (0 to 1); results below `min_match` are left out. What
    answers nothing has 0.07 to 0.36 at most, the more the more items you see (`kledger.contract.recall.floor_of`).
    `types` and `visibility` (private, shared, org, public) are each any-of; `scopes`, `tags`, `layers`, `since`,
    `until` and `concern` narrow it as they narrow `list`.
    `as_of` answers as it was then; `path` asks one path of recall alone; `record=False` keeps no event of what was
    served, and the `kind` `page` one that counts for nothing, for a person who looks. With `route` a model chooses
    first (None: as the node is set up); `routed` then says whether it did, and `reason` why not.
    With `explain` the answer says in `explained` why each result stands where it does, and what was left out.
    """
    return await wire.read(
        f"{KNOWLEDGE}/search",
        {
            "q": query,
            "top_k": top_k,
            "min_score": min_score,
            "min_match": min_match or None,
            "types": comma_joined(types),
            "owner": owner,
            "visibility": comma_joined(visibility),
            "scopes": comma_joined(scopes),
            "tags": comma_joined(tags),
            "layer": comma_joined(layers),
            "since": moment(since),
            "until": moment(until),
            "concern": concern,
            "as_of": moment(as_of),
            "paths": path,
            "record": record,
            "kind": None if kind == "search" else kind,
            "route": route,
            "explain": explain or None,
        },
    )


async def save(
    wire: Wire,
    task: str | None,
    content: str,
    types: Sequence[str],
    *,
    id: str | None = None,
    tags: Mapping[str, Any] | None = None,
    scopes: Sequence[str] | None = None,
    owner: str | None = None,
    acl: Sequence[Mapping[str, str]] | None = None,
    source: Mapping[str, Any] | None = None,
    resource_ids: Sequence[str] | None = None,
    resources: Sequence[Mapping[str, Any]] | None = None,
    score: int | None = None,
    message_id: str | None = None,
    trace_id: str | None = None,
    idempotency_key: str | None = None,
) -> Saved:
    """Save a new item, shared with those in `acl` (see `share`) beside those in its scopes. Without a `task` (None) it
    is the first sentence of the content; an `owner` may be the mail address of a user. `message_id` and `trace_id` are
    of where the whole item is from; those of its `source` and of `within` are kept beside them.
    `resources` (up to 12, each with the fields of `resources.save`) are saved with the item, which refers to them;
    their owner and scopes are the item's where they state none. All of it is kept, or nothing.

    KnowledgeExists when `id` is there with other content; InvalidPayload, IllegalScope, NotOwner.
    """
    body = without_none(
        id=id,
        task=task,
        content=content,
        types=list(types),
        tags=tags,
        scopes=scopes,
        owner=owner,
        acl=acl,
        source=source,
        resource_ids=resource_ids,
        resources=resources,
        score=score,
        message_id=message_id,
        trace_id=trace_id,
    )
    return await wire.write("POST", KNOWLEDGE, body, idempotency_key=idempotency_key)


async def save_many(wire: Wire, items: Iterable[Mapping[str, Any]]) -> SavedMany:
    """Save payloads (each the body of one save), 1000 a request, and say of each what became of it.

    An item that is there with the same content is `unchanged` and appends nothing, so that saving the
    same list again is safe. What a person had retired or corrected is `held` (see `held_statements`). A refused
    item does not stop the others.
    """
    answer: SavedMany = {"results": [], "saved": 0, "unchanged": 0, "refused": 0, "held": 0, "position": 0}
    rest = iter(items)
    while batch := list(islice(rest, ITEMS_A_BATCH)):
        offset = len(answer["results"])
        part: SavedMany = await wire.write("POST", f"{KNOWLEDGE}/batch", {"items": batch})
        for one in part["results"]:
            one["index"] += offset
        answer["results"] += map(row_in_python, part["results"])
        answer["saved"] += part["saved"]
        answer["unchanged"] += part["unchanged"]
        answer["refused"] += part["refused"]
        answer["held"] += part.get("held", 0)  # an older node holds nothing
        answer["position"] = max(answer["position"], part["position"])
    return answer


async def revise(
    wire: Wire,
    id: str,
    *,
    task: str | None = None,
    content: str | None = None,
    types: Sequence[str] | None = None,
    tags: Mapping[str, Any] | Sequence[str] | None = None,
    scopes: Sequence[str] | None = None,
    owner: str | None = None,
    source: Mapping[str, Any] | None = None,
    resource_ids: Sequence[str] | None = None,
    expected_version: int | None = None,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> Changed:
    """State fields of an item anew; what is not given stays. The owner may, and whom the ACL lets write (NotOwner).

    A task that is the first sentence of the content is made anew with it. `tags` are an object, or words, each of which
    is a tag without a value. With `expected_version` the change is refused (VersionConflict) when somebody was faster.
    """
    body = without_none(
        task=task,
        content=content,
        types=types,
        tags=tags,
        scopes=scopes,
        owner=owner,
        source=source,
        resource_ids=resource_ids,
    )
    if not body:
        raise InvalidPayload(f"nothing to revise on {id}: state at least one field anew")
    body |= without_none(expected_version=expected_version, reason=reason)
    return await _change(wire, id, body, idempotency_key)


async def rate(
    wire: Wire,
    id: str,
    verdict: Verdict,
    *,
    task: str | None = None,
    query: str | None = None,
    outcome: str | None = None,
    reason: str | None = None,
    timestamp: str | None = None,
    trace_id: str | None = None,
    message_id: str | None = None,
    idempotency_key: str | None = None,
) -> Changed:
    """Say that an item helped or harmed, with the case that shows it."""
    case = without_none(
        task=task,
        query=query,
        outcome=outcome,
        reason=reason,
        timestamp=timestamp,
        trace_id=trace_id,
        message_id=message_id,
    )
    return await _change(wire, id, {f"add_{verdict}_case": case}, idempotency_key)


async def rate_many(wire: Wire, verdicts: Iterable[Mapping[str, Any]]) -> RatedMany:
    """Say it of many: `{"knowledge_id","is_helpful","case"}` each, 5000 a request."""
    answer: RatedMany = {"updated": 0, "refused": [], "position": 0}
    rest = iter(verdicts)
    offset = 0
    while batch := list(islice(rest, VERDICTS_A_BATCH)):
        part: RatedMany = await wire.write("POST", f"{KNOWLEDGE}/batch_update", {"feedback_list": batch})
        answer["updated"] += part["updated"]
        answer["refused"] += [{**one, "index": one["index"] + offset} for one in part["refused"]]
        answer["position"] = max(answer["position"], part["position"])
        offset += len(batch)
    return answer


async def score(wire: Wire, id: str, score: int, *, idempotency_key: str | None = None) -> Changed:
    """Give an item a new score, 1 (poor) to 5."""
    return await _change(wire, id, {"update_score": score}, idempotency_key)


async def retire(
    wire: Wire,
    id: str,
    *,
    expected_version: int | None = None,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> Moved:
    """Take an item out of recall; it stays readable. Only the owner may; IllegalState when it is out.

    With `expected_version` it is refused (VersionConflict) when somebody was faster.
    """
    return await wire.write(
        "DELETE",
        f"{KNOWLEDGE}/{segment(id)}",
        params={"reason": reason, "expected_version": expected_version},
        idempotency_key=idempotency_key,
    )


async def restore(
    wire: Wire,
    id: str,
    *,
    expected_version: int | None = None,
    reason: str | None = None,
    idempotency_key: str | None = None,
) -> Moved:
    """Bring a retired item back. Only the owner may; IllegalState when it is active.

    With `expected_version` it is refused (VersionConflict) when somebody was faster.
    """
    return await wire.write(
        "POST",
        f"{KNOWLEDGE}/{segment(id)}/restore",
        params={"reason": reason, "expected_version": expected_version},
        idempotency_key=idempotency_key,
    )


async def get(wire: Wire, id: str, *, as_of: Moment | None = None) -> WholeItem:
    """One item with its status and the cases of its histories. UnknownKnowledge when there is none to see."""
    return await wire.read(f"{KNOWLEDGE}/{segment(id)}", {"as_of": moment(as_of)})


async def list_items(
    wire: Wire,
    *,
    limit: int = 10,
    offset: int = 0,
    before: int | None = None,
    types: Sequence[str] | None = None,
    scopes: Sequence[str] | None = None,
    owner: str | None = None,
    visibility: Sequence[str] | None = None,
    status: ItemFilter = "active",
    tags: Sequence[str] | None = None,
    layers: Sequence[ItemLayer] | None = None,
    min_score: int | None = None,
    max_score: int | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    created_by: str | None = None,
    concern: MemoryConcern | None = None,
    sort: ItemSort = "newest",
    as_of: Moment | None = None,
) -> ItemList:
    """A page of the items that the caller may see; filters narrow it, none widens it.

    `tags` are words among an item's tags, or `name=value`, and `layers` what it is (semantic, document, plain, …), each
    any-of; `since` and `until` are moments of its last change, `created_by` is who stated it first, `concern` is
    conflicting, promoted or never_recalled. `sort` is newest, oldest, updated, helpful or confidence; in any but
    newest, `next` is the `offset` of the next page.
    """
    return await wire.read(
        KNOWLEDGE,
        {
            "limit": limit,
            "offset": offset,
            "before": before,
            **filters(
                types=types,
                scopes=scopes,
                owner=owner,
                visibility=visibility,
                status=status,
                tags=tags,
                layers=layers,
                min_score=min_score,
                max_score=max_score,
                since=since,
                until=until,
                created_by=created_by,
                concern=concern,
            ),
            "sort": None if sort == "newest" else sort,  # the usual one: nodes of before know no order
            "as_of": moment(as_of),
        },
    )


class ItemFilters(TypedDict, total=False):
    """Which items, as `list` takes it."""

    types: Sequence[str] | None
    scopes: Sequence[str] | None
    owner: str | None
    visibility: Sequence[str] | None
    status: ItemFilter
    tags: Sequence[str] | None
    layers: Sequence[ItemLayer] | None
    min_score: int | None
    max_score: int | None
    since: str | datetime | None
    until: str | datetime | None
    created_by: str | None
    concern: MemoryConcern | None


_SEVERAL = ("types", "scopes", "visibility", "tags", "layers")


def filters(**given: Unpack[ItemFilters]) -> dict[str, Any]:
    """Filters as the query string has them."""
    stated: dict[str, Any] = dict(given)
    joined = {name: comma_joined(stated.pop(name, None)) for name in _SEVERAL}
    joined["layer"] = joined.pop("layers")
    return joined | stated | {name: moment(stated.get(name)) for name in ("since", "until")}


async def history(
    wire: Wire, id: str, *, limit: int | None = None, before: int | None = None, shorten: int | None = None
) -> History:
    """Every version of an item and every verdict on it.

    With a `limit` the latest so many of each, with `before` those of earlier positions; `shorten` leaves so many
    characters of each content, whose `length` is then that of the whole. Of more than fit into an answer the latest:
    `next` is then the `before` of the earlier ones.
    """
    return await wire.read(f"{KNOWLEDGE}/{segment(id)}/history", {"limit": limit, "before": before, "shorten": shorten})


async def lineage(wire: Wire, ref: str) -> LineageOf:
    """Where `ref` came from and what came of it: an item's id, `trace:ID`, `message:ID` or `event:ID`."""
    return await wire.read("/api/lineage", {"ref": ref})


async def traces(wire: Wire, *, limit: int = 20, before: int | None = None) -> TraceList:
    """The latest traces: how many events each caused, by whom, and when, as far as the caller may know of it."""
    return await wire.read("/api/traces", {"limit": limit, "before": before})


async def _change(wire: Wire, id: str, body: Mapping[str, Any], key: str | None) -> Changed:
    return await wire.write("PUT", f"{KNOWLEDGE}/{segment(id)}", body, idempotency_key=key)


def moment(value: Moment | None) -> int | str | None:
    """A position or time as the query string wants it; a datetime must know its zone."""
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise InvalidPayload(f"{value.isoformat()} has no time zone: give one, for example datetime.now(UTC)")
    return value.isoformat()


class KnowledgeEndpoints:
    """Knowledge and its lineage."""

    search = Endpoint(search)
    save = Endpoint(save)
    save_many = Endpoint(save_many)
    revise = Endpoint(revise)
    rate = Endpoint(rate)
    rate_many = Endpoint(rate_many)
    score = Endpoint(score)
    retire = Endpoint(retire)
    restore = Endpoint(restore)
    get = Endpoint(get)
    list = Endpoint(list_items)
    history = Endpoint(history)
    lineage = Endpoint(lineage)
    traces = Endpoint(traces)
