"""What is said of resources in the histories that the laws are tried on."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ledger.event import Fact
from ledger.events.resource import ResourceRestored, ResourceRetired, ResourceSaved, ResourceSecretDestroyed

RESOURCES = ("r1", "code/登录/x", "/r")
_MOMENTS = ("2026-03-07T10:00:00Z", "2999-01-01T00:00:00.5+08:00")


def about_resources(
    texts: st.SearchStrategy[str],
    contents: st.SearchStrategy[str],
    tags: st.SearchStrategy[dict[str, Any]],
    scopes: st.SearchStrategy[list[str]],
    owners: st.SearchStrategy[str],
) -> st.SearchStrategy[Fact]:
    """Facts about a resource, out of what histories are made of: more saves than others."""
    moments = st.fixed_dictionaries({}, optional={"expires_at": st.sampled_from(_MOMENTS), "language": texts})
    saves = st.builds(
        ResourceSaved,
        title=contents,
        body=texts,
        secure_body=st.sampled_from([None, "sealed:v1:resource:r1:QUJD", "[erased]"]),
        content_type=st.sampled_from(["code", "cookie"]),
        metadata=tags | moments,
        scopes=scopes,
        owner=owners,
        shared_with=st.lists(owners, max_size=2),
        expected_version=st.sampled_from([None, None, None, 1, 2]),
    )
    return st.one_of(
        saves,
        saves,
        st.builds(ResourceRetired, reason=st.none() | texts),
        st.builds(ResourceRestored),
        st.builds(ResourceSecretDestroyed),
    )
