"""Does our client read headers as the library does?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client

from ledger.client import QuickClient

_parts = st.sampled_from(
    [b"Nats-Msg-Id", b":", b" ", b"\t", b"\r\n", b"\n", b"a", b"\x1c", b"\xff", "知".encode(), b""]
)


@given(st.one_of(st.binary(max_size=60), st.lists(_parts, max_size=20).map(b"".join)))
def test_any_block_of_headers_is_read_as_the_library_reads_it(raw: bytes) -> None:
    assert QuickClient._parse_header_lines(raw) == Client._parse_header_lines(raw)
