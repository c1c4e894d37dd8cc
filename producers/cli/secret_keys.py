"""Secret keys that somebody gives in place of a public one: told by what they are, and never quoted.

Any 32 bytes may be a public key, so a master key in base64 is known by its file, or by the environment.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ledger.runtime.private import MASTER_KEY

_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{64}")
_MAY_BE_SECRET = re.compile(r"[A-Za-z0-9+/=_\-\s]{32,}")
"""Most of a key that was cut, say. A path may look so too, and is told by its first folder (`_is_path`)."""


def refusal_of_secret(text: str, file: Path | None) -> str | None:
    """Why this is no public key but a secret one, and which is wanted; None where it may be public."""
    named = "what is given" if file is None else str(file)
    if "PRIVATE KEY" in text:
        return f"{named} is a private key, which stays secret: {_wanted(file)}"
    if "BEGIN" in text:
        return None
    if _is_master_key(text.strip(), file):
        return f"{named} is a master key, which stays secret and signs nothing: {_wanted(file)}"
    if _HEXADECIMAL.fullmatch(text.strip()):
        return f"{named} is 32 bytes in hexadecimal digits, as a master key may be, and no public key: {_wanted(file)}"
    return None


def quoted(option: str) -> str:
    """What was given, for a message: by itself only where that cannot be a secret, or is a path on this machine."""
    if (_MAY_BE_SECRET.fullmatch(option) or "BEGIN" in option) and not _is_path(option):
        return f"what is given ({len(option):,} characters)"
    return repr(option)


def _is_path(option: str) -> bool:
    """Whether it is a file, or begins with a folder that is there: a misspelt one has to be seen."""
    path = Path(option)
    first = Path(*path.parts[: 2 if path.is_absolute() else 1])
    try:
        return (len(path.parts) > len(first.parts) and first.is_dir()) or path.is_file()
    except OSError:  # a name is too long for one
        return False


def _is_master_key(text: str, file: Path | None) -> bool:
    from ledger.privacy.master_key import FILE_VARIABLE, NAME

    if text and text == os.environ.get(MASTER_KEY, "").strip():
        return True
    if file is None:
        return False
    configured = os.environ.get(FILE_VARIABLE)
    names = {file.name.casefold(), file.resolve().name.casefold()}
    return NAME in names or bool(configured and Path(configured).exists() and file.samefile(configured))


def _wanted(file: Path | None) -> str:
    """Which file is wanted: where a node's keys are beside this one, by its path."""
    public = sorted((file.resolve().parent / "public").glob("*.pem")) if file is not None else []
    match public:
        case []:
            where = "a file in keys/public of its data directory"
        case [one]:
            where = str(one)
        case _:
            where = f"a file in {public[0].parent}"
    return f"give the public key of the node that signed, {where} (kledger key show tells which is in use)"
