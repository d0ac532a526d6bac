"""Days of a large lab, drawn: runs of the lengths, waits, sizes and endings that such labs publish, each watched by
the real loop, and what came of that, day by day.

The shape: 663,813 GPU jobs in six months; a median run of 122 s, a mean of 1,414 s; a median wait of 1 s, a mean of
446 s; 42.9 % failed, 7.5 % cancelled; 1 to 1,024 GPUs. Lengths and waits are log-normal with that median and mean.
How the failures are shared out (a person's code, a hang, the machine) is not published: those shares are `ENDINGS`.

Never: a fault of the clock or the store (those are the seeds' business); a figure that was not counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from agent.scenarios.model import Story
from agent.scenarios.play import Play, Played
from agent.scenarios.world import World
from agent.simulation.chance import Chance
from agent.simulation.jobs import FATAL
from agent.simulation.run import world_of
from states.job import State

DAY_S = 86_400.0
RUNS_A_DAY = 663_813 / 182.5
TIME_LIMIT_S = 86_400.0
"""What a hung run would hold its GPUs for, where nobody looks."""

Ending = Literal["succeeds", "fails", "cancelled", "hangs", "loops", "diverges", "node dies", "preempted"]
ENDINGS: tuple[tuple[float, Ending], ...] = (
    (49.6, "succeeds"), (34.9, "fails"), (7.5, "cancelled"), (1.5, "hangs"), (0.5, "loops"), (1.0, "diverges"),
    (3.0, "node dies"), (2.0, "preempted"),
)  # fmt: skip
"""Per cent. The last five and `fails` are the 42.9 that failed."""

GPUS: tuple[tuple[float, int], ...] = (
    (62.0, 1), (8.0, 2), (6.0, 4), (16.0, 8), (4.0, 16), (2.0, 32), (1.0, 64), (0.6, 128), (0.2, 256), (0.15, 512),
    (0.05, 1024),
)  # fmt: skip
WASTED = frozenset({"hangs", "loops", "diverges"})
ASKED = "asked"
"""A question, among the states in which runs ended."""


class Watched(NamedTuple):
    """One run of the lab. share: of the whole time, when it was handed over; seconds: until it was over.

    asked_s: since it was handed over, for each question. gpu_hours_kept: not burnt, against waiting for the time
    limit; stopped: on its own judgment.
    """

    number: int
    share: float
    seconds: float
    ending: Ending
    gpus: int
    state: str
    attempts: int
    questions: tuple[str, ...]
    asked_s: tuple[float, ...]
    stopped: bool
    saved: bool
    gpu_hours_kept: float
    model_calls: int
    faults: tuple[str, ...]


def log_normal(chance: Chance, median: float, mean: float) -> float:
    """A log-normal figure by its median and mean."""
    return median * math.exp(math.sqrt(2 * math.log(mean / median)) * chance.normal())


def runs_in(days: float, of_all: float = 1.0) -> range:
    """The numbers of the runs that are watched in so many days, of_all: this share of them; one at least."""
    return range(max(1, round(days * of_all * RUNS_A_DAY)))


def watch(number: int) -> Watched:
    """Draw run `number` of the lab and watch it to its end."""
    chance = Chance(number)
    ending = chance.by_weight(ENDINGS)
    gpus = chance.by_weight(GPUS)
    data = run_of(chance, ending, gpus)
    share = chance.number()
    with world_of(Story.model_validate(data)) as world:
        played = Play(world).run()
        return _watched(number, share, ending, gpus, world, played)


def run_of(chance: Chance, ending: Ending, gpus: int) -> dict[str, Any]:
    """The story of a run with this ending."""
    wait_s = min(max(1.0, log_normal(chance, 1.0, 446.0)), 80_000.0)
    lasts_s = round(min(max(5.0, log_normal(chance, 122.0, 1414.0)), 80_000.0))
    steps = {"steps": "1..20", "every": lasts_s / 21, "loss": {"from": 3.0, "to": 0.8}}
    story: dict[str, Any] = {
        "title": f"A run of the lab that {ending}, watched to its end.",
        "covers": ["A4"],
        "lenient": True,
        "request": {
            "name": "lab",
            "command": "python train.py",
            "gpu": min(gpus, 8),
            "replicas": max(1, gpus // 8),
        },
        "reader": [{"failed": "the model has nothing to add"}],
        "log": [steps],
    }
    before = {"phase": "pending", "for": wait_s}
    runs = {"phase": "running", "for": lasts_s, "node": "n1"}
    hours = {"phase": "running", "for": TIME_LIMIT_S, "node": "n1"}
    good = [before, {**runs, "node": "n2"}, "succeeded"]
    story["then"] = [{"history": good, "log": [steps]}]
    last: Any = {"phase": "failed", "exit_code": 1}
    match ending:
        case "succeeds":
            story["history"] = good
        case "fails":
            story["history"] = [before, runs, last]
            story["log"] = [steps, chance.one_of(FATAL)]
        case "cancelled":
            story["history"] = [before, runs, "stopped"]
        case "hangs":
            story["history"] = [before, hours, last]
            story["log"] = [{**steps, "steps": "1..8", "total": 20}]
        case "loops":
            story["history"] = [before, hours, last]
            story["log"] = [{"repeat": "rank 3 waits for the store", "every": 120, "times": 700}]
        case "diverges":
            story["history"] = [before, hours, last]
            nan = {"from": 3.0, "to": 1.0, "nan_from": 30}
            story["log"] = [{"steps": "1..400", "every": 200, "loss": nan}]
        case "node dies":
            story["history"] = [before, runs, "lost"]
        case "preempted":
            story["history"] = [before, runs, "preempted"]
            story["request"] |= {"lane": "idle", "checkpoint_every_s": 600}
    return story


def _watched(number: int, share: float, ending: Ending, gpus: int, world: World, played: Played) -> Watched:
    (job,) = [world.store.load(job_id) for job_id in list(world.seen)[:1]]
    stopped = job.stop is not None and job.stop.by == "watchkeeper"
    kept_s = 0.0
    for one in world.cluster.jobs:
        if stopped and one.stopped_at is not None and one.began_at() is not None:
            kept_s += TIME_LIMIT_S - (one.stopped_at - (one.began_at() or one.stopped_at)).total_seconds()
    return Watched(
        number=number,
        share=share,
        seconds=played.seconds,
        ending=ending,
        gpus=gpus,
        state=str(job.state),
        attempts=len(job.attempts),
        questions=tuple(question.kind for question in job.questions),
        asked_s=tuple(world.offset(question.asked_at) for question in job.questions),
        stopped=stopped,
        saved=len(job.attempts) > 1 and job.state is State.succeeded,
        gpu_hours_kept=round(max(0.0, kept_s) * gpus / 3600, 1),
        model_calls=len(world.reader.read),
        faults=played.faults,
    )


class Month(NamedTuple):
    """What watching the runs of so many days came to. of_all: the share of all runs of those days that was watched.

    Figures a day are of the whole lab: what was counted, divided by that share. most_questions: of the day with the
    most; by_day: for each day, how the watched runs that were over on it ended, and the questions asked on it.
    """

    runs: int
    days: float
    of_all: float
    questions_a_day: float
    most_questions: int
    wrong_stops: int
    wasted: int
    wasted_and_stopped: int
    resubmitted: int
    saved: int
    gpu_hours_kept_a_day: float
    model_calls_a_day: float
    broken: int
    questions: dict[str, int]
    ends: dict[str, dict[str, int]]
    by_day: list[dict[str, int]]


def month(runs: Sequence[Watched], days: float, of_all: float = 1.0) -> Month:
    """Count. days: in which the runs were handed over; of_all: this share of all that were."""
    whole_days = days * of_all
    wasted = [run for run in runs if run.ending in WASTED]
    ends: dict[str, Counter[str]] = {ending: Counter() for _, ending in ENDINGS}
    by_day: list[Counter[str]] = [Counter() for _ in range(math.ceil(days))]
    for run in runs:
        ends[run.ending][run.state] += 1
        for after_s, what in [(run.seconds, run.state), *((at_s, ASKED) for at_s in run.asked_s)]:
            day = int(run.share * days + after_s / DAY_S)
            if day < len(by_day):  # what comes after the last day is not of these days
                by_day[day][what] += 1
    return Month(
        runs=len(runs),
        days=days,
        of_all=of_all,
        questions_a_day=sum(len(run.questions) for run in runs) / whole_days,
        most_questions=round(max(counted[ASKED] for counted in by_day) / of_all),
        wrong_stops=sum(run.stopped and run.ending not in WASTED for run in runs),
        wasted=len(wasted),
        wasted_and_stopped=sum(run.stopped for run in wasted),
        resubmitted=sum(run.attempts > 1 for run in runs),
        saved=sum(run.saved for run in runs),
        gpu_hours_kept_a_day=sum(run.gpu_hours_kept for run in runs) / whole_days,
        model_calls_a_day=sum(run.model_calls for run in runs) / whole_days,
        broken=sum(bool(run.faults) for run in runs),
        questions=dict(Counter(kind for run in runs for kind in run.questions)),
        ends={ending: dict(counted) for ending, counted in ends.items()},
        by_day=[dict(counted) for counted in by_day],
    )


def lines(found: Month) -> list[str]:
    """For people."""
    asked = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.questions.items()))
    drawn = f"{found.of_all:.0%} of {found.days:g} days with {RUNS_A_DAY:,.0f} each"
    return [
        f"{found.runs:>9,}  runs drawn and watched, {drawn}",
        f"{found.questions_a_day:>9,.0f}  questions a day, {found.most_questions:,} at most ({asked or 'none'})",
        f"{found.wrong_stops:>9,}  wrong stops: on its own judgment, and nothing was wrong",
        f"{found.wasted_and_stopped:>9,}  stopped on its own judgment of {found.wasted:,} that hung or went wrong",
        f"{found.saved:>9,}  saved by resubmission, of {found.resubmitted:,} that were submitted again",
        f"{found.gpu_hours_kept_a_day:>9,.0f}  GPU-hours a day not burnt (a limit of {TIME_LIMIT_S / 3600:.0f} h)",
        f"{found.model_calls_a_day:>9,.0f}  model calls a day",
        f"{found.broken:>9,}  runs in which something that must hold did not",
    ]
