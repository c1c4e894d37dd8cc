"""What a command or an option is called here that has another name elsewhere."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Any

_NO_SUCH = re.compile(r"No such command (?P<name>.+?)\.(?: Did you mean .*)?", re.DOTALL)

COMMANDS: dict[str, dict[str, str]] = {
    "": {
        "add": "kledger save for knowledge, kledger memory save for what is to be remembered",
        "append": "kledger session append for what was said, kledger save for knowledge",
        "ask": "kledger search, kledger recall for the text of a prompt",
        "block": "kledger profile",
        "check": "kledger status, kledger verify for the views, kledger audit for the log",
        "completion": "the option --install-completion; --show-completion prints the script alone",
        "config": "kledger up --help",
        "create": "kledger save, kledger token create for a token",
        "delete": "kledger retire, which kledger restore takes back",
        "diff": "kledger history",
        "doctor": "kledger status",
        "edit": "kledger revise",
        "events": "kledger changes",
        "explain": "kledger search --explain, kledger lineage for where an item comes from",
        "export": "kledger export-tree, kledger backup for the whole log",
        "feedback": "kledger rate",
        "find": "kledger search, kledger sql",
        "get": "kledger show",
        "health": "kledger status",
        "info": "kledger status",
        "init": "kledger up",
        "insert": "kledger save",
        "log": "kledger changes",
        "logs": "kledger changes for what was written; a node writes its own log on stderr",
        "ls": "kledger list",
        "memories": "kledger memory list",
        "new": "kledger save",
        "node": "kledger up",
        "profiles": "kledger profile show",
        "put": "kledger save, kledger revise for what is there",
        "query": "kledger search, kledger sql",
        "quit": "Ctrl-C in the terminal where kledger up runs, or SIGTERM to its process",
        "read": "kledger show",
        "remember": "kledger memory save",
        "remove": "kledger retire, which kledger restore takes back",
        "rm": "kledger retire, which kledger restore takes back",
        "restart": "Ctrl-C in the terminal where kledger up runs, and kledger up again",
        "run": "kledger up",
        "select": "kledger sql",
        "serve": "kledger up",
        "server": "kledger up",
        "sessions": "kledger session list",
        "shutdown": "Ctrl-C in the terminal where kledger up runs, or SIGTERM to its process",
        "start": "kledger up",
        "stop": "Ctrl-C in the terminal where kledger up runs, or SIGTERM to its process",
        "store": "kledger save",
        "tail": "kledger changes",
        "tokens": "kledger token list",
        "undo": "kledger revert for a version, kledger restore for a retired item",
        "update": "kledger revise",
        "upsert": "kledger save, kledger revise for what is there",
        "view": "kledger show",
        "vote": "kledger rate",
        "why": "kledger search --explain for a search, kledger lineage for where it comes from, "
        "kledger why-visible for who may read it",
    },
    "document": {
        "add": "kledger ingest",
        "import": "kledger ingest",
        "ingest": "kledger ingest",
        "save": "kledger ingest",
        "search": "kledger search --layer document",
        "find": "kledger search --layer document",
        "upload": "kledger ingest",
    },
    "memory": {
        "delete": "kledger retire, which kledger restore takes back",
        "edit": "kledger revise",
        "find": "kledger search",
        "forget": "kledger retire, which kledger restore takes back",
        "get": "kledger show",
        "query": "kledger search",
        "remove": "kledger retire, which kledger restore takes back",
        "retire": "kledger retire, which kledger restore takes back",
        "rm": "kledger retire, which kledger restore takes back",
        "search": "kledger search",
        "update": "kledger revise",
    },
    "profile": {"delete": "kledger profile disable", "remove": "kledger profile disable"},
    "session": {
        "create": "kledger session append, which begins one",
        "new": "kledger session append, which begins one",
        "search": "kledger session said",
        "start": "kledger session append, which begins one",
    },
    "token": {"rotate": "kledger token create for another one, and kledger token revoke of the old one"},
}
"""By group, "" for the root: what to write for a name that is none. A test holds each command in it to be there."""

_VERBS = {
    **dict.fromkeys(("add", "create", "new"), ("add", "create", "save", "append", "register", "set")),
    **dict.fromkeys(("put", "write"), ("set", "save", "append", "add", "create")),
    **dict.fromkeys(("delete", "remove", "rm", "del"), ("delete", "remove", "revoke", "retire", "drop", "dismiss")),
    **dict.fromkeys(("get", "read", "view", "info"), ("show", "messages")),
    **dict.fromkeys(("ls", "all"), ("list",)),
    **dict.fromkeys(("update", "edit", "change"), ("revise", "patch", "set")),
    **dict.fromkeys(("undo",), ("revert", "restore")),
}
"""The verbs of a group, best first, for one that it lacks."""

OPTIONS = {
    **dict.fromkeys(("--limit", "--count", "--max", "--top", "--k", "-k", "-n"), ("--top-k", "--limit")),
    "--top-k": ("--limit",),
    **dict.fromkeys(("--text", "--body"), ("--content",)),
    **dict.fromkeys(("--tags", "--label"), ("--tag",)),
    "--user-id": ("--user",),
    "--agent-id": ("--agent",),
    **dict.fromkeys(("--output", "-o"), ("--out",)),
    **dict.fromkeys(("--host", "--server", "--node"), ("--url", "--http")),
    **dict.fromkeys(("--port", "--listen"), ("--http",)),
    **dict.fromkeys(("--data-dir", "--dir"), ("--data",)),
    "--token": ("--token-file",),
    **dict.fromkeys(("--yes", "-y"), ("--force",)),
    **dict.fromkeys(("--as-of", "--at", "--to", "--until"), ("--to", "--as-of")),
    "--after": ("--since",),
    "--since": ("--after",),
}
"""What an option may be called here; the first that the command has is meant."""

_TEXTS = ("content", "text", "query", "message", "description", "feedback")
_ARGUMENTS = {f"--{each}": (each, *_TEXTS) for each in (*_TEXTS, "body", "q")}
"""The arguments that an option may mean, best first; another option means the one of its own name."""

_DESTROYS = {"forget": 0.8}
"""Commands that nothing takes back: suggested for a word that is as near as this, not for a vague likeness."""


def no_such_command(context: Any, message: str) -> str | None:
    """What to write instead of a command that is none; None for another message."""
    match = _NO_SUCH.fullmatch(message)
    if match is None:
        return None
    word = match["name"].strip("'\"")
    group = " ".join(context.command_path.split()[1:])
    if said := _called_here(group, word, context.command.commands):
        return f"No such command {word!r}. Here it is {said}."
    near = nearest(word, [*context.command.commands])
    meant = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
    return f"No such command {word!r}.{meant}"


def nearest(word: str, commands: Collection[str]) -> list[str]:
    """The commands that were perhaps mistyped so."""
    return [
        each
        for each in difflib.get_close_matches(word, commands)
        if difflib.SequenceMatcher(None, each, word).ratio() >= _DESTROYS.get(each, 0)
    ]


def other_option(context: Any, option: str) -> str | None:
    """The option of this command that is called `option` elsewhere."""
    own = {name for each in context.command.params for name in each.opts}
    return next((name for name in OPTIONS.get(option, ()) if name in own), None)


def near_options(context: Any, option: str) -> list[str]:
    """The options of this command that were perhaps mistyped so."""
    own = {name.removeprefix("--"): name for each in context.command.params for name in each.opts if name[:2] == "--"}
    return [own[each] for each in difflib.get_close_matches(option.removeprefix("--"), own)]


def argument_of(context: Any, option: str) -> str | None:
    """The argument of this command that was written as if it were an option, as it stands in the usage."""
    arguments = [each.display_name_raw for each in context.command.params if each.param_type_name == "argument"]
    meant = (name.upper() for name in _ARGUMENTS.get(option, (option.removeprefix("--"),)))
    return next((name for name in meant if name in arguments), None)


def _called_here(group: str, word: str, commands: Collection[str]) -> str | None:
    if said := COMMANDS.get(group, {}).get(word):
        return said
    verb = next((each for each in _VERBS.get(word, ()) if group and each in commands), None)
    return None if verb is None else f"kledger {group} {verb}"
