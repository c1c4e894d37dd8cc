"""The page of settings: every variable of the environment that the product reads, from the classes that read it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

from consumers.model_settings import ModelSettings
from consumers.recall.rerank_settings import RerankSettings
from docs.generators.tables import GENERATED, table
from ledger.sessions.settings import SessionSettings
from producers.access.limits import Limits
from producers.cli.variables import NAMES, OF_THE_COMMAND, PREFIX
from projections.analysts.memory_watch import AnalystLimits
from projections.vectors.embedding import settings as embedding

CLASSES: tuple[tuple[str, type[BaseSettings], str], ...] = (
    ("Models", ModelSettings, "how-to/use-a-model.md"),
    ("Embeddings", embedding._Environment, "explanation/how-search-ranks.md#embeddings"),
    ("A reranker", RerankSettings, "how-to/use-a-model.md#a-reranker"),
    ("Sessions", SessionSettings, "how-to/sessions.md#settings"),
    ("Limits of requests", Limits, "how-to/give-access.md"),
    ("Limits of analysts", AnalystLimits, "how-to/query-with-duckdb.md"),
)
"""A heading, the class that reads the variables, and the page that explains them."""
OTHERS = {
    "ARCHIVE_EVENTS": "how-to/rebuild-verify-replay.md",
    "CHECKPOINT_HOOK": "how-to/audit-and-prove.md",
    "EXTRACT_AFTER": "how-to/use-a-model.md#after-a-finished-task-and-after-a-verdict",
    "HTTP": "how-to/run-for-good.md",
    "LOG_LEVEL": "how-to/observe-a-node.md",
    "MASTER_KEY": "how-to/forget-a-person.md#keep-the-master-key",
    "MASTER_KEY_FILE": "how-to/forget-a-person.md#keep-the-master-key",
    "MEMORY_LIFETIMES": "explanation/memory-layers.md",
    "NATS": "how-to/use-an-outside-nats-or-qdrant.md",
    "NATS_CREDENTIALS": "how-to/give-access.md",
    "QDRANT": "how-to/use-an-outside-nats-or-qdrant.md",
    "QUACK": "how-to/query-with-duckdb.md",
    "REACTOR_ACK_WAIT": "how-to/use-a-model.md",
    "RECALL_DETAIL_DAYS": "how-to/observe-a-node.md",
    "RECORD_RECALLS": "how-to/observe-a-node.md",
    "REPLICAS": "how-to/cluster.md",
    "ROLES": "how-to/cluster.md",
}
"""What a node reads without such a class, and the page that explains it."""
OF_OTHERS = {
    "`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL_S3` and the other usual ones": (
        "how-to/back-up-a-node.md#keep-it-in-an-object-store"
    ),
    "`OPENAI_API_KEY`": "how-to/use-a-model.md",
    "`OTEL_EXPORTER_OTLP_ENDPOINT` and the others of OpenTelemetry": "how-to/observe-a-node.md#traces",
    "`QDRANT_API_KEY`": "how-to/use-an-outside-nats-or-qdrant.md#qdrant",
    "`TIKTOKEN_CACHE_DIR`": "decisions/0054-a-context-is-cut-by-a-pure-function.md",
}
"""What has its name from another program, and the page that explains it."""


def settings_page() -> str:
    """docs/reference/settings.md. Raises AssertionError where it would lack a variable."""
    told: set[str] = set()
    parts = [
        "# Settings\n",
        GENERATED,
        "Every variable of the environment that the product reads. A value that does not fit stops the start; a "
        "blank one counts as none. A name that is nearly one of these is pointed out by the command, "
        "and at its start a node points out what says something of a model that none names.\n",
    ]
    for heading, kind, page in CLASSES:
        rows = list(_rows(kind))
        told |= {name for name, *_ in rows}
        parts += [f"## {heading}\n", f"Explained in {_link(page)}.\n"]
        parts.append(table(("variable", "default", "meaning"), [(f"`{name}`", *rest) for name, *rest in rows]))
    others = [(f"`{PREFIX}{name}`", _link(page)) for name, page in OTHERS.items()]
    command = [f"`{PREFIX}{name}`" for name in OF_THE_COMMAND.split()]
    told |= {PREFIX + name for name in (*OTHERS, *OF_THE_COMMAND.split())}
    assert told == NAMES, f"named either here or in producers/cli/variables.py, not in both: {told ^ NAMES}"
    parts += ["## Others of a node\n", table(("variable", "explained in"), others)]
    parts += [
        "## Of the command and the clients\n",
        "As [the command](command.md) tells of its options: " + ", ".join(command) + ".\n",
        "## Under the names of others\n",
        table(("variable", "explained in"), [(names, _link(page)) for names, page in OF_OTHERS.items()]),
    ]
    return "\n".join(parts)


def _link(page: str) -> str:
    return f"[{page.partition('#')[0].split('/')[1]}](../{page})"


def _rows(kind: type[BaseSettings]) -> Iterator[tuple[str, str, str]]:
    meanings = _meanings(kind)
    for name, field in kind.model_fields.items():
        for variable in _variables(kind, name, field):
            yield variable, _default(field), meanings.get(name, "")


def _variables(kind: type[BaseSettings], name: str, field: FieldInfo) -> list[str]:
    alias = field.validation_alias
    if alias is None:
        return [f"{kind.model_config.get('env_prefix')}{name.upper()}"]
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return [str(each) for each in choices if str(each).startswith(PREFIX)]


def _default(field: FieldInfo) -> str:
    value: Any = field.default
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if value in (None, "", PydanticUndefined):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _meanings(kind: type[BaseSettings]) -> dict[str, str]:
    """The texts below the fields of a class, by field."""
    (body,) = [node for node in ast.parse(inspect.getsource(kind)).body if isinstance(node, ast.ClassDef)]
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            found[field.target.id] = str(text.value.value)
    return found
