"""The versions of what is installed here."""

from __future__ import annotations

from functools import cache
from importlib import metadata

PRODUCT = "knowledge-ledger"


@cache
def version(package: str) -> str:
    """The version of an installed package, as `1.2.3`. Its metadata is read once: to parse it takes milliseconds.

    Raises `PackageNotFoundError` where there is none of that name.
    """
    return metadata.version(package)


def product_version() -> str:
    """The product's own; a text that says so where it runs without being installed."""
    try:
        return version(PRODUCT)
    except metadata.PackageNotFoundError:
        return "not installed"
