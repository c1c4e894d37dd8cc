"""Forms with a file: which charsets are read, and how long a field may be."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.doors.http_door import ALICE, Door, http_door, refusal

MEBIBYTE = 1024 * 1024


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


def form(title: bytes) -> bytes:
    part = b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\n' + title + b"\r\n"
    file = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nWhat is said.\r\n'
    return part + file + b"--x--\r\n"


def headers(charset: str | None) -> dict[str, str]:
    stated = "" if charset is None else f"; charset={charset}"
    return {**ALICE, "Content-Type": f"multipart/form-data; boundary=x{stated}"}


@pytest.mark.parametrize(
    "charset",
    [
        "undefined",
        "punycode",
        "idna",
        "unicode_escape",
        "raw_unicode_escape",
        "utf-16",
        "utf-7",
        "hex",
        "rot13",
        "nothing",
    ],
)
async def test_a_form_in_another_charset_is_refused(door: Door, charset: str) -> None:
    answer = await door.post("/api/documents", content=form(b"a\\u0041"), headers=headers(charset))
    assert "charset" in refusal(answer, 400, "bad_json")
    assert await door.head() == 0


@pytest.mark.parametrize("charset", [None, "utf-8", "UTF-8", '"utf-8"', "us-ascii", "latin-1"])
async def test_a_form_in_a_usual_charset_is_read(door: Door, charset: str | None) -> None:
    answer = await door.post("/api/documents", content=form(b"Rules"), headers=headers(charset))
    assert answer.status_code == 201, answer.text
    assert answer.json()["title"] == "Rules"


async def test_a_field_that_is_no_file_has_a_mebibyte_at_most(door: Door) -> None:
    told = [
        refusal(await door.post("/api/documents", content=form(b"a" * size), headers=headers(None)), status, code)
        for size, status, code in ((MEBIBYTE, 422, "invalid_payload"), (MEBIBYTE + 1, 400, "bad_json"))
    ]
    assert "1,048,576 bytes" in told[1]


async def test_a_form_that_is_cut_anywhere_is_refused_and_nothing_of_it_is_kept(door: Door) -> None:
    """Its file may be whole, and what comes after it says whose it is and who reads it."""
    file = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nWhat is said.\r\n'
    scopes = b'--x\r\nContent-Disposition: form-data; name="scopes"\r\n\r\nuser:alice\r\n'
    whole = file + scopes + b"--x--"
    for end in range(len(whole)):
        refusal(await door.post("/api/documents", content=whole[:end], headers=headers(None)), 400, "bad_json")
    assert await door.head() == 0
    assert (await door.post("/api/documents", content=whole, headers=headers(None))).status_code == 201
