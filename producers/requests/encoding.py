"""What bytes that are no JSON are told: where their encoding is the fault, that and what to do."""

from __future__ import annotations

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONVERT = "convert it to UTF-8, for example with iconv -f {} -t UTF-8"


def not_utf8(content: bytes) -> str | None:
    """What is wrong with the encoding, and what to do; None for UTF-8."""
    if content.startswith(_WIDE_MARKS):
        return f"it is UTF-16: {_CONVERT.format('UTF-16')}"
    try:
        content.decode()
    except UnicodeDecodeError as error:
        how = f"{_CONVERT.format('WINDOWS-1252')}, or from GB18030 where it is Chinese"
        return f"its byte {error.start + 1} is not UTF-8: {how}"
    return None


def not_json(content: bytes, error: ValueError) -> str:
    """What a reader of JSON found in these bytes, in words that help."""
    return not_utf8(content) or str(error)
