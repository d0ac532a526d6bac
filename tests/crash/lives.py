"""Lives of a Watchkeeper that may be killed: each in a forked child, over one folder that outlives it.

The folder holds what a machine would keep: the database, the cluster's own truth, the time. A life is killed by
SIGKILL at the k-th passing of a crash point; the next one starts over the same folder.

Never: an orderly end where a kill is meant.
"""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy.event import listens_for

from agent import crash
from agent.clock import VirtualClock
from agent.clusters.base import Ref, Submission, Submitted
from agent.clusters.scripted import JobScript, Moment, ScriptedCluster, Written
from agent.service import Refusal
from agent.store import Store
from states.job import Check, Job, State
from states.observation import Phase
from tests.agent.fakes import STEPS, Desk

SHORT = JobScript(
    moments=(
        Moment(0, Phase.pending),
        Moment(20, Phase.running),
        Moment(400, Phase.succeeded, {"exit_code": 0}),
    ),
    log=STEPS,
    files=(Written("out/best.pt", "weights"),),
    record=0,
)
ENDLESS = SHORT._replace(moments=SHORT.moments[:2], record=None)
SMOKE = SHORT._replace(
    moments=(
        Moment(0, Phase.pending),
        Moment(5, Phase.running),
        Moment(30, Phase.succeeded, {"exit_code": 0}),
    ),
    files=(),
)
SLOW_LOOKS: dict[str, float | int | bool | str] = {"poll_s": 90, "look_s_first": 200, "look_s_min": 200}
"""Few looks: a life is short, and each kind of moment is still in it."""


MAY_BE_MISSED = {"submit-unclear", "started"}
"""Said only if it was so when somebody looked: a dead agent's lease lasts longer than a short job runs, and each
call whose answer was lost is told of."""


class Kill(NamedTuple):
    """Where a life ends: at the `number`-th passing of `point`, from 1."""

    point: str
    number: int


class Ending(NamedTuple):
    """What became of the run, as far as a person or the cluster can tell."""

    state: State
    outcome: str
    stages: Counter[str]
    questions: int
    jobs_by_name: Counter[str]
    alive: int
    library: tuple[tuple[int, int], ...]
    stops: int


class KeptCluster(ScriptedCluster):
    """A scripted cluster whose jobs are in a file: they go on when the agent dies."""

    file: Path

    def open(self, file: Path) -> None:
        self.file = file
        if file.exists():
            self.jobs = pickle.loads(file.read_bytes())

    def submit(self, submission: Submission) -> Submitted:
        answer = super().submit(submission)
        self._keep()
        return answer

    def stop(self, ref: Ref) -> None:
        super().stop(ref)
        self._keep()

    def _keep(self) -> None:
        fresh = self.file.with_suffix(".new")
        fresh.write_bytes(pickle.dumps(self.jobs))
        fresh.replace(self.file)


class KeptClock(VirtualClock):
    """A clock whose time is in a file: the next life begins where the last one ended."""

    def __init__(self, start: datetime, file: Path) -> None:
        super().__init__(datetime.fromisoformat(file.read_text()) if file.exists() else start)
        self._file = file

    def jump_to(self, at: datetime) -> None:
        super().jump_to(at)
        self._file.write_text(self.now().isoformat())


class Parent:
    """What every life starts with: one store whose statements are translated before the forks. place: its file."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "watchkeeper.db"
        self.store = Store(f"sqlite:///{self.place}")
        listens_for(self.store.engine, "do_connect")(self._elsewhere)

    def _elsewhere(self, dialect: object, record: object, place: list[Any], options: object) -> None:
        place[0] = str(self.place)

    def store_in(self, folder: Path) -> Store:
        self.store.close()
        self.place = folder / "watchkeeper.db"
        self.store.create_schema()
        return self.store


PARENT: list[Parent] = []
URL = "url"


Story = Callable[[Desk], None]


def desk_over(folder: Path, *scripts: JobScript) -> Desk:
    """A process that starts over the folder. A database elsewhere is named by the folder's file `url`."""
    if (folder / URL).exists():
        store = Store((folder / URL).read_text())
        store.create_schema()
    else:
        if not PARENT:
            PARENT.append(Parent(folder))
        store = PARENT[0].store_in(folder)
    desk = Desk(store, folder, *scripts, checks={"capacity": _capacity}, cluster_class=KeptCluster)
    desk.clock = KeptClock(desk.clock.now(), folder / "now")
    desk.use_clock(desk.clock)
    assert isinstance(desk.cluster, KeptCluster)
    desk.cluster.open(folder / "cluster")
    return desk


def _capacity(job: Job, ports: Any) -> Check:
    asked = job.parent == ""
    return Check(name="capacity", level="ask" if asked else "fine", evidence="1 GPU", question="capacity")


def to_its_end(desk: Desk) -> None:
    """A run with a smoke run before it and a question, which its default decides; to the end."""
    desk.delegate("r1", smoke="true", outputs=("out/best.pt",), policy=SLOW_LOOKS, image="reg/a:1")
    desk.run()


def stopped_on_the_way(desk: Desk) -> None:
    """A run without an end, stopped by a person once it runs."""
    job_id = desk.delegate("r1", policy=SLOW_LOOKS)
    desk.run(
        lambda: desk.job(job_id).state in (State.running, State.stopping) or desk.job(job_id).is_terminal
    )
    if desk.job(job_id).state is State.running:
        desk.service.stop(job_id, reason="enough")
    desk.run()


def answered_on_the_way(desk: Desk) -> None:
    """A run whose question is answered by a person, who tries again when nothing was heard."""
    job_id = desk.delegate("r1", policy=SLOW_LOOKS)
    desk.run(lambda: any(row["kind"] == "question" for row in desk.store.messages(job_id)))
    with suppress(Refusal):  # this very answer was taken before the kill, and the run has gone on
        desk.service.answer(f"{job_id}/1", "wait", key="message-17")
    desk.run()


STORIES: dict[str, tuple[Story, Sequence[JobScript]]] = {
    "to its end": (to_its_end, (SMOKE, SHORT)),
    "stopped": (stopped_on_the_way, (ENDLESS,)),
    "answered": (answered_on_the_way, (SHORT,)),
}


def live(folder: Path, story: str, kill: Kill | None = None) -> bool:
    """One life in a child. True: it came to the story's end; False: it was killed where it should be."""
    child = os.fork()
    if child == 0:
        _live_and_exit(folder, story, kill)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return False
    assert os.WEXITSTATUS(status) == 0, (folder / "trouble").read_text()
    return True


def passings(folder: Path, story: str) -> Counter[str]:
    """How often each crash point is passed in an undisturbed life."""
    counted: Counter[str] = Counter()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        crash.arm(lambda name: os.write(writing, f"{name}\n".encode()) and None)
        _live_and_exit(folder, story, None)
    os.close(writing)
    with os.fdopen(reading) as told:
        counted.update(line.strip() for line in told)
    assert os.waitpid(child, 0)[1] == 0, (folder / "trouble").read_text()
    return counted


def _live_and_exit(folder: Path, story: str, kill: Kill | None) -> None:
    """Never returns: the child must not run the rest of the tests."""
    try:
        if kill is not None:
            crash.arm(striker(kill))
        told, scripts = STORIES[story]
        desk = desk_over(folder, *scripts)
        told(desk)
        desk.store.close()
    except BaseException:
        (folder / "trouble").write_text(traceback.format_exc())
        os._exit(1)
    os._exit(0)


def striker(kill: Kill) -> Callable[[str], None]:
    """Kill this process at the k-th passing of the point."""
    left = kill.number

    def strike(name: str) -> None:
        nonlocal left
        if name == kill.point:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return strike


def ending(folder: Path, story: str) -> Ending:
    """What there is after the last life. Also checks what must hold whatever happened."""
    desk = desk_over(folder, *STORIES[story][1])
    try:
        with desk.store.read() as connection:
            ids = [row[0] for row in connection.exec_driver_sql("SELECT id FROM job ORDER BY created_at, id")]
        (run,) = [job_id for job_id in ids if not desk.job(job_id).parent]
        messages = [row for job_id in ids for row in desk.store.messages(job_id)]
        for job_id in ids:
            numbers = [row["seq"] for row in desk.store.journal(job_id)]
            assert numbers == list(range(1, len(numbers) + 1)), "the journal has gaps"
            left = [row["kind"] for row in desk.store.effects_of(job_id) if row["done_at"] is None]
            assert left == [], "something that was asked was never done"
        stages = Counter(row["stage"] for row in messages if row["stage"] not in MAY_BE_MISSED)
        starts = Counter(row["job_id"] for row in messages if row["stage"] == "started")
        assert set(starts.values()) <= {1}, f"a start was told twice: {starts}"
        now = desk.clock.now()
        return Ending(
            state=desk.job(run).state,
            outcome=desk.job(run).outcome,
            stages=stages,
            questions=sum(row["kind"] == "question" for row in messages),
            jobs_by_name=Counter(
                job.name.replace(run, "run").rpartition("-")[0] for job in desk.cluster.jobs
            ),
            alive=sum(not job.is_over(now) for job in desk.cluster.jobs),
            library=tuple((row["used"], row["worked"]) for row in desk.library.entries()),
            stops=min(1, sum(job.stops for job in desk.cluster.jobs)),
        )
    finally:
        desk.store.close()
