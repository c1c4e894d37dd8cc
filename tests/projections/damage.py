"""How may an event look that our own encoder did not write: of an earlier version, or damaged?"""

from __future__ import annotations

import orjson

from ledger.event import StoredEvent


def older(event: StoredEvent) -> StoredEvent:
    """The same save in the first version of its schema, as another program may still write it."""
    document = orjson.loads(event.body)
    document["dataschema"] = "urn:kledger:knowledge.saved:1"
    document["data"]["type"] = document["data"].pop("types")[0]
    return event._replace(body=orjson.dumps(document, option=orjson.OPT_INDENT_2))


DAMAGE = (
    lambda event: event._replace(body=event.body[: len(event.body) // 2]),
    lambda event: event._replace(body=b"\xff\xfe" + event.body),
    lambda event: event._replace(body=event.body.replace(b'"data":{', b'"data":{"score":"x","verdict":7,"owner":1,')),
    lambda event: event._replace(subject=event.subject + ".more"),
    lambda event: event._replace(subject=event.subject.rpartition(".")[0] + ".somebody"),
    lambda event: event._replace(body=event.body.replace(b'"specversion":"1.0"', b'"specversion":"0.3"')),
    lambda event: event._replace(body=event.body.replace(b"urn:kledger:", b"urn:other:")),
)
