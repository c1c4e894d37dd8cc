"""The style and the scripts."""

from __future__ import annotations

from starlette.responses import Response

from producers.web.addresses import HOME
from producers.web.files import files as all_files
from producers.web.headers import OF_A_FILE
from producers.web.rendering import page
from producers.web.site import Page, Site
from producers.web.visit import Visit


async def file(_: Site, visit: Visit) -> Response:
    """One file; an address with an old version leads nowhere."""
    found = all_files().get(visit.part("name"))
    if found is None or found.version != visit.part("version"):
        return page(visit, "missing.html", 404)
    headers = {**OF_A_FILE, "Vary": "Accept-Encoding"}
    if "gzip" in visit.request.headers.get("accept-encoding", ""):
        return Response(found.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=found.kind)
    return Response(found.content, headers=headers, media_type=found.kind)


PAGES = (Page(f"{HOME}/static/{{version}}/{{name}}", file, open=True),)
