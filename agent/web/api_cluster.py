"""The HTTP API under /api/v1: what a cluster has (capacity, jobs, logs, events), and the config library.

Never: logic; a call that a cluster did not offer.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from agent.web.api import Reads
from agent.web.here import answer, here

router = APIRouter(prefix="/api/v1")

LINES_MAX = 5000
Lines = Annotated[int, Query(ge=1, le=LINES_MAX, description="At most so many.")]


@router.get("/capacity", summary="What is free now")
def capacity(request: Request, who: Reads, cluster: str = "", group: str = "") -> JSONResponse:
    """Free and total of a group; null where the cluster does not tell."""
    where = here(request).service.cluster(cluster)
    return answer(request, {"cluster": where.name, **where.capacity(group or None).model_dump(mode="json")})


@router.get("/jobs", summary="The jobs that are on a cluster")
def jobs(request: Request, who: Reads, cluster: str = "", everyone: bool = False) -> JSONResponse:
    """One's own, or everyone's where the cluster shows them."""
    found = here(request).service.cluster(cluster).list(everyone=everyone)
    return answer(request, [line.model_dump(mode="json") for line in found])


@router.get("/jobs/{job}", summary="One job as its cluster tells it")
def job(request: Request, who: Reads, job: str, cluster: str = "") -> JSONResponse:
    """One look. A run of ours (by its id), or any job's name or id."""
    return answer(request, here(request).service.observe(job, cluster).model_dump(mode="json"))


@router.get("/runs/{job}/logs", summary="The end of a run's log")
@router.get("/jobs/{job}/logs", summary="The end of a job's log")
def logs(
    request: Request,
    who: Reads,
    job: str,
    lines: Lines = 200,
    cursor: str = "",
    head: bool = False,
    cluster: str = "",
) -> JSONResponse:
    """Or its head, or what came after the `cursor` of an earlier answer. Redacted."""
    where, ref = here(request).service.resolve(job, cluster)
    return answer(request, where.logs(ref, lines=lines, cursor=cursor, head=head).model_dump(mode="json"))


@router.get("/runs/{job}/events", summary="The cluster's events about a run")
@router.get("/jobs/{job}/events", summary="The cluster's events about a job")
def events(request: Request, who: Reads, job: str, cluster: str = "") -> JSONResponse:
    """Oldest first, in the cluster's own words."""
    where, ref = here(request).service.resolve(job, cluster)
    return answer(request, [event.model_dump(mode="json") for event in where.events(ref)])


@router.get("/library", summary="What earlier runs taught")
def library(request: Request, who: Reads) -> JSONResponse:
    """Images, environments and proxies by the kind of work, the newest first."""
    return answer(request, list(map(dict, here(request).service.library.entries())))
