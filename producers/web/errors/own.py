"""Errors of the pages themselves that need words of their own: their code says too little, or something else."""

from __future__ import annotations

from kledger.contract.errors import Forbidden, IllegalScope


class StaleForm(Forbidden):
    """A form that no page of this session has."""

    said = (
        "This form is of a page that was open for too long, or of another person. Open the page again, and repeat it."
    )


class NobodyNamed(IllegalScope):
    """Somebody signs in as nobody."""

    said = "Nobody is named. Say who you are, or look as the operator."


class NotANameAlone(IllegalScope):
    """A field of the form for names has something else than one name, such as `user:mei` in that of the user."""

    said = "A field takes one name alone, without its kind before it: mei, and not user:mei."


OWN = (StaleForm, NobodyNamed, NotANameAlone)
