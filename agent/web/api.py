"""The HTTP API under /api/v1: runs and questions. One JSON document an answer, errors as `{"error": {...}}`.

`Idempotency-Key` on a delegation or an answer makes a repeat harmless: the same key gives the first result and
changes nothing (I1). `wait` has a cursor, so that nothing is missed between two calls.

Never: logic; the service is asked, and what it says is handed on.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Body, Depends, Header, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from agent.people import Person, Role
from agent.service import workspace_of
from agent.store import Applied
from agent.waiting import Until, wait_for
from agent.web.door import needs
from agent.web.here import Here, answer, here
from agent.web.preview import finding_data, findings
from states.job import Job
from states.questions import Question, option_text
from states.spec import Request as Asked
from states.words.rows import asks

router = APIRouter(prefix="/api/v1")

WAIT_S_MAX = 300.0

Reads = Annotated[Person, Depends(needs(Role.read))]
Answers = Annotated[Person, Depends(needs(Role.answer))]
Operates = Annotated[Person, Depends(needs(Role.operate))]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        description="Your own key: the same one again changes nothing.",
        max_length=200,
    ),
]


class Reply(BaseModel):
    """An answer: an option's key or number, with its value where it takes one, or free text."""

    model_config = ConfigDict(extra="forbid")
    reply: str = Field(max_length=4000)


class Stop(BaseModel):
    """Why a run is stopped; said in its reports."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field(default="", max_length=1000)


class Delete(BaseModel):
    """The name of the run whose record is removed, spelled out (A7)."""

    model_config = ConfigDict(extra="forbid")
    name: str


class Watch(BaseModel):
    """A job that is on the cluster already (A10)."""

    model_config = ConfigDict(extra="forbid")
    job: str
    cluster: str = ""
    may_stop: bool = False


# --- runs --------------------------------------------------------------------------------------------------


@router.get("/runs", summary="List the runs, the newest first")
def runs(
    request: Request,
    who: Reads,
    live: bool = False,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 200,
    before: Annotated[
        str, Query(description="The `id` of the last one of the page before, the cursor.")
    ] = "",
) -> JSONResponse:
    """Each with its state, step of total, time left, lane, last milestone, open questions, outcome."""
    rows = here(request).service.ports.store.boards(live=live, limit=limit, before=before)
    return answer(request, [{**row["board"], **{k: row[k] for k in row if k != "board"}} for row in rows])


@router.post("/runs", summary="Delegate a run", status_code=201)
def delegate(
    request: Request, who: Operates, body: Annotated[dict[str, Any], Body()], key: Key = ""
) -> JSONResponse:
    """The body is a request, as in a request file. 201 for a new run, 200 for one that this key delegated before."""
    place = here(request)
    asked = Asked.model_validate(body)
    workspace = workspace_for(place, asked)
    taken = place.service.delegate(
        asked.model_copy(update={"workspace": workspace}), workspace=workspace, request_id=key, by=who.name
    )
    return answer(request, {"run": run_data(taken.job), "new": taken.new}, status=201 if taken.new else 200)


@router.post("/lint", summary="What would lose, leak or waste a run, before it is delegated")
def lint(request: Request, who: Reads, body: Annotated[dict[str, Any], Body()]) -> JSONResponse:
    """The body is a request; nothing is stored or sent to a cluster."""
    place = here(request)
    asked = Asked.model_validate(body)
    report = findings(place.service, asked, workspace_for(place, asked))
    return answer(request, {"findings": list(map(finding_data, report.findings)), "unread": report.unread})


@router.post("/watch", summary="Watch a job that is on the cluster already", status_code=201)
def watch(request: Request, who: Operates, body: Watch) -> JSONResponse:
    """It is never resubmitted, and stopped without asking only with `may_stop`."""
    place = here(request)
    taken = place.service.watch_text(
        body.job, cluster=body.cluster, may_stop=body.may_stop, workspace=str(place.workspace), by=who.name
    )
    return answer(request, {"run": run_data(taken.job), "new": taken.new}, status=201 if taken.new else 200)


@router.get("/runs/{run}", summary="One run as it stands")
def one_run(request: Request, who: Reads, run: str) -> JSONResponse:
    """Everything that is known of it, its open questions in full."""
    return answer(request, run_data(here(request).service.job(run)))


@router.get("/runs/{run}/why", summary="Every decision of a run, with its rule")
def why(request: Request, who: Reads, run: str) -> JSONResponse:
    """Oldest first: what happened, what became of it, by which rule, and why."""
    return answer(request, [decision._asdict() for decision in here(request).service.why(run)])


@router.get("/runs/{run}/reports", summary="What was told about a run")
def reports(request: Request, who: Reads, run: str) -> JSONResponse:
    """Reports, questions and withdrawals, oldest first."""
    place = here(request)
    return answer(request, list(map(dict, place.service.ports.store.messages(place.service.job(run).id))))


@router.get("/runs/{run}/wait", summary="Wait for news of a run, with a cursor")
async def wait(
    request: Request,
    who: Reads,
    run: str,
    after: Annotated[int, Query(description="The `seq` of the last answer; -1 for none.")] = -1,
    until: Annotated[Until, Query(description="What is waited for.")] = "change",
    timeout_s: Annotated[float, Query(ge=0, le=WAIT_S_MAX)] = 60.0,
) -> JSONResponse:
    """The run, the journal after the cursor, and the next cursor. reached: false when the time is over."""
    place = here(request)
    job = await to_thread.run_sync(place.service.job, run)
    call = partial(
        wait_for,
        place.service.ports,
        job.id,
        after=after,
        until=until,
        timeout_s=timeout_s,
        pause=place.leaving.wait,
    )
    waited = await to_thread.run_sync(call, limiter=place.waiters, abandon_on_cancel=True)
    data = waited._asdict() | {"job": run_data(waited.job), "rows": list(map(dict, waited.rows))}
    return answer(request, data)


@router.post("/runs/{run}/stop", summary="Halt a run; its record stays")
def stop(request: Request, who: Operates, run: str, body: Stop) -> JSONResponse:
    """The end is reported by the run itself."""
    return answer(request, applied_data(here(request).service.stop(run, by=who.name, reason=body.reason)))


@router.post("/runs/{run}/delete", summary="Remove the cluster's record of an ended run")
def delete(request: Request, who: Operates, run: str, body: Delete) -> JSONResponse:
    """The body spells the run's id or the name of one of its attempts."""
    return answer(request, applied_data(here(request).service.delete(run, name=body.name, by=who.name)))


# --- questions ---------------------------------------------------------------------------------------------


@router.get("/questions", summary="The open questions")
def questions(request: Request, who: Reads) -> JSONResponse:
    """Each with its evidence, its options, the default, and until when it can be answered."""
    jobs = here(request).service.ports.store.with_open_questions()
    return answer(request, [question_data(job, q) for job in jobs for q in job.open_questions])


@router.post("/questions/{run}/{number}", summary="Answer a question")
def reply(request: Request, who: Answers, run: str, number: int, body: Reply, key: Key = "") -> JSONResponse:
    """The work goes on at once. 409 when the reply does not fit, or somebody (or the default) was first."""
    applied = here(request).service.answer(f"{run}/{number}", body.reply, by=who.name, key=key)
    return answer(request, applied_data(applied))


# --- as data -----------------------------------------------------------------------------------------------


def workspace_for(place: Here, asked: Asked) -> str:
    """Where the run reads and writes; a relative folder is meant from the page's own workspace."""
    return workspace_of(asked, beside=place.workspace, default=place.workspace, cwd=Path.cwd())


def run_data(job: Job) -> dict[str, Any]:
    """A run for a program."""
    shown = job.model_dump(mode="json", exclude={"questions"})
    return shown | {"open_questions": [question_data(job, question) for question in job.open_questions]}


def question_data(job: Job, question: Question) -> dict[str, Any]:
    """A question for a program: what it asks, the options, the default and its moment."""
    options = [
        {"key": option.key, "text": option_text(option, job.language), "value": option.value or None}
        for option in question.template.options
    ]
    return {
        "id": question.id,
        "run": job.id,
        "number": question.number,
        "kind": question.kind,
        "asks": asks(job, question),
        "options": options,
        "default": question.default.key,
        "default_value": question.preset_value or None,
        "asked_at": question.asked_at,
        "answer_by": question.answer_by,
        "evidence": [quote.model_dump() for quote in question.evidence],
        "rule": question.template.rule,
    }


def applied_data(applied: Applied) -> dict[str, Any]:
    """What became of a change. duplicate: this key was here before, and nothing was done again."""
    return {
        "run": applied.job.id,
        "state": str(applied.job.state),
        "said": applied.reason,
        "duplicate": applied.duplicate,
    }
