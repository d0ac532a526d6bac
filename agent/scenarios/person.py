"""What the people of a story do: delegate, answer, stop, delete, set a key, or take a single step.

All of it goes through the service that every surface calls. A refusal that the story does not state is a fault of
the story or of the product, and one that it states and that does not come is one too.

Never: a way into the store beside the service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from agent.clusters.base import ClusterError, NotThere
from agent.scenarios.model import Action, Answer
from agent.scenarios.world import World
from agent.service import Refusal
from agent.store import Unknown
from states.job import Job
from states.questions import Question

AGAIN = timedelta(seconds=60)
"""A person who got no answer hands the run over again after this."""


class Person:
    """The person of one story. told: what went otherwise than the story says."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.wrong: list[str] = []
        self._answers = list(world.story.answers)
        self._actions = sorted(world.story.actions, key=lambda action: action.at)
        self._further = [(world.at(run.at), number) for number, run in enumerate(world.story.runs, start=1)]
        self._found: dict[int, tuple[Job, Question] | None] = {}
        self._found_at = (-1, -1)

    @property
    def is_done(self) -> bool:
        """Nothing left to do."""
        return not self._answers and not self._actions and not self._further

    def delegate(self, number: int = 0) -> None:
        """Hand over the run of the story, or that of its `runs`; nothing for a story without a request."""
        story, request = self.world.story, self.world.request(number)
        if request is None:
            return
        expected = story.expect.refused
        try:
            given = {"workspace": str(self.world.workspaces[number]), "by": story.by}
            if request.existing is not None:
                self.world.service.watch(request.existing, request, **given)
            else:
                self.world.service.delegate(request, request_id=self._request_id(number), **given)
        except Refusal as error:
            self._heard("the delegation", expected, str(error))
        else:
            self._heard("the delegation", expected, "")

    def _request_id(self, number: int) -> str:
        """A further run always has one, so that it can be handed over again where nobody answered."""
        own = self.world.story.request_id
        return f"{own or 'story'}+{number}" if number else own

    def _hand_over(self, now: datetime) -> bool:
        """The further runs that are due; where Watchkeeper or its database does not answer, again in a while."""
        for place, (at, number) in enumerate(self._further):
            if at <= now:
                self._further[place] = (now + AGAIN, number)
                self.delegate(number)  # a long pause in it, and the person hands it over again meanwhile
                self._further = [one for one in self._further if one[1] != number]
                return True
        return False

    def act(self, *, late: bool = False) -> bool:
        """Do what is due now; True when something was done. late: what comes after the timers of this instant."""
        now = self.world.clock.now()
        acted = False
        while not late and self._further and self._hand_over(now):
            acted = True
        while self._actions and not late and self.world.at(self._actions[0].at) <= now:
            self._do(self._actions.pop(0))
            acted = True
        for answer in list(self._answers):
            due = self._due(answer)
            if due is not None and due <= now and (answer.deadline != "after" or late):
                self._answers.remove(answer)
                self._reply(answer)
                acted = True
        return acted

    def next_at(self) -> datetime | None:
        """When the next thing is to be done, as far as it is known."""
        times = [self.world.at(action.at) for action in self._actions[:1]]
        times += [at for at, _ in self._further]
        times += [due for answer in self._answers if (due := self._due(answer)) is not None]
        return min(times, default=None)

    def left(self) -> Iterator[str]:
        """What the person never came to do."""
        for _, number in self._further:
            yield f"run {number} was never taken over"
        if self.world.story.lenient:
            return
        for answer in self._answers:
            yield f"the answer {answer.reply!r} to {answer.question!r} was never given: no such question was asked"
        for action in self._actions:
            yield f"{action.do!r} at {action.at:g} s was never done: the story was over before"

    # --- questions ---------------------------------------------------------------------------------------------

    def _due(self, answer: Answer) -> datetime | None:
        if answer.at is not None:
            return self.world.at(answer.at)
        found = self._question(answer)
        if found is None:
            return None
        question = found[1]
        if answer.after is not None:
            return question.asked_at + timedelta(seconds=answer.after)
        grid_us = -question.answer_by.microsecond % 1_000_000
        return question.answer_by + timedelta(microseconds=grid_us)

    def _question(self, answer: Answer) -> tuple[Job, Question] | None:
        """The newest question that the answer means; looked for again only when something was written."""
        mark = (self.world.store.written, len(self.world.seen))
        if self._found_at != mark:
            self._found_at, self._found = mark, {}
        if id(answer) not in self._found:
            self._found[id(answer)] = self._look_for(answer)
        return self._found[id(answer)]

    def _look_for(self, answer: Answer) -> tuple[Job, Question] | None:
        for job_id in self.world.seen:
            job = self.world.store.load(job_id)
            if answer.run is not None and answer.run != self.world.number_of(job):
                continue
            for question in reversed(job.questions):
                if answer.question in (question.kind, str(question.number)):
                    return job, question
        return None

    def _reply(self, answer: Answer) -> None:
        found = self._question(answer)
        if found is None:
            name, kind = self.world.run_of(answer.run or 0) or "?", answer.question
            target = f"{name}/{kind}" if kind.isdigit() else name
        else:
            target = found[1].id
        self._try(
            f"the answer {answer.reply!r}",
            answer.refused,
            lambda: self.world.service.answer(target, answer.reply, by=answer.by),
        )

    # --- deeds -------------------------------------------------------------------------------------------------

    def _do(self, action: Action) -> None:
        said: Any = self._try(f"{action.do!r}", action.refused, lambda: self._deed(action))
        for wanted in action.tells:
            if wanted not in str(said):
                self.wrong.append(f"{action.do!r} at {action.at:g} s did not tell {wanted!r}, but: {said}")

    def _deed(self, action: Action) -> Any:
        service, world = self.world.service, self.world
        job, name = self._filled(action.job, action.run), self._filled(action.name, action.run)
        match action.do:
            case "delegate":
                request = world.request(action.run)
                assert request is not None
                given = {"workspace": str(world.workspaces[action.run]), "by": action.by}
                return service.delegate(request, request_id=self._request_id(action.run), **given).new
            case "stop":
                return service.stop(job, by=action.by).outcome
            case "delete":
                return service.delete(job, name=name, by=action.by).outcome
            case "set_key":
                return world.set_key(action.name, action.value)
            case "write":
                path = world.workspaces[action.run] / action.name
                path.parent.mkdir(parents=True, exist_ok=True)
                return path.write_text(action.value or "x", encoding="utf-8")
            case "capacity":
                return service.cluster().capacity(action.group)
            case "list":
                return service.cluster().list()
            case "get":
                return service.observe(job)
        cluster, ref = service.resolve(job)
        steps: dict[str, Callable[[], Any]] = {
            "logs": lambda: cluster.logs(ref, lines=action.lines).text,
            "events": lambda: cluster.events(ref),
            "stop_job": lambda: cluster.stop(ref),
            "delete_job": lambda: cluster.delete(ref),
        }
        return steps[action.do]()

    def _filled(self, text: str, number: int) -> str:
        if "{" not in text:
            return text
        first = self.world.run_of(number)
        job = self.world.store.load(first) if first else None
        name = job.attempt.name if job and job.attempts else ""
        return text.replace("{id}", first).replace("{name}", name)

    def _try(self, what: str, expected: str, deed: Any) -> Any:
        """Do it; a refusal must be the one that the story states."""
        at = self.world.offset(self.world.clock.now())
        try:
            said = deed()
        except (Refusal, Unknown, NotThere, ClusterError) as error:
            self._heard(f"{what} at {at:g} s", expected, str(error))
            return str(error)
        self._heard(f"{what} at {at:g} s", expected, "")
        return said

    def _heard(self, what: str, expected: str, refusal: str) -> None:
        if self.world.story.lenient and not expected:
            return
        if refusal and not expected:
            self.wrong.append(f"{what} was refused: {refusal}")
        elif expected and not refusal:
            self.wrong.append(f"{what} was taken; the story says it is refused with {expected!r}")
        elif expected not in refusal:
            self.wrong.append(f"{what} was refused with {refusal!r}, not with {expected!r}")
