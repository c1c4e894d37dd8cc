"""A rebuilt view is compared with the live one, also where only one of them has rows of a later relation."""

from __future__ import annotations

import pytest

from producers.node.comparison import compared_with
from projections.engine.digest import LATER, Difference, differences
from projections.engine.duckdb import open_view
from projections.engine.view import Instance
from projections.live.rebuild import Rebuilt
from tests.projections.histories import saved, stored, view_of

ROW = "INSERT INTO tombstones VALUES ('default', 'k1', 'retired', 1, 'user:ann', 2, now())"


@pytest.mark.parametrize("which", ["live", "rebuilt"])
async def test_a_later_relation_that_one_of_them_lacks_is_a_difference_and_no_error(which: str) -> None:
    assert "tombstones" in LATER
    live, fresh = Instance(open_view(None)), Instance(open_view(None))
    try:
        (live if which == "live" else fresh).con.execute(ROW)
        told = await compared_with(live, fresh, Rebuilt(0, 0, 0, 1.0, 0.0, "", {}))
    finally:
        live.close()
        fresh.close()
    assert not told["equal"]
    (view,) = [each for each in told["views"] if each["view"] == "tombstones"]
    assert not view["equal"]
    assert view["rows"] == (which == "live")
    assert [each["view"] for each in told["differences"]] == ["tombstones"]


def test_an_item_that_would_be_judged_by_other_readers_than_its_version_has_differs() -> None:
    log = stored([saved("k1"), saved("k2")])
    live, fresh = view_of(log), view_of(log)
    assert differences(live.con, fresh.con) == []
    live.run("UPDATE knowledge_state SET scopes = ['user:eve'] WHERE id = 'k1'")
    assert differences(live.con, fresh.con) == [Difference("knowledge_state", "default/k1", "differs in scopes")]
