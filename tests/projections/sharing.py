"""What is said of who may see what: events for histories."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from kledger.contract.knowledge import AclEntry
from ledger.events.knowledge import KnowledgeShared
from ledger.events.scope_type import ScopeTypeRegistered


def shares(entities: Sequence[str]) -> st.SearchStrategy[KnowledgeShared]:
    """ACLs of these and one more, each named once."""
    entry = st.builds(
        AclEntry,
        entity=st.sampled_from([*entities, "department:财"]),
        permission=st.sampled_from(["read", "read_write"]),
    )
    return st.builds(KnowledgeShared, acl=st.lists(entry, max_size=3, unique_by=lambda one: one.entity))


def scope_types() -> st.SearchStrategy[ScopeTypeRegistered]:
    """Registrations, a built-in type among them."""
    return st.builds(
        ScopeTypeRegistered, type=st.sampled_from(["department", "guild", "team"]), priority=st.floats(0, 10)
    )
