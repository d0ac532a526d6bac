"""Play one story: the real loop on a virtual clock, single-threaded, jumping from one due thing to the next.

An instant is: what the person does, then waves and turns until nothing is due, then the checks. The clock then
jumps to the earliest of the next timer, the next postponed effect and the next happening of the story.

Never: a wait; a step past an instant at which something is still due.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from agent import crash
from agent.leases import LEASE_S
from agent.scenarios.expect import Watcher, keeps_looking, unmet
from agent.scenarios.faults import KillStory, PauseStory, UpgradeStory
from agent.scenarios.happenings import Happenings, Stuck
from agent.scenarios.heard import heard
from agent.scenarios.invariants import Invariants
from agent.scenarios.memory import Killed, StoreTrouble
from agent.scenarios.model import Story
from agent.scenarios.person import Person
from agent.scenarios.world import World
from agent.turn import turn
from agent.wave import wave
from states.effects import AnyEffect

INSTANTS_MAX = 20_000
DELEGATIONS_MAX = 200
ROUNDS_MAX = 400
"""Waves and turns at one instant; more means that something never comes to rest."""

UNTIL_S_MAX = 60 * 86_400.0
CALM_S = 86_400.0
"""By now nothing begins to go wrong in a drawn story."""

HELD = timedelta(seconds=LEASE_S / 2)
"""A lease lives on for so long at least when an effect begins; who stands still for longer may have lost it."""

SWEEP_S = 5.0
"""A look that failed is made again after this (`sweep_s` of the settings)."""


MIDWAY = frozenset(
    {"message-delivered", "stop-after-call", "child-delegated", "parent-told", "effect-performed"}
)
"""Crash points between the beginning of an effect and the commit of what came of it."""


class Work(NamedTuple):
    """An effect of a run that a process performs, and when."""

    run: str
    effect: AnyEffect
    at: datetime


class Played(NamedTuple):
    """How a story went. faults: empty when all is as it must be; each is one readable line.

    seconds: by the virtual clock, from the delegation to the last look; instants: how often it jumped.
    """

    title: str
    covers: tuple[str, ...]
    faults: tuple[str, ...]
    seconds: float
    instants: int


def play(story: Story, *, beside: Path) -> Played:
    """Play it in a world of its own. beside: the folder of the files that it names."""
    with tempfile.TemporaryDirectory(prefix="scenario-") as folder:
        world = World(story, folder=Path(folder), beside=beside)
        try:
            return Play(world).run()
        finally:
            world.close()


class Play:
    """One playing of a story."""

    def __init__(self, world: World) -> None:
        self.world, self.story = world, world.story
        self.person = Person(world)
        self.invariants = Invariants(world)
        self.watcher = Watcher(world)
        self.happenings = Happenings(world)
        self.instants = 0
        self._down_until: datetime | None = None
        self._wake_at: datetime | None = None
        self._effect_at: datetime | None = None
        self._stirred = True
        """Something may be due that the last look at the store did not know of."""
        self._was_killed = False
        self._passed: dict[str, int] = {}
        upgrades = sorted(self.story.faults.upgrade, key=lambda upgrade: upgrade.at)
        self._upgrades = [upgrade for upgrade in upgrades if not upgrade.point]
        self._struck = [upgrade for upgrade in upgrades if upgrade.point]
        """Upgrades that come with a kill at a crash point."""
        self._upgrading: UpgradeStory | None = None
        self._passings = 0
        self._is_beside = False
        """It is the second process that works now."""
        self._turned = ""
        self._performing: AnyEffect | None = None
        self._performing_since = self._now()
        self._standing: Work | None = None
        """What the first process is in the middle of while the second one works."""
        world.performs = self._performs
        self._sweep_at: datetime | None = None

    def run(self) -> Played:
        """From the delegation to the end, and then what was to be seen."""
        faults: list[str] = []
        with heard() as swallowed, self._armed():
            try:
                self._delegate()
                until_s = self.story.until if self.story.until is not None else UNTIL_S_MAX
                self._live_on(self.world.at(until_s))
                self.watcher.look()
                self.invariants.close()
            except Stuck as stuck:
                faults.append(str(stuck))
        faults += swallowed
        faults += [*self.person.wrong, *self.person.left(), *self.invariants.broken]
        faults += [*self.watcher.unmet, *unmet(self.world)]
        seconds = self.world.offset(self.world.clock.now())
        return Played(self.story.title, self.story.covers, tuple(faults), seconds, self.instants)

    # --- the loop ----------------------------------------------------------------------------------------------

    def _live_on(self, until: datetime, *, to_the_end: bool = False) -> None:
        """Instant after instant until everything is over or `until` is reached."""
        while True:
            began = self._now()
            self._instant()
            if self._now() != began:
                continue  # the machine stood still in it: what came meanwhile is late, and not lost
            following = self._next_at()
            if self.story.lenient and following is not None and self._only_looks():
                return
            if following is None and not to_the_end and self.story.until is None:
                return
            if following is None or following > until:
                self.world.clock.jump_to(until)
                return
            self.world.clock.jump_to(following)

    def _delegate(self) -> None:
        """The person hands the run over, and does it again where the database did not take it."""
        for _ in range(DELEGATIONS_MAX):
            self._guarded(self.person.delegate)
            if self._sweep_at is None or self.world.seen:
                return
            self.world.clock.step(SWEEP_S)

    def _instant(self) -> None:
        self.instants += 1
        if self.instants > INSTANTS_MAX:
            raise Stuck(f"the story did not end within {INSTANTS_MAX} instants; give it an `until`")
        self._guarded(self._happenings)
        self._work_on()
        if self._guarded(lambda: self.person.act(late=True)):
            self._work_on()
        self.invariants.check()
        self.watcher.look()

    def _happenings(self) -> None:
        """What the person and the faults do before the timers of this instant."""
        if self.happenings.step_clocks():
            self._stirred = True
        while self._upgrades and self.world.at(self._upgrades[0].at) <= self._now():
            self._end_for(self._upgrades.pop(0))
        while self.person.act():
            pass
        if self.happenings.come():
            self._stirred = True

    def _work_on(self) -> None:
        """Work, and work again for a process that was killed and is back at the same instant."""
        self._was_killed = True
        while self._was_killed and not self._is_down():
            self._was_killed = False
            self._guarded(self._work)

    def _work(self) -> None:
        """Waves and turns until nothing is due at this instant."""
        for _ in range(ROUNDS_MAX):
            if self._is_down():
                return
            self.world.cluster.catch_up()
            now, store = self.world.own_clock.now(), self.world.store
            self._stirred = self._stirred or bool(self.world.touched)
            if self._stirred:
                self._wake_at = store.next_wake()
            moved = wave(self.world.ports) if self._wake_at is not None and self._wake_at <= now else []
            late = self._effect_at is not None and self._effect_at <= now
            if not (moved or late or self._stirred):
                return
            jobs = dict.fromkeys([*moved, *store.jobs_with_effects(now)])
            done = sum(self._turn(job_id) for job_id in jobs)
            self._stirred = True
            stood_still = self.world.own_clock.now() != now
            if not (done or moved or stood_still):
                return
        raise Stuck(f"it does not come to rest at {self._offset():g} s: something is due again and again")

    def _turn(self, job_id: str) -> int:
        self._turned = job_id
        return turn(job_id, self.world.ports)

    def _performs(self, effect: AnyEffect) -> None:
        """An effect begins: nobody else may be in the middle of it, for its lease holds at this very moment."""
        if self._standing == Work(self._turned, effect, self._now()):
            self.invariants.tell(f"{self._turned}: I1: two processes at once perform {effect.kind}")
        self._performing, self._performing_since = effect, self._now()

    def _next_at(self) -> datetime | None:
        """The next instant; None when nothing will ever happen."""
        now = self._now()
        ahead = timedelta(seconds=self.world.own_clock.ahead_s)
        times = [self.person.next_at(), self.watcher.next_at()]
        times += self.happenings.next_at()
        times += [self.world.at(one.at) for one in self._upgrades[:1]]
        if self.world.store.shaken:  # whoever swallowed that looks again at the next sweep
            self.world.store.shaken = False
            self._sweep_at = self._sweep_at or now + timedelta(seconds=SWEEP_S)
        if self._is_down():
            times.append(max(filter(None, (self._down_until, self._sweep_at))))
        else:
            self._wake_at = self.world.store.next_wake()
            if self._stirred:
                self._effect_at = self.world.store.next_effect_at()
            self._stirred = False
            if self._wake_at is not None and self._wake_at <= now + ahead:
                raise Stuck(
                    f"a timer stands in the past at {self._offset():g} s: it would fire again and again"
                )
            times += [at - ahead for at in (self._wake_at, self._effect_at) if at is not None]
        return min((at for at in times if at is not None and at > now), default=None)

    def _only_looks(self) -> bool:
        """The storm of a drawn story is over, and what is left does nothing but look by name, as it was told to."""
        if self._offset() < CALM_S or not self.world.seen:
            return False
        jobs = [self.world.store.load(job_id) for job_id in self.world.seen]
        return all(job.is_terminal or keeps_looking(self.world, job) for job in jobs)

    # --- faults ------------------------------------------------------------------------------------------------

    def _guarded(self, act: Any) -> Any:
        """Run it; a kill in the middle ends the process, and another one starts when the story says so."""
        try:
            return act()
        except Killed:
            return None
        except StoreTrouble:
            self._sweep_at = self._now() + timedelta(seconds=SWEEP_S)
            return None

    @contextmanager
    def _armed(self) -> Iterator[None]:
        """What befalls the story's process at crash points."""
        faults = self.story.faults
        if not (faults.kill or faults.pause or faults.beside or self._struck):
            yield
            return
        crash.arm(self._strike)
        try:
            yield
        finally:
            crash.arm(None)

    def _strike(self, name: str) -> None:
        reached = self._now()
        passed = self._passed[name] = self._passed.get(name, 0) + 1
        for fault in (*self.story.faults.kill, *self.story.faults.pause):
            if fault.point == name and fault.n == passed:
                self._pause(fault) if isinstance(fault, PauseStory) else self._kill(fault)
        for upgrade in self._struck:
            if upgrade.point == name and self.world.at(upgrade.at) <= self._now():
                self._struck.remove(upgrade)
                self._upgrading = upgrade
                self._kill(upgrade)
        self._work_beside(name, reached)

    def _kill(self, fault: KillStory | UpgradeStory) -> None:
        self._end(fault.down)
        raise Killed

    def _end_for(self, upgrade: UpgradeStory) -> None:
        """In good order: between two turns, so that nothing is held and nothing is begun."""
        self._upgrading = upgrade
        self._end(upgrade.down)

    def _end(self, down_s: float) -> None:
        self.world.store.dead = True
        self._down_until = self.world.at(self._offset() + down_s)
        self._stirred = self._was_killed = True

    def _boot(self) -> None:
        if self._upgrading is not None:
            for fault in self.world.upgrade(self._upgrading):
                self.invariants.tell(fault)
            self._upgrading = None
            self.invariants.upgraded()
        self.world.boot()

    def _work_beside(self, name: str, reached: datetime) -> None:
        """A second process does all that is due while this one stands at its crash point, since it reached it."""
        now_s = self._offset()
        beside = [one for one in self.story.faults.beside if one.since <= now_s < one.until]
        if not beside or self._is_beside or self.world.store.dead:
            return
        self._passings += 1
        if self._passings % beside[0].every:
            return
        turned, performing, since = self._turned, self._performing, self._performing_since
        if name in MIDWAY and performing is not None and reached - since < HELD:
            self._standing = Work(turned, performing, reached)
        self._is_beside = self._stirred = True
        try:
            with self.world.another():
                self._guarded(self._work)
        finally:
            self._is_beside, self._standing = False, None
            self._turned, self._performing, self._performing_since = turned, performing, since
            self._stirred = True

    def _pause(self, fault: PauseStory) -> None:
        """This process stands still; another one lives on in the same world, or none; then this one goes on."""
        self._stirred = True
        until = self.world.at(self._offset() + fault.lasts)
        if fault.alone:
            self.world.clock.jump_to(until)
            self.world.booted_at = self.world.own_clock.now()  # nobody was there before
            return
        self.world.boot()
        self._live_on(until, to_the_end=True)

    def _is_down(self) -> bool:
        """No process is there, or it waits for its next sweep. Once the time has come, one boots."""
        if self._sweep_at is not None:
            if self._now() < self._sweep_at:
                return True
            self._sweep_at, self._stirred = None, True
        if self._down_until is None:
            return False
        if self._now() < self._down_until:
            return True
        self._down_until, self._stirred = None, True
        self._boot()
        return False

    # --- small -------------------------------------------------------------------------------------------------

    def _now(self) -> datetime:
        return self.world.clock.now()

    def _offset(self) -> float:
        return self.world.offset(self._now())
