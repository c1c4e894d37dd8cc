"""Somebody who types what a page says: in terminals that know nothing of each other, in a folder after `make setup`.

A terminal keeps what was exported in it. One in which a node runs takes no more commands: what a page says next is
typed into a new one, with the same fresh environment that the first began with.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from tests.free_ports import free_address
from tests.house.project import ROOT
from tests.patience import PATIENCE
from tests.processes.started import ENVIRONMENT, can_fork, fork_server

DEFAULT_ADDRESS = "127.0.0.1:8420"
_SECOND_ADDRESSES = r"127\.0\.0\.1:842[1-9]"
"""Where pages have nodes started beside the one that is there already, each at one of its own."""
ATTACH = "ATTACH 'quack:127.0.0.1:9494' AS kl (TOKEN '…')"
PLACEHOLDERS = {"sk-…": "k"}
"""What a page leaves to its reader, and what this reader puts there."""
_STARTS_NODE = re.compile(r"^kledger up$", re.MULTILINE)
_STARTS_ANOTHER = re.compile(rf"^kledger up .*--http {_SECOND_ADDRESSES}$", re.MULTILINE)
_INSTALLS = re.compile(r"^pip install (?P<what>.+)$", re.MULTILINE)

Done = subprocess.CompletedProcess[str]

PRODUCT = "knowledge-ledger"


def starts_a_node(text: str) -> bool:
    """Whether the block runs a node, in a terminal that is the node's from then on."""
    return bool(_STARTS_NODE.search(text))


def starts_another_node(text: str) -> bool:
    """Whether the block runs a node beside the page's own."""
    return bool(_STARTS_ANOTHER.search(text))


def installs(text: str) -> list[str]:
    """The packages that a block has its reader install, beside the product itself."""
    words = [word for line in _INSTALLS.finditer(text) for word in shlex.split(line["what"])]
    named = [re.split(r"[=<>~!\[]", word)[0] for word in words]
    return [name for name in named if name not in (PRODUCT, ".")]


def without_the_product(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a machine on which nobody has set the product up, nor any settings of it."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(("KLEDGER_", "MAKE", "MFLAGS", "VIRTUAL_ENV", "PYTHON"))
    }
    folders = kept["PATH"].split(os.pathsep)
    ours = {Path(sys.executable).parent, ROOT / ".venv" / "bin"}
    kept["PATH"] = os.pathsep.join(
        folder for folder in folders if Path(folder) not in ours and not (Path(folder) / "kledger").exists()
    )
    return kept


def set_up(desk: Path, *, forking: bool = False) -> None:
    """Make `desk` what a checkout is after `make setup`: its files that this reads, and `.venv` with the command.

    `forking`: the command is forked from a process that has imported the product.
    """
    programs = desk / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, desk / name)
    for name, runs in (("kledger", ["-m", "producers.cli.main"]), ("python", [])):
        program = programs / name
        starts = f'exec {shlex.join(["env", f"PYTHONPATH={ROOT}", sys.executable, *runs])} "$@"'
        if forking and name == "kledger":
            launch = ROOT / "tests" / "processes" / "launch.py"
            forked = f'exec {shlex.join([sys.executable, "-I", "-S", str(launch), fork_server.at, str(ROOT)])} "$@"'
            # Which shell it is for it learns from its parent, which is the server's where it is forked.
            starts = f'case "$*" in *-completion*) {starts} ;; esac\n{forked}'
        program.write_text(f"#!/bin/sh\n{starts}\n")
        program.chmod(0o755)
    (desk / ".venv" / ".set-up").touch()


class Terminal:
    """One terminal: what is typed goes to a shell, and what was exported stays for the next block."""

    def __init__(self, desk: Path, environment: Mapping[str, str]) -> None:
        self.desk = desk
        self.environment = dict(environment)

    def bash(self, text: str) -> Done:
        """Type one block, and wait for its end."""
        kept = self.desk.parent / "exported"
        done = self._run(["bash", "-euo", "pipefail", "-c", f"{text}\nenv -0 > {shlex.quote(str(kept))}"])
        if done.returncode == 0:
            pairs = (pair.partition("=") for pair in kept.read_text().split("\0") if pair)
            self.environment = {name: value for name, _, value in pairs if name not in ("_", "SHLVL")}
        return done

    def python(self, text: str, packages: Path | None = None) -> Done:
        """Run a program with the Python of this terminal; with `packages` it can import those in there alone."""
        if packages is None:
            return self._run(["python", "-W", "error", "-c", text])
        alone = {**self.environment, "PYTHONPATH": str(packages)}
        return self._run([sys.executable, "-S", "-s", "-c", text], alone)

    def sql(self, text: str) -> Done:
        """Ask the node."""
        return self._run(["kledger", "sql", text])

    def _run(self, command: list[str], environment: Mapping[str, str] | None = None) -> Done:
        env = environment or self.environment
        program = shutil.which(command[0], path=env["PATH"])
        if program is None:
            return subprocess.CompletedProcess(command, 127, "", f"{command[0]}: command not found")
        return subprocess.run(
            [program, *command[1:]],
            cwd=self.desk,
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


class NodeTerminal:
    """A terminal in which a node runs until Ctrl-C."""

    def __init__(self, desk: Path, environment: Mapping[str, str], text: str) -> None:
        self._log = desk.parent / "node.log"
        with self._log.open("ab") as errors:
            self._process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=desk,
                env=dict(environment),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def until_ready(self) -> None:
        """Read what it prints until the node says that it is ready."""
        output = self._process.stdout
        assert output is not None
        seen = ""
        with selectors.DefaultSelector() as waiting:
            waiting.register(output, selectors.EVENT_READ)
            while waiting.select(PATIENCE) and (line := output.readline()):
                seen += line
                if line.startswith("kledger is ready"):
                    return
        raise AssertionError(f"no node came of it:\n{seen}\n{self._log.read_text()[-4000:]}")

    def close(self) -> None:
        """Ctrl-C, and wait for the end."""
        try:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGINT)
            self._process.wait(PATIENCE)
        finally:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()


class Newcomer:
    """Who follows one page. `address` is where the page's node is, in place of the default one.

    Each command is a process of its own where it is `cold`, else forked where that can be.
    """

    def __init__(
        self,
        folder: Path,
        address: str,
        settings: Mapping[str, str] | None = None,
        *,
        prepared: bool = False,
        cold: bool = False,
    ) -> None:
        self.desk = folder / "desk"
        if not (self.desk / ".venv").exists():
            set_up(self.desk, forking=not cold and can_fork(ENVIRONMENT))
        self.address = address
        self.packages: Path | None = None
        home = folder / "home"
        home.mkdir(exist_ok=True)
        self._fresh = without_the_product(os.environ)
        self._fresh |= {"KLEDGER_URL": f"http://{address}", "COLUMNS": "80", "HOME": str(home)}
        self._fresh |= settings or {}
        self._nodes: list[NodeTerminal] = []
        self._prepared = prepared
        self._second_addresses: defaultdict[str, str] = defaultdict(free_address)
        self.terminal = self.new_terminal()

    def new_terminal(self) -> Terminal:
        """A terminal as it opens; a `prepared` reader has the command on the path, as how-to pages take for granted."""
        programs = [str(self.desk / ".venv" / "bin")] if self._prepared else []
        path = os.pathsep.join([*programs, self._fresh["PATH"]])
        return Terminal(self.desk, self._fresh | {"PATH": path})

    def types(self, language: str, text: str) -> Done:
        """Type one block of the page into the terminal at hand."""
        typed = self._meant(text)
        if language == "python":
            return self.terminal.python(typed, self.packages)
        return self.terminal.sql(typed) if language == "sql" else self.terminal.bash(typed)

    def runs_a_node(self, text: str) -> None:
        """Type a block that ends with a `kledger up`; the page goes on in a new terminal."""
        typed = _STARTS_NODE.sub(f"kledger up --http {self.address}", self._meant(text))
        self._nodes.append(NodeTerminal(self.desk, self.terminal.environment, typed))
        self._nodes[-1].until_ready()
        self.terminal = self.new_terminal()

    def installs(self, names: list[str]) -> None:
        """From now on programs find these packages and what they need, and no other."""
        self.packages = self.desk.parent / "packages"
        self.packages.mkdir(exist_ok=True)
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            files = metadata.distribution(name).files or []
            for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
                link = self.packages / top
                if not link.exists():
                    link.symlink_to(Path(str(metadata.distribution(name).locate_file(top))))
            needed = [each for each in metadata.requires(name) or [] if "extra ==" not in each]
            waiting += [found[0] for each in needed if (found := re.findall(r"^[\w.-]+", each))]

    def close(self) -> None:
        """Stop every node that was started."""
        for node in self._nodes:
            node.close()

    def _meant(self, text: str) -> str:
        """What a page says, with this page's node and what its reader has to put in."""
        typed = text.replace(DEFAULT_ADDRESS, self.address)
        typed = re.sub(_SECOND_ADDRESSES, lambda found: self._second_addresses[found[0]], typed)
        for placeholder, value in PLACEHOLDERS.items():
            typed = typed.replace(placeholder, value)
        if ATTACH in typed:
            attach = self.terminal.bash("kledger sql --json")
            typed = typed.replace(ATTACH, json.loads(attach.stdout)["statement"])
        return typed
