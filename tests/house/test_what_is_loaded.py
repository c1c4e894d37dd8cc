"""What does a program load that only imports the client, or asks for help, and what a node that nobody has asked?

A module that is loaded and not used costs memory and time in each process: these lists keep what was won.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ledger.runtime.gc_tuning import loading
from producers.cli.command_files import FILE_OF, FILES, commands_of
from producers.cli.variables import NAMES
from tests.journeys.running_node import ROOT, up
from tests.patience import PATIENCE

TOLD = "import json, sys; print(json.dumps([*sys.modules]))"
NODE_ALONE = (
    *("duckdb", "pyarrow", "numpy", "pandas", "fastapi", "starlette", "nats", "faststream", "uvicorn", "structlog"),
    *("mcp", "openai", "jinja2", "cryptography", "qdrant_edge", "qdrant_client", "ledger.events", "producers.http"),
)
NOT_BY_THE_CLIENT = (
    *NODE_ALONE,
    *("typer", "pydantic", "kledger.answers", "kledger.requests", "kledger.client.tools.functions"),
)
NOT_BY_HELP = (*NODE_ALONE, "pydantic", "httpx", "asyncio", "kledger.client", "producers.tree.writing")
NOT_BY_AN_IDLE_NODE = (
    *("mcp", "mcp_types", "producers.mcp.server", "producers.http.mcp_interface"),
    *("openai", "qdrant_client", "qdrant_edge", "httpx", "kledger.client.clients", "Stemmer"),
    *("jinja2", "producers.web.interface", "pypdf", "mammoth", "markdown_it", "rich", "opentelemetry.sdk"),
    *("pyarrow.compute", "pyarrow.parquet", "pyarrow.dataset", "ledger.backup.writing", "consumers.reactors.evolve"),
)
NOT_BY_THE_VECTOR_PROCESS = (
    *(
        "structlog",
        "rich",
        "pydantic",
        "duckdb",
        "pyarrow",
        "nats",
        "fastapi",
        "openai",
        "qdrant_client",
        "Stemmer",
    ),
)
# Runs a module as a program and tells at its end what it has loaded, on the standard error.
AT_THE_END = (
    "import atexit, json, runpy, sys\n"
    "atexit.register(lambda: print('LOADED', json.dumps([*sys.modules]), file=sys.stderr, flush=True))\n"
    "module = sys.argv[1]\n"
    "sys.argv = sys.argv[1:]\n"
    "runpy.run_module(module, run_name='__main__', alter_sys=True)\n"
)


def loaded_by(code: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}\n{TOLD}"], check=True, capture_output=True, text=True, cwd=ROOT
    )
    return {*json.loads(ran.stdout.splitlines()[-1])}


def told(errors: str) -> set[str]:
    line = next(line for line in errors.splitlines() if line.startswith("LOADED "))
    return {*json.loads(line.removeprefix("LOADED "))}


def test_the_package_alone_loads_no_part_of_the_client_before_one_is_named() -> None:
    loaded = loaded_by("import kledger")
    assert loaded & {*NOT_BY_THE_CLIENT, "httpx", "orjson", "asyncio", "kledger.client"} == set()


def test_the_client_loads_neither_models_nor_anything_of_a_node_nor_what_it_will_send_with() -> None:
    loaded = loaded_by("from kledger import AsyncLedgerClient, LedgerClient")
    assert "kledger.client.connection" in loaded
    assert loaded & {*NOT_BY_THE_CLIENT, "httpx", "asyncio", "http.client"} == set()


def test_a_client_that_waits_asks_a_node_without_httpx_and_without_an_event_loop() -> None:
    asked = "from kledger import LedgerClient\ntry:\n    LedgerClient('http://127.0.0.1:1', retries=0).search('q')\n"
    loaded = loaded_by(f"{asked}except Exception as error:\n    assert error.code == 'node_unreachable', error")
    assert "http.client" in loaded
    assert loaded & {*NOT_BY_THE_CLIENT, "httpx", "asyncio"} == set()


def test_a_command_that_asks_a_node_loads_neither_httpx_nor_an_event_loop() -> None:
    loaded = loaded_by_command("search", "q", "--url", "http://127.0.0.1:1")
    assert "kledger.client.transport.over_sockets" in loaded
    assert loaded & {*NODE_ALONE, "httpx", "asyncio"} == set()


def loaded_by_command(*words: str) -> set[str]:
    """What the command has loaded when it ends."""
    code = f"import sys\nsys.argv = {['kledger', *words]!r}\nfrom producers.cli.main import main\n"
    return loaded_by(f"{code}try:\n    main()\nexcept SystemExit:\n    pass")


def test_the_help_of_all_commands_and_the_version_load_no_file_of_a_command_and_no_library_for_terminals() -> None:
    files = {f"producers.cli.commands.{file}" for file, _ in FILES}
    for asked in ("--help", "--version"):
        assert loaded_by_command(asked) & {*NOT_BY_HELP, "rich", *files} == set(), asked


def test_the_help_of_a_command_draws_nothing() -> None:
    assert loaded_by_command("search", "--help") & {"typer.rich_utils", "rich.markdown", "httpx"} == set()


def test_a_command_loads_its_own_file_alone() -> None:
    code = "import sys\nsys.argv = ['kledger', 'focus', '--help']\nfrom producers.cli.main import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass"
    loaded = loaded_by(code)
    files = {f"producers.cli.commands.{file}" for file, _ in FILES}
    assert loaded & files == {"producers.cli.commands.recall.commands"}


def test_each_file_has_just_the_commands_that_the_table_names() -> None:
    for file in dict.fromkeys(file for file, _ in FILES):
        assert {*commands_of(file)} == {name for name in FILE_OF if FILE_OF[name] == file}, file


def test_nothing_is_collected_while_modules_load_and_seldom_afterwards_even_where_one_cannot_be_loaded() -> None:
    before = gc.get_threshold()
    try:
        with suppress(ImportError), loading():
            assert not gc.isenabled()
            raise ImportError
        assert gc.isenabled()
        assert gc.get_threshold()[0] == 100_000
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


@pytest.fixture
def idle(tmp_path: Path) -> str:
    """What a node that nobody asked anything, stopped when it is ready, wrote to its standard error."""
    words = [sys.executable, "-c", AT_THE_END, "producers.cli.main", *up(tmp_path / "data")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KLEDGER_", "QDRANT_"))}
    with (tmp_path / "errors").open("w+") as errors:
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=environment
        ) as node:
            assert node.stdout is not None  # it is a pipe
            ready = node.stdout.readline()
            node.terminate()
            node.wait(PATIENCE)
        assert "kledger is ready" in ready
        errors.seek(0)
        return errors.read()


def test_an_idle_node_has_loaded_nothing_that_is_asked_for_seldom(idle: str) -> None:
    loaded = told(idle)
    assert {"duckdb", "producers.node.start.assembly"} <= loaded
    assert loaded & {*NOT_BY_AN_IDLE_NODE} == set()


def test_no_module_of_a_node_reads_a_setting_as_it_is_loaded() -> None:
    """A wrong setting is told in a sentence by what reads it; as a module loads, it would end in a traceback."""
    ran = subprocess.run(
        [sys.executable, "-c", "import producers.node.start.assembly, projections.vectors.process"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **dict.fromkeys(NAMES, "-?")},
    )
    assert ran.returncode == 0, ran.stderr


def test_the_vector_process_loads_what_it_searches_with() -> None:
    loaded = loaded_by("import projections.vectors.process")
    assert "qdrant_edge" in loaded
    assert loaded & {*NOT_BY_THE_VECTOR_PROCESS} == set()
