"""Errors as answers: one status and one code word for each kind, JSON for programs, a page for people.

The code words are those of the command line (`agent/cli/output.py`).

Never: a trace, or a text that was not redacted, in an answer.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response

from agent.clusters.base import ClusterError, NotThere, Refused
from agent.people import PeopleError
from agent.service import Refusal
from agent.store import Unknown
from agent.web.here import here
from agent.yamlfile import UserFileError

log = logging.getLogger(__name__)


class Told(NamedTuple):
    """An error as it is told."""

    status: int
    code: str
    message: str


STATUS_CODES = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "usage",
    422: "usage",
    429: "refused",
}
INTERNAL = "an internal error; your runs are in the database and are not touched by it. The log of `wk serve` has it."


def told(error: Exception) -> Told:
    """The status, the code word and the words of an error."""
    match error:
        case HTTPException():
            return Told(error.status_code, STATUS_CODES.get(error.status_code, "refused"), str(error.detail))
        case Unknown() | NotThere():
            return Told(404, "not_found", str(error))
        case Refusal() | Refused():
            return Told(409, "refused", str(error))
        case ClusterError():
            return Told(502, "unreachable", str(error))
        case UserFileError():
            return Told(422, "usage", str(error))
        case RequestValidationError() | ValidationError():
            return Told(422, "usage", "\n".join(_fault(fault) for fault in error.errors()))
        case PeopleError():
            return Told(503, "refused", str(error))
    return Told(500, "internal", INTERNAL)


KINDS: tuple[type[Exception], ...] = (
    HTTPException, Unknown, NotThere, Refusal, ClusterError, UserFileError, RequestValidationError, ValidationError,
    PeopleError, Exception,
)  # fmt: skip


def add_to(app: FastAPI) -> None:
    """Answer every kind of error of this app."""
    for kind in KINDS:
        app.add_exception_handler(kind, _answer)


def _answer(request: Request, error: Exception) -> Response:
    what = told(error)
    if what.status == 500:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    place = here(request)
    message = place.service.ports.redact(what.message)
    headers = dict(getattr(error, "headers", None) or {})
    if is_for_a_program(request):
        return JSONResponse({"error": {"code": what.code, "message": message}}, what.status, headers)
    if what.status == 401:
        return _to_the_door(request, place.prefix)
    page = place.pages.page(request, "error.html", status=what.status, message=message)
    page.headers.update(headers)
    return page


def is_for_a_program(request: Request) -> bool:
    """Whether the API was asked, and not a page."""
    return request.url.path.removeprefix(here(request).prefix).startswith("/api/")


def _to_the_door(request: Request, prefix: str) -> Response:
    """The login page; a part of a page that was asked for sends the whole page there."""
    login = f"{prefix}/login"
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={"HX-Redirect": login})
    if "text/event-stream" in request.headers.get("accept", ""):
        return Response(status_code=401)
    return RedirectResponse(login, 303)


def _fault(fault: object) -> str:
    """One fault of pydantic: where it is and what it is, never the value."""
    assert isinstance(fault, dict)
    place = ".".join(str(part) for part in fault["loc"] if part != "body")
    return f"{place}: {fault['msg']}" if place else str(fault["msg"])
