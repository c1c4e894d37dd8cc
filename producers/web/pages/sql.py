"""SQL: a query over the live view, its rows as a table, a chart and a file. For analysts and operators."""

from __future__ import annotations

import asyncio

from starlette.responses import JSONResponse, Response

from kledger.answers.admin import Column, Table
from kledger.contract.errors import Forbidden, IllegalQuery, InvalidPayload, LedgerError
from producers.operations.admin.table_files import FileForm, encoded
from producers.web.addresses import HOME, local
from producers.web.headers import OF_A_PAGE
from producers.web.questions import QUESTIONS
from producers.web.rendering import back_to, page, with_query
from producers.web.site import Page, Site
from producers.web.sql_result import MOST_BARS, shown
from producers.web.visit import MOST_TEXT, Visit

PATH = f"{HOME}/sql"
_KINDS = {FileForm.CSV: "text/csv; charset=utf-8", FileForm.PARQUET: "application/vnd.apache.parquet"}


async def editor(_: Site, visit: Visit) -> Response:
    """The editor, with the query of the address; its rows too with `run=1`, unless a link of another site says so."""
    _require_analyst(visit)
    query = visit.text("query") or ""
    if query and visit.text("run") and not visit.from_elsewhere:
        return await _rows(visit, query)
    return _page(visit, query)


async def run(_: Site, visit: Visit) -> Response:
    """The rows of the query in the form: as a file, or on the page of their address, where it is not too long."""
    query, form = visit.said("query"), visit.said("as")
    address = with_query(PATH, {"query": query, "run": 1})
    if form not in list(_KINDS) and 0 < len(query) <= MOST_TEXT and local(address) == address:
        _require_analyst(visit)
        return back_to(visit, address)
    return await _rows(visit, query, form)


async def _rows(visit: Visit, query: str, form: str = "") -> Response:
    try:
        result = await visit.ledger.sql(query)
    except (IllegalQuery, InvalidPayload) as error:  # told beside the editor
        return _page(visit, query, error=error)
    if form in list(_KINDS):
        return await _file(result, FileForm(form))
    return _page(visit, query, result=result)


async def columns(_: Site, visit: Visit) -> Response:
    """Views and their columns, for people to read."""
    _require_analyst(visit)
    return page(visit, "sql_columns.html", views=await _views(visit))


async def names(_: Site, visit: Visit) -> Response:
    """Names of views and of their columns, which the editor completes."""
    _require_analyst(visit)
    views = await _views(visit)
    content = {name: [column["name"] for column in columns] for name, columns in views.items()}
    return JSONResponse(content, headers=OF_A_PAGE)


def _page(visit: Visit, query: str, *, result: Table | None = None, error: LedgerError | None = None) -> Response:
    return page(
        visit,
        "sql.html",
        200 if error is None else 400,
        query=query,
        error=error,
        result=None if result is None else shown(result),
        questions=QUESTIONS,
        most_bars=MOST_BARS,
    )


async def _file(result: Table, form: FileForm) -> Response:
    # In a thread: a hundred thousand rows take a while, and the node has others to answer.
    content = await asyncio.to_thread(encoded, result, form)
    headers = {**OF_A_PAGE, "Content-Disposition": f'attachment; filename="rows.{form}"'}
    return Response(content, headers=headers, media_type=_KINDS[form])


async def _views(visit: Visit) -> dict[str, list[Column]]:
    """What a statement can name, with its columns."""
    return {each["name"]: each["columns"] for each in (await visit.ledger.columns())["relations"]}


def _require_analyst(visit: Visit) -> None:
    """Raise Forbidden before anything is shown that this person could not run."""
    if not visit.session.analyst:
        raise Forbidden("a query sees what is in every scope: sign in with a token of an analyst or an operator")


PAGES = (
    Page(PATH, editor),
    Page(PATH, run, ("POST",)),
    Page(f"{PATH}/columns", columns),
    Page(f"{PATH}/names.json", names),
)
