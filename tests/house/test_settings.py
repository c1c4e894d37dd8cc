"""Settings of the environment: a number that is none is refused at the start, and not met by the first request."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from pydantic_settings import BaseSettings

from consumers.model_settings import ModelSettings, model_settings_from_environment
from consumers.recall.rerank_settings import RerankSettings
from kledger.contract.errors import InvalidPayload
from ledger.runtime.settings import EnvironmentSettings, settings_of
from ledger.sessions.settings import SessionSettings
from producers.access.limits import Limits
from producers.cli.variables import NAMES
from producers.node.start.environment import NodeEnvironment
from projections.analysts.memory_watch import AnalystLimits, analyst_limits
from projections.vectors.embedding import settings as embedding
from tests.contracts.test_addresses import NO_ADDRESSES

ALL: set[type[EnvironmentSettings]] = {
    ModelSettings,
    RerankSettings,
    SessionSettings,
    Limits,
    AnalystLimits,
    embedding._Environment,
}
NUMBERS = [
    (kind, name) for kind in ALL for name, field in kind.model_fields.items() if "float" in str(field.annotation)
]


def test_every_class_of_settings_is_tried() -> None:
    ours = {kind for kind in BaseSettings.__subclasses__() if not kind.__module__.startswith("pydantic")}
    assert ours == {EnvironmentSettings}
    assert set(EnvironmentSettings.__subclasses__()) == ALL


@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "1e400"])
@pytest.mark.parametrize(("kind", "name"), sorted(NUMBERS, key=str))
def test_a_setting_that_is_no_number_is_refused_at_the_start(
    kind: type[EnvironmentSettings], name: str, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kind.model_config["env_prefix"]
    monkeypatch.setenv(f"{kind.model_config['env_prefix']}{name}".upper(), number)
    with pytest.raises(ValidationError, match=name):
        kind()


ODD = [
    (kind, name)
    for kind in ALL
    for name, field in kind.model_fields.items()
    if not any(text in str(field.annotation) for text in ("str", "Secret"))
]


@pytest.mark.parametrize(("kind", "name"), sorted(ODD, key=str))
def test_a_setting_that_does_not_fit_is_named_as_its_variable(
    kind: type[EnvironmentSettings], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = str(kind.model_fields[name].validation_alias or f"{kind.model_config['env_prefix']}{name}".upper())
    assert variable in NAMES
    monkeypatch.setenv(variable, "many")
    with pytest.raises(InvalidPayload, match=rf"^a setting does not fit: {variable} ") as refused:
        settings_of(kind)
    assert f"'field': '{variable}'" in str(refused.value.details)


EVERY = sorted(((kind, name) for kind in ALL for name in kind.model_fields), key=str)


def variables(kind: type[EnvironmentSettings], name: str) -> list[str]:
    """The variables of a setting, the first one first."""
    alias = kind.model_fields[name].validation_alias
    return [
        str(each)
        for each in getattr(alias, "choices", None) or [alias or f"{kind.model_config['env_prefix']}{name}".upper()]
    ]


@pytest.mark.parametrize("blank", ["", " ", "\r"])
@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_a_variable_that_is_blank_is_not_set(
    kind: type[EnvironmentSettings], name: str, blank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unset = settings_of(kind)
    for variable in variables(kind, name):
        monkeypatch.setenv(variable, blank)
    assert settings_of(kind) == unset


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_the_line_end_of_a_file_of_variables_is_not_of_a_value(
    kind: type[EnvironmentSettings], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = kind.model_fields[name]
    known = {"url": "http://127.0.0.1:1", "prices": '{"small": [1, 2]}', "key": "a key"}
    value = known.get(name) or str(field.default or "1").lower()
    variable = variables(kind, name)[0]
    monkeypatch.setenv(variable, value)
    without = settings_of(kind)
    monkeypatch.setenv(variable, f" {value} \r")
    assert settings_of(kind) == without


def test_a_blank_key_of_ours_leaves_the_one_that_others_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "theirs")
    for own in ("KLEDGER_MODEL_KEY", "KLEDGER_EMBEDDING_KEY"):
        monkeypatch.setenv(own, "")
    keys = (settings_of(ModelSettings).key, settings_of(embedding._Environment).key)
    assert [key.get_secret_value() for key in keys] == ["theirs", "theirs"]


@pytest.mark.parametrize("prices", ['{"small": [1, 1e400]}', "small", "[1]", '{"small": 1}'])
def test_prices_that_are_none_are_refused_at_the_start(prices: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLEDGER_MODEL_PRICES", prices)
    with pytest.raises(InvalidPayload, match="KLEDGER_MODEL_PRICES"):
        model_settings_from_environment()


def test_what_analysts_may_use_is_read_at_the_start_of_a_node_too(monkeypatch: pytest.MonkeyPatch) -> None:
    analyst_limits.cache_clear()
    monkeypatch.setenv("KLEDGER_LIMIT_ANALYST_SECONDS", "many")
    with pytest.raises(InvalidPayload, match="KLEDGER_LIMIT_ANALYST_SECONDS"):
        NodeEnvironment()


def test_a_session_that_never_ends_has_times_that_can_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DAYS", "IDLE_MINUTES"):
        monkeypatch.setenv(f"KLEDGER_SESSION_{name}", "1e300")
        with pytest.raises(ValidationError):
            SessionSettings()
        monkeypatch.setenv(f"KLEDGER_SESSION_{name}", "36500")
    assert 0 < SessionSettings().idle_us < SessionSettings().kept_us < 2**63


ADDRESSES = sorted(
    ((kind, name) for kind in ALL for name, field in kind.model_fields.items() if name == "url" or "_url" in name),
    key=str,
)


@pytest.mark.parametrize("address", NO_ADDRESSES)
@pytest.mark.parametrize(("kind", "name"), ADDRESSES)
def test_an_address_that_is_none_is_refused_at_the_start(
    kind: type[EnvironmentSettings], name: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{kind.model_config['env_prefix']}{name}".upper(), address)
    with pytest.raises(ValidationError, match="is no address"):
        kind()
