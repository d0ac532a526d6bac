"""A chat message carried out: understood by `states/chat`, done by the service, told in a few words.

What a message asks for is the grammar's to say; what somebody may do is their role's. Nothing is done of a message
that asks back.

Never: an act that the message does not order in so many words; a credential repeated; more of a log than its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent.clusters.base import ClusterError
from agent.people import Role
from agent.service import Refusal, Service
from agent.store import Unknown
from states import reports
from states.chat import Context, Seen, Understood, settled, understand
from states.chat.context import asked
from states.job import Job
from states.questions import Question, option_text
from states.words.wording import plain

RUNS_MAX = 200
LIST_MAX = 12
TAIL_LINES = 15
TAIL_LINES_MAX = 40
WHY_MAX = 8
LINE_MAX = 300
TALKS_MAX = 200

NEEDS = {"answer": Role.answer, "stop": Role.operate, "delete": Role.operate, "stop+delete": Role.operate,
         "watch": Role.operate}  # fmt: skip
"""Roles of what changes something; reading is for everybody who may come in."""


@dataclass(frozen=True)
class Chat:
    """One Watchkeeper's ear. after: called with the run's id when something was asked of it."""

    service: Service
    after: Callable[[str], None] = lambda run: None
    _before: dict[tuple[str, str], Understood] = field(default_factory=dict)
    """What was asked back last, by who said it and where: the next message may settle it."""

    def said(self, text: str, *, by: str, role: Role | None, key: str = "", run: str = "") -> str:
        """What came of a message. run: the run whose thread it was said in. key: of the message, so that the same one
        again changes nothing. Raises nothing for what a person says."""
        if role is None:
            return "You may not ask here; the owner of this Watchkeeper sets who may (`channels:` in its settings)."
        try:
            context = self._context(run)
            talk = (by, run)
            before = self._before.pop(talk, None)
            read = (settled(before, text, context) if before else None) or understand(text, context)
            if read.ask_back:
                self._remember(talk, read)
            needed = NEEDS.get(read.intent)
            if read.is_act and needed is not None and not role.covers(needed):
                return f"That takes the role {needed}; yours here is {role}."
            if read.ask_back or read.moot or "refused" in read.slots or read.intent == "unclear":
                return self.service.ports.redact(read.reply)
            return self._done(read, by=by, key=key, run=run)
        except (Refusal, Unknown, ClusterError, LookupError) as error:
            return self.service.ports.redact(str(error))

    def press(self, question: str, option: str, *, by: str, role: Role | None, key: str = "") -> str:
        """An option that was chosen by a button."""
        if role is None or not role.covers(Role.answer):
            return f"Answering takes the role {Role.answer}; yours here is {role or 'none'}."
        try:
            return self._answer(question, option, by=by, key=key)
        except (Refusal, Unknown) as error:
            return self.service.ports.redact(str(error))

    def wants_value(self, question: str, option: str) -> str:
        """What an option must be given (`image`); "" where it is complete by itself, or is not there any more."""
        found = self._question(question)
        chosen = [one for one in found.template.options if one.key == option] if found else []
        return chosen[0].value if chosen else ""

    # --- doing ---------------------------------------------------------------------------------------------

    def _done(self, read: Understood, *, by: str, key: str, run: str) -> str:
        slots = read.slots
        match read.intent:
            case "answer":
                return self._answers(slots, by=by, key=key)
            case "stop" | "stop+delete":
                told = [self._stopped(name, by) for name in self._names(slots, run)]
                return "\n".join([*told, *([_DELETE_LATER] if read.intent == "stop+delete" else [])])
            case "delete":
                (name,) = self._names(slots, run)[:1] or [""]
                applied = self.service.delete(name, name=name, by=by)
                self.after(applied.job.id)
                return read.reply
            case "watch":
                taken = self.service.watch_text(str(slots.get("job", "")), by=by)
                self.after(taken.job.id)
                return f"{taken.job.id} is watched from here on."
            case "run" | "submit_only":
                return _NOT_HERE
            case _:
                return self._told(read, run) or read.reply or _HELP

    def _answers(self, slots: dict[str, Any], *, by: str, key: str) -> str:
        ids = str(slots["question"]).split(",")
        options = str(slots.get("option", "")).split(",")
        told = []
        for place, question in enumerate(ids):
            option = options[min(place, len(options) - 1)]
            reply = self._reply(question, option, str(slots.get("value", "")))
            told.append(self._answer(question, reply, by=by, key=f"{key}:{place}" if key else ""))
        return "\n".join(told)

    def _reply(self, question: str, option: str, value: str) -> str:
        if option == "default":
            found = self._question(question)
            return (
                found.default.key + (f"={found.preset_value}" if found.preset_value else "")
                if found
                else option
            )
        return f"{option}={value}" if option and value else option or value

    def _answer(self, question: str, reply: str, *, by: str, key: str) -> str:
        applied = self.service.answer(question, reply, by=by, key=key)
        self.after(applied.job.id)
        number = int(question.rpartition("/")[2])
        taken = next(one for one in applied.job.questions if one.number == number)
        return reports.answered(applied.job, taken).partition("\n")[0]

    def _stopped(self, name: str, by: str) -> str:
        applied = self.service.stop(name, by=by)
        self.after(applied.job.id)
        return reports.status_line(applied.job, self.service.ports.clock.now())

    # --- telling -------------------------------------------------------------------------------------------

    def _told(self, read: Understood, run: str) -> str:
        names = self._names(read.slots, run)
        match read.intent:
            case "list":
                return self._list(read.slots)
            case "status" | "check_once":
                return "\n\n".join(self._status(name) for name in names[:LIST_MAX]) or self._list({})
            case "tail" | "events":
                return self._tail(names[0], int(read.slots.get("lines") or TAIL_LINES)) if names else ""
            case "why":
                return self._why(names[0]) if names else ""
            case "capacity":
                return self._capacity()
            case "library":
                return self._library(str(read.slots.get("purpose", "")))
            case _:
                return ""

    def _list(self, slots: dict[str, Any]) -> str:
        if slots.get("what") == "questions":
            jobs = self.service.ports.store.with_open_questions()
            found = [reports.asked(job, job.open_questions) for job in jobs if job.open_questions]
            return "\n\n".join(found) or "No open questions."
        now = self.service.ports.clock.now()
        rows = self.service.ports.store.boards(
            live=slots.get("state") not in ("done", "failed"), limit=LIST_MAX
        )
        lines = [reports.status_line(self.service.job(row["id"]), now) for row in rows]
        return "\n".join(lines) or "No live runs."

    def _status(self, name: str) -> str:
        return reports.status(self.service.job(name), self.service.ports.clock.now())

    def _tail(self, name: str, lines: int) -> str:
        where, ref = self.service.resolve(name)
        piece = where.logs(ref, lines=min(lines, TAIL_LINES_MAX))
        shown = self.service.ports.redact(piece.text).splitlines()[-min(lines, TAIL_LINES_MAX) :]
        return "\n".join(plain(line, LINE_MAX) for line in shown) or "There is no log yet."

    def _why(self, name: str) -> str:
        found = [one for one in self.service.why(name) if one.rule][-WHY_MAX:]
        return "\n".join(
            f"{one.at:%m-%d %H:%M} {one.action.replace('_', ' ')}: {plain(one.said, LINE_MAX)} [{one.rule}]"
            for one in found
        )

    def _capacity(self) -> str:
        lines = []
        for name in self.service.ports.clusters:
            try:
                free = self.service.cluster(name).capacity()
            except ClusterError as error:
                lines.append(f"{name}: {self.service.ports.redact(str(error))}")
                continue
            figures = ((free.free_gpu, "GPUs"), (free.free_cpu, "cores"))
            told = ", ".join(f"{count:g} {what} free" for count, what in figures if count is not None)
            lines.append(f"{name}: {told or 'it answers'}")
        return "\n".join(lines)

    def _library(self, purpose: str) -> str:
        rows = [row for row in self.service.library.entries() if purpose in str(row["purpose"]).lower()]
        return (
            "\n".join(f"{row['purpose']}: {row['settings']}" for row in rows[:LIST_MAX])
            or "Nothing is on record."
        )

    # --- what is known -------------------------------------------------------------------------------------

    def _remember(self, talk: tuple[str, str], read: Understood) -> None:
        while len(self._before) >= TALKS_MAX:
            self._before.pop(next(iter(self._before)))
        self._before[talk] = read

    def _context(self, run: str) -> Context:
        """Of one run where the message was said in its thread, else of all."""
        store = self.service.ports.store
        if run:
            job = store.load(run)
            return Context(
                jobs=(Seen(name=job.id, state=str(job.state)),),
                questions=tuple(asked(question, job.id) for question in job.questions),
                language=job.language,
            )
        rows = store.boards(limit=RUNS_MAX)
        jobs: list[Job] = store.with_open_questions()
        return Context(
            jobs=tuple(Seen(name=row["id"], state=row["state"]) for row in rows),
            questions=tuple(asked(question, job.id) for job in jobs for question in job.questions),
            language=self.service.language,
        )

    def _names(self, slots: dict[str, Any], run: str) -> list[str]:
        given = str(slots.get("job") or "")
        if given == "*":
            return self.service.ports.store.live_ids()[:LIST_MAX]
        return [name.strip() for name in given.split(",") if name.strip()] or ([run] if run else [])

    def _question(self, text: str) -> Question | None:
        run, _, number = text.rpartition("/")
        try:
            job = self.service.job(run)
        except Unknown:
            return None
        return next((one for one in job.questions if str(one.number) == number), None)


def options_of(question: Question, job: Job) -> str:
    """`1 keep it running, 2 stop it`, to say what an answer may be."""
    options = enumerate(question.template.options, start=1)
    return ", ".join(f"{number} {option_text(option, job.language)}" for number, option in options)


_NOT_HERE = (
    "Runs are not started from here, since what they need does not fit a line: `wk run` in a terminal, the form of "
    "the page, or a chat agent by MCP. What runs can be asked about, answered and stopped here."
)
_DELETE_LATER = "Its record can be deleted when it has ended: say `delete` with its name then."
_HELP = (
    "Ask how a run stands, why, for its log or what is free; answer a question; or stop a run by its name."
)
