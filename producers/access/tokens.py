"""Tokens of a node: DATA/tokens.json with their hashes, bindings and expiry.

A token is `kledger_` and 256 random bits. It is shown once; the file holds only its SHA-256, which is enough for a
secret that cannot be guessed. The file is replaced atomically (0600), under a lock, so that a running node and several
commands may share it. A revoked token stays in it, so that its holder gets the reason.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import re
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import orjson
from pydantic import TypeAdapter, ValidationError

from kledger.contract.errors import IllegalState, InvalidPayload, NodeMisconfigured, UnknownReference
from kledger.contract.resource import in_capitals, moment_of
from kledger.contract.words import TokenRole
from ledger.broker.server_config import write_private
from ledger.runtime.data_directory import TOKENS, check_data_place
from ledger.runtime.private import hand_over
from producers.access.principal import Principal, bindings

PREFIX = "kledger_"

State = Literal["active", "expired", "revoked"]
_SPAN = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """The record of one token, without the token itself. Times are RFC 3339 in UTC."""

    id: str
    sha256: str
    role: TokenRole
    bound: dict[str, tuple[str, ...]]
    name: str
    created: datetime
    expires: datetime | None
    revoked: datetime | None = None

    @property
    def principal(self) -> Principal:
        return Principal(self.id, self.role, self.bound)

    def state(self, now: datetime) -> State:
        """The state at `now`; revoked takes precedence over expired, as somebody decided it."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "active"


_RECORDS: TypeAdapter[list[TokenRecord]] = TypeAdapter(list[TokenRecord])


def hash_of(token: str) -> str:
    """The SHA-256 of a token, in hexadecimal."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def tokens_file(data: Path) -> Path:
    """The tokens file of the node on `data`."""
    return data / TOKENS


def read_records(path: Path) -> list[TokenRecord]:
    """The records of a file; none when there is no file. Raises NodeMisconfigured when it cannot be read."""
    try:
        document = orjson.loads(path.read_bytes())
        return _RECORDS.validate_python(document["tokens"], strict=False)
    except FileNotFoundError:
        return []
    except PermissionError as error:
        raise NodeMisconfigured(
            f"the tokens in {path} cannot be read: give the node's user the file, as chown does"
        ) from error
    except (OSError, orjson.JSONDecodeError, ValidationError, KeyError, TypeError) as error:
        raise NodeMisconfigured(
            f"the tokens in {path} cannot be read ({type(error).__name__}): restore the file, or remove it and "
            "create the tokens anew"
        ) from error


def ask_for_tokens(data: Path) -> None:
    """Have a node on `data` ask for tokens, though it has none yet."""
    with _changing(data):
        pass  # what is written back is a file, with the tokens that there are


def create_token(
    data: Path,
    named: Mapping[str, Iterable[str]],
    role: TokenRole = "agent",
    expires: datetime | None = None,
    name: str = "",
) -> tuple[TokenRecord, str]:
    """Create a token; returns its record and the token itself, which is stored nowhere.

    Raises InvalidPayload for an agent that is bound to nothing (it would be the operator), or for a missing directory,
    IllegalScope.
    """
    bound = bindings(named)
    if role == "agent" and not bound:
        raise InvalidPayload(
            "a token of the role agent is somebody's: name at least one of --user, --agent, --project, --team, "
            "--org, --entity",
            errors=[{"field": "bound", "reason": "names nobody"}],
        )
    if not name.isprintable():
        raise InvalidPayload(
            "the name of a token is printable text: leave out line ends and what is no text",
            errors=[{"field": "name", "reason": "is not printable"}],
        )
    token = PREFIX + secrets.token_urlsafe(32)
    record = TokenRecord(
        id=f"t-{secrets.token_hex(5)}",
        sha256=hash_of(token),
        role=role,
        bound=bound,
        name=name,
        created=datetime.now(UTC).replace(microsecond=0),
        expires=expires,
    )
    with _changing(data) as records:
        records.append(record)
    return record, token


def revoke_token(data: Path, token_id: str) -> TokenRecord:
    """Revoke a token, at once and permanently. Raises UnknownReference, IllegalState (revoked already)."""
    listing = f"kledger token list --data {shlex.quote(str(data))}"
    unknown = f"there is no token {token_id[:100]!r} in {tokens_file(data)}: {listing} tells ids"
    if not tokens_file(data).exists():  # a mistyped directory must not be created
        raise UnknownReference(unknown)
    with _changing(data) as records:
        for place, record in enumerate(records):
            if record.id == token_id:
                if record.revoked is not None:
                    raise IllegalState(f"token {token_id} was revoked already, at {record.revoked.isoformat()}")
                records[place] = replace(record, revoked=datetime.now(UTC).replace(microsecond=0))
                return records[place]
    raise UnknownReference(unknown)


def expiry(text: str, now: datetime) -> datetime | None:
    """Parse `30d`, `12h`, `8w`, `never`, or a future time in RFC 3339. Raises InvalidPayload."""
    if text == "never":
        return None
    span = _SPAN.fullmatch(text)
    if span is not None:
        return (now + timedelta(hours=int(span[1]) * _HOURS[span[2]])).replace(microsecond=0)
    moment = None
    with contextlib.suppress(ValueError):  # no moment, or one beyond the years that a calendar has
        moment = moment_of(in_capitals(text))
    if moment is None or moment <= now:
        raise InvalidPayload(
            f"{text[:60]!r} is no time for a token to end: write 30d, 12h, 8w, never, or a moment to come as "
            "2027-03-05T12:00:00Z",
            errors=[{"field": "expires", "reason": "is not a time to come"}],
        )
    return moment


@contextmanager
def _changing(data: Path) -> Iterator[list[TokenRecord]]:
    """The records, written back when the block ends without an error; one writer at a time."""
    check_data_place(data)
    data.mkdir(exist_ok=True)
    with (path := data / f"{TOKENS}.lock").open("a+") as lock:
        hand_over(lock.fileno(), path)
        fcntl.flock(lock, fcntl.LOCK_EX)
        records = read_records(tokens_file(data))
        yield records
        document = {"version": 1, "tokens": [asdict(record) for record in records]}
        write_private(tokens_file(data), orjson.dumps(document, option=orjson.OPT_INDENT_2))
