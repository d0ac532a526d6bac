"""SIGKILL at every crash point of a run's life, a new process, and the run ends as if nothing had happened (I1).

One cluster job for each attempt, no message twice, nothing asked twice, no gap in the journal, nothing left undone.
A kill is not a power cut: that is SQLite's own promise (synchronous=FULL).
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent import crash, outbox
from agent.clusters.scripted import JobScript, Moment, SubmitFault
from agent.store import Store
from agent.turn import turn
from states.effects import EFFECTS
from states.job import State
from states.observation import Phase
from tests.agent.fakes import ENDLESS, GOOD, Desk
from tests.crash.boundaries import OF_DELIVERY
from tests.crash.lives import STORIES, Ending, Kill, desk_over, ending, live, passings

POINTS = tuple(point for point in crash.POINTS if point not in OF_DELIVERY)
EVERY_RUN = [
    *(("to its end", point) for point in POINTS if point != "stop-after-call"),
    *(("stopped", point) for point in ("stop-after-call", "event-committed")),
]
"""Together they pass every point; the rest is in the slow tests."""
APART = 4
"""Of a point that is passed often, every so many passings are killed at; all of them in the slow tests."""


@pytest.fixture(scope="module", autouse=True)
def _warm_parent() -> None:
    """What every life imports and translates once, done before the forks."""
    for told, scripts in STORIES.values():
        with tempfile.TemporaryDirectory() as folder:
            desk = desk_over(Path(folder), *scripts)
            told(desk)
            desk.store.close()


@pytest.fixture
def ground() -> Iterator[Callable[[], Path]]:
    """`ground()`: an empty folder, in memory where the machine has such a place (a kill does not ask for a disk)."""
    place = Path("/dev/shm")
    base = Path(tempfile.mkdtemp(prefix="wk-crash-", dir=place if place.is_dir() else None))
    number = 0

    def fresh() -> Path:
        nonlocal number
        number += 1
        (base / str(number)).mkdir()
        return base / str(number)

    yield fresh
    shutil.rmtree(base)


@pytest.fixture(scope="module")
def undisturbed() -> Mapping[str, tuple[Counter[str], Ending]]:
    """Each story without a kill: how often each point is passed, and how it ends."""
    told = {}
    for story in STORIES:
        with tempfile.TemporaryDirectory() as folder:
            counted = passings(Path(folder), story)
            told[story] = (counted, ending(Path(folder), story))
    return told


def test_every_point_is_passed(undisturbed: Mapping[str, tuple[Counter[str], Ending]]) -> None:
    assert {point for _, point in EVERY_RUN} == set(POINTS)
    assert [(story, point) for story, point in EVERY_RUN if not undisturbed[story][0][point]] == []


@pytest.mark.parametrize(("story", "point"), EVERY_RUN)
def test_a_kill_changes_nothing(
    story: str, point: str, undisturbed: Mapping[str, tuple[Counter[str], Ending]], ground: Callable[[], Path]
) -> None:
    counted, wanted = undisturbed[story]
    changes_nothing(story, point, {1, *range(APART, counted[point], APART), counted[point]}, wanted, ground)


def changes_nothing(
    story: str, point: str, passings: Iterable[int], wanted: Ending, ground: Callable[[], Path]
) -> None:
    for number in passings:
        folder = ground()
        assert live(folder, story, Kill(point, number)) is False, (point, number)
        assert live(folder, story) is True
        assert ending(folder, story) == wanted, (point, number)


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("story", ["to its end", "answered", "stopped"])
def test_a_kill_at_any_passing_changes_nothing(
    story: str, point: str, undisturbed: Mapping[str, tuple[Counter[str], Ending]], ground: Callable[[], Path]
) -> None:
    counted, wanted = undisturbed[story]
    changes_nothing(story, point, range(1, counted[point] + 1), wanted, ground)


@pytest.mark.slow
@pytest.mark.parametrize("first", POINTS)
def test_two_kills_change_nothing(
    first: str, undisturbed: Mapping[str, tuple[Counter[str], Ending]], ground: Callable[[], Path]
) -> None:
    """Each ordered pair of points: the second life is killed as well, at its first passing of another one."""
    story = next(story for story, point in EVERY_RUN if point == first)
    counted, wanted = undisturbed[story]
    for number in {1, (counted[first] + 1) // 2, counted[first]} - {0}:
        for second in POINTS:
            folder = ground()
            assert live(folder, story, Kill(first, number)) is False
            if not live(folder, story, Kill(second, 1)):
                assert live(folder, story) is True
            assert ending(folder, story) == wanted, (first, number, second)


def test_a_blind_second_submit_would_be_noticed(ground: Callable[[], Path]) -> None:
    """The counter-example: a world in which the answer is lost and the agent sends again ends differently."""
    folder = ground()
    assert live(folder, "answered") is True
    honest = ending(folder, "answered")
    doubled = honest._replace(jobs_by_name=Counter(dict.fromkeys(honest.jobs_by_name, 2)))
    assert doubled != honest
    assert set(honest.jobs_by_name.values()) == {1}


# --- every kind of effect passes a point between its performance and its commit ----------------------------


def test_every_kind_of_effect_may_be_killed_before_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    performed: list[str] = []
    passed: set[str] = set()
    perform = outbox.perform

    def noting(asked: Any, *rest: Any) -> Any:
        performed.append(asked.effect.kind)
        return perform(asked, *rest)

    monkeypatch.setattr(outbox, "perform", noting)
    crash.arm(lambda name: passed.add(performed[-1]) if name == "effect-performed" else None)
    try:
        for number, tell in enumerate(STORIES_OF_EFFECTS):
            store = Store("sqlite://")
            store.create_schema()
            tell(store, tmp_path / str(number))
            store.close()
    finally:
        crash.arm(None)
    assert passed == {kind.model_fields["kind"].default for kind in EFFECTS}


def _to_its_end(store: Store, folder: Path) -> None:
    desk = Desk(store, folder, GOOD)
    job_id = desk.delegate(smoke="true", image="reg/a:1")
    desk.run()
    desk.service.delete(job_id, name=job_id)
    turn(job_id, desk.ports)


def _lost_submit(store: Store, folder: Path) -> None:
    desk = Desk(store, folder, ENDLESS, faults={1: SubmitFault("lost", created=True)})
    job_id = desk.delegate()
    desk.run_to(job_id, State.running)
    desk.service.stop(job_id)
    desk.run()


def _puzzling_log(store: Store, folder: Path) -> None:
    """Nothing but a consequence in the log: the model is asked, then the person; then it ends well."""
    puzzling = tuple(
        (10.0 * n, "torch.distributed: peer closed the connection, rank 3 terminated") for n in (1, 2)
    )
    script = JobScript(
        moments=(
            Moment(0, Phase.pending),
            Moment(10, Phase.running),
            Moment(900, Phase.succeeded, {"exit_code": 0}),
        ),
        log=puzzling,
    )
    desk = Desk(store, folder, script, checks={})
    job_id = desk.delegate()
    desk.run_to(job_id, State.running)
    from states.effects import Interpret

    asked = Interpret(name=desk.job(job_id).attempt.name, lines=200)
    with store.write() as connection:
        from agent.asked import effect_row
        from agent.database import EFFECTS as ROWS

        connection.execute(ROWS.insert().values(effect_row(job_id, 900, 0, asked, desk.clock.now())))
    desk.run()


def _given_up_in_smoke(store: Store, folder: Path) -> None:
    """Stopped while its smoke run is under way; before that, a question is asked and taken back."""
    waits = Moment(0, Phase.pending, {"held": True, "reason": "hold"})
    held = GOOD._replace(moments=(waits, Moment(300, Phase.running)))
    desk = Desk(store, folder, held)
    job_id = desk.delegate(smoke="true")
    child = f"{job_id}-s1"
    desk.settle()
    desk.run(lambda: desk.job(child).state is State.blocked)
    desk.run(lambda: desk.job(child).state is State.running)
    desk.service.stop(job_id)
    desk.settle()


STORIES_OF_EFFECTS = (_to_its_end, _lost_submit, _puzzling_log, _given_up_in_smoke)
"""Together they ask for an effect of every kind."""
