"""Answers to the operator of a node: how it stands, jobs, SQL, refused events, proofs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.parts import Answered, Fault, Position, Time
from kledger.contract.words import JobKind, ParkedState, TokenRole


class WhoAmI(TypedDict):
    """As whom the node takes the caller: `entities`, the most specific first; none for the operator, and for a token
    that has to name one.

    `token` is the id of the token with its `role` and what it is `bound` to; null and empty where none is asked for.
    """

    entities: list[str]
    operator: bool
    token: str | None
    role: TokenRole | None
    bound: list[str]


class Job(TypedDict):
    """Work of the node that takes a while: `done` of `total` positions (0 until known), `rate` events a second.

    `result` is what the work came to, by its kind.
    """

    id: str
    kind: JobKind
    state: Literal["running", "done", "failed"]
    done: int
    total: int
    rate: float
    result: dict[str, Any] | None
    error: Fault | None


class Jobs(TypedDict):
    """The jobs of a node since its start, newest first, the last 100."""

    jobs: list[Job]


class Column(TypedDict):
    """A column of a relation."""

    name: str
    type: str
    comment: str


class Relation(TypedDict):
    """A table or view that analysts may query."""

    name: str
    kind: Literal["table", "view"]
    comment: str
    columns: list[Column]


class Relations(TypedDict):
    """What a statement of SQL can name, by name."""

    relations: list[Relation]


class Table(Answered):
    """Rows of a query, each value as JSON has it; `truncated` when the node left some out.

    NULL is null; a number that is none is `"nan"`, `"inf"` or `"-inf"`, which a cast to DOUBLE reads.
    """

    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    truncated: bool
    position: Position


class NodeStream(TypedDict):
    """The log: its last position, when that was kept, and how much it holds."""

    head: int
    time: str | None
    messages: int
    bytes: int
    url: str


class ViewLag(TypedDict):
    """How far a view is behind the log."""

    name: str
    position: int
    lag_events: int
    lag_seconds: float


class EmbeddingState(TypedDict):
    """How many texts wait for their embedding, and how the endpoint answers."""

    awaiting: int
    trouble: str | None
    calls: int
    missed: int
    refused: int


class Checkpoint(TypedDict):
    """A signature over the log up to a position: hashes in hexadecimal, `key` the id of the key."""

    position: int
    root: str
    head: str
    time: str
    key: str
    signature: str


class Certificate(TypedDict):
    """A certificate of a rebuild or replay that the node keeps: `state` is the digest of the views at the position."""

    file: str
    run: str
    position: int
    root: str
    state: str
    time: str
    key: str
    signature: str


class Certificates(TypedDict):
    """The last signed checkpoints, and the last certificates of rebuilds, 20 of each at most, newest first."""

    checkpoints: list[Checkpoint]
    certificates: list[Certificate]


class ChainStart(TypedDict):
    """Where the chain of a node began, whether what is before was signed, and who accepted it else."""

    position: int
    time: str
    signed: bool
    accepted: str | None


class ChainStatus(TypedDict):
    """How far the log is signed, with which checkpoint, and why not further."""

    position: int
    certified: Checkpoint | None
    trouble: str | None
    hook: str | None
    began: ChainStart | None


class DamagedSegment(TypedDict):
    """A segment of the archive that was not believed or was removed, and is made anew; `file` is its path there, or a
    whole part of the archive (`events`, `columns`), whose segments `segment` spans."""

    segment: str
    file: str
    reason: str


class ArchiveStatus(TypedDict):
    """How far the log is archived without a gap, the bytes on disk, what was damaged, and why there is not more."""

    position: int
    segments: int
    bytes: int
    damaged: list[DamagedSegment]
    trouble: str | None


class NodeVersions(TypedDict):
    """Versions of the node and of what it is made of."""

    product: str
    python: str
    duckdb: str
    nats: str
    qdrant_edge: str


class NodeSizes(TypedDict):
    """Bytes on the disk by part (`log`, `archive`, `views`, …), and of the data of events by entity, counted up to a
    position.
    """

    parts: dict[str, int]
    events: dict[str, int]
    counted_to: int


class QuackPort(TypedDict):
    """Where DuckDB clients attach."""

    port: int


class NodeStatus(TypedDict):
    """How a node stands; `reasons` say why it is not healthy, `warnings` what asks for attention."""

    healthy: bool
    reasons: list[str]
    warnings: list[str]
    stream: NodeStream
    views: list[ViewLag]
    embeddings: EmbeddingState | None
    chain: ChainStatus
    archive: ArchiveStatus | None
    refused: int
    versions: NodeVersions
    uptime_seconds: float
    quack: QuackPort | None
    bytes: NotRequired[NodeSizes]


class Health(TypedDict):
    """Whether the node does its work, and each reason why not."""

    status: Literal["healthy", "unhealthy"]
    reasons: list[str]


class Ready(TypedDict):
    """Whether the node may be asked; `degraded` is answered for a node that may, with the reasons."""

    status: Literal["ready", "degraded", "not ready"]
    reasons: list[str]


class Live(TypedDict):
    """That the process answers."""

    status: Literal["live"]


class Attach(TypedDict):
    """The SQL statements that attach the live view from any DuckDB."""

    prepare: str
    statement: str
    uri: str
    example: str


class ProofSubject(TypedDict):
    """What a proof is about: an item, and the positions of the events behind it."""

    org: str
    knowledge: str
    positions: list[int]


class ProvedEvent(TypedDict):
    """One event as the log holds it, `body` in base64, and the hashes from its leaf up to the root."""

    position: int
    stored_ns: int
    subject: str
    headers: dict[str, str]
    body: str
    path: list[str]


class Proof(TypedDict):
    """A proof that the events behind an item are in the log; `key` is the public key as text."""

    kind: Literal["kledger proof"]
    version: Literal[1]
    about: ProofSubject
    key: str
    checkpoint: Checkpoint
    events: list[ProvedEvent]


class RefusedEvent(TypedDict):
    """An event that is in the log and does not count; `state`, `tries` and `decided` are of one that is parked."""

    position: int
    time: Time
    subject: str
    event_id: str | None
    type: str | None
    code: str
    reason: str
    body: str
    state: ParkedState | None
    tries: NotRequired[int]
    decided: NotRequired[str]


class RefusedEvents(Answered):
    """Events that do not count, in order."""

    refused: list[RefusedEvent]
    next: NotRequired[Annotated[int, Field(description="The `after` of more that did not fit; absent otherwise")]]
    position: Position


class ParkingDecision(TypedDict):
    """What was decided about a parked event."""

    position: int
    fingerprint: str
    state: ParkedState
    reason: str
    tries: int
    time: Time


class Index(TypedDict):
    """What is where on a node; each link is a path of it."""

    name: str
    version: str
    links: dict[str, str]
