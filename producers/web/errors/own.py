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


OWN = (StaleForm, NobodyNamed)
