"""The page and the API as one ASGI app over the application service.

`create_app` is all that a server needs; `agent/web/server.py` runs it in `wk serve`.

Never: a route that is not behind the door, but for the door itself and the files of the page.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, PlainTextResponse
from starlette.staticfiles import StaticFiles

from agent.people import People
from agent.service import Service
from agent.web import api, api_cluster, errors, live, pages_acting, pages_cluster, pages_door, pages_runs
from agent.web.door import SESSION_S, Door
from agent.web.guard import Guard
from agent.web.here import Here
from agent.web.pages import Pages

STATIC = Path(__file__).parent / "static"
ROUTERS = (pages_door, pages_runs, pages_acting, pages_cluster, live, api, api_cluster)


def create_app(
    service: Service,
    people: People,
    *,
    workspace: Path,
    prefix: str = "",
    session_s: float = SESSION_S,
) -> FastAPI:
    """The app. workspace: for runs whose request names no folder. prefix: what a reverse proxy puts before every
    path, whether it passes it on or takes it off. session_s: seconds that a session lasts. Whoever stops the app sets
    `app.state.here.leaving`, so that open streams end."""
    prefix = "/" + prefix.strip("/") if prefix.strip("/") else ""
    app = FastAPI(
        title="Watchkeeper",
        summary="Takes a whole cluster job off a person's hands.",
        version="1",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    door = Door(people, service.ports.clock, session_s=session_s)
    app.state.here = Here(service, door, workspace.resolve(), Pages(service, prefix), prefix)
    for module in ROUTERS:
        app.include_router(module.router)
    app.add_api_route("/healthz", healthz, include_in_schema=False, response_class=PlainTextResponse)
    app.add_api_route("/favicon.ico", favicon, include_in_schema=False, response_class=FileResponse)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Guard, prefix=prefix)
    errors.add_to(app)
    return app


def favicon() -> FileResponse:
    """Where a browser looks for it on a page that names none."""
    return FileResponse(STATIC / "favicon.svg", media_type="image/svg+xml")


def healthz(request: Request) -> str:
    """For who watches the watch: it answers."""
    return "ok\n"
