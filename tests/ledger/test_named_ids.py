"""Ids that follow from a name are the UUIDs that every other library makes of it."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from ledger.named_ids import named_id


@given(namespace=st.uuids(), name=st.text())
def test_an_id_of_a_name_is_its_uuid_of_version_5(namespace: uuid.UUID, name: str) -> None:
    assert named_id(namespace, name) == str(uuid.uuid5(namespace, name))
