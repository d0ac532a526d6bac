"""What channels and figures add to the page: answer links, signed requests of programs, and /metrics.

Never: a way in that does not prove by itself who comes (a signed link, a signature, a token).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse

from agent.channel_settings import WebhookSettings
from agent.channels import inbound, page
from agent.channels.office import links_of

if TYPE_CHECKING:
    from agent.app import App


def add_channels(web: FastAPI, app: App) -> None:
    """Add to the page what the settings of this app ask for. Call it once, before the page is served."""
    web.state.links = links_of(app)
    web.include_router(page.router)
    if any(isinstance(one, WebhookSettings) for one in app.settings.channels.values()):
        web.mount(inbound.PATH, inbound.hooks(app))
    metrics = app.metrics
    if metrics is not None:

        def figures(request: Request) -> Response:
            """For who has any token; a scraper is told 401, and not sent to the login page."""
            if request.app.state.here.door.who(request) is None:
                how = "send `Authorization: Bearer TOKEN`; a token: wk people add NAME --role read\n"
                return PlainTextResponse(how, 401, {"WWW-Authenticate": "Bearer"})
            return Response(metrics.text(), media_type=metrics.content_type)

        web.add_api_route("/metrics", figures, include_in_schema=False)
