"""Publisher configuration: a nats-server configuration with a user for each publisher, who can publish only as itself.

Every publisher is a user that may publish to subjects ending in its own actor tokens, within one tenant, and receive
the answers to that, and has no other permission. The ledger's four users are the same as in the embedded server
(`ledger.broker.access`): set-up uses `admin`, a node works as `node`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from kledger.contract.errors import BrokerMisconfigured, IllegalScope, InvalidPayload
from kledger.contract.scopes import OPERATOR, check_entity
from ledger.broker.access import ROLES, BrokerAccess, Role, accounts, new_passwords
from ledger.broker.server_config import MAX_PAYLOAD_BYTES, jetstream_settings, write_private
from ledger.event import DEFAULT_ORG, JsonObject
from ledger.runtime.whole_file import check_directory_place
from ledger.wire.subjects import ROOT, encode_token

CONFIG, CREDENTIALS, _STORE = "nats-server.conf", "credentials.json", "jetstream"
DEFAULT_LISTEN = "127.0.0.1:4222"
_OURS = {CONFIG, CREDENTIALS, _STORE, f"{CREDENTIALS}.draft", f"{CONFIG}.draft"}


@dataclass(frozen=True, slots=True)
class Publisher:
    """A user that may publish as one actor: `actor` is `kind:id`, `org` the tenant."""

    actor: str
    org: str
    password: str

    @property
    def user(self) -> str:
        """The user name: the actor, or `org/actor` in a tenant that is not the default."""
        return self.actor if self.org == DEFAULT_ORG else f"{self.org}/{self.actor}"

    @property
    def subjects(self) -> str:
        """The subjects it may publish to: any entity, id and event, with its own tenant and actor."""
        kind, _, name = self.actor.partition(":")
        return ".".join((ROOT, encode_token(self.org), "*", "*", "*", encode_token(kind), encode_token(name)))

    @property
    def inbox(self) -> str:
        """The prefix of its inboxes for answers; no other user may subscribe there."""
        return "_INBOX_" + encode_token(self.org + "/" + self.actor)

    def as_user(self) -> JsonObject:
        """The user entry of the server's configuration."""
        return {
            "user": self.user,
            "password": self.password,
            "permissions": {
                "publish": {"allow": [self.subjects]},
                "subscribe": {"allow": [f"{self.inbox}.>"]},
            },
        }


@dataclass(frozen=True, slots=True)
class Written:
    """The written files, all publishers, and where the server listens."""

    config: Path
    credentials: Path
    publishers: tuple[Publisher, ...]
    listen: str


_KEPT: TypeAdapter[dict[str, dict[str, str]]] = TypeAdapter(dict[str, dict[str, str]])


def write_nats_config(
    directory: Path,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    *,
    org: str = DEFAULT_ORG,
    listen: str | None = None,
) -> Written:
    """Write or update the configuration in `directory` and the passwords beside it (0600).

    Existing passwords are kept, and all other settings of an existing configuration, so that it can be loaded into a
    running server (`nats-server --signal reload=PID`), which refuses a whole configuration for another port. Raises
    IllegalScope for an illegal actor, BrokerMisconfigured when existing files cannot be read or a publisher to remove
    does not exist, InvalidPayload when `directory` cannot be created or has other files, or `listen` is no address.
    Then nothing is changed.
    """
    _check_ours(directory)
    if listen is not None:
        _check_listen(listen)
    before = _before(directory / CONFIG)
    passwords, publishers = _kept(directory / CREDENTIALS)
    for actor in add:
        if actor == OPERATOR:
            raise IllegalScope(f"as {OPERATOR} the node itself and its operator speak: name another publisher")
        publisher = Publisher(check_entity(actor), org, secrets.token_urlsafe(24))
        publishers.setdefault(publisher.user, publisher)
    for actor in remove:
        user = Publisher(check_entity(actor), org, "").user
        if publishers.pop(user, None) is None:
            known = ", ".join(sorted(publishers)) or "none"
            raise BrokerMisconfigured(
                f"{user} is no publisher in {directory}, so it is not removed; there are: {known}"
            )
    taken = set(publishers) & set(ROLES)
    if taken:  # impossible with today's grammar of entities; guards against a change of it
        raise IllegalScope(f"{', '.join(taken)} are names of the ledger's own users")
    directory.mkdir(exist_ok=True)
    directory.chmod(0o700)
    # Credentials first: a configuration whose passwords are not stored would lock everybody out.
    kept = {
        "roles": dict(passwords),
        "publishers": {name: one.password for name, one in sorted(publishers.items())},
        "actors": {name: one.actor for name, one in sorted(publishers.items())},
        "orgs": {name: one.org for name, one in sorted(publishers.items())},
        "inboxes": {name: one.inbox for name, one in sorted(publishers.items())},
    }
    write_private(directory / CREDENTIALS, orjson.dumps(kept, option=orjson.OPT_INDENT_2))
    ours = accounts(passwords, [one.as_user() for one in publishers.values()])
    config = {
        "listen": DEFAULT_LISTEN,
        "max_payload": MAX_PAYLOAD_BYTES,
        "jetstream": jetstream_settings(directory.absolute() / _STORE),
        **before,
        **({"listen": listen} if listen else {}),
        "accounts": {**before.get("accounts", {}), **ours},
    }
    write_private(directory / CONFIG, orjson.dumps(config, option=orjson.OPT_INDENT_2))
    return Written(directory / CONFIG, directory / CREDENTIALS, tuple(publishers.values()), str(config["listen"]))


def _check_ours(directory: Path) -> None:
    """Refuse a directory with other files, whose permissions would be changed, or a path that is not a directory."""
    check_directory_place(directory)
    others = {entry.name for entry in directory.iterdir()} - _OURS if directory.is_dir() else set()
    if others and not (directory / CREDENTIALS).is_file():
        raise InvalidPayload(
            f"{directory} has files in it and is no configuration of before: give an empty directory, or a new one",
            errors=[{"field": "directory", "reason": "holds something else"}],
        )


def access_with(url: str, credentials: Path) -> BrokerAccess:
    """Access to a server with this configuration, each role with its own user. Raises BrokerMisconfigured."""
    if not credentials.is_file():
        raise BrokerMisconfigured(f"there are no credentials in {credentials}: kledger nats-config writes them")
    passwords, _ = _kept(credentials)
    return BrokerAccess(BrokerAccess.from_url(url).url, passwords)


def _kept(path: Path) -> tuple[dict[Role, str], dict[str, Publisher]]:
    if not path.exists():
        return new_passwords(), {}
    try:
        kept = _KEPT.validate_json(path.read_bytes())
        passwords = {role: kept["roles"][role] for role in ROLES}
        publishers = {
            name: Publisher(kept["actors"][name], kept["orgs"][name], password)
            for name, password in kept["publishers"].items()
        }
    except (OSError, ValidationError, KeyError) as error:
        raise BrokerMisconfigured(
            f"the credentials in {path} cannot be read ({type(error).__name__}): restore the file, or remove "
            "it to have new ones made for everybody"
        ) from error
    return passwords, publishers


def _before(path: Path) -> JsonObject:
    """The settings of an existing configuration, as nats-server reads them (JSON is legal in its format)."""
    if not path.exists():
        return {}
    try:
        before = orjson.loads(path.read_bytes())
        if not (isinstance(before, dict) and isinstance(before.get("accounts", {}), dict)):
            raise ValueError
    except (OSError, ValueError) as error:
        raise BrokerMisconfigured(
            f"{path} is no longer the JSON that was written there, so it cannot be kept and changed: write your own "
            "settings into it as JSON, or remove it to have it made anew with the same passwords"
        ) from error
    return before


def _check_listen(listen: str) -> None:
    host, _, port = listen.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise InvalidPayload(
            f"{listen[:100]!r} is not HOST:PORT: write for example {DEFAULT_LISTEN}",
            errors=[{"field": "listen", "reason": "is no address to listen on"}],
        )
