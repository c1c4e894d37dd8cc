"""Does our client read messages as the library does?"""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client

from ledger.client import QuickClient, message_id_in
from ledger.publication import MSG_ID

_parts = st.sampled_from(
    [b"Nats-Msg-Id", b":", b" ", b"\t", b"\r\n", b"\n", b"a", b"\x1c", b"\xff", "知".encode(), b""]
)

_lines = st.one_of(st.binary(max_size=60), st.lists(_parts, max_size=20).map(b"".join))


@given(_lines)
def test_any_block_of_headers_is_read_as_the_library_reads_it(raw: bytes) -> None:
    assert QuickClient._parse_header_lines(raw) == Client._parse_header_lines(raw)


@given(st.sampled_from([b"", b" 503", b" 503 gone"]), _lines)
def test_the_id_of_any_message_is_the_one_that_the_library_reads(status: bytes, lines: bytes) -> None:
    block = b"NATS/1.0" + status + b"\r\n" + lines + b"\r\n\r\n"
    found = message_id_in(block)
    try:
        headers = asyncio.run(Client()._process_headers(block)) or {}
    except UnicodeDecodeError:  # the library cannot read it at all
        return
    assert found == headers.get(MSG_ID, "")
