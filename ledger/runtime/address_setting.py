"""The address of a server as a setting.

Apart from kledger/contract/addresses.py, which a client loads without pydantic.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from kledger.contract.addresses import NO_ADDRESS, is_http_address


def _checked(url: str) -> str:
    if url and not is_http_address(url):
        raise ValueError(NO_ADDRESS)
    return url


HttpAddress = Annotated[str, AfterValidator(_checked)]
"""An address in a setting, or nothing."""
