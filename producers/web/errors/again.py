"""What was sent in a form that was refused: shown again, so that nothing that somebody wrote is lost."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from producers.web.addresses import HOME, local
from producers.web.errors.telling import FIELDS
from producers.web.visit import Visit

_LONG = 80
_SECRET = frozenset({"csrf", "token"})


@dataclass(frozen=True, slots=True)
class Field:
    """A value of the form; one without a label is carried along unseen."""

    name: str
    value: str
    label: str | None

    @property
    def long(self) -> bool:
        """Whether it takes more than a line."""
        return self.name == "content" or "\n" in self.value or len(self.value) > _LONG


def sent(visit: Visit) -> list[Field]:
    """The fields of the form, where it has some that people write; else none: there is nothing to mend."""
    fields = [
        Field(name, value, FIELDS.get(name) if name != "id" and (value or len(values) == 1) else None)
        for name, values in visit.form.items()
        for value in values
        if name not in _SECRET
    ]
    return fields if any(field.label and field.value for field in fields) else []


def came_from(visit: Visit) -> str:
    """The page that led here, by the form or by what the browser says; HOME where it is another site or this page."""
    if back := visit.said("back"):
        return local(back)
    stated = urlsplit(visit.request.headers.get("referer", ""))
    if stated.netloc != visit.request.headers.get("host", ""):
        return HOME
    address = local(stated.path + (f"?{stated.query}" if stated.query else ""))
    return HOME if address == visit.address else address
