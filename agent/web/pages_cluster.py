"""The pages about what is there: capacity, the config library, the API's own page.

Never: wait for one cluster to show the others; each answers into its own part.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse

from agent.clusters.base import ClusterError
from agent.web.api import Reads
from agent.web.here import here
from states.words.wording import mib, plain

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/capacity")
def capacity(request: Request, who: Reads) -> HTMLResponse:
    """Every cluster; each is asked by a request of its own."""
    place = here(request)
    return place.pages.page(request, "capacity.html", clusters=sorted(place.service.ports.clusters))


@router.get("/part/capacity/{cluster}")
def capacity_part(request: Request, who: Reads, cluster: str) -> HTMLResponse:
    """What is free on one of them."""
    place = here(request)
    try:
        free = place.service.cluster(cluster).capacity()
    except ClusterError as error:
        return place.pages.page(request, "capacity_part.html", rows=[], group="", away=plain(str(error), 400))
    figures = [
        ("gpus", free.free_gpu, free.total_gpu),
        ("cpus", free.free_cpu, free.total_cpu),
        ("block", free.block_gpu, None),
        ("queued", free.queued, None),
    ]
    rows = [(key, *("" if n is None else f"{n:g}" for n in pair)) for key, *pair in figures]
    memory = ["" if n is None else mib(n) for n in (free.free_memory_mib, free.total_memory_mib)]
    rows.insert(2, ("memory", *memory))
    return place.pages.page(request, "capacity_part.html", rows=rows, group=free.group, away="")


@router.get("/library")
def library(request: Request, who: Reads) -> HTMLResponse:
    """What earlier runs taught."""
    place = here(request)
    return place.pages.page(request, "library.html", entries=place.service.library.entries())


@router.get("/api")
def api(request: Request, who: Reads) -> HTMLResponse:
    """The operations of the API, from its own description."""
    operations = [
        (method.upper(), path, told)
        for path, methods in request.app.openapi()["paths"].items()
        for method, told in methods.items()
    ]
    return here(request).pages.page(request, "api.html", operations=operations)


@router.get("/api/v1/openapi.json")
def openapi(request: Request, who: Reads) -> JSONResponse:
    """The description itself (OpenAPI 3.1)."""
    return JSONResponse(request.app.openapi())
