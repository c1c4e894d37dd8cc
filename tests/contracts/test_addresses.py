"""Is an address that nobody can be asked at told as that by whoever is given it, before anything is begun?"""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.contract.addresses import is_http_address
from kledger.contract.errors import BrokerMisconfigured, InvalidPayload, NodeMisconfigured, NodeUnreachable
from ledger.backup.object_store import ENDPOINTS, _file_system
from ledger.broker.access import BrokerAccess
from producers.cli.main import app
from producers.node.address import host_and_port

NO_ADDRESSES = (
    "http://h\x01:1",
    "http://h\n:1",
    "http://h\x1b[31m/",
    "http://h\u202e/",
    "http://h\x85:1",
    "http://a b:1",
    "http://h:99999",
    "http://[::1",
    "http://",
    "nonsense",
    "ftp://h",
    f"http://{'é' * 70}.example",
)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8420", "https://h/v1", "http://[::1]:6333", "http://bücher.example"]
)
def test_an_address_is_taken(address: str) -> None:
    assert is_http_address(address)


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_an_address_of_a_node_that_is_none_is_told_as_that(address: str) -> None:
    with pytest.raises(NodeUnreachable, match="is no address of a node"):
        LedgerClient(address)


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_an_address_of_qdrant_that_is_none_ends_up_before_it_begins(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = tmp_path_factory.mktemp("up") / "data"
    ran = CliRunner().invoke(app, ["up", "--data", str(data), "--http", "127.0.0.1:0", "--qdrant", address])
    assert (ran.exit_code, ran.stderr.count("\n")) == (1, 1), ran.output
    assert "is no address: write http://HOST:PORT" in ran.stderr
    assert "(node_misconfigured)" in ran.stderr
    assert not data.exists()


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_an_address_of_an_object_store_that_is_none_is_told_as_that(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(ENDPOINTS[0], address)
    with pytest.raises(InvalidPayload, match="is no address of a server"):
        _file_system()


@pytest.mark.parametrize("address", ["nats://h\x01", "h\n:4222", "nats://h\u202e:1"])
def test_an_address_of_a_broker_with_controls_is_told_as_that(address: str) -> None:
    with pytest.raises(BrokerMisconfigured, match="cannot be printed"):
        BrokerAccess.from_url(address)


def test_a_data_directory_with_controls_ends_up_before_it_begins(tmp_path_factory: pytest.TempPathFactory) -> None:
    data = tmp_path_factory.mktemp("up") / "a\x01b"
    ran = CliRunner().invoke(app, ["up", "--data", str(data), "--http", "127.0.0.1:0"])
    assert (ran.exit_code, ran.stderr.count("\n")) == (1, 1), ran.output
    assert "has characters that cannot be printed" in ran.stderr
    assert not data.exists()


@pytest.mark.parametrize("address", ["127.0.0.1:1\x01", "h\n:1", "a b", "[::1"])
def test_an_address_to_serve_at_that_is_none_is_told_as_that(address: str) -> None:
    with pytest.raises(NodeMisconfigured, match="is not HOST:PORT"):
        host_and_port(address)
