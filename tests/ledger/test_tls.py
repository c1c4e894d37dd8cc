"""A broker behind TLS: trusted, or refused at once with a word about why, and told nothing before."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kledger.contract.errors import BrokerMisconfigured, BrokerUnavailable, LedgerError
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.server_config import find_binary
from tests.patience import PATIENCE, comes_true


def certificate(directory: Path, address: str) -> Path:
    """A certificate for one address, signed by itself, and beside it its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a broker")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    directory.mkdir()
    (directory / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (directory / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return directory / "cert.pem"


@asynccontextmanager
async def broker_with(cert: Path, listen: str = "127.0.0.1:-1", *, tls: bool = True) -> AsyncIterator[str]:
    """A nats-server that asks for TLS, with this certificate; its HOST:PORT."""
    ports = cert.parent
    settings: dict[str, object] = {"listen": listen, "ports_file_dir": str(ports)}
    if tls:
        settings["tls"] = {"cert_file": str(cert), "key_file": str(cert.parent / "key.pem")}
    (ports / "nats.conf").write_bytes(orjson.dumps(settings))
    server = await asyncio.create_subprocess_exec(
        find_binary(), "-c", str(ports / "nats.conf"), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await comes_true(lambda: any(file.stat().st_size for file in ports.glob("*.ports")))
        (file,) = ports.glob("*.ports")
        (url,) = orjson.loads(file.read_bytes())["nats"]
        yield url.partition("://")[2]
    finally:
        server.terminate()
        await server.wait()
        for file in ports.glob("*.ports"):
            file.unlink(missing_ok=True)


async def opened(url: str) -> BrokerConnection:
    return await BrokerConnection.open(BrokerAccess.from_url(url), "writer", timeout=PATIENCE)


@pytest.mark.parametrize("scheme", ["nats", "tls"])
async def test_a_broker_whose_authority_is_not_known_is_refused_at_once_and_says_what_to_set(
    tmp_path: Path, scheme: str
) -> None:
    async with broker_with(certificate(tmp_path / "tls", "127.0.0.1")) as place:
        with pytest.raises(BrokerMisconfigured, match=r"is not trusted here.*SSL_CERT_FILE"):
            await opened(f"{scheme}://{place}")


async def test_a_broker_with_the_certificate_of_another_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert = certificate(tmp_path / "tls", "192.0.2.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    async with broker_with(cert) as place:
        with pytest.raises(BrokerMisconfigured, match="is not trusted here: IP address mismatch"):
            await opened(f"tls://{place}")


@pytest.mark.parametrize(
    ("tls", "why"),
    [(True, "is not trusted here: self-signed certificate"), (False, "speaks no TLS, which tls:// asks for")],
)
async def test_a_broker_that_comes_back_with_what_is_not_trusted_is_told_as_that_until_it_is_trusted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool, why: str
) -> None:
    cert, other = certificate(tmp_path / "tls", "127.0.0.1"), certificate(tmp_path / "other", "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    async with broker_with(cert) as place:
        connection = await opened(f"tls://{place}")
    await comes_true(lambda: not connection.is_connected)
    with pytest.raises(BrokerUnavailable, match="is it running"):
        await connection.until_connected(0.1)
    async with broker_with(other, place, tls=tls):
        said = ""
        async with asyncio.timeout(PATIENCE):
            while why not in said:
                with pytest.raises(BrokerUnavailable) as lost:
                    await connection.until_connected(0.1)
                said = lost.value.message
    async with broker_with(cert, place):
        await connection.until_connected(PATIENCE)
        await connection.close()


@pytest.mark.parametrize("scheme", ["nats", "tls"])
async def test_a_broker_whose_authority_is_named_is_spoken_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    cert = certificate(tmp_path / "tls", "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    async with broker_with(cert) as place:
        connection = await opened(f"{scheme}://{place}")
        assert connection.is_connected
        await connection.close()


async def test_a_server_without_tls_hears_no_password_where_the_address_asks_for_it() -> None:
    heard = bytearray()
    info = orjson.dumps({"server_id": "x", "version": "2.12.0", "max_payload": 1_000_000, "auth_required": True})

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO " + info + b"\r\n")
        while said := await reader.read(1024):
            heard.extend(said)
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(LedgerError) as refused:
            await opened(f"tls://node:secret@127.0.0.1:{port}")
    assert not heard
    assert isinstance(refused.value, BrokerMisconfigured)
    assert "speaks no TLS, which tls:// asks for" in refused.value.message
