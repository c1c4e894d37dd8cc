"""Files as other systems write them: a mark and CRLF are read, another encoding is named with its cure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kledger.contract.errors import BadJson
from producers.cli import reading
from producers.cli.commands.evolutions import _material
from producers.cli.commands.importing import Tally, _chunks
from producers.cli.commands.sessions import _messages_in
from producers.requests.reading import read_json
from producers.tree.reading import read_tree
from tests.doors.scripted_node import commanded_node
from tests.doors.test_cli_knowledge import kledger

MESSAGE = {"id": "m-1", "role": "user", "content": "un café\u2028 s'il vous plaît"}


def imported(file: Path) -> list[Any]:
    with file.open("rb") as source:
        tally = Tally()
        return [payload for chunk in _chunks(source, tally) for payload in chunk.payloads]


READERS: dict[str, tuple[Callable[[Path], Any], Any]] = {
    "import": (imported, [MESSAGE]),
    "session append --file": (_messages_in, [MESSAGE]),
    "extract": (lambda file: _material(str(file)), {"messages": [MESSAGE]}),
    "resource save --body-file": (lambda file: json.loads(reading.text_in(file, "--body-file")), MESSAGE),
    "a body over HTTP": (lambda file: read_json(file.read_bytes()), MESSAGE),
    "save --resources-file": (lambda file: reading.json_objects(file, "--resources-file"), [MESSAGE]),
    "profile set @": (lambda file: reading.json_object(f"@{file}"), MESSAGE),
}


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_with_a_mark_and_other_ends_of_lines_says_the_same(
    command: str, mark: bytes, end: str, tmp_path: Path
) -> None:
    read, meant = READERS[command]
    said = [MESSAGE] if command in ("extract", "save --resources-file") else MESSAGE
    file = tmp_path / "a file 文.json"
    file.write_bytes(mark + (json.dumps(said, ensure_ascii=False) + end).encode())
    assert read(file) == meant


COMMANDS = {
    "import": ("import", "{}"),
    "session append --file": ("session", "append", "s-1", "--file", "{}"),
    "extract": ("extract", "{}"),
    "save --resources-file": (*("save", "--task", "t", "--content", "c", "--types", "tool", "--resources-file", "{}"),),
    "profile set @": ("profile", "set", "user", "@{}", "--user", "ann"),
}
CURES = {"cp1252": "iconv -f WINDOWS-1252 -t UTF-8", "gb18030": "from GB18030", "utf-16": "iconv -f UTF-16 -t UTF-8"}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("encoding", CURES)
def test_a_file_in_another_encoding_is_refused_with_what_to_do(
    command: str, encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file.json"
    file.write_bytes(json.dumps({"task": "un café"}, ensure_ascii=False).encode(encoding))
    with commanded_node(monkeypatch):
        ran = kledger(*(word.format(file) for word in COMMANDS[command]))
    assert ran.exit_code in (1, 2)
    assert CURES[encoding] in " ".join(ran.stderr.replace("│", " ").split()), ran.stderr


@pytest.mark.parametrize("encoding", CURES)
def test_a_body_and_a_tree_in_another_encoding_are_refused_with_what_to_do(encoding: str, tmp_path: Path) -> None:
    said = json.dumps({"task": "un café"}, ensure_ascii=False).encode(encoding)
    with pytest.raises(BadJson, match=CURES[encoding]):
        read_json(said)
    (tmp_path / "global").mkdir()
    (tmp_path / "global" / "tools.json").write_bytes(said)
    assert CURES[encoding] in str(read_tree(tmp_path).refused)
