"""Load every module of the packages that are named."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import walk_packages

PRODUCT = ("kledger", "ledger", "projections", "consumers", "producers", "bench")


def load_all(packages: Iterable[str]) -> None:
    """Import them with all that is in them, but for what runs when it is imported."""
    for name in packages:
        package = import_module(name)
        for module in walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith(".__main__"):
                import_module(module.name)
