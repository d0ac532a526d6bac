"""What a story says must be seen, compared with what was: each difference is one readable line.

Never: an exception that hides the other differences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from agent.scenarios.invariants import stored_text
from agent.scenarios.seen import EntrySeen, MomentSeen, QuestionSeen, ReportSeen
from agent.scenarios.world import World
from states.job import Job, State
from states.questions import Question, worded

_BOUND = re.compile(r"(==|<=|>=|<|>)? ?(\d+)")


def fits(count: int, bound: str) -> bool:
    """Whether a count is as the bound says: `1`, `<= 3`, `>= 2`."""
    found = _BOUND.fullmatch(bound)
    assert found is not None  # the model checked it
    wanted = int(found[2])
    match found[1]:
        case "<=":
            return count <= wanted
        case ">=":
            return count >= wanted
        case "<":
            return count < wanted
        case ">":
            return count > wanted
        case _:
            return count == wanted


class Watcher:
    """Looks at the moments that the story names while it is played."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.unmet: list[str] = []
        self._moments = sorted(world.story.expect.at, key=lambda moment: moment.t)

    def next_at(self) -> datetime | None:
        """The next moment to look at, if one is left."""
        return self.world.at(self._moments[0].t) if self._moments else None

    def look(self) -> None:
        """Compare what is due now."""
        while self._moments and self.world.at(self._moments[0].t) <= self.world.clock.now():
            moment = self._moments.pop(0)
            self.unmet += [f"at {moment.t:g} s {fault}" for fault in self._look(moment)]

    def _look(self, moment: MomentSeen) -> Iterator[str]:
        job = first_run(self.world)
        yield from _counts("call", moment.calls.items(), self.world.cluster.count)
        if job is None:
            if moment.state is not None:
                yield f"the run should be {moment.state}, but there is none"
            return
        if moment.state is not None and job.state is not moment.state:
            yield f"the run should be {moment.state}, and is {job.state}"
        if moment.doing is not None and job.doing is not moment.doing:
            yield f"the run should be doing {moment.doing}, and does {job.doing}"
        kinds = tuple(question.kind for question in job.open_questions)
        if moment.open is not None and kinds != moment.open:
            yield f"the open questions should be {list(moment.open)}, and are {list(kinds)}"


def first_run(world: World) -> Job | None:
    """The run that the story is about."""
    for job_id in world.seen:
        return world.store.load(job_id)
    return None


def unmet(world: World) -> Iterator[str]:
    """Everything in `expect` and `never` that did not hold at the end."""
    expect, job = world.story.expect, first_run(world)
    if expect.runs is not None and len(world.seen) != expect.runs:
        yield f"there should be {expect.runs} runs, and are {len(world.seen)}: {', '.join(world.seen)}"
    yield from _counts("call", expect.calls.items(), world.cluster.count)
    ours = sum(one.spec is not None for one in world.cluster.jobs)
    if expect.jobs is not None and ours != expect.jobs:
        yield f"there should be {expect.jobs} cluster jobs of ours, and are {ours}"
    yield from _settled(world)
    yield from _sent(world)
    yield from _library(world)
    yield from _never(world)
    if job is not None:
        yield from _run(world, job)
    elif expect.state is not None or expect.questions or expect.reports:
        yield "there should be a run, and there is none"


def _run(world: World, job: Job) -> Iterator[str]:
    expect = world.story.expect
    rows = world.store.journal(job.id)
    if expect.state is not None and job.state is not expect.state:
        yield f"the run should end {expect.state}, and is {job.state} ({job.outcome or 'not over'})"
    path = _path(rows)
    if expect.states is not None and path != list(expect.states):
        yield f"the states should be {_shown(expect.states)}, and were {_shown(path)}"
    if expect.attempts is not None and len(job.attempts) != expect.attempts:
        yield f"there should be {expect.attempts} attempts, and are {len(job.attempts)}"
    effects = [row["kind"] for row in world.store.effects_of(job.id)]
    yield from _counts("effect", expect.effects.items(), effects.count)
    if expect.questions is not None:
        yield from _questions(world, job, expect.questions)
    yield from _reports(world, job)
    rules = {rule for row in rows for rule in row["rule"].split()}
    for rule in expect.why:
        if rule not in rules:
            yield f"no decision names rule {rule}; those that do name {', '.join(sorted(rules))}"
    said = "decisions that say", expect.said.items()
    yield from _counts(*said, lambda text: sum(text in row["said"] for row in rows))
    for text in expect.outcome:
        if text not in job.outcome:
            yield f"the outcome should say {text!r}, and says {job.outcome!r}"
    found = tuple(artifact.path for artifact in job.collected.artifacts)
    if expect.artifacts is not None and found != expect.artifacts:
        yield f"the artifacts should be {list(expect.artifacts)}, and are {list(found)}"
    nodes = job.spec.exclude_nodes
    if expect.excluded is not None and nodes != expect.excluded:
        yield f"the nodes left out should be {list(expect.excluded)}, and are {list(nodes)}"


def _path(rows: Sequence[Any]) -> list[State]:
    path = [State(rows[0]["source"])] if rows else []
    for row in rows:
        if row["to"] != row["source"]:
            path.append(State(row["to"]))
    return path


def _counts(what: str, bounds: Iterable[tuple[str, str]], count: Callable[[str], int]) -> Iterator[str]:
    for name, bound in bounds:
        found = count(name)
        if not fits(found, bound):
            yield f"there should be {bound} of the {what} {name}, and were {found}"


def is_told_to_look(job: Job) -> bool:
    """Whether it was submitted is not known, and the word of a person, or the default, was to keep looking."""
    asked = [question for question in job.questions if question.kind == "unsettled"]
    seeks = job.state is State.submitting and job.attempt.unclear_since is not None
    return seeks and bool(asked) and asked[-1].chosen == "look"


def keeps_looking(world: World, job: Job) -> bool:
    """It was told to keep looking, or waits for a run of its own that was."""
    children = (world.store.load(child) for child in job.children if child in world.seen)
    return is_told_to_look(job) or any(is_told_to_look(child) for child in children)


def _settled(world: World) -> Iterator[str]:
    for job_id in world.seen if world.story.expect.settled else ():
        job = world.store.load(job_id)
        if not (job.is_terminal or job.open_questions or keeps_looking(world, job)):
            yield f"{job_id} should have ended or ask something, and is {job.state}"


# --- questions and reports ---------------------------------------------------------------------------------


def _questions(world: World, job: Job, wanted: Sequence[QuestionSeen]) -> Iterator[str]:
    kinds = [question.kind for question in job.questions]
    if kinds != [one.kind for one in wanted]:
        yield f"the questions should be {_shown(one.kind for one in wanted)}, and were {_shown(kinds)}"
        return
    for one, question in zip(wanted, job.questions, strict=True):
        for fault in _question(world, one, question):
            yield f"question {question.number} ({question.kind}) {fault}"


def _question(world: World, wanted: QuestionSeen, question: Question) -> Iterator[str]:
    closed = world.offset(question.closed_at) if question.closed_at else None
    asked = world.offset(question.asked_at)
    values = {
        "status": (wanted.status, question.status),
        "chosen": (wanted.chosen, question.chosen),
        "value": (wanted.value, question.value),
        "by": (wanted.by, question.by),
        "default": (wanted.default, question.default.key),
        "deadline": (wanted.deadline, (question.answer_by - question.asked_at).total_seconds()),
    }
    for name, (should, was) in values.items():
        if should is not None and should != was:
            yield f"should have {name} {should!s}, and has {was!s}"
    if wanted.asked_by is not None and asked > wanted.asked_by:
        yield f"should be asked by {wanted.asked_by:g} s, and was at {asked:g} s"
    if wanted.asked_after is not None and asked < wanted.asked_after:
        yield f"should be asked after {wanted.asked_after:g} s, and was at {asked:g} s"
    if wanted.closed_by is not None and (closed is None or closed > wanted.closed_by):
        yield f"should be closed by {wanted.closed_by:g} s, and was at {closed}"
    said = worded(question, world.story.language) + " ".join(quote.text for quote in question.evidence)
    for text in wanted.says:
        if text not in said:
            yield f"should say {text!r}, and says {said!r}"
    if wanted.closed_why not in question.closed_why:
        yield f"should be closed because {wanted.closed_why!r}, and was because {question.closed_why!r}"


def _reports(world: World, job: Job) -> Iterator[str]:
    expect, messages = world.story.expect, world.store.messages(job.id)
    stages = [message["stage"] for message in messages]
    if expect.stages is not None and stages != list(expect.stages):
        yield f"the messages should be {_shown(expect.stages)}, and were {_shown(stages)}"
    for wanted in expect.reports:
        of_stage = [message for message in messages if message["stage"] == wanted.stage]
        if wanted.count is not None and not fits(len(of_stage), wanted.count):
            yield f"there should be {wanted.count} messages {wanted.stage!r}, and were {len(of_stage)}"
            continue
        if wanted.count is not None and not of_stage:
            continue
        faults = [list(_report(world, wanted, message)) for message in of_stage]
        if not faults:
            yield f"there should be a message {wanted.stage!r}; there were {_shown(stages)}"
        elif all(faults):
            yield f"the message {wanted.stage!r} {'; '.join(_nearest(faults))}"


def _report(world: World, wanted: ReportSeen, message: Any) -> Iterator[str]:
    at, text = world.offset(message["at"]), message["text"]
    flat = " ".join(text.split())
    for part in wanted.contains:
        if part not in text and part not in flat:
            yield f"should say {part!r}, and says: {text}"
    for part in wanted.lacks:
        if part in flat:
            yield f"should not say {part!r}"
    if wanted.must_not_miss is not None and message["must_not_miss"] is not wanted.must_not_miss:
        yield f"should have must_not_miss {wanted.must_not_miss}"
    if wanted.by is not None and at > wanted.by:
        yield f"should come by {wanted.by:g} s, and came at {at:g} s"
    if wanted.after is not None and at < wanted.after:
        yield f"should come after {wanted.after:g} s, and came at {at:g} s"


# --- the world around the run ------------------------------------------------------------------------------


def _sent(world: World) -> Iterator[str]:
    """The specs of the submit calls of the run itself, smoke and build runs aside."""
    wanted = world.story.expect.sent
    request = world.story.request
    own = [s for s in world.cluster.submissions if request is not None and s.spec.command == request.command]
    if len(own) < len(wanted):
        yield f"there should be {len(wanted)} submits of the run, and were {len(own)}"
    for number, (fields, submission) in enumerate(zip(wanted, own, strict=False), start=1):
        spec = submission.spec.model_dump(mode="json")
        for name, value in fields.items():
            if name not in spec:
                yield f"`sent` names {name!r}, which a spec does not have; it has {', '.join(spec)}"
            elif spec[name] != value:
                yield f"submit {number} should have {name} {value!r}, and has {spec[name]!r}"


def _library(world: World) -> Iterator[str]:
    expect, entries = world.story.expect, world.library.entries()
    if expect.entries is not None and len(entries) != expect.entries:
        yield f"the library should hold {expect.entries} entries, and holds {len(entries)}"
    for wanted in expect.library:
        faults = [list(_entry(wanted, entry)) for entry in entries]
        if not faults:
            yield f"the library should hold an entry for {wanted.purpose!r}, and is empty"
        elif all(faults):
            yield f"no library entry is {wanted.model_dump(exclude_defaults=True)}; nearest: {_nearest(faults)}"


def _entry(wanted: EntrySeen, entry: Any) -> Iterator[str]:
    settings = entry["settings"]
    pairs: list[tuple[str, Any, Any]] = [
        ("purpose", wanted.purpose, entry["purpose"]),
        ("worked", wanted.worked, entry["worked"]),
        ("used", wanted.used, entry["used"]),
        ("stale", wanted.stale, entry["stale_at"] is not None),
    ]
    pairs += [(key, getattr(wanted, key), settings.get(key)) for key in ("image", "environment", "proxy")]
    for name, should, was in pairs:
        if should is not None and should != was:
            yield f"{name} is {was!r}"
    notes = " ".join([*entry["notes"], entry["stale_why"]])
    for text in wanted.notes:
        if text not in notes:
            yield f"notes are {notes!r}"


def _never(world: World) -> Iterator[str]:
    never = world.story.never
    for op in never.calls:
        if count := world.cluster.count(op):
            yield f"the call {op} must never be made, and was {count} times"
    stored = stored_text(world) if never.stored else ""
    for text in never.stored:
        if text in stored:
            yield f"{text!r} must never be stored, and is"
    for job_id in world.seen:
        rows = world.store.journal(job_id)
        yield from _unwanted("state", never.states, {row["to"] for row in rows}, job_id)
        effects = {row["kind"] for row in world.store.effects_of(job_id)}
        yield from _unwanted("effect", never.effects, effects, job_id)
        kinds = {question.kind for question in world.store.load(job_id).questions}
        yield from _unwanted("question", never.questions, kinds, job_id)
        messages = world.store.messages(job_id)
        yield from _unwanted("message", never.stages, {message["stage"] for message in messages}, job_id)
        for text in never.texts:
            if any(text in message["text"] for message in messages):
                yield f"no message may say {text!r}, and one does"


def _unwanted(what: str, never: Iterable[str], seen: Iterable[str], job_id: str) -> Iterator[str]:
    for name in sorted(set(never) & set(seen)):
        yield f"the {what} {name} must never be seen, and was in {job_id}"


def _shown(items: Iterable[object]) -> str:
    return ", ".join(map(str, items)) or "none"


def _nearest(faults: Sequence[list[str]]) -> list[str]:
    """The candidate with the fewest differences."""
    return min(faults, key=lambda found: len(found))
