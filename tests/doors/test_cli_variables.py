"""Is a mistyped variable of the environment pointed out?"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from pydantic import AliasChoices

from consumers.model_settings import TASKS
from ledger.runtime.settings import EnvironmentSettings
from producers.cli import variables
from producers.cli.commands.node import up
from producers.cli.variables import NAMES, PREFIX, idle, mistyped
from tests.doors.scripted_node import commanded_node
from tests.doors.test_cli_knowledge import kledger

ROOT = Path(__file__).parents[2]
PACKAGES = ("kledger", "ledger", "producers", "consumers", "projections")
STREAMS = {"KLEDGER_EMBEDDINGS", "KLEDGER_PARKED"}


def test_the_names_are_those_that_the_product_reads() -> None:
    stated: set[str] = set()
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            text = file.read_text("utf-8")
            stated |= set(re.findall(r'"(KLEDGER_[A-Z0-9_]*[A-Z0-9])"', text))
            if "SettingsConfigDict" in text:
                import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    for kind in EnvironmentSettings.__subclasses__():
        if kind.__module__.split(".")[0] in PACKAGES:
            stated |= names_of(kind)
    stated |= {f"{PREFIX}{kind}" for kind in ("USER", "AGENT", "PROJECT", "TEAM", "ORG")}
    assert stated - STREAMS == NAMES


def names_of(kind: type[EnvironmentSettings]) -> set[str]:
    found: set[str] = set()
    for name, field in kind.model_fields.items():
        alias = field.validation_alias
        if alias is None:
            found.add(f"{kind.model_config.get('env_prefix')}{name.upper()}")
        else:
            found |= {str(each) for each in (alias.choices if isinstance(alias, AliasChoices) else [alias])}
    return {name for name in found if name.startswith(PREFIX)}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("KLEDGER_ULR", "URL"), ("KLEDGER_USR", "USER"), ("KLEDGER_MODLE", "MODEL"), ("KLEDGER_TOKENS", "TOKEN")],
)
def test_a_name_that_is_nearly_one_of_them_is_pointed_out(typed: str, meant: str) -> None:
    assert list(mistyped([typed, "PATH"])) == [f"nothing reads {typed}: is {PREFIX}{meant} meant?"]


def test_a_name_of_ones_own_and_every_name_that_is_read_are_left_alone() -> None:
    assert not list(mistyped([*NAMES, "KLEDGER_HOME", "KLEDGER_PORT", "KLEDGER_IMAGE", "KLEDGER_"]))


def test_a_command_points_it_out_on_standard_error_and_does_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with commanded_node(monkeypatch) as node:
        monkeypatch.setenv("KLEDGER_USR", "ann")
        node.says("GET /api/knowledge", {"results": [], "count": 0, "total": 0, "next": None, "position": 7})
        ran = kledger("list", "--json")
    assert ran.exit_code == 0
    assert ran.stderr == "warning: nothing reads KLEDGER_USR: is KLEDGER_USER meant?\n"
    assert variables.PREFIX not in ran.stdout


def of_a_model() -> list[tuple[str, tuple[str, ...]]]:
    """Each variable that says something of a model, and those that name one, as the classes that read them say."""
    naming = {
        "EMBEDDING_": ("EMBEDDING_MODEL",),
        "RERANK_": ("RERANK_URL",),
        "MODEL_": ("MODEL", *(f"MODEL_{task.upper()}" for task in TASKS)),
        "EXTRACT_AFTER": ("MODEL", "MODEL_EXTRACT"),
    }
    return [
        (name, tuple(PREFIX + one for one in names))
        for beginning, names in naming.items()
        for name in sorted(NAMES)
        if name.startswith(PREFIX + beginning) and name.removeprefix(PREFIX) not in names
    ]


@pytest.mark.parametrize(("said", "naming"), of_a_model(), ids=lambda one: one if isinstance(one, str) else "")
def test_a_variable_of_a_model_that_none_names_is_said_to_do_nothing(said: str, naming: tuple[str, ...]) -> None:
    assert list(idle({said: "1"})) == [f"{said} does nothing: set {naming[0]} too, which names what is asked"]
    assert list(idle({said: "1", naming[0]: " "})), "a blank one counts as none"
    assert not list(idle({said: ""}))
    for name in naming:
        assert not list(idle({said: "1", name: "m"})), name


def test_a_node_says_of_its_variables_what_does_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KLEDGER_EMBEDDING_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("KLEDGER_EMBEDDING_KEY", "k")
    ran = kledger("up", "--http", "nowhere", "--data", str(tmp_path / "data"))
    told = "KLEDGER_EMBEDDING_KEY, KLEDGER_EMBEDDING_URL do nothing: set KLEDGER_EMBEDDING_MODEL too"
    assert ran.stderr.startswith(f"warning: {told}, which names what is asked\n")


def test_every_option_of_a_node_is_a_variable_too() -> None:
    options = {option for option in inspect.signature(up).parameters if f"{PREFIX}{option.upper()}" not in NAMES}
    assert not options


def test_an_address_from_the_environment_is_that_of_the_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KLEDGER_HTTP", "nowhere")
    monkeypatch.setenv("KLEDGER_DATA", str(tmp_path / "data"))
    assert "'nowhere' is not HOST:PORT" in kledger("up").stderr
    assert "'elsewhere' is not HOST:PORT" in kledger("up", "--http", "elsewhere").stderr
