"""Every kind of event that may belong to persons by what was there before is asked of the view."""

from __future__ import annotations

import pytest

from ledger.events import FACTS
from ledger.privacy.whose_text import holding
from ledger.vocabulary.examples import EXAMPLES
from projections.live.belonging import persons_before
from tests.projections.empty_views import empty_view

KINDS = [name for name, fact in FACTS.items() if holding(fact).looks_back]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_looks_back_belongs_to_nobody_where_nothing_was(kind: str) -> None:
    with empty_view() as con:
        assert persons_before(con, [EXAMPLES[kind]] * 2) == [[], []]
