"""Canonical check: the SQL predicate of events that need no validation by the pydantic models.

It holds where an event's bytes equal what our own encoder would write for the fields that SQL parsed. That one
comparison proves every type; the constraints of the schema and the subject's naming are further predicates.
"""

from __future__ import annotations

from functools import cache

from kledger.contract.bounds import MAX_ID
from ledger.event import Fact
from ledger.events import profile
from ledger.events.goal import GoalFocused
from ledger.wire.envelope import NUL, SCHEMA_PREFIX
from projections.fold_kit.envelopes import written_version
from projections.fold_kit.schema_sql import entity_check, fits


@cache
def is_canonical(fact: type[Fact]) -> str:
    """The predicate of rows that need no further check, but for those of their documents that are not flat.

    Where the data repeats the id in another way than _STATED_IDS says, the models compare the two; where an id has a
    form of its own, they check it.
    """
    if "fault_of_id" in vars(fact) or (fact.stated_id is not Fact.stated_id and fact not in _STATED_IDS):
        return "false"
    return f"coalesce({_encoded(fact)} = body AND {_envelope_fits()} AND {_subject_fits(fact)} AND {fits(fact)}, false)"


_STATED_IDS: dict[type[Fact], str] = {
    **dict.fromkeys(profile.FACTS, "concat(d.owner, '/', d.memory_type)"),
    GoalFocused: "concat(d.owner, '/', d.goal_id)",
}
"""`Fact.stated_id` in SQL."""


def _subject_fits(fact: type[Fact]) -> str:
    """The subject names this event; only an id that the data repeats, and so is checked with it, may need escapes."""
    if fact in _STATED_IDS:
        return f"""substr(e_subject, {len(fact.entity()) + 2}) = {_STATED_IDS[fact]}
            AND starts_with(e_subject, '{fact.entity()}/') AND subject = concat(
                'ledger.', split_part(subject, '.', 2), '.{fact.entity()}.', {_token(_STATED_IDS[fact])},
                '.{fact.verb()}.', replace(e_actor, ':', '.'))
            AND regexp_full_match(subject,
                'ledger\\.[A-Za-z0-9_-]+\\.[a-z_]+\\.[A-Za-z0-9_=-]+(\\.[A-Za-z0-9_-]+){{3}}')"""
    longest = len(fact.entity()) + 1 + MAX_ID
    return f"""length(e_subject) <= {longest} AND starts_with(e_subject, '{fact.entity()}/') AND subject = concat(
        'ledger.', split_part(subject, '.', 2), '.', replace(e_subject, '/', '.'),
        '.{fact.verb()}.', replace(e_actor, ':', '.'))
        AND regexp_full_match(subject, '[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+){{6}}')"""


def _token(value: str) -> str:
    """ledger.wire.subjects.encode_token in SQL, of a text that is not empty."""
    return f"replace(replace(replace(url_encode({value}), '.', '%2E'), '~', '%7E'), '%', '=')"


def _encoded(fact: type[Fact]) -> str:
    """The bytes that ledger.wire.envelope.encode writes, as a SQL expression over the parsed event `e`."""
    optional = ("traceparent", "traceid", "messageid", "causationid", "correlationid")
    extensions = ", ".join(f"""',"{name}":"' || e_{name} || '"'""" for name in optional)
    return f"""concat('{{"specversion":"1.0","id":"', e_id, '","type":"{fact.name}","source":"', e_source,
        '","subject":"', e_subject, '","time":"', e_time,
        '","datacontenttype":"application/json","dataschema":"{SCHEMA_PREFIX}{fact.name}:',
        {written_version(fact)}, '","actor":"', e_actor, '"',
        {extensions}, ',"data":', data::VARCHAR, '}}')"""


def _envelope_fits() -> str:
    """Constraints of ledger.wire.envelope.Envelope that the comparison of bytes does not prove."""
    short = ("id", "source", "traceparent", "traceid", "messageid", "causationid", "correlationid")
    lengths = " AND ".join(f"(e_{name} IS NULL OR length(e_{name}) BETWEEN 1 AND 512)" for name in short)
    return (
        f"e_id IS NOT NULL AND e_source IS NOT NULL AND {lengths} AND length(e_subject) BETWEEN 1 AND 1024 "
        f"AND {entity_check('e_actor')} "
        "AND regexp_full_match(e_time, '\\d{4}-\\d\\d-\\d\\dT([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?"
        "(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)') "
        "AND TRY_CAST(e_time AS TIMESTAMPTZ) BETWEEN "
        "TIMESTAMPTZ '0001-01-01 00:00:00+00' AND TIMESTAMPTZ '9999-12-31 23:59:59.999999+00' "
        f"AND NOT contains(body, '{NUL.decode()}')"
    )
