"""Every way in that `wk serve` has: the page, the API, the tools of chat agents, links, signed requests, figures.

Never: a route left out because it stands in another application that is mounted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

OPEN_ENDED = ("/{path}", "/{path:path}")


def routes_of(app: Any) -> dict[tuple[str, str], Any]:
    """(method, path) -> route, of an application and of all that is mounted in it. HEAD goes with GET; "*" stands for
    a route or a folder of files that takes any method."""
    return dict(_walk(app.routes, ""))


def _walk(routes: Any, prefix: str) -> Iterator[tuple[tuple[str, str], Any]]:
    for route in routes:
        path = prefix + getattr(route, "path", "")
        methods = getattr(route, "methods", None)
        inside = getattr(route, "routes", None) or getattr(
            getattr(route, "original_router", None), "routes", None
        )
        if methods:
            yield from (((method, path), route) for method in methods if method != "HEAD")
        elif inside:
            yield from _walk(inside, path)
        else:
            yield ("*", path), route


def paths_of(app: Any, **values: str) -> list[str]:
    """Every path that can be asked for by GET, its parameters filled in; without the files of the page."""
    known = {"number": "1", "token": "no-token"} | values
    paths = (path for method, path in routes_of(app) if method == "GET")
    return sorted(path.format(**known) for path in paths)
