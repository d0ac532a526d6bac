"""The pages one acts on: answer, stop, delete, delegate. Each asks the service; what it says is shown.

A form that was sent twice is one answer, or one run. A request is delegated as it was looked
over: what was changed since is looked over again.

Never: logic; a change without the role for it.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from agent.clock import serial
from agent.service import Refusal
from agent.web.api import Answers, Operates, workspace_for
from agent.web.here import here
from agent.web.preview import findings, mark_of
from agent.yamlfile import Document, UserFileError, plain_scalar, read_document, validate
from states.lint.scene import Report
from states.spec import Request as Asked
from states.words.rows import chosen_words

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

FIELDS = ("command", "name", "cluster", "gpu", "replicas", "image", "workspace", "outputs", "more")
"""Of the form, in its order."""
FIGURES = frozenset({"gpu", "replicas"})


# --- answering ---------------------------------------------------------------------------------------------


@router.post("/questions/{run}/{number}")
def reply(
    request: Request,
    who: Answers,
    run: str,
    number: int,
    option: Annotated[str, Form()] = "",
    text: Annotated[str, Form(max_length=4000)] = "",
) -> HTMLResponse:
    """An option by one click, an option with its value, or free text; what came of it."""
    place = here(request)
    said = f"{option}={text}" if option and text else option or text
    try:
        applied = place.service.answer(
            f"{run}/{number}", said, by=who.name, key=_key_of(number, who.name, said)
        )
    except Refusal as refused:
        by = next(
            (q.by for q in place.service.job(run).questions if q.number == number and not q.is_open), ""
        )
        told = {"good": False, "words": str(refused), "first": by, "run": run}
        return place.pages.page(request, "said.html", status=409, **told)
    job = applied.job.but(language=place.pages.language(request))
    question = next(q for q in job.questions if q.number == number)
    page = place.pages.page(
        request, "said.html", good=True, words=chosen_words(job, question), first="", run=job.id
    )
    page.headers["HX-Trigger"] = "answered"
    return page


def _key_of(number: int, by: str, said: str) -> str:
    """The same words of the same person to the same question are one answer, however often they were clicked."""
    return f"web:{number}:{hashlib.sha256(f'{by}:{said}'.encode()).hexdigest()[:16]}"


# --- stopping, deleting ------------------------------------------------------------------------------------


@router.post("/runs/{run}/stop")
def stop(
    request: Request, who: Operates, run: str, reason: Annotated[str, Form(max_length=1000)] = ""
) -> Response:
    """Halt it, and back to its page."""
    place = here(request)
    applied = place.service.stop(run, by=who.name, reason=reason)
    return RedirectResponse(f"{place.prefix}/runs/{applied.job.id}", 303)


@router.post("/runs/{run}/delete")
def delete(request: Request, who: Operates, run: str, name: Annotated[str, Form()] = "") -> Response:
    """Remove the cluster's record of an ended run whose name was spelled out."""
    place = here(request)
    applied = place.service.delete(run, name=name, by=who.name)
    return RedirectResponse(f"{place.prefix}/runs/{applied.job.id}", 303)


# --- delegating --------------------------------------------------------------------------------------------


@router.get("/delegate")
def delegate_form(request: Request, who: Operates) -> HTMLResponse:
    """The empty form."""
    place = here(request)
    empty = dict.fromkeys(FIELDS, "") | {
        "cluster": place.service.default_cluster,
        "workspace": str(place.workspace),
    }
    return _form(request, empty, key=serial(12))


@router.post("/delegate")
async def delegate(request: Request, who: Operates) -> Response:
    """Look the request over; delegate it when that is what was looked over."""
    from anyio import to_thread

    form = await request.form()
    given = {name: str(form.get(name, "")).replace("\r\n", "\n") for name in (*FIELDS, "mark", "key")}
    return await to_thread.run_sync(_delegate, request, given, who.name)


def _delegate(request: Request, given: dict[str, str], by: str) -> Response:
    place = here(request)
    try:
        asked = request_of(given)
        workspace = workspace_for(place, asked)
        asked = asked.model_copy(update={"workspace": workspace})
        mark = mark_of(asked)
        if given["mark"] == mark:
            key = f"web:{given['key']}" if given["key"] else ""
            taken = place.service.delegate(asked, workspace=workspace, request_id=key, by=by)
            return RedirectResponse(f"{place.prefix}/runs/{taken.job.id}", 303)
        report = findings(place.service, asked, workspace)
    except (UserFileError, Refusal) as refused:
        return _form(request, given, key=given["key"], faults=str(refused).splitlines(), status=422)
    return _form(request, given, key=given["key"], report=report, mark=mark)


def request_of(given: dict[str, str]) -> Asked:
    """The request of a filled-in form. Raises UserFileError with everything that is wrong, by the field's name."""
    more = read_document(given["more"], what="more") if given["more"].strip() else Document({}, {}, {})
    more.labels.pop((), None)
    for name in FIELDS[:-1]:
        text = given[name].strip()
        if not text:
            continue
        value: Any = plain_scalar(text) if name in FIGURES else text
        more.data[name] = [line for line in text.splitlines() if line.strip()] if name == "outputs" else value
        more.labels[(name,)] = name
        more.texts[(name,)] = text
    return validate(more, Asked)


def _form(
    request: Request,
    given: dict[str, str],
    *,
    key: str,
    report: Report | None = None,
    mark: str = "",
    faults: list[str] | None = None,
    status: int = 200,
) -> HTMLResponse:
    place = here(request)
    refused = report is not None and any(finding.level == "refuse" for finding in report.findings)
    clusters = sorted(place.service.ports.clusters)
    return place.pages.page(
        request,
        "delegate.html",
        status=status,
        given=given,
        key=key,
        report=report,
        refused=refused,
        mark=mark,
        faults=faults or [],
        clusters=clusters,
    )
