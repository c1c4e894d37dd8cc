"""File names of ids: safe on every file system, and reversible.

Lower-case letters, digits, `_`, `-`, `@`, inner dots and letters of scripts without case (漢字) are kept; every other
byte becomes `%XX`. So no id leaves its directory, is hidden, names a device, or collides with another one on a file
system that ignores case (Ann, ann) or the Unicode form of é.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from urllib.parse import unquote, unquote_to_bytes

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-@")
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
LONGEST = 200
"""Most bytes of a name; a longer one is cut, and made unique by `~` and its hash."""
CUT = "~"


def name_of(entity_id: str) -> str:
    """The name of an id; different ids have different names."""
    name = "".join(_escaped(letter, keep_letters=True) for letter in entity_id)
    if not unicodedata.is_normalized("NFC", name):
        name = "".join(_escaped(letter, keep_letters=False) for letter in entity_id)
    if name.startswith("."):
        name = "%2E" + name[1:]
    if name.endswith("."):
        name = name[:-1] + "%2E"
    if _DEVICES.fullmatch(name):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    encoded = name.encode()
    if len(encoded) > LONGEST:
        # Cut between characters, never inside one or inside a %XX.
        head = re.sub(r"%[0-9A-F]?$", "", encoded[: LONGEST - 40].decode(errors="ignore"))
        name = f"{head}{CUT}{hashlib.sha256(entity_id.encode()).hexdigest()[:32]}"
    return name


def id_of(name: str) -> str | None:
    """The id of a name, which may also be written by hand; None when the name was cut."""
    if CUT in name:
        return None
    try:
        unquote_to_bytes(name).decode()
    except UnicodeDecodeError:
        return None
    return unquote(name)


def _escaped(letter: str, *, keep_letters: bool) -> str:
    if letter in _PLAIN or letter == ".":
        return letter
    if keep_letters and not letter.isascii() and unicodedata.category(letter) == "Lo":
        return letter
    return "".join(f"%{byte:02X}" for byte in letter.encode())
