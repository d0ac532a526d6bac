"""Tools about whole runs: delegate, check, questions, answer, wait_for_change, why, library.

The docstrings are what a chat agent's model reads, so they are short.

Never: logic about a run; an answer that only a client with forms could give.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Unpack

import anyio
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit
from pydantic import BaseModel, Field

from agent.glance import Glance, glance
from agent.mcp import forms, shapes
from agent.mcp.desk import Desk
from agent.mcp.fence import quoted
from agent.mcp.steps import TAIL_LINES, TailLines
from agent.mcp.wanted import Paths, Wanted, request_of
from agent.readfile import result
from agent.waiting import Until, wait_for
from states.job import Job
from states.policy import Policy
from states.reading import Track
from states.words.wording import plain

WAIT_S = 45.0
"""Below the time-out that chat clients commonly have for a call."""
WAIT_S_MAX = 600.0
WAITERS_MAX = 64
DECISIONS = 40
DECISIONS_MAX = 400


class Asking(Wanted, total=False):
    """What a delegation can be asked for with, beside what a submit can."""

    purpose: str
    environment: str
    outputs: Paths
    more: dict[str, Any]


class Runs:
    """The tools, over one desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._waiters = anyio.CapacityLimiter(WAITERS_MAX)

    def delegate(
        self, *, watch: str = "", may_stop: bool = False, request_id: str = "", **wanted: Unpack[Asking]
    ) -> shapes.Run:
        """Hand over a whole run: it is prepared, submitted once, watched to its end and reported. Give command
        (a shell line; starts in the workspace) and what the user settled; leave out the rest. more: further
        request fields (smoke, proxy, stop_when, gpu_min...). watch: instead, an existing job to watch.
        requestId: the same one again gives the same run."""
        given: dict[str, Any] = dict(wanted)
        more = given.pop("more", {})
        if watch:
            taken = self._desk.service.watch_text(
                watch,
                cluster=given.get("cluster", ""),
                may_stop=may_stop,
                workspace=given.get("workspace", ""),
                by=self._desk.by,
            )
        else:
            request, place = self._desk.placed(request_of(given, **more))
            taken = self._desk.service.delegate(
                request, workspace=place, request_id=request_id, by=self._desk.by
            )
        return self._desk.carried(taken.job.id)

    def check(self, job: str, tail_lines: TailLines = TAIL_LINES, cluster: str = "") -> shapes.Checked:
        """Look once at a job or run and judge how it does; leaves no watch behind."""
        ours = self._desk.ours(job)
        if ours is not None and (not ours.attempts or ours.is_terminal):
            run = self._desk.shown(ours.id)
            return shapes.Checked(job=job, phase=run.state, summary=run.outcome or run.told, run=run)
        _, where, ref = self._desk.meant(job, cluster)
        ports = self._desk.service.ports
        seen = glance(
            where,
            ref,
            at=ports.clock.now(),
            lines=tail_lines,
            redact=ports.redact,
            policy=ours.policy if ours else Policy(),
            before=ours.track if ours else Track(),
        )
        return _checked(job, seen, self._desk.shown(ours.id) if ours else None)

    def questions(self, run: str = "") -> shapes.Questions:
        """Open questions: options, default, deadline. Put them to the user; don't guess for them."""
        service = self._desk.service
        jobs = [service.job(run)] if run else service.ports.store.with_open_questions()
        asked = [shapes.question_of(job, question) for job in jobs for question in job.open_questions]
        return shapes.Questions(questions=tuple(asked))

    def answer(self, question: str, reply: str = "", *, chosen: object = None) -> shapes.Run:
        """Answer a question. reply: an option's key, with its value if it takes one. Without reply the user is
        asked by a form, where the client has forms."""
        if isinstance(chosen, AcceptedElicitation):
            filled = chosen.data
            said = forms.reply_of(filled.model_dump()) if isinstance(filled, BaseModel) else str(filled)
            applied = self._desk.service.answer(question, said, by=self._desk.by)
            return self._desk.carried(applied.job.id)
        job, number = self._meant(question)
        return self._desk.shown(job.id, f"not answered; the question {number} stays open until its default")

    def form(self, question: str, reply: str, ctx: Context[Any, Any]) -> str | Elicit[BaseModel]:
        """The reply as it was given; else the form for the person. Raises ToolError where there are no forms."""
        if reply:
            return reply
        job, number = self._meant(question)
        asked = next(q for q in job.open_questions if q.number == number)
        capabilities = ctx.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            keys = ", ".join(option.key for option in asked.template.options)
            raise ToolError(
                f"give reply, one of: {keys} (with its value where it takes one), as the user decides"
            )
        return Elicit(forms.message_of(job, asked), forms.model_of(asked))

    async def wait_for_change(
        self,
        run: str,
        after: int = -1,
        until: Until = "change",
        timeout_s: Annotated[float, Field(ge=0, le=WAIT_S_MAX)] = WAIT_S,
    ) -> shapes.Waited:
        """Wait for what comes after the cursor `after` (the last seq seen). Returns early; call again with the new
        seq if not reached."""
        job = self._desk.service.job(run)
        if not job.is_terminal:
            await anyio.to_thread.run_sync(self._desk.carry, job.id)
        found = await anyio.to_thread.run_sync(
            functools.partial(
                wait_for,
                self._desk.service.ports,
                job.id,
                after=after,
                until=until,
                timeout_s=timeout_s,
                pause=self._pause,
            ),
            limiter=self._waiters,
        )
        return shapes.Waited(
            reached=found.reached, run=self._desk.shown(job.id), changes=shapes.changes_of(found.rows)
        )

    def why(
        self, run: str, last: Annotated[int, Field(ge=1, le=DECISIONS_MAX)] = DECISIONS
    ) -> shapes.Decisions:
        """Why a run did what it did: its newest decisions with rule and reason."""
        found = self._desk.service.why(run)
        told = tuple(
            shapes.Decision(
                seq=one.seq,
                at=one.at,
                event=one.event,
                became=f"{one.source} -> {one.to}" if one.source != one.to else f"{one.to} ({one.outcome})",
                rule=one.rule,
                did=one.action.replace("_", " "),
                because=plain(one.said or "", 400),
            )
            for one in found[-last:]
        )
        return shapes.Decisions(
            run=self._desk.service.job(run).id, decisions=told, earlier=len(found) - len(told)
        )

    def library(self, purpose: str = "") -> shapes.SetUps:
        """Images, environments and proxies on record, by kind of work."""
        wanted = purpose.casefold()
        rows = [
            row for row in self._desk.service.library.entries() if wanted in str(row["purpose"]).casefold()
        ]
        return shapes.SetUps(entries=tuple(_set_up(row) for row in rows))

    def _meant(self, question: str) -> tuple[Job, int]:
        """The run and the number of an open question. Raises ToolError for one that is not open."""
        run, _, number = question.partition("/")
        job = self._desk.service.job(run)
        open_now = [q.number for q in job.open_questions]
        wanted = [n for n in open_now if not number or str(n) == number]
        if len(wanted) != 1:
            told = ", ".join(q.id for q in job.open_questions) or "none"
            raise ToolError(f"{question!r} is not an open question; open now: {told}")
        return job, wanted[0]

    def _pause(self, seconds: float) -> None:
        """A wait whose caller has gone ends here."""
        anyio.from_thread.check_cancelled()
        self._desk.service.ports.clock.sleep(seconds)


CHOSEN = ElicitationResult[BaseModel]
"""What `form` brings for `answer`."""


def _checked(job: str, seen: Glance, run: shapes.Run | None) -> shapes.Checked:
    shown = seen.observation
    words = ", ".join(filter(None, (plain(shown.native, 80), plain(shown.reason))))
    told = shapes.Checked(job=job, phase=str(shown.phase), words=words, run=run)
    if seen.looked is None:
        return told.model_copy(update={"summary": plain(seen.log_said)})
    verdict, judged = seen.looked.verdict, result(seen.looked)
    progress = judged["progress"]
    assert isinstance(progress, dict)
    return told.model_copy(
        update={
            "verdict": verdict.name,
            "summary": plain(verdict.summary),
            **{name: progress[name] for name in ("step", "total", "loss")},
            "cause": "" if verdict.diagnosis.cause == "none" else verdict.diagnosis.cause,
            "owner": "" if verdict.diagnosis.cause == "none" else verdict.diagnosis.owner,
            "advice": plain(verdict.advice),
            "evidence": quoted(verdict.diagnosis.evidence),
        }
    )


def _set_up(row: Mapping[Any, Any]) -> shapes.SetUp:
    return shapes.SetUp(
        purpose=row["purpose"],
        **row["settings"],
        worked=row["worked"],
        used=row["used"],
        last_at=row["last_at"],
        stale=row["stale_why"] or "it failed" if row["stale_at"] else "",
        notes=tuple(row["notes"]),
    )
