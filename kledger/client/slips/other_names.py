"""What is called otherwise in other libraries: a name that a client does not have is answered with the one it has."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_FOR_GOOD = "kledger forget user:ID is for good"
_METHODS = {
    "AggregateStreamAsync": "get(id, as_of=…)",
    "ArchiveStream": "retire, which restore takes back",
    "FetchForWriting": "get, and revise(id, expected_version=…) with the version that it read",
    "FetchStreamAsync": "history",
    "StartStream": "save with an id",
    "add": "remember, or save for knowledge about a task; extract(messages=[…]) where a model reads what was said",
    "add_documents": "documents.ingest",
    "add_many": "save_many",
    "add_memory": "remember",
    "add_messages": "session(id).append",
    "agents": "acting_as(agent=…); an agent runs where yours does, and is there once it says something",
    "append": "save, or session(id).append for what is said",
    "append_events": "save_many, or revise(id, expected_version=…)",
    "append_to_stream": "save with an id, and then revise(id, expected_version=…)",
    "as_user": "acting_as(user=…)",
    "archival_memory_insert": "remember, or save for knowledge about a task",
    "archival_memory_search": "search",
    "backup": "kledger backup DIR, where the node runs",
    "batch_delete": "bulk('retire', ids), which revert_bulk takes back",
    "batch_update": "revise, one by one; rate_many for verdicts",
    "blocks": "profiles, of which user and work are two",
    "close_session": "session(id).close",
    "conversation_search": "said, and session(id).messages",
    "core_memory_append": "profiles.patch, of the profile user or work",
    "core_memory_replace": "profiles.patch, of the profile user or work",
    "create_bank": "acting_as(user=…); a user is there once something is said as that user",
    "create_subscription_to_all": "changes(after=position), with the position kept beside what you make of it",
    "delete": f"retire, which restore takes back; {_FOR_GOOD}",
    "delete_all": f"bulk('retire', ids); {_FOR_GOOD}",
    "delete_stream": f"retire, which restore takes back; {_FOR_GOOD}",
    "export": "kledger export-tree",
    "feedback": "rate, with the case that shows it",
    "forget": f"retire, which takes one item out of recall; {_FOR_GOOD}",
    "get_all": "list, a page, or iterate, all",
    "get_memories": "memories",
    "get_memory": "memory",
    "get_stream": "history",
    "get_user_context": "session(id).context for the messages, recall for what is known",
    "graph": "search and recall; lineage for what leads to what",
    "human": "profiles, of which user is one",
    "insert": "remember, or save for knowledge about a task",
    "list_memories": "memories",
    "load_memory_variables": "session(id).context for the messages, recall for what is known",
    "passages": "remember to keep one, search to find it, iterate for all",
    "persona": "profiles, of which work is one",
    "ping": "health",
    "put": "save with an id, or remember; profiles.put for a profile",
    "query": "search, or sql",
    "read": "get",
    "read_all": "changes(after=position), or sql over the view events",
    "read_stream": "history",
    "reflect": "recall, whose text goes into the prompt of a model of yours",
    "remove": "retire, which restore takes back",
    "reset": "kledger forget user:ID, which is for good; bulk('retire', ids) can be taken back",
    "retain": "remember, or save for knowledge about a task; extract(text=…) where a model reads what was said",
    "retain_batch": "save_many, or remember, one by one",
    "save_context": "session(id).append, remember for what is to be kept",
    "search_memory": "search, or recall for the text that goes into a prompt",
    "similarity_search": "search",
    "store": "remember, or save for knowledge about a task",
    "subscribe": "changes(after=position), asked again after its next",
    "subscribe_to_all": "changes(after=position), asked again after its next",
    "subscribe_to_stream": "changes(after=position, ids=[id]), asked again after its next",
    "thread": "session(id)",
    "tombstone_stream": f"retire, which restore takes back; {_FOR_GOOD}",
    "update": "revise, or rate for a verdict",
    "upsert": "save with an id, which changes nothing where it says the same; revise",
    "user": "acting_as(user=…); a user is there once something is said as that user",
    "users": "facets, whose owners are who has something",
}
_OF_A_FAMILY = {
    "LedgerEndpoints": _METHODS,
    "SessionEndpoints": {
        "add": "append",
        "add_ai_message": "append, of messages whose role is assistant",
        "add_message": "append",
        "add_messages": "append",
        "add_user_message": "append, of messages whose role is user",
        "delete": "remove, for good; close lets it be opened again",
        "get": "messages, or context for what fits a model's window",
        "get_messages": "messages",
        "get_user_context": "context for the messages; recall(message, session=id) of the client for what is known",
        "history": "messages",
        "list": "messages",
        "save": "append",
        "update": "append; scratchpad(patch) for where the work stands",
    },
    "DocumentEndpoints": {
        "add": "ingest",
        "create": "ingest",
        "insert": "ingest",
        "remove": "delete",
        "retire": "delete",
        "save": "ingest",
        "update": "ingest, with the id of the document",
        "upload": "ingest(file=…)",
    },
    "ResourceEndpoints": {
        "add": "save",
        "create": "save",
        "delete": "retire, which restore takes back",
        "insert": "save",
        "remove": "retire, which restore takes back",
        "revise": "save, with the id of the resource",
        "update": "save, with the id of the resource",
    },
    "ProfileEndpoints": {
        "add": "patch",
        "delete": "disable",
        "list": "both",
        "remove": "disable",
        "save": "put",
        "set": "put",
        "update": "patch",
    },
    "RecordedRecallEndpoints": {"all": "list", "get_all": "list", "of_item": "of"},
}
"""What each family of endpoints has under another name."""
_SIZES = dict.fromkeys(("k", "limit", "max_results", "n", "n_results", "top_k", "top_n"), ("top_k", "limit"))
_ADDRESSES = dict.fromkeys(("address", "base_url", "endpoint", "host", "port", "server"), ("url",))
_BOUNDS = dict.fromkeys(("min_relevance", "score_threshold", "similarity_threshold", "threshold"), ("min_match",))
_WINDOWS = dict.fromkeys(("budget", "budget_tokens", "max_tokens", "token_limit"), ("max_tokens", "budget_tokens"))
_TOKENS = dict.fromkeys(("api_key", "auth", "bearer", "key", "password"), ("token",))
ELSEWHERE = {
    **_SIZES,
    **_ADDRESSES,
    **_BOUNDS,
    **_WINDOWS,
    **_TOKENS,
    **{f"{kind}_id": (kind,) for kind in ("user", "agent", "project", "team", "org")},
    **dict.fromkeys(("tenant", "tenant_id", "organisation", "organization"), ("org",)),
    "person": ("user",),
    "commit_position": ("after", "as_of"),
    "current_version": ("expected_version",),
    "expected_revision": ("expected_version",),
    "expires_in": ("lifetime",),
    "item_id": ("id",),
    "knowledge_id": ("id",),
    "max_retries": ("retries",),
    "min_fact_rating": ("min_score",),
    "min_rating": ("min_score",),
    "memory_id": ("id",),
    "metadata": ("tags",),
    "q": ("query", "message"),
    "query": ("message",),
    **dict.fromkeys(("cursor", "next"), ("before", "after")),
    **dict.fromkeys(("from_position", "position", "since", "start"), ("after",)),
    **dict.fromkeys(("order", "order_by", "sort_by"), ("sort",)),
    "skip": ("offset",),
    "tags": ("metadata",),
    "ttl": ("lifetime",),
}
"""What an argument is called where the method takes one of these."""
_ARGUMENTS = {
    **{kind: f"acting_as({kind}=…)" for kind in ("user", "agent", "project", "team", "org")},
    **{name: f"within({name}=…)" for name in ("trace_id", "message_id")},
    "bank_id": "acting_as(user=…) or acting_as(project=…)",
    "user_id": "acting_as(user=…)",
    "agent_id": "acting_as(agent=…)",
    "project_id": "acting_as(project=…)",
    **dict.fromkeys(("org_id", "tenant", "tenant_id", "organisation", "organization"), "acting_as(org=…)"),
    "team_id": "acting_as(team=…)",
    "person": "acting_as(user=…)",
    "readers": "acl=[{'entity': 'user:bob', 'permission': 'read'}]",
    "writers": "acl=[{'entity': 'user:bob', 'permission': 'read_write'}]",
    "run_id": "within(trace_id=…) where something is stated; lineage('trace:ID') has what came of one",
    **dict.fromkeys(
        ("valid_at", "invalid_at"),
        "as_of=…, for what was known then; remember has happened_at=… for when it was, supersedes=… for what it ends",
    ),
    "version": "as_of=…, with the valid_from that history has of the version",
    "session_id": "session=…, where a method takes it, or within(trace_id=…)",
    "thread_id": "session=…, where a method takes it, or session(id)",
    "page": "iterate, which reads all of them; list has offset=…, and before=… with the next of the page before",
    "filters": "types, owner, layers, tags, since, until",
    "expires_at": "lifetime=…, in seconds, which short memories have",
    "expiration_date": "lifetime=…, in seconds, which short memories have",
    "role": "a field of a message: [{'role': 'user', 'content': '…'}]",
    "infer": "extract, where a model finds knowledge; remember keeps a text as it is",
}
_UNKNOWN = re.compile(r"unexpected keyword argument '(.*)'$")
_TOO_MANY = "too many positional arguments"
_CLOSE = 0.75


def called_otherwise(client: object, name: str) -> NoReturn:
    """Raise AttributeError with the name that the method has here, or the one that was meant."""
    kind = type(client)
    others = next((_OF_A_FAMILY[each.__name__] for each in kind.__mro__ if each.__name__ in _OF_A_FAMILY), {})
    here = ""
    if name in others:
        here = f": here it is {others[name]}"
    elif not name.startswith("_"):
        public = [each for each in dir(kind) if not each.startswith("_")]
        if near := _nearest(name, [*public, *others]):
            here = f": is {near} meant?" if near in public else f": here {near} is {others[near]}"
    said = f"{kind.__name__!r} object has no attribute {name!r}{here}"
    raise AttributeError(said, name=name, obj=client)


def told_otherwise(
    error: TypeError, method: str, taken: tuple[str, ...], named: Iterable[str] = (), instead: str = ""
) -> TypeError:
    """The error about arguments that do not fit, with the method's name, what it takes, and what it is called here.

    Of `named`, one that the method does not take is told before one that is missing: it may be the same. `instead` is
    what to write in place of one positional argument more than there are.
    """
    if (unknown := next((name for name in named if name not in taken), None)) is not None:
        error = TypeError(f"got an unexpected keyword argument {unknown!r}")
    here = _argument_here(told[1], taken) if (told := _UNKNOWN.search(str(error))) else ""
    if str(error) == _TOO_MANY:
        here = instead
    return TypeError(f"{method}() {error}{here}; it takes {', '.join(taken) or 'nothing'}")


def _argument_here(name: str, taken: Sequence[str]) -> str:
    if meant := next((each for each in ELSEWHERE.get(name, ()) if each in taken), None):
        return f"; here it is {meant}=…"
    if name in _ARGUMENTS:
        return f"; here it is {_ARGUMENTS[name]}"
    near = _nearest(name, taken)
    return f"; is {near}=… meant?" if near else ""


def named_here(signature: inspect.Signature) -> str:
    """What to write in place of one positional argument more than there are."""
    by_name = [each.name for each in signature.parameters.values() if each.kind is inspect.Parameter.KEYWORD_ONLY]
    if by_name:
        return f"; name what it is, as {by_name[0]}=…"
    return "; write [{'role': 'user', 'content': '…'}]" if "messages" in signature.parameters else ""


def _nearest(name: str, names: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # for one who errs alone

    return next(iter(get_close_matches(name, names, 1, _CLOSE)), None)


def telling_what_it_takes(method: Callable[P, R]) -> Callable[P, R]:
    """The method, answering arguments that do not fit as an endpoint does."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            name = type(args[0]).__name__ if method.__name__ == "__init__" and args else method.__name__
            raise told_otherwise(error, name, tuple(signature.parameters)[1:], kwargs, named_here(signature)) from None
        return method(*args, **kwargs)

    return checked
