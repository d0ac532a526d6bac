"""The pages one reads: the board, the inbox, a run with its parts.

A part (`/part/...`) is what the page's bell has fetched anew; the whole page is made of the same parts.

Never: a change of a run; those are in `pages_acting`.
"""

from __future__ import annotations

import math
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from agent.web.api import Reads
from agent.web.board import ROWS_MAX, groups
from agent.web.drawing import curve, diagram
from agent.web.here import Here, here
from agent.web.live import LOOK_S, mark_of
from agent.web.logtail import tail
from agent.web.story import beats, been, curves
from agent.web.words import Language, word
from states.job import Job, State
from states.questions import option_text
from states.reports import next_action
from states.words.rows import asks, facts_of, standing, worst_first
from states.words.wording import command_line, mib, plain, say, size

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

LONG, PACE_S_LONG = 150, 4.0
"""Rows from which the board is drawn anew more rarely, and how often then."""
DECISIONS_MAX = 80
REPORTS_MAX = 60


# --- the board ---------------------------------------------------------------------------------------------


@router.get("/")
def board(request: Request, who: Reads, find: str = "") -> HTMLResponse:
    """The runs by state."""
    place = here(request)
    mark = mark_of(place.service.ports.store, "")
    shown = _board(place, request, find)
    pace_s = PACE_S_LONG if sum(len(group.rows) for group in shown["groups"]) > LONG else LOOK_S
    return place.pages.page(request, "board.html", mark=mark, pace_s=pace_s, **shown)


@router.get("/part/board")
def board_part(request: Request, who: Reads, find: str = "") -> HTMLResponse:
    """The runs by state, without the page around them."""
    place = here(request)
    return place.pages.page(request, "board_part.html", **_board(place, request, find))


def _board(place: Here, request: Request, find: str) -> dict[str, Any]:
    records = place.service.ports.store.boards(limit=ROWS_MAX)
    shown = groups(records, place.pages.language(request), find=find)
    return {"groups": shown, "find": find, "cut": len(records) >= ROWS_MAX, "rows_max": ROWS_MAX}


# --- the inbox ---------------------------------------------------------------------------------------------


@router.get("/inbox")
def inbox(request: Request, who: Reads) -> HTMLResponse:
    """The open questions of all runs, the one whose deadline is nearest first."""
    place = here(request)
    mark = mark_of(place.service.ports.store, "")
    return place.pages.page(request, "inbox.html", mark=mark, cards=_cards(place, request))


@router.get("/part/inbox")
def inbox_part(request: Request, who: Reads) -> HTMLResponse:
    """The questions, without the page around them."""
    place = here(request)
    return place.pages.page(request, "inbox_part.html", cards=_cards(place, request), of_run=False)


def _cards(place: Here, request: Request, job: Job | None = None) -> list[dict[str, Any]]:
    language = place.pages.language(request)
    jobs = [job] if job is not None else place.service.ports.store.with_open_questions()
    found = [(each.but(language=language), q) for each in jobs for q in each.open_questions]
    found.sort(key=lambda pair: pair[1].answer_by)
    return [
        {
            "q": question,
            "run": one.id,
            "asks": asks(one, question),
            "options": [
                (o, option_text(o, language), o == question.default) for o in question.template.options
            ],
            "default": option_text(question.default, language),
        }
        for one, question in found
    ]


# --- a run -------------------------------------------------------------------------------------------------


@router.get("/runs/{run}")
def one_run(request: Request, who: Reads, run: str) -> HTMLResponse:
    """Everything about a run on one page."""
    place = here(request)
    job = place.service.job(run)
    mark = mark_of(place.service.ports.store, job.id)
    parts = _now(place, request, job) | _told(place, request, job)
    return place.pages.page(request, "run.html", mark=mark, cards=_cards(place, request, job), **parts)


@router.get("/part/runs/{run}/now")
def now_part(request: Request, who: Reads, run: str) -> HTMLResponse:
    """How it stands."""
    place = here(request)
    return place.pages.page(request, "run_now.html", **_now(place, request, place.service.job(run)))


@router.get("/part/runs/{run}/told")
def told_part(request: Request, who: Reads, run: str) -> HTMLResponse:
    """Its history: curves, timeline, states, decisions, reports, files, spec."""
    place = here(request)
    return place.pages.page(request, "run_told.html", **_told(place, request, place.service.job(run)))


@router.get("/part/runs/{run}/asked")
def asked_part(request: Request, who: Reads, run: str) -> HTMLResponse:
    """Its open questions."""
    place = here(request)
    cards = _cards(place, request, place.service.job(run))
    return place.pages.page(request, "inbox_part.html", cards=cards, of_run=True)


@router.get("/part/runs/{run}/log")
def log_part(request: Request, who: Reads, run: str) -> HTMLResponse:
    """The end of its log, which then follows."""
    place = here(request)
    job = place.service.job(run)
    piece = tail(place.service, job)
    return place.pages.page(request, "log.html", run=job.id, tail=piece, over=job.is_terminal)


def _now(place: Here, request: Request, job: Job) -> dict[str, Any]:
    language, at = place.pages.language(request), place.service.ports.clock.now()
    shown = job.but(language=language)
    main = job.track.main
    total = main.total if main else None
    known = main is not None and total is not None and total > 0 and math.isfinite(main.value)
    concern = (
        shown.verdict if shown.verdict and shown.verdict.name not in CALM and not job.is_terminal else None
    )
    return {
        "job": shown,
        "standing": standing(shown, at),
        "facts": facts_of(shown, at),
        "share": main.value / total if known and main and total else None,
        "concern": say(language, f"verdict.{concern.name}") if concern else "",
        "concern_why": plain(concern.summary) if concern else "",
        "next_action": next_action(shown) if job.is_terminal else "",
        "state_words": word(language, f"state.{job.state}"),
    }


CALM = frozenset({"starting", "progressing", "succeeded"})


def _told(place: Here, request: Request, job: Job) -> dict[str, Any]:
    language, store = place.pages.language(request), place.service.ports.store
    rows = store.journal(job.id)
    states, taken = been(rows)
    names = {state: word(language, f"state.{state}") for state in State}
    decisions = place.service.why(job.id)
    return {
        "job": job.but(language=language),
        "curves": [(each.name, curve(each)) for each in curves(job, rows)],
        "diagram": diagram(job.state, states, taken, names),
        "beats": beats(rows),
        "decisions": decisions[-DECISIONS_MAX:][::-1],
        "earlier": max(len(decisions) - DECISIONS_MAX, 0),
        "reports": store.messages(job.id)[-REPORTS_MAX:][::-1],
        "checks": worst_first(job),
        "artifacts": [
            (a, size(a.size_bytes), a.modified_at < job.created_at) for a in job.collected.artifacts
        ],
        "spec": _spec(job, language),
    }


def _spec(job: Job, language: Language) -> list[tuple[str, str]]:
    spec = job.spec
    lines = {
        "command": command_line(spec.command, 4000),
        "cluster": job.cluster,
        "image": spec.image,
        "environment": spec.environment,
        "gpu": f"{spec.gpu}",
        "cpu": f"{spec.cpu:g}",
        "memory": mib(spec.memory_mib),
        "replicas": f"{spec.replicas}",
        "lane": spec.lane,
        "group": spec.group,
        "proxy": spec.proxy,
        "mounts": ", ".join(spec.mounts),
        "env": ", ".join(sorted(spec.env)),
        "extra_args": command_line(spec.extra_args),
        "workspace": spec.workspace,
        "outputs": ", ".join(job.request.outputs),
    }
    attempts = {f"attempt {a.number}": f"{a.name} ({a.cluster_job_id or '?'})" for a in job.attempts}
    return [(name, text) for name, text in (lines | attempts).items() if text]
