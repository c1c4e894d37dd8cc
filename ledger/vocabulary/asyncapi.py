"""AsyncAPI 3.0 document for NATS clients that publish events, generated from the event models.

https://www.asyncapi.com/docs/reference/specification/v3.0.0. The application it describes is the ledger, so
its operations `receive` what a client publishes.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

import orjson

from kledger.contract.scopes import ENTITY_TYPES
from ledger.event import Fact, JsonObject
from ledger.events import FACTS
from ledger.vocabulary.examples import EXAMPLES
from ledger.vocabulary.schemas import event_schema, form_name, forms
from ledger.wire.envelope import MAX_BODY_BYTES, encode
from ledger.wire.publication import EXPECTED, EXPECTED_SUBJECT, MSG_ID
from ledger.wire.subjects import MAX_SUBJECT_BYTES, ROOT, event_subject

DEFINITIONS = "#/components/schemas/{model}"

GUIDE = f"""Publish an event as one NATS message, as a request, and wait for the answer of the stream.

1. **Subject** `{ROOT}.{{org}}.{{entity}}.{{entity_id}}.{{event}}.{{actor_kind}}.{{actor_id}}`: always
   seven tokens. Each token is encoded so that any id is legal: take the UTF-8 bytes; the ASCII letters and
   digits, `_` and `-` stand for themselves; every other byte is written `=XX`, two upper case hexadecimal
   digits. The empty string is a single `=`. So `user:li.wei@example.com` ends the subject with
   `user.li=2Ewei=40example=2Ecom`, and the id `知识` is the token `=E7=9F=A5=E8=AF=86`. There is one
   spelling an id: an encoded letter is refused. At most {MAX_SUBJECT_BYTES:,} bytes.
2. **Body**: a CloudEvents 1.0 envelope as structured JSON in UTF-8, at most {MAX_BODY_BYTES:,} bytes. Its
   `subject` is `{{entity}}/{{entity_id}}` written plainly, its `type` the name of the event, its `actor`
   the `{{actor_kind}}:{{actor_id}}` of the message's subject, its `dataschema`
   `urn:kledger:{{type}}:{{version}}`.
3. **Headers**: `Nats-Msg-Id` with the `id` of the envelope, so that a retry is kept once. To write only if
   nobody else wrote first, `Nats-Expected-Last-Subject-Sequence` with the position of the last event of the
   item that you know (0: none) and `Nats-Expected-Last-Subject-Sequence-Subject` with
   `{ROOT}.{{org}}.{{entity}}.{{entity_id}}.>`.
4. **Answer**: `{{"stream": …, "seq": POSITION}}` once the event is on disk; `"duplicate": true` when it was
   there before; `{{"error": …}}` when it was not kept. No answer: publish again with the same id.

The stream keeps what it is given. An event that does not fit is not applied: it stands in the view
`refused_events` with its position and the reason, and the next one is applied as if it were not there."""

_PARAMETERS: JsonObject = {
    "org": {"description": "The organisation that the ledger is kept for, encoded.", "default": "default"},
    "entity_id": {"description": "The id of what the event is about, encoded."},
    "actor_kind": {
        "description": f"What kind of entity states it: {', '.join(ENTITY_TYPES)}, or a registered type of scope."
    },
    "actor_id": {"description": "The id of who states it, encoded. Your NATS user must be allowed it."},
}
_HEADERS: JsonObject = {
    "type": "object",
    "required": [MSG_ID],
    "properties": {
        MSG_ID: {"type": "string", "description": "The `id` of the envelope."},
        EXPECTED: {
            "type": "string",
            "pattern": "^[0-9]+$",
            "description": "The position of the last event of this entity that you know; 0: none.",
        },
        EXPECTED_SUBJECT: {
            "type": "string",
            "description": f"`{ROOT}.{{org}}.{{entity}}.{{entity_id}}.>`: whose history that position is.",
        },
    },
}
_ACKNOWLEDGEMENT: JsonObject = {
    "type": "object",
    "properties": {
        "stream": {"type": "string"},
        "seq": {"type": "integer", "minimum": 1, "description": "The position of the event."},
        "duplicate": {"type": "boolean", "description": "It was there already, at `seq`."},
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "integer"},
                "err_code": {
                    "type": "integer",
                    "description": "10071: somebody wrote first (`Nats-Expected-Last-Subject-Sequence`).",
                },
                "description": {"type": "string"},
            },
        },
    },
}


def asyncapi_document() -> JsonObject:
    """The whole document, as JSON types."""
    schemas: JsonObject = {"acknowledgement": _ACKNOWLEDGEMENT}
    for fact, version in forms():
        schema = event_schema(fact, version, DEFINITIONS)
        schemas |= schema.pop("$defs")
        # `$schema` and `$id` are the document's own.
        schemas[form_name(fact, version)] = {k: v for k, v in schema.items() if not k.startswith("$")}
    return {
        "asyncapi": "3.0.0",
        "id": "urn:kledger",
        "info": {
            "title": "Knowledge Ledger",
            "version": _vocabulary_version(),
            "description": GUIDE,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {
            "node": {
                "host": "{host}:{port}",
                "protocol": "nats",
                "description": "The broker of a node, or the one that the node was given by --nats. "
                "`kledger status --json` tells its address.",
                "variables": {"host": {"default": "127.0.0.1"}, "port": {"default": "4222"}},
                "security": [{"$ref": "#/components/securitySchemes/writer"}],
            }
        },
        "channels": {fact.name: _channel(fact) for fact in FACTS.values()} | {"acknowledgement": _answer()},
        "operations": {f"append.{fact.name}": _operation(fact) for fact in FACTS.values()},
        "components": {
            "messages": {form_name(fact, version): _message(fact, version) for fact, version in forms()}
            | {"acknowledgement": {"payload": {"$ref": "#/components/schemas/acknowledgement"}}},
            "schemas": schemas,
            "securitySchemes": {
                "writer": {
                    "type": "userPassword",
                    "description": "A NATS user that may publish to the ledger's subjects and read; nobody "
                    "who writes may change or delete the stream.",
                }
            },
        },
    }


def _vocabulary_version() -> str:
    """The vocabulary's version; its minor part is the number of event versions, so each new one increases it."""
    return f"1.{sum(1 for _ in forms())}.0"


def _versions(fact: type[Fact]) -> Iterator[str]:
    return (form_name(each, version) for each, version in forms() if each is fact)


def _channel(fact: type[Fact]) -> JsonObject:
    return {
        "address": f"{ROOT}.{{org}}.{fact.entity()}.{{entity_id}}.{fact.verb()}.{{actor_kind}}.{{actor_id}}",
        "description": cleandoc(fact.__doc__ or ""),
        "parameters": _PARAMETERS,
        "messages": {form: {"$ref": f"#/components/messages/{form}"} for form in _versions(fact)},
    }


def _answer() -> JsonObject:
    return {
        "address": None,
        "description": "The reply subject of the request.",
        "messages": {"acknowledgement": {"$ref": "#/components/messages/acknowledgement"}},
    }


def _operation(fact: type[Fact]) -> JsonObject:
    return {
        "action": "receive",
        "summary": f"Publish {fact.name}.",
        "channel": {"$ref": f"#/channels/{fact.name}"},
        "messages": [{"$ref": f"#/channels/{fact.name}/messages/{form}"} for form in _versions(fact)],
        "reply": {
            "channel": {"$ref": "#/channels/acknowledgement"},
            "messages": [{"$ref": "#/channels/acknowledgement/messages/acknowledgement"}],
        },
    }


def _message(fact: type[Fact], version: int) -> JsonObject:
    message: dict[str, Any] = {
        "name": fact.name,
        "title": f"{fact.name}, version {version}",
        "contentType": "application/json",
        "headers": _HEADERS,
        "payload": {"$ref": f"#/components/schemas/{form_name(fact, version)}"},
    }
    if version < fact.version:
        message["summary"] = f"An earlier form that is still read; write version {fact.version}."
        return message
    example = EXAMPLES[fact.name]
    subject = event_subject(example.org, fact.entity(), example.entity_id, fact.verb(), example.actor)
    message["examples"] = [
        {
            "summary": f"Published to {subject}",
            "headers": {MSG_ID: example.id},
            "payload": orjson.loads(encode(example)),
        }
    ]
    return message
