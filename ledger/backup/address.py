"""Address of a backup: a directory of this machine, or `s3://BUCKET/PREFIX` in an object store."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kledger.contract.errors import InvalidPayload

SCHEME = "s3://"
_ANY_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX_PART = re.compile(r"[A-Za-z0-9!_.*'()=-]+")


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A bucket, and what the names of a backup's objects begin with; nothing where the whole bucket is the backup's."""

    bucket: str
    prefix: str

    @classmethod
    def parse(cls, text: str) -> StoreAddress:
        """The address that `s3://BUCKET/PREFIX` names. Raises InvalidPayload."""
        bucket, _, prefix = text.removeprefix(SCHEME).partition("/")
        parts = prefix.removesuffix("/").split("/") if prefix else []
        odd = [part for part in parts if not _PREFIX_PART.fullmatch(part) or part in (".", "..")]
        if not text.startswith(SCHEME) or not _BUCKET.fullmatch(bucket) or odd:
            raise InvalidPayload(
                f"into {text[:200]!r} is no place in an object store: write {SCHEME}BUCKET or {SCHEME}BUCKET/PREFIX, "
                "also for other stores with that interface, or the path of a directory; a bucket's name has 3 to 63 of "
                "a-z, 0-9, . and -; keys and server are told in the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY "
                "and AWS_ENDPOINT_URL_S3",
                errors=[{"field": "into", "reason": "is not s3://BUCKET/PREFIX"}],
            )
        return cls(bucket, "/".join(parts))

    def __str__(self) -> str:
        return SCHEME + self.path

    @property
    def path(self) -> str:
        """Bucket and prefix."""
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket


def is_in_store(where: str) -> bool:
    """Whether this is the address of an object store, or was meant as one: `gs://bucket` is no directory."""
    return _ANY_SCHEME.match(where) is not None
