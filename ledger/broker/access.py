"""Broker users: four roles, their permissions and accounts, and how each of them connects.

Only `admin` may create or change a stream, and only set-up uses it. `writer` may publish and read single events;
`reader` may consume the stream; `node` may do both, and answers requests on `kledger.>`. So no process in daily
operation has the right to truncate or delete the log. The words of sessions are in another stream, from which `node`
may remove.

The streams belong to an account in which only the ledger's own processes are: `admin`, `node` and `reader`. What
answers a request is published by the server itself, wherever its reply subject points to, and no permission of who asks
holds for that: within the account an event with a reply subject of the JetStream API would delete the log. `writer` and
all publishers are in an account without JetStream, which imports what they may ask: answers end there.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import quote, unquote, urlsplit

from kledger.contract.errors import BrokerMisconfigured
from ledger.event import JsonObject
from ledger.wire.subjects import STREAM_SUBJECTS

Role = Literal["admin", "writer", "reader", "node"]
ROLES: tuple[Role, ...] = get_args(Role)

ACCOUNT = "LEDGER"
WRITERS_ACCOUNT = "LEDGER_WRITERS"
LEDGER_STREAM = "LEDGER"
EMBEDDINGS_STREAM = "KLEDGER_EMBEDDINGS"
EMBEDDING_SUBJECTS = "embedding.>"
KEYS_STREAM = "KV_KLEDGER_KEYS"
KEY_SUBJECTS = "$KV.KLEDGER_KEYS.>"
PARKED_STREAM = "KLEDGER_PARKED"
PARKED_SUBJECTS = "parked.>"
SESSIONS_STREAM = "SESSIONS"
SESSION_SUBJECTS = "sessions.>"
LEASE_BUCKET = "kledger_leases"
LEASE_SUBJECTS = f"$KV.{LEASE_BUCKET}.>"
REQUEST_SUBJECTS = "kledger.>"
# A plain client in any language keeps its default inbox. Readers get private ones, since a client that may subscribe to
# an inbox sees every event that is delivered there.
PUBLIC_INBOX = "_INBOX"


@dataclass(frozen=True, slots=True)
class BrokerAccess:
    """The address of a broker without credentials, and a password for each role.

    With `own_user` (an external server, given by URL) that one user serves every role.
    """

    url: str
    passwords: Mapping[Role, str] = field(default_factory=dict, repr=False)
    own_user: tuple[str, str] | None = field(default=None, repr=False)
    hindered: Callable[[], str | None] = field(default=lambda: None, repr=False, compare=False)
    """Returns why the broker cannot store anything now, where that is known: what is to be kept is refused at once."""

    @classmethod
    def from_url(cls, url: str) -> BrokerAccess:
        """Access to an external server by `nats://[user:password@]host:port`, or to a cluster by several, with commas.

        Only one of them needs user and password. Raises BrokerMisconfigured.
        """
        addresses, users = zip(*map(_address_and_user, url.split(",")), strict=True)
        return cls(",".join(addresses), own_user=next(filter(None, users), None))

    @property
    def urls(self) -> list[str]:
        """The address of each server."""
        return self.url.split(",")

    def credentials(self, role: Role) -> tuple[str, str] | None:
        """User and password of a role; None when the broker needs none."""
        if role in self.passwords:
            return role, self.passwords[role]
        return self.own_user

    def url_for(self, role: Role) -> str:
        """The address with the credentials of a role, for a client that takes a URL. It is a secret."""
        user = self.credentials(role)
        if user is None:
            return self.url
        userinfo = f"{quote(user[0], safe='')}:{quote(user[1], safe='')}@"
        return ",".join(url.replace("://", f"://{userinfo}", 1) for url in self.urls)

    def inbox_prefix(self, role: Role) -> str:
        """The only inbox prefix under which this role may receive answers."""
        return private_inbox(role) if role in self.passwords else PUBLIC_INBOX


def _address_and_user(url: str) -> tuple[str, tuple[str, str] | None]:
    if not url.isprintable():
        raise BrokerMisconfigured(f"the broker address {url!r} has characters that cannot be printed: write it anew")
    try:
        parts = urlsplit(url if "://" in url else f"nats://{url}")
        host, port = parts.hostname, parts.port or 4222
    except ValueError as error:
        raise BrokerMisconfigured(f"the broker address is not a URL: {error}") from error
    if parts.scheme not in ("nats", "tls") or not host:
        raise BrokerMisconfigured(
            f"the broker address needs the form nats://[user:password@]host:port, not scheme "
            f"{parts.scheme!r} and host {host!r}"
        )
    user = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}", user


def private_inbox(role: Role) -> str:
    return PUBLIC_INBOX if role == "writer" else f"{PUBLIC_INBOX}_{role}"


def new_passwords() -> dict[Role, str]:
    """A random password for each role."""
    return {role: secrets.token_urlsafe(24) for role in ROLES}


def accounts(passwords: Mapping[Role, str], publishers: Iterable[JsonObject] = ()) -> JsonObject:
    """The ledger's accounts with their users, in nats-server's configuration format.

    `publishers` are further users, who may publish to some of its subjects and nothing else.
    """
    users: dict[Role, JsonObject] = {
        role: {"user": role, "password": passwords[role]}
        | ({"permissions": _PERMISSIONS[role]} if role in _PERMISSIONS else {})
        for role in ROLES
    }
    return {
        ACCOUNT: {
            "jetstream": "enabled",
            # Readers too: a response over an import ends with an empty message, as an event may be.
            "users": [users["admin"], users["reader"], users["node"]],
            "exports": [_export(subject) for subject in _WRITE],
        },
        WRITERS_ACCOUNT: {
            "users": [users["writer"], *publishers],
            "imports": [{"service": {"account": ACCOUNT, "subject": subject}} for subject in _WRITE],
        },
    }


def _export(subject: str) -> JsonObject:
    exported: JsonObject = {"service": subject, "accounts": [WRITERS_ACCOUNT]}
    return exported | ({"response_type": "stream"} if subject.startswith("$JS.API.DIRECT.GET.") else {})


def _read_messages(stream: str) -> list[str]:
    return [
        f"$JS.API.STREAM.INFO.{stream}",
        f"$JS.API.STREAM.MSG.GET.{stream}",
        f"$JS.API.DIRECT.GET.{stream}",
        f"$JS.API.DIRECT.GET.{stream}.>",
    ]


def _consume(stream: str) -> list[str]:
    return [
        f"$JS.API.CONSUMER.CREATE.{stream}.>",
        f"$JS.API.CONSUMER.INFO.{stream}.*",
        f"$JS.API.CONSUMER.MSG.NEXT.{stream}.*",
        f"$JS.API.CONSUMER.DELETE.{stream}.*",
    ]


def _acknowledge(stream: str) -> str:
    return f"$JS.ACK.{stream}.>"


_WRITE = ["$JS.API.INFO", STREAM_SUBJECTS, *_read_messages(LEDGER_STREAM)]
_READ = [
    "$JS.API.INFO",
    *_read_messages(LEDGER_STREAM),
    *_consume(LEDGER_STREAM),
    *_read_messages(EMBEDDINGS_STREAM),
    *_consume(EMBEDDINGS_STREAM),
    EMBEDDING_SUBJECTS,
]
# What forgetting a subject needs: the keys, and secure deletion of keys and of cached embeddings; never of events.
_ERASE = [
    KEY_SUBJECTS,
    f"$JS.API.STREAM.INFO.{KEYS_STREAM}",
    f"$JS.API.STREAM.MSG.GET.{KEYS_STREAM}",
    f"$JS.API.STREAM.MSG.DELETE.{KEYS_STREAM}",
    f"$JS.API.STREAM.MSG.DELETE.{EMBEDDINGS_STREAM}",
]

# Words of sessions: the only stream that a process in daily operation removes from, a whole session at a time.
_SESSIONS = [
    SESSION_SUBJECTS,
    *_read_messages(SESSIONS_STREAM),
    f"$JS.API.STREAM.PURGE.{SESSIONS_STREAM}",
]


def _permissions(role: Role, publish: list[str], subscribe: list[str]) -> JsonObject:
    return {
        "publish": {"allow": sorted(set(publish))},
        "subscribe": {"allow": [f"{private_inbox(role)}.>", *subscribe]},
    }


_PERMISSIONS: dict[Role, JsonObject] = {
    "writer": _permissions("writer", _WRITE, []),
    "reader": _permissions("reader", _READ, []),
    "node": {
        **_permissions(
            "node",
            [
                *_WRITE,
                *_READ,
                *_ERASE,
                *_SESSIONS,
                _acknowledge(LEDGER_STREAM),  # for its reactors
                *_read_messages(PARKED_STREAM),
                PARKED_SUBJECTS,
                *_read_messages(f"KV_{LEASE_BUCKET}"),
                LEASE_SUBJECTS,
                REQUEST_SUBJECTS,
            ],
            [REQUEST_SUBJECTS],
        ),
        "allow_responses": True,
    },
}
