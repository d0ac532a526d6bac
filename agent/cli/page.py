"""The page that `serve` offers: started where it can be, and otherwise said why not; runs are carried all the same.

Only an address that was asked for and cannot be had is an error. The link that lets the first person in is printed
once, on the terminal, and stands in no log.

Never: a token in the log; a run that is not carried because of the page.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from agent.cli.output import emit, hint, say

if TYPE_CHECKING:
    from agent.app import App

log = logging.getLogger("agent.serve")

HOST = "127.0.0.1"
PORT = 8787
LOOPBACK = ("127.", "localhost", "::1")
HOW = "the page and the API need more packages: pip install 'watchkeeper[web]' (or leave them out: wk serve --no-web)"


def page_of(app: App, *, host: str, port: int | None, prefix: str, json_wanted: bool) -> Any:
    """The page's server, started; None where there is none. Raises web.server.Taken for a port that was asked for."""
    try:
        from agent.web.server import Taken, serve
    except ImportError as error:
        log.info("no page: %s is not installed", error.name)
        hint(HOW)
        return None
    try:
        server = serve(app, host=host, port=PORT if port is None else port, prefix=prefix)
    except Taken as taken:
        if port is not None:
            raise
        hint(str(taken))
        return None
    log.info("the page is at %s", server.url)
    _welcome(app, server.url, json_wanted)
    if not host.startswith(LOOPBACK):
        hint("The page is not encrypted: put a proxy with TLS before it where others can reach it.")
    return server


def _welcome(app: App, url: str, json_wanted: bool) -> None:
    """Where the page is; with a login link for the owner when nobody has been let in yet."""
    from agent.people import People, Role

    people, link = People.of(app.env), url
    if first := not people.list():
        link = f"{url}/login#{people.add(app.service.owner, Role.operate)}"
    if json_wanted:
        emit({"event": "page", "at": app.clock.now(), "url": url} | ({"login": link} if first else {}))
    elif first:
        say(
            f"The page: {link}",
            "This link lets you in, and is shown only now. Others: wk people add NAME --role answer",
        )
    else:
        say(f"The page: {url}")
