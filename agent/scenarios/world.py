"""The world of one scenario: a virtual clock, a database in memory, a scripted cluster, keys, a workspace.

Everything else is the product itself: `boot` puts the real service and ports over it, as a process that starts.
A kill is a BaseException from a crash point; from then on the dead process cannot write (no lease is given back),
until another one boots over the same store.

Never: a decision about a run; a real clock, a real wait, a network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from agent.checks import every_check
from agent.clock import OtherClock, VirtualClock
from agent.clusters.base import Submission
from agent.clusters.scripted import Away, JobScript, ScriptedCluster, Stale, SubmitFault
from agent.database import Redact
from agent.library import Library
from agent.ports import Ports
from agent.redaction import Redactor
from agent.scenarios.faults import StoreStory
from agent.scenarios.model import JobStory, Story
from agent.scenarios.scripts import script
from agent.secrets import Secrets
from agent.service import Service
from agent.store import Store
from states.effects import AnyEffect, Interpret, Remember
from states.events import Interpreted
from states.job import Check, Job
from states.observation import Capabilities, Capacity
from states.orders import Standing
from states.spec import Request

START = datetime(2031, 3, 14, 9, 0, tzinfo=UTC)
"""When every scenario begins."""

CANARY = "canary-5f0e-{name}-not-a-real-value"
"""The value of a key that the story only names; it may turn up nowhere."""


class Killed(BaseException):
    """The process is gone; nothing may catch this on its way out."""


class Broken(Exception):
    """The story says that this effect cannot be performed now; no fault of the loop."""


class StoreTrouble(Broken):
    """The database did not take a write, as the story says."""


class MortalStore(Store):
    """A store in memory that a dead process cannot write to. dead: set by the kill, taken back by the next boot.

    One is kept for the next story: a new one would translate every statement anew, which costs more than a story.
    """

    dead = False
    written = 0
    troubles: tuple[StoreStory, ...] = ()
    _loaded: dict[str, tuple[int, Job]]
    _spare: ClassVar[list[MortalStore]] = []

    @classmethod
    def empty(cls, redact: Redact, troubles: tuple[StoreStory, ...] = ()) -> MortalStore:
        """A store without rows. troubles: which of its writes fail."""
        if not cls._spare:
            made = cls("sqlite://")
            made.written, made._loaded = 0, {}
            made.create_schema()
        else:
            made = cls._spare.pop()
        made.dead, made._redact, made.written, made.troubles = False, redact, 0, troubles
        made._loaded = {}
        return made

    def give_back(self) -> None:
        """Empty it and keep it for the next story."""
        self.dead, self.troubles = False, ()
        with self._write() as connection:
            names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            tables = [row[0] for row in connection.exec_driver_sql(names)]
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
            for table in tables:
                connection.exec_driver_sql(f"DELETE FROM {table}")
        self._spare.append(self)

    def load(self, job_id: str) -> Job:
        """The job; read once as long as nothing is written (the loop, the person and the guard all look at it)."""
        written, job = self._loaded.get(job_id) or (-1, None)
        if job is None or written != self.written:
            job = super().load(job_id)
            self._loaded[job_id] = (self.written, job)
        return job

    @contextmanager
    def _write(self) -> Iterator[Any]:
        if self.dead:
            raise Killed
        self.written += 1
        says = next((t.says for t in self.troubles if t.n <= self.written < t.n + t.times), "")
        if says == "busy":
            raise StoreTrouble("the database is busy")
        with super()._write() as connection:
            yield connection
            if says == "full":
                raise StoreTrouble("the disk is full")
        if says == "unclear":
            raise StoreTrouble("the connection was lost while it was committed")


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
        self.workspace = folder / "workspace"
        self.workspace.mkdir(parents=True)
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
        self._cast: dict[str, int] = {}
        self._scripts = self._all_scripts()
        self._prepare()
        self.boot()

    def boot(self) -> None:
        """A process starts: everything in memory is new, the store and the world are as they were."""
        self.store.dead = False
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

    def request(self) -> Request | None:
        """The request, with its workspace as a folder of this world."""
        request = self.story.request
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

    def _role(self, submission: Submission) -> str:
        """own for the run itself, else what its child is for: the submit's name begins with the child's id."""
        for run in self.seen:
            for child, purpose in self.store.load(run).children.items():
                if submission.name.startswith(f"{child}-"):
                    return purpose.partition(":")[0]
        return "own"

    def _all_scripts(self) -> dict[str, list[JobScript]]:
        """Every job of the story, made before it begins: what is wrong in one is a fault of the file."""
        story = self.story
        told = {
            "own": (story.first(), *story.then),
            "smoke": story.smoke,
            "build": story.build,
            "stage": story.stage,
            "repair": story.repair,
        }
        return {role: [self.script(one) for one in jobs or (JobStory(),)] for role, jobs in told.items()}

    def _prepare(self) -> None:
        for file in self.story.present:
            path = self.workspace / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")
        for one in self.story.there:
            self.cluster.add(one.name, self.script(one), job_id=one.id, owner=one.owner)
        for place, entry in enumerate(self.story.library):
            self._fill_library(place, entry.model_dump(exclude={"purpose", "worked", "used"}), entry)

    def _fill_library(self, place: int, values: Mapping[str, str], entry: Any) -> None:
        library = Library(self.store)
        purpose = entry.purpose.replace("{workspace}", str(self.workspace))
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
