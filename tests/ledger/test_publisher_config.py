"""What a second run of `kledger nats-config` keeps: a running server takes it only where nothing else was changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kledger.contract.errors import BrokerMisconfigured, InvalidPayload
from ledger.broker.publisher_config import DEFAULT_LISTEN, write_nats_config
from producers.cli.main import app


def users(config: dict[str, Any]) -> set[str]:
    return {user["user"] for account in config["accounts"].values() for user in account["users"]}


@pytest.mark.parametrize("change", ["adds", "removes"])
def test_whoever_is_added_or_removed_the_server_listens_and_stores_where_it_did(tmp_path: Path, change: str) -> None:
    into = tmp_path / "broker"
    written = write_nats_config(into, ["agent:a", "agent:b"], listen="127.0.0.1:4650")
    mine = json.loads(written.config.read_bytes())
    mine["jetstream"]["store_dir"] = "/var/lib/nats"
    mine["tls"] = {"cert_file": "/etc/cert.pem"}
    mine["accounts"]["OTHERS"] = {"users": []}
    written.config.write_text(json.dumps(mine))
    again = write_nats_config(into, *((["agent:c"],) if change == "adds" else ([], ["agent:b"])))
    now = json.loads(again.config.read_bytes())
    assert (now["listen"], again.listen) == ("127.0.0.1:4650", "127.0.0.1:4650")
    assert users(mine) ^ users(now) == {"agent:c" if change == "adds" else "agent:b"}
    for ours in ("LEDGER", "LEDGER_WRITERS"):
        mine["accounts"].pop(ours), now["accounts"].pop(ours)
    assert now == mine


def test_another_address_is_taken_where_it_is_given(tmp_path: Path) -> None:
    assert write_nats_config(tmp_path, ["agent:a"]).listen == DEFAULT_LISTEN
    assert write_nats_config(tmp_path, listen="0.0.0.0:4222").listen == "0.0.0.0:4222"
    run = CliRunner().invoke(app, ["nats-config", str(tmp_path), "--publisher", "agent:b"])
    assert "--nats nats://0.0.0.0:4222" in run.stdout


@pytest.mark.parametrize(
    "listen", ["4222", "127.0.0.1", "127.0.0.1:", ":4222", "127.0.0.1:0", "127.0.0.1:99999", "a:b"]
)
def test_what_is_no_address_to_listen_on_is_refused_and_writes_nothing(tmp_path: Path, listen: str) -> None:
    with pytest.raises(InvalidPayload, match="is not HOST:PORT"):
        write_nats_config(tmp_path / "broker", ["agent:a"], listen=listen)
    assert not (tmp_path / "broker").exists()


@pytest.mark.parametrize("text", ['listen: "0.0.0.0:4222"  # ours', "[]", '{"accounts": 1}', ""])
def test_a_configuration_that_somebody_wrote_anew_is_not_written_over(tmp_path: Path, text: str) -> None:
    written = write_nats_config(tmp_path, ["agent:a"])
    written.config.write_text(text)
    kept = written.credentials.read_bytes()
    with pytest.raises(BrokerMisconfigured, match="is no longer the JSON"):
        write_nats_config(tmp_path, ["agent:b"])
    assert (written.config.read_text(), written.credentials.read_bytes()) == (text, kept)
    written.config.unlink()
    assert {one.actor for one in write_nats_config(tmp_path, ["agent:b"]).publishers} == {"agent:a", "agent:b"}
