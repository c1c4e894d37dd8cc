"""Owners: stated as an entity, or as a mail address, which is the user of that address."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

from kledger.contract.scope_fields import SeenEntity

_MAIL = re.compile(r"[^\s:@]+@[^\s:@]+\.[^\s:@]+")


def owner_named(value: object) -> object:
    """`user:ADDRESS` for a mail address, anything else as it is."""
    return f"user:{value}" if isinstance(value, str) and _MAIL.fullmatch(value) else value


Owner = Annotated[SeenEntity, BeforeValidator(owner_named)]
