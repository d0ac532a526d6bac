"""The world of one scenario: a virtual clock, a database in memory, a scripted cluster, keys, a workspace.

Everything else is the product itself: `boot` puts the real service and ports over it, as a process that starts.
Never: a decision about a run; a real clock, a real wait, a network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent.checks import every_check
from agent.clock import OtherClock, VirtualClock
from agent.clusters.base import Submission
from agent.clusters.scripted import Away, JobScript, ScriptedCluster, Stale, SubmitFault
from agent.library import Library
from agent.ports import Ports
from agent.redaction import Redactor
from agent.scenarios.faults import UpgradeStory
from agent.scenarios.memory import Broken, MortalStore
from agent.scenarios.model import JobStory, Story
from agent.scenarios.scripts import script
from agent.scenarios.upgrade import OLDER_MACHINE, set_back
from agent.secrets import Secrets
from agent.service import Service
from agent.shadow import form_of, live_runs
from states.effects import AnyEffect, Interpret, Remember
from states.events import Interpreted
from states.job import Check, Job
from states.observation import Capabilities, Capacity
from states.orders import Standing
from states.spec import Request
from states.versions import may_be_lifted

START = datetime(2031, 3, 14, 9, 0, tzinfo=UTC)
"""When every scenario begins."""

CANARY = "canary-5f0e-{name}-not-a-real-value"
"""The value of a key that the story only names; it may turn up nowhere."""


class ScriptedReader:
    """The model's readings as the story gives them; past the last one the model refuses."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.read: list[str] = []

    def interpret(self, job: Job, effect: Interpret, log: str) -> Interpreted:
        readings = self._world.story.reader or ()
        self.read.append(log)
        now = self._world.own_clock.now()
        if len(self.read) > len(readings):
            return Interpreted(at=now, name=effect.name, failed="the model refused")
        said = readings[len(self.read) - 1]
        return Interpreted(at=now, name=effect.name, **said.model_dump())


class World:
    """One scenario's world. folder: an empty one of its own; beside: where the story's files are."""

    def __init__(self, story: Story, *, folder: Path, beside: Path) -> None:
        self.story, self.folder, self.beside = story, folder, beside
        self.clock = VirtualClock(START)
        self.own_clock = OtherClock(self.clock)
        """Watchkeeper's machine's; the first one is the world's."""
        further = [folder / f"workspace-{n}" for n in range(1, len(story.runs) + 1)]
        self.workspaces = [folder / "workspace", *further]
        """Of each run of the story."""
        for workspace in self.workspaces:
            workspace.mkdir(parents=True)
        self._number_at = {str(place): number for number, place in enumerate(self.workspaces)}
        self._other: tuple[Library, Ports, Service] | None = None
        self.performs: Callable[[AnyEffect], None] = lambda effect: None
        """Told of each effect as it begins."""
        self.env = keys_of(story)
        self.secrets = Secrets(folder / "keys", env=self.env, keyring="off")
        self.redactor = Redactor(self.secrets.values())
        self.store = MortalStore.empty(lambda value: self.redactor.value(value), story.faults.store)
        self.reader = ScriptedReader(self)
        self.seen: dict[str, None] = {}
        """Ids of the runs, in order of their delegation."""
        self.touched: dict[str, None] = {}
        """Ids of the runs that took an event since they were last looked at."""
        self.cluster = self._cluster()
        self._cast: dict[tuple[int, str], int] = {}
        self._scripts = self._all_scripts()
        self._prepare()
        self.boot()

    def boot(self) -> None:
        """A process starts: everything in memory is new, the store and the world are as they were."""
        self.store.dead = False
        self.store.forget()
        self.booted_at = self.own_clock.now()
        self._other = None
        self._start()

    def _start(self) -> None:
        self.library = Library(self.store)
        self.ports = Ports(
            store=self.store,
            clock=self.own_clock,
            clusters={self.cluster.name: self.cluster},
            redact=lambda text: self.redactor.text(text),
            reader=self.reader if self.story.reader is not None else None,
            library=self.library,
            checks={
                name: check if name != "request" or self.story.lint else _unread
                for name, check in every_check(self.secrets).items()
            },
            delegate_child=lambda job, child, request: self.service.delegate_child(job, child, request),
            announce=self._touch,
            before_effect=self._break,
        )
        self.service = Service(
            self.ports,
            library=self.library,
            owner="owner",
            default_cluster=self.cluster.name,
            policy_layers=[("the scenario", self.story.policy)],
            language=self.story.language,
            orders=Standing(person=self.story.orders, site=self.story.site_orders),
        )

    def upgrade(self, told: UpgradeStory) -> Iterator[str]:
        """A newer Watchkeeper finds what the one before left, looks at it without a change, and brings it up to date.

        Yields what it could not carry, of runs that may be carried (RELIABILITY 7).
        """
        set_back(self.store.engine, told.form)
        self.store.forget()
        for run in live_runs(self.store):
            job = self.store.load(run.run)
            rests = may_be_lifted({"version": OLDER_MACHINE, "state": job.state, "resume_to": job.resume_to})
            if rests and run.level not in ("same", "reworded"):
                yield f"I5: {run.run} cannot be carried by the next release: {run.said}"
        if (found := form_of(self.store)) != told.form:
            yield f"I5: the look before an upgrade made the form {found} of {told.form}"
        self.store.create_schema()

    @contextmanager
    def another(self) -> Iterator[None]:
        """Within: a second process over the same database, with a memory of its own that it keeps."""
        mine = self.library, self.ports, self.service
        if self._other is None:
            self._start()
        else:
            self.library, self.ports, self.service = self._other
        theirs = self.library, self.ports, self.service
        try:
            yield
        finally:
            if self.ports is theirs[1]:  # else it was killed, and a new one has booted
                self._other = theirs
                self.library, self.ports, self.service = mine

    def _touch(self, job_id: str) -> None:
        self.seen.setdefault(job_id)
        self.touched.setdefault(job_id)

    def _break(self, effect: AnyEffect) -> None:
        """Raises Broken for an effect that the story breaks at this moment."""
        now_s = self.offset(self.clock.now())
        about = getattr(effect, "child", "") or getattr(effect, "name", "")
        for broken in self.story.faults.broken:
            named = broken.effect == effect.kind and broken.name in ("", about)
            if named and broken.since <= now_s < broken.until:
                raise Broken(f"{effect.kind} cannot be done now")
        self.performs(effect)

    def set_key(self, name: str, value: str) -> None:
        """The person sets a key while the story goes on."""
        self.env[name] = value or CANARY.format(name=name.lower())
        self.redactor = Redactor(self.secrets.values())

    def at(self, offset_s: float) -> datetime:
        """Seconds since the beginning as a time."""
        return START + timedelta(seconds=offset_s)

    def offset(self, at: datetime) -> float:
        """A time as seconds since the beginning."""
        return (at - START).total_seconds()

    def number_of(self, job: Job) -> int:
        """Which run of the story it is or belongs to: 0 its own, from 1 on those of `runs`."""
        return self._number_at.get(job.spec.workspace, 0)

    def run_of(self, number: int) -> str:
        """The id of that run; "": it is not there yet."""
        for job_id in self.seen:
            job = self.store.load(job_id)
            if not job.parent and self.number_of(job) == number:
                return job_id
        return ""

    def request(self, number: int = 0) -> Request | None:
        """The request of that run, with its workspace as a folder of this world."""
        further = self.story.runs[number - 1].request if number else None
        request = further or self.story.request
        if request is None or request.workspace is None:
            return request
        return request.model_copy(update={"workspace": str(self.folder / request.workspace.lstrip("/"))})

    def secret_values(self) -> Mapping[str, str]:
        """What may turn up nowhere: the keys' values by name."""
        return self.env

    def close(self) -> None:
        self.store.give_back()

    def _cluster(self) -> ScriptedCluster:
        told, faults = self.story.cluster, self.story.faults
        fields = set(Capabilities.model_fields) & set(type(told).model_fields)
        capacity = [(self.at(one.at), Capacity(**one.model_dump(exclude={"at"}))) for one in told.capacity]
        return ScriptedCluster(
            told.name,
            clock=self.clock,
            casting=self._casting,
            capabilities=Capabilities(**{name: getattr(told, name) for name in fields}),
            capacity=capacity,
            faults={
                one.n: SubmitFault(
                    one.answer,
                    one.created,
                    one.visible_after,
                    one.takes,
                    one.reason,
                    one.cause,
                    one.retryable,
                )
                for one in faults.submit
            },
            previews=[(one.reason, one.cause) for one in faults.predict],
            predicts=told.predicts,
            away=[Away(self.at(o.since), self.at(o.until), frozenset(o.calls)) for o in faults.away],
            stale=[Stale(self.at(o.since), self.at(o.until), o.age) for o in faults.stale],
            watch=self.own_clock,
        )

    def script(self, story: JobStory) -> JobScript:
        return script(story, beside=self.beside, normalise=self.story.cluster.normalise)

    def _casting(self, submission: Submission, created: int) -> JobScript:
        """Which of the story's jobs a submit creates: the run's own in order, or a smoke or build run's."""
        role = self._role(submission)
        number = self._cast[role] = self._cast.get(role, 0) + 1
        scripts = self._scripts[role]
        return scripts[min(number, len(scripts)) - 1]

    def _role(self, submission: Submission) -> tuple[int, str]:
        """The run that it is sent for, and `own` for that one itself, else what its child is for: the submit's name
        begins with the child's id."""
        number = self._number_at.get(submission.spec.workspace, 0)
        for run in self.seen:
            for child, purpose in self.store.load(run).children.items():
                if submission.name.startswith(f"{child}-"):
                    return number, purpose.partition(":")[0]
        return number, "own"

    def _all_scripts(self) -> dict[tuple[int, str], list[JobScript]]:
        """Every job of the story, made before it begins: what is wrong in one is a fault of the file."""
        story = self.story
        told: dict[tuple[int, str], tuple[JobStory, ...]] = {
            (0, "own"): (story.first(), *story.then),
            (0, "smoke"): story.smoke,
        }
        for number, run in enumerate(story.runs, start=1):
            told |= {(number, "own"): (run, *run.then), (number, "smoke"): run.smoke}
        for number in range(len(story.runs) + 1):
            told |= {(number, "build"): story.build, (number, "stage"): story.stage}
            told[number, "repair"] = story.repair
        return {role: [self.script(one) for one in jobs or (JobStory(),)] for role, jobs in told.items()}

    def _prepare(self) -> None:
        for file in self.story.present:
            path = self.workspaces[0] / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")
        for one in self.story.there:
            self.cluster.add(one.name, self.script(one), job_id=one.id, owner=one.owner)
        for place, entry in enumerate(self.story.library):
            self._fill_library(place, entry.model_dump(exclude={"purpose", "worked", "used"}), entry)

    def _fill_library(self, place: int, values: Mapping[str, str], entry: Any) -> None:
        library = Library(self.store)
        purpose = entry.purpose.replace("{workspace}", str(self.workspaces[0]))
        given = {name: value for name, value in values.items() if value}
        for number in range(entry.worked + entry.used):
            effect = Remember(
                what="worked" if number < entry.worked else "used", purpose=purpose, values=given
            )
            library.remember(f"before:{place}:{number}", effect, START - timedelta(days=1))


def keys_of(story: Story) -> dict[str, str]:
    """The keys that are set: by name with a canary for a value, or with the given values."""
    if isinstance(story.keys, tuple):
        return {name: CANARY.format(name=name.lower()) for name in story.keys}
    return dict(story.keys)


def _unread(job: Job, ports: Ports) -> Check:
    """The command of a story without `lint:` is a name for work, not a script that could be read."""
    return Check(name="request", level="fine", evidence="the command of this story is not read")
