"""The wheel alone is the client: it needs its few packages, and the command says what a node needs beside them."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from ledger.installed import product_version
from tests.house.project import ROOT
from tests.patience import PATIENCE

# What a program finds that has this wheel and the packages of the client, and no other.
_ALONE = """
import sys
wheel, absent = sys.argv[1], set(sys.argv[2].split(","))
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
sys.path.insert(0, wheel)
"""
OURS = {"kledger", "ledger", "projections", "producers", "consumers"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (built,) = folder.glob("*.whl")
    with ZipFile(built) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def needs(wheel: Path) -> list[Requirement]:
    """What the wheel asks for without an extra."""
    (metadata,) = wheel.glob("*.dist-info/METADATA")
    lines = metadata.read_text("utf-8").splitlines()
    stated = [Requirement(line.removeprefix("Requires-Dist: ")) for line in lines if line.startswith("Requires-Dist: ")]
    return [one for one in stated if one.marker is None]


def with_their_own(requirements: list[Requirement]) -> set[str]:
    """The names of these packages and of what they need themselves."""
    found: set[str] = set()
    left = [one.name for one in requirements]
    while left:
        name = left.pop().lower().replace("_", "-")
        if name not in found:
            found.add(name)
            more = [Requirement(one) for one in distribution(name).requires or []]
            left += [one.name for one in more if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


def alone(wheel: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program that has the wheel and the packages of the client."""
    packages = with_their_own(needs(wheel))
    absent = {
        module
        for module, owners in packages_distributions().items()
        if not packages & {owner.lower().replace("_", "-") for owner in owners}
    }
    assert {"duckdb", "nats", "qdrant_client", "typer"} <= absent
    command = [sys.executable, "-P", "-c", _ALONE + program, str(wheel), ",".join(absent - OURS)]
    return subprocess.run(command, cwd=wheel, check=False, capture_output=True, text=True, timeout=300)


def test_the_client_needs_an_http_library_a_json_library_and_pydantic(wheel: Path) -> None:
    assert {one.name for one in needs(wheel)} == {"httpx", "orjson", "pydantic", "typing-extensions"}


def test_the_client_is_imported_with_nothing_else_installed(wheel: Path) -> None:
    program = (
        "import kledger, kledger.client.tools.functions, kledger.client.clients\n"
        "assert kledger.__file__.startswith(wheel), kledger.__file__\n"
        "from kledger import AsyncLedgerClient, LedgerClient\n"
        "try:\n"
        "    with LedgerClient('http://127.0.0.1:9') as ledger: ledger.search('lamp')\n"
        "except Exception as error: print(type(error).__name__)\n"
    )
    done = alone(wheel, program)
    assert (done.returncode, done.stdout) == (0, "NodeUnreachable\n"), done.stderr


def test_the_command_without_the_packages_of_a_node_says_how_to_install_them(wheel: Path) -> None:
    done = alone(wheel, "sys.argv = ['kledger', 'up']\nfrom producers.cli.entry import main\nmain()\n")
    assert done.returncode == 1
    assert "pip install 'knowledge-ledger[node]'" in done.stderr


def test_the_package_runs_as_a_module_as_the_command_does() -> None:
    def told(*words: str) -> tuple[int, str]:
        done = subprocess.run([*words], check=False, capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stdout

    as_module = [sys.executable, "-m", "kledger"]
    assert told(*as_module, "--version") == (0, f"kledger {product_version()}\n")
    assert told(*as_module, "--help") == told(sys.executable, "-m", "producers.cli.main", "--help")
    assert told(*as_module, "no-such-command")[0] == 2


def test_the_command_says_where_it_runs_on_another_system() -> None:
    program = "import sys\nfrom producers.cli.entry import main\nsys.platform = 'win32'\nmain()\n"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "kledger: a node and the command run on Linux and macOS; the client alone runs here\n"


@pytest.mark.parametrize("file", ["kledger/py.typed", "producers/sample/knowledge.jsonl", "consumers/prompts/*"])
def test_the_wheel_holds_what_is_no_module(wheel: Path, file: str) -> None:
    assert list(wheel.glob(file))


def test_the_pages_are_in_the_wheel_with_their_scripts_and_the_licence_of_what_others_wrote(wheel: Path) -> None:
    web = ROOT / "producers" / "web"
    files = [path.relative_to(ROOT) for part in ("templates", "static", "words") for path in (web / part).iterdir()]
    kept = [
        path for path in files if path.suffix in (".html", ".css", ".js", ".svg", ".json") or "LICENSE" in path.name
    ]
    assert {path.suffix for path in kept} >= {".html", ".css", ".js", ".svg", ".json"}
    assert any("LICENSE" in path.name for path in kept)
    assert [path for path in kept if not (wheel / path).is_file()] == []
