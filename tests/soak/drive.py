"""Carries a schedule out: delegates, answers, kills, brings back what was killed; then waits until all is settled.

Never: a word to the agent that a person could not say; a kill that is not counted.
"""

from __future__ import annotations

import contextlib
import heapq
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Timer
from typing import NamedTuple, TypeVar

import psutil
from sqlalchemy.exc import OperationalError

from agent.clusters.local_time import monotonic_s, pause
from agent.service import Refusal
from agent.simulation.chance import Chance
from states.spec import Request
from tests.cli.program import ROOT
from tests.soak.figures import Life
from tests.soak.ground import Ground
from tests.soak.schedule import JOB, Act
from tests.soak.trainee import SICK

T = TypeVar("T")

TICK_S = 0.1
LOOK_S = 2.0
"""Between two looks at the agent's figures, at Slurm and at open questions."""
SETTLE_S = 240.0
HUNG_S, HEALTHY_S = 3.0, 8.0
"""Silence that counts as hung: of what is to hang, and of what is healthy. An agent that stood still for longer than
that must not take its own sleep for the job's."""


class Delegated(NamedTuple):
    """One request as it was given: its key, kind and the run that it became."""

    label: str
    kind: str
    cluster: str
    run: str


class Driver:
    """One soak. done: how often each thing was done; broken: what broke at once."""

    def __init__(self, ground: Ground, seed: int) -> None:
        self.ground = ground
        self.delegated: list[Delegated] = []
        self.stopped: set[str] = set()
        self.done: Counter[str] = Counter()
        self.broken: list[str] = []
        self.lives: list[Life] = []
        self.seconds = 0.0
        self._chance = Chance(seed)
        self._later: list[tuple[float, int, Callable[[], object]]] = []
        self._pushed = 1_000_000
        self._requests: dict[str, tuple[Request, str]] = {}
        self._timers: list[Timer] = []
        self._commands: list[subprocess.Popen[bytes]] = []
        self._asked: set[str] = set()
        self._away_until, self._look_at = 0.0, 0.0
        self._began = monotonic_s()

    def run(self, acts: Sequence[Act]) -> None:
        """Do everything in its time, then wait for the end of all that was begun."""
        self._later = [(act.at_s, number, partial(self._do, act)) for number, act in enumerate(acts)]
        try:
            while self._later:
                self._tick()
            until = monotonic_s() + SETTLE_S
            while not self.is_settled():
                if monotonic_s() > until:
                    break  # what still lives must ask something: `promises.settled`
                self._tick()
        finally:
            self.seconds = monotonic_s() - self._began
            for timer in self._timers:
                timer.cancel()
                timer.join()
        self.ground.look()

    def is_settled(self) -> bool:
        """Every run has ended, and nothing is left to be done."""
        if any(command.poll() is None for command in self._commands) or self._now_s() < self._away_until:
            return False
        store = self.ground.app.store
        return not store.live_ids() and store.next_effect_at() is None

    # --- the loop ------------------------------------------------------------------------------------------

    def _now_s(self) -> float:
        return monotonic_s() - self._began

    def _after(self, seconds: float, act: Callable[[], object]) -> None:
        self._pushed += 1
        heapq.heappush(self._later, (self._now_s() + seconds, self._pushed, act))

    def _tick(self) -> None:
        while self._later and self._later[0][0] <= self._now_s():
            heapq.heappop(self._later)[2]()
        if self._now_s() >= self._look_at:
            self._look_at = self._now_s() + LOOK_S
            self._look()
        pause(TICK_S)

    def _look(self) -> None:
        self.ground.look()
        agent = self.ground.agent()
        if agent is None:
            if self._now_s() > self._away_until:
                self._away_until = self._now_s() + 3  # time to come up
                self.ground.serve()
            return
        if not self.lives or self.lives[-1].process != agent:
            self.lives.append(Life(agent))
        self.lives[-1].sample()
        with contextlib.suppress(OperationalError):
            self._think_about_questions()

    def _do(self, act: Act) -> None:
        try:
            done = _HOW[act.what](self, act)
        except OperationalError:  # an agent that stands still holds it: a person would see the same
            self.done["the database was busy"] += 1
            if act.what == JOB:
                self._after(1.0, partial(self._do, act))
            return
        except Refusal:
            self.done["refused, since it was over"] += 1
            return
        if done is not False:
            self.done[act.what] += 1

    # --- what people do ------------------------------------------------------------------------------------

    def delegate(self, act: Act) -> None:
        """One more run; its workspace is not there where it is to ask."""
        label = f"{act.kind}-{round(act.at_s * 1000)}"
        if label not in self._requests:
            missing = self.ground.workspace / f"missing-{label}"
            workspace = missing if act.kind == "asks" else self.ground.workspace
            hung_s = HUNG_S if act.kind in SICK else HEALTHY_S
            request = Request(
                command=(
                    "python3", "-s", "-m", "tests.soak.trainee", act.kind, label, f"{act.lasts_s:g}",
                    str(self.ground.ledger),
                ),
                name=act.kind,
                cluster=act.cluster,
                outputs=(f"{label}.out",) if act.kind in ("good", "loud", "asks") else (),
                env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
                cpu=1,
                memory_mib=64,
                insist=True,
                policy={"hung_s": hung_s, "hung_cadences": 3.0, "loop_s": 4.0, "loop_repeats": 8, "nan_steps": 8},
            )  # fmt: skip
            self._requests[label] = (request, str(workspace))
        request, workspace_ = self._requests[label]
        made = self.ground.app.service.delegate(request, workspace=workspace_, request_id=label)
        self.delegated.append(Delegated(label, act.kind, act.cluster, made.job.id))

    def delegate_again(self, act: Act) -> bool:
        """The same key again, by the service or by the command: the same run, and nothing new.

        The command starts an agent of its own where none is.
        """
        if not self.delegated:
            return False
        before = self._one_of(self.delegated, act)
        request, workspace = self._requests[before.label]
        if act.lasts_s:
            words = ("--request-id", before.label, "--workspace", workspace, "--cluster", before.cluster)
            self._commands.append(self.ground.command("run", "--detach", *words, "--", *request.command))
            return True
        again = self.ground.app.service.delegate(request, workspace=workspace, request_id=before.label)
        if again.new or again.job.id != before.run:
            self.broken.append(f"{before.label} was delegated twice: {before.run} and {again.job.id}")
        return True

    def stop(self, act: Act) -> bool:
        """A live run, by the command or by the service."""
        live = self.ground.app.store.live_ids()
        if not live:
            return False
        run = self._one_of(sorted(live), act)
        self.stopped.add(run)
        if act.lasts_s:
            self._commands.append(self.ground.command("stop", run))
        else:
            self.ground.app.service.stop(run, reason="enough")
        return True

    def _think_about_questions(self) -> None:
        """Half of them are left to their default; the others get an answer, some only after mending."""
        for job in self.ground.app.store.with_open_questions():
            for question in job.open_questions:
                if question.id in self._asked:
                    continue
                self._asked.add(question.id)
                options = [one.key for one in question.template.options if not one.value]
                chosen, mends = self._chance.one_of(options), self._chance.happens(0.5)
                if self._chance.happens(0.5):
                    wait_s = self._chance.between(0.0, 6.0)
                    self._after(
                        wait_s,
                        partial(self._answer, question.id, chosen, job.spec.workspace if mends else ""),
                    )

    def _answer(self, question: str, chosen: str, mended: str) -> None:
        """mended: a workspace that the person makes first."""
        if mended:
            Path(mended).mkdir(exist_ok=True)
        try:
            self.ground.app.service.answer(question, chosen, key=f"key-{question}")
            self.done["answered"] += 1
        except (Refusal, OperationalError):
            self.done["answered too late"] += 1

    # --- kills ---------------------------------------------------------------------------------------------

    def kill_agent(self, act: Act) -> bool:
        agent = self.ground.agent()
        if agent is None:
            return False
        agent.kill()
        self._away_until = self._now_s() + act.lasts_s + 3
        self._after(act.lasts_s, self.ground.serve)
        return True

    def pause_agent(self, act: Act) -> bool:
        """It is woken by a timer of its own: this process may wait for the very lock that the agent holds."""
        agent = self.ground.agent()
        if agent is None:
            return False
        agent.suspend()

        def go_on() -> None:
            with contextlib.suppress(psutil.NoSuchProcess):
                agent.resume()

        self._timers.append(Timer(act.lasts_s, go_on))
        self._timers[-1].start()
        return True

    def second_agent(self, act: Act) -> None:
        """It leaves at once, unless the first one is killed in this very moment."""
        self.ground.serve()

    def kill_program(self, act: Act) -> bool:
        return self._kill(act, lambda program: program)

    def kill_wrapper(self, act: Act) -> bool:
        return self._kill(act, lambda program: program.parent())

    def kill_launcher(self, act: Act) -> bool:
        def launcher(program: psutil.Process) -> psutil.Process | None:
            found = [one for one in program.parents() if "agent.clusters.local_launcher" in one.cmdline()]
            return found[0] if found else None

        return self._kill(act, launcher)

    def _kill(self, act: Act, whom: Callable[[psutil.Process], psutil.Process | None]) -> bool:
        """One of a living program's family; never a process that this soak did not start."""
        programs = [one for one, words in self.ground.programs() if act.kind in ("", words.kind)]
        if not programs:
            if act.kind:  # that one is meant, and will be there
                self._after(0.5, partial(self._do, act))
            return False
        programs.sort(key=lambda process: process.pid)
        with contextlib.suppress(psutil.NoSuchProcess):
            victim = whom(self._one_of(programs, act))
            if victim is not None and str(self.ground.folder) in " ".join(victim.cmdline()):
                victim.kill()
                return True
        return False

    def kill_controller(self, act: Act) -> bool:
        return self._kill_daemon("slurmctld", act)

    def kill_node(self, act: Act) -> bool:
        assert self.ground.slurm is not None
        return self._kill_daemon(self._one_of(self.ground.slurm.daemons[1:], act), act)

    def _kill_daemon(self, daemon: str, act: Act) -> bool:
        slurm = self.ground.slurm
        assert slurm is not None
        slurm.kill(daemon)
        self._after(act.lasts_s, lambda: slurm.again(daemon))
        return True

    def _one_of(self, options: Sequence[T], act: Act) -> T:
        return options[int(act.draw * len(options))]


_HOW: dict[str, Callable[[Driver, Act], object]] = {
    JOB: Driver.delegate,
    "agent killed": Driver.kill_agent,
    "agent stopped for a while": Driver.pause_agent,
    "a second agent begun": Driver.second_agent,
    "job's program killed": Driver.kill_program,
    "job's wrapper killed": Driver.kill_wrapper,
    "local job's launcher killed": Driver.kill_launcher,
    "stopped by a person": Driver.stop,
    "delegated again": Driver.delegate_again,
    "slurmctld killed": Driver.kill_controller,
    "slurmd killed": Driver.kill_node,
}
