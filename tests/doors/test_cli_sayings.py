"""Does a command say what became of what was typed: unchanged, from stdin, required, or nobody who can be forgotten?"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kledger.contract.errors import NodeUnreachable
from ledger.event import JsonObject
from producers.cli import entry
from producers.cli.command_files import CommandsOfFiles
from producers.cli.main import app
from producers.cli.screen import counted
from producers.cli.usage import other_names
from tests.doors.scripted_node import ScriptedNode, scripted_node
from tests.doors.test_cli_knowledge import CHANGED, ITEM, SAVED, kledger
from tests.doors.test_cli_paths import COMMANDS, line
from tests.patience import PATIENCE
from tests.processes.started import ENVIRONMENT, ROOT


def test_show_names_the_position_of_the_last_change_as_what_it_is(node: ScriptedNode) -> None:
    """The version that a history shows came earlier, where a verdict came after it."""
    node.says(f"GET /api/knowledge/{ITEM['id']}", ITEM)
    shown = " ".join(kledger("show", ITEM["id"]).stdout.split())
    assert f"version {ITEM['version']} owner" in shown
    assert f"{ITEM['updated_at']}, by the last version or verdict, at position 40" in shown


def test_a_save_that_changes_nothing_says_so(node: ScriptedNode) -> None:
    node.says("POST /api/knowledge", {**SAVED, "duplicate": True})
    node.says("POST /api/resources", {**SAVED, "duplicate": True})
    ran = kledger("save", "--content", "C", "--types", "tool")
    assert (ran.exit_code, ran.stdout.strip()) == (0, "unchanged: k-1 says this since position 7")


def test_a_text_is_read_from_stdin_where_a_dash_stands_for_it(node: ScriptedNode) -> None:
    node.says("POST /api/knowledge", SAVED, 201)
    node.says("PUT /api/knowledge/k-1", CHANGED)
    for words in (["save", "--types", "tool"], ["revise", "k-1"]):
        ran = CliRunner().invoke(app, [*words, "--content", "-"], input="first line\nsecond\n")
        assert ran.exit_code == 0, ran.output
        assert node.told[-1].body["content"] == "first line\nsecond"
        assert CliRunner().invoke(app, [*words, "--content", "-"], input=b"\xff").exit_code == 2


def test_what_a_command_cannot_do_without_is_marked_as_required() -> None:
    for words, option in ((["save"], "--types"), (["chain", "accept"], "--reason")):
        missing = kledger(*words, *(["--content", "C"] if words == ["save"] else []))
        assert missing.exit_code == 2
        assert option in missing.stderr
        assert "[required]" in told_of(option, *words), option


def told_of(option: str, *words: str) -> str:
    """What a command's help says of an option."""
    told = re.search(rf"^  {option}\b.*\n(?:    .*\n)*", kledger(*words, "--help").stdout, re.MULTILINE)
    assert told is not None
    return told[0]


def test_nobody_is_asked_whether_to_forget_whom_nobody_can_be(node: ScriptedNode) -> None:
    for subject in ("ann", "user:", "agent:scribe", ""):
        ran = kledger("forget", subject)
        assert (ran.exit_code, "is not a person" in ran.stderr) == (1, True), ran.output
        assert "Nothing brings" not in ran.output
    assert not node.asked


@pytest.mark.parametrize(
    ("helpful", "harmful", "cases", "shown"),
    [
        (5, 0, 0, ("helped 5 times, with 0 cases", "harmed never")),  # brought by an import
        (6, 2, 1, ("helped 6 times, with 1 case", "harmed 2 times")),  # and judged since
        (3, 0, 3, ("helped 3 times, with 3 cases",)),  # an import that began at nothing
        (3, 1, 2, ("helped 2 times, with 2 cases", "harmed 1 time")),  # of the ledger's own
        (1, 1, 0, ("helped never", "harmed 1 time, with 0 cases")),
        (1, 0, 0, ("none yet",)),
    ],
)
def test_show_says_how_often_an_item_helped_as_an_import_or_people_said_it(
    node: ScriptedNode, helpful: int, harmful: int, cases: int, shown: tuple[str, ...]
) -> None:
    said = {"helpful_history": [{"outcome": "x"}] * cases, "harmful_history": []}
    told = {"score": 4, "helpful": helpful, "harmful": harmful, "confidence": 0.9, **said}
    node.says("GET /api/knowledge/k", {**ITEM, "id": "k", "status": "active", "eval": told})
    ran = " ".join(CliRunner().invoke(app, ["show", "k"]).stdout.split())
    assert all(part in ran for part in shown), ran


def test_one_of_a_thing_is_told_in_the_singular(node: ScriptedNode) -> None:
    told = {"goal_id": "g", "description": "d", "owner": "agent:a", "trace_id": None, "section": "s", "left_out": 0}
    node.says("GET /api/goals/g", {**told, "focuses": 1, "focused_at": "2026-03-05T12:00:00Z"})
    assert "focused 1 time, last" in " ".join(kledger("goal", "g").stdout.split())
    backup: JsonObject = {"added": 1, "files": 1, "seconds": 0.1, "position": 1, "segments": 1}
    backup |= {"head": "a", "root": "b", "signed": 0, "directory": "/b"}
    job = {"id": "j-1", "kind": "backup", "total": 1, "rate": 5.0, "done": 1, "error": None}
    node.says("POST /api/admin/backup", {**job, "state": "running", "result": None}, 202)
    node.says("GET /api/admin/jobs/j-1", {**job, "state": "done", "result": backup})
    shown = " ".join(kledger("backup", "/b").stdout.split())
    assert "added 1 event in 1 file," in shown
    assert "position 1 in 1 file " in shown
    assert [counted(number, "more file") for number in (0, 1, 2, 1200)] == [
        *("0 more files", "1 more file", "2 more files", "1,200 more files"),
    ]


def test_a_token_that_is_not_there_is_looked_for_in_the_folder_that_was_named(tmp_path: Path) -> None:
    data = tmp_path / "team ledger"
    first = kledger("token", "create", "--agent", "scribe", "--data", str(data), "--new")
    assert f"--role operator --data '{data}'" in " ".join(first.stdout.split())
    ran = kledger("token", "revoke", "t-none", "--data", str(data))
    assert ran.exit_code == 1
    assert f"kledger token list --data '{data}'" in ran.stderr


def test_a_signal_to_reload_a_broker_names_which(tmp_path: Path) -> None:
    """A node runs a server of its own, and a signal without a process finds several."""
    ran = kledger("nats-config", str(tmp_path / "broker"), "--publisher", "agent:scribe")
    assert "nats-server --signal reload=PID" in ran.stdout


def test_the_help_of_every_option_is_shown_whole() -> None:
    """What stands in brackets, such as a default, is no markup that the screen leaves out."""
    checked = 0
    for words, command in all_commands(CommandsOfFiles(name="kledger").commands):
        said = {text for each in command.params if (text := getattr(each, "help", None)) and not each.hidden}
        if not any("[" in text for text in said):
            continue
        shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "100000"}, terminal_width=100_000).output
        shown = " ".join(shown.split())
        for text in said:
            assert " ".join(text.split()) in shown, (words, text)
            checked += "[" in text
    assert checked > 20


def test_no_help_is_wider_than_its_screen_or_names_a_type_of_python() -> None:
    for words, command in all_commands(CommandsOfFiles(name="kledger").commands):
        shown = CliRunner().invoke(app, [*words, "--help"], terminal_width=80).stdout
        assert max(map(len, shown.splitlines())) <= 80, shown
        own = shown.partition("\nArguments:\n")[2] or shown.partition("\nOptions:\n")[2]
        assert not re.search(r"<[a-z][^>]*>|\{|\b(str|int|float|Path)\b", own), (words, own)
        usage = rf"Usage: kledger {' '.join(words)} \[OPTIONS\]( \[?(user:)?[A-Z]\S*)*$"
        assert re.match(usage, shown.splitlines()[0]), shown
        for each in command.params:
            for choice in each.type_descriptor.choices or ():
                assert str(choice) in shown, (words, choice)


def test_the_help_has_the_options_that_many_commands_have_last() -> None:
    for words, _ in all_commands(CommandsOfFiles(name="kledger").commands):
        headings = re.findall(r"^(\w[^\n]*):$", kledger(*words, "--help").stdout, re.MULTILINE)
        assert headings in [
            [*arguments, "Options", *common] for arguments in ([], ["Arguments"]) for common in ([], ["Common options"])
        ], (words, headings)


def all_commands(commands: Mapping[str, Any], *before: str) -> Iterator[tuple[list[str], Any]]:
    for name, command in commands.items():
        below = getattr(command, "commands", None)
        if below is None:
            yield [*before, name], command
        else:
            yield from all_commands(below, *before, name)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--url http://127.0.0.1:1 status", "--url belongs after the command: kledger status --url …"),
        ("--json list", "--json belongs after the command: kledger list --json …"),
        ("--top-k 3 search x", "--top-k belongs after the command: kledger search --top-k …"),
        ("--user ann document list", "--user belongs after the command: kledger document list --user …"),
        ("document --json list", "--json belongs after the command: kledger document list --json …"),
        ("memory --json", "--json belongs after the command: kledger memory"),
        ("--json", "--json belongs after the command: kledger status --json …"),
        ("list --version", "--version stands alone, without a command: kledger --version"),
        ("search x --limitt 3", "No such option: --limitt"),
        ("--bogus list", "No such option: --bogus"),
    ],
)
def test_an_option_at_the_wrong_place_is_told_where_it_belongs(typed: str, said: str) -> None:
    ran = kledger(*typed.split())
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.split())


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("save", "Missing: --content, --types."),
        ("save --types tool", "Missing option '--content'."),
        ("resource save", "Missing: ID, --title."),
        ("session append s ''", "Invalid value for CONTENT: the text is empty: say what was said"),
        ("session append s", "give a text or --file, and not both"),
        ("repair", "Missing: --from, --data or --nats."),
        ("repair --data d", "Missing option '--from'."),
        ("repair --from b", "Invalid value: give either --data DIR or --nats URL"),
        ("rate", "Missing: ID, --helpful, --harmful or --score."),
        ("rate --helpful", "Missing argument 'ID'."),
        ("focus", "Missing: GOAL, DESCRIPTION."),
        ("search deploy at night", "Too much: at night. A text or a path of several words stands in quotes."),
        ("backup my files", "Too much: files. A text or a path of several words stands in quotes."),
        ("list deploy", "Too much: deploy. kledger list takes options alone."),
        ("token create agent", "Too much: agent. kledger token create takes options alone."),
        ("help", "The help is an option: kledger -h, or of a command: kledger COMMAND -h."),
        ("help search", "The help is an option: kledger -h, or of a command: kledger COMMAND -h."),
        ("search x --top-k few", "Invalid value for '--top-k': has to be a whole number"),
        ("search x --top-k 0", "Invalid value for '--top-k': has to be at least 1"),
        ("sql x --format xml", "Invalid value for '--format': 'xml' is not one of 'table',"),
        ("serach x", "No such command 'serach'. Did you mean 'search'"),
        ("frget user:ann", "No such command 'frget'. Did you mean 'forget'?"),
        ("get k-1", "No such command 'get'. Here it is kledger show."),
        ("serve", "No such command 'serve'. Here it is kledger up."),
        ("stop", "Here it is Ctrl-C in the terminal where kledger up runs, or SIGTERM to its process."),
        ("memory delete k-1", "Here it is kledger retire, which kledger restore takes back."),
        ("memory add text", "No such command 'add'. Here it is kledger memory save."),
        ("profile put work {}", "No such command 'put'. Here it is kledger profile set."),
        ("memory put text", "No such command 'put'. Here it is kledger memory save."),
        ("document ingest f", "Here it is kledger ingest."),
        ("token delete t", "Here it is kledger token revoke."),
        ("search x --limit 3", "No such option: --limit. Here it is --top-k."),
        ("list --top-k 3", "No such option: --top-k. Here it is --limit."),
        ("replay --as-of 3", "No such option: --as-of. Here it is --to."),
        ("changes --since 3", "No such option: --since. Here it is --after."),
        ("search x --topk 3", "No such option: --topk (Possible options: --top-k)"),
        ("search --query x", "No such option: --query. QUERY stands without a name: kledger search QUERY"),
        ("recall --query x", "No such option: --query. MESSAGE stands without a name: kledger recall MESSAGE"),
        ("recall --message x", "Missing argument 'MESSAGE'. MESSAGE stands without a name: kledger recall MESSAGE"),
        ("memory save --text x", "--text. CONTENT stands without a name: kledger memory save [CONTENT]"),
        ("show --id x", "No such option: --id. ID stands without a name: kledger show ID"),
        ("save 'I like tea'", "Missing: --content, --types. Too much: I like tea. kledger save takes options alone."),
    ],
)
def test_a_mistyped_command_is_told_all_that_is_missing_and_what_to_write(typed: str, said: str) -> None:
    ran = kledger(*shlex.split(typed))
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert said in " ".join(ran.stderr.split())


@pytest.mark.parametrize("typed", ["mcp --foo", "rebuild --to 3", "bulk retire --ids a", "verify --foo"])
def test_an_option_that_is_like_none_is_answered_with_none(typed: str) -> None:
    """`--foo` was answered with `--org`, and `rebuild --to` with `--json`: they have the dashes in common."""
    said = " ".join(kledger(*typed.split()).stderr.split())
    assert "No such option: --" in said
    assert "Possible option" not in said


def test_each_command_that_another_name_stands_for_is_there_and_the_name_is_none() -> None:
    root: Any = CommandsOfFiles(name="kledger")
    for group, names in other_names.COMMANDS.items():
        within = root.commands[group].commands if group else root.commands
        for name, said in names.items():
            assert name not in within, (group, name)
            for words in re.findall(r"kledger ((?:[a-z-]+ ?)+)", said):
                assert command_named(root, words.split()) is not root, (name, said)
    own = {option for command in COMMANDS.values() for each in command.params for option in each.opts}
    assert {option for options in other_names.OPTIONS.values() for option in options} <= own


def command_named(root: Any, words: list[str]) -> Any:
    """The command that the words begin with; then the sentence goes on. Raises KeyError where the first is none."""
    at = root
    for word in words:
        if not hasattr(at, "commands") or (at is not root and word not in at.commands):
            return at
        at = at.commands[word]
    return at


def test_what_nothing_takes_back_is_suggested_for_a_slip_of_it_alone() -> None:
    """`get` was answered with `forget`, which destroys a person's key."""
    commands = [*CommandsOfFiles(name="kledger").commands]
    words = {*commands, *(name for names in other_names.COMMANDS.values() for name in names)} - {"forget"}
    for word in words | {"for", "target", "gets", "forward", "format"}:
        assert "forget" not in other_names.nearest(word, commands), word
        if word not in commands:
            assert "Did you mean 'forget'" not in kledger(word).stderr
    for slip in ("forgt", "froget", "forgett", "foget"):
        assert "forget" in other_names.nearest(slip, commands), slip


def test_no_refusal_of_a_value_quotes_the_library_that_checks_it() -> None:
    refused = 0
    for words, command in all_commands(CommandsOfFiles(name="kledger").commands):
        for option in command.params:
            typed = option.type_descriptor
            if option.param_type_name != "option" or not (typed.is_choice or typed.annotation in (int, float)):
                continue
            ran = kledger(*words, option.opts[-1], "none-of-it")
            said = " ".join(ran.stderr.split())
            refused += "Invalid value for" in said
            assert not any(each in said for each in ("Value error", "Input should", "Traceback")), (words, said)
    assert refused > 50


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["verify", "rebuild", "snapshot"])
def test_ctrl_c_while_the_node_works_says_that_the_node_goes_on(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr("kledger.LedgerClient.wait_job", interrupted)
    with scripted_node() as node:
        job = {"id": f"{kind}-1", "kind": kind, "state": "running", "done": 0, "total": 0, "rate": 0.0}
        node.says(f"POST /api/admin/{kind}", job | {"result": None, "error": None})
        ran = kledger(kind, "--url", node.url)
    assert ran.exit_code == 130
    first, last = ran.stderr.strip().splitlines()[-2:]
    assert first == f"the node goes on with it: kledger jobs {kind}-1 says how far it is"
    assert last == "kledger: stopped by Ctrl-C"


@pytest.mark.parametrize("typed", ["list", "document list", "search x", "status"])
def test_ctrl_c_in_a_command_is_one_line_and_the_exit_code_of_shells(
    monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.setattr("kledger.LedgerClient.__init__", interrupted)
    ran = kledger(*typed.split())
    assert (ran.exit_code, ran.stdout, ran.stderr.strip()) == (130, "", "kledger: stopped by Ctrl-C")


def test_ctrl_c_before_a_command_has_begun_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("producers.cli.main.main", interrupted)
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err.strip() == "kledger: stopped by Ctrl-C"


INTERRUPTED_AT = """
import atexit, os, signal, sys
from producers.cli.entry import main

left = int(sys.argv.pop(1))

class Finder:
    def find_spec(self, *_):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGINT)

if left:
    sys.meta_path.insert(0, Finder())
else:
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
main()
"""
"""A command that is sent Ctrl-C as it looks for the n-th module, or, for 0, as Python leaves."""
UNREACHABLE = {**ENVIRONMENT, "KLEDGER_URL": "http://127.0.0.1:1"}


@pytest.mark.parametrize("at", [0, 1, 2, 5, 20, 60, 100, 150, 220])
def test_ctrl_c_at_any_moment_of_a_command_is_one_line_and_no_traceback(at: int) -> None:
    """It was a traceback, or the code without a word, while modules were loaded."""
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, str(at), "search", "x"],
        capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=ROOT, env=UNREACHABLE,
    )  # fmt: skip
    said = ran.stderr.splitlines()
    assert (ran.returncode, said[-1]) == (130, "kledger: stopped by Ctrl-C"), ran.stderr
    assert len(said) == (3 if at == 0 else 2), ran.stderr  # at the end it has told its error before


def test_what_a_command_asks_for_once_it_has_the_rest_is_told_with_the_rest(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The sibling of a defect: a command that needs one of several options is asked with all that click requires."""
    monkeypatch.chdir(tmp_path)
    for name in ("KLEDGER_USER", "KLEDGER_DATA"):
        monkeypatch.delenv(name, raising=False)
    asking = re.compile(r"Invalid value(?: for --\w+)?: (give |say |name |state |whose )")
    tried = 0
    for name, command in COMMANDS.items():
        if not any(each.required for each in command.params):
            continue
        filled = kledger(*line(name, {}))
        asked = asking.search(" ".join(filled.stderr.split()))
        if filled.exit_code == 2 and asked:
            bare = " ".join(kledger(*name.split()).stderr.split())
            assert re.search(r"Missing: .*(--|CONTENT)", bare), (name, bare, filled.stderr)
            tried += 1
    assert tried > 5


def test_every_command_ends_with_the_code_of_no_node_where_none_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A job that a stopping node ends tells it too, and so does the client of another server's address."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KLEDGER_DATA", raising=False)
    (tmp_path / "1").write_text("{}")  # what parameters name

    def unreachable(*_: object, **__: object) -> None:
        raise NodeUnreachable("no node answers there")

    monkeypatch.setattr("kledger.LedgerClient.__init__", unreachable)
    asked = 0
    for name, command in COMMANDS.items():
        # An audit has codes of its own; mcp serves until its input ends, and tells its client.
        if name not in ("audit", "mcp") and any(each.name == "url" for each in command.params):
            ran = CliRunner().invoke(app, line(name, {}), input="y\n" * 3)
            assert (ran.exit_code == 3) is ("node_unreachable" in ran.stderr), (name, ran.output)
            asked += ran.exit_code == 3
    assert asked > 60


@pytest.mark.parametrize(("sent", "told"), [(0, False), (1, True)])
def test_an_import_that_is_stopped_says_that_it_may_be_begun_again(
    sent: int, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*given: Any) -> None:
        given[2].lines = given[2].saved = sent
        raise KeyboardInterrupt

    monkeypatch.setattr("producers.cli.commands.importing._import", stopped)
    lines = tmp_path / "many.jsonl"
    lines.write_text('{"content": "c", "types": ["tool"]}\n')
    ran = kledger("import", str(lines))
    assert ran.exit_code == 130
    assert ("at least 1 item was saved; import the same file again, what is there" in ran.stderr) == told
