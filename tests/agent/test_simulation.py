"""Worlds drawn from seeds: what must hold holds in all of them, each is the same every time, and what fails is made
small and can be played by anyone.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from agent.cli import run as wk
from agent.scenario import run_file
from agent.scenarios.model import Story
from agent.scenarios.scripts import moments
from agent.simulate import simulate
from agent.simulation.chance import Chance
from agent.simulation.lab import ENDINGS, RUNS_A_DAY, Watched, log_normal, month, watch
from agent.simulation.run import run, run_data
from agent.simulation.saving import save
from agent.simulation.shrink import kind_of_fault, shrink, smaller
from agent.simulation.stories import STORM_S, data_of, story_of
from agent.simulation.workers import play_seeds
from states.job import TERMINAL
from states.observation import Observation, Phase

SEEDS = range(24)


@pytest.mark.parametrize("first", range(0, len(SEEDS), 6))
def test_a_few_dozen_worlds_hold(first: int) -> None:
    ranks = [run(seed) for seed in SEEDS[first : first + 6]]
    assert {ran.seed: ran.faults for ran in ranks if ran.faults} == {}
    assert all(ran.ends and ran.instants for ran in ranks), (
        "a world in which nothing was delegated shows nothing"
    )


@pytest.mark.slow
def test_ten_thousand_worlds_hold(tmp_path: Path) -> None:
    found = simulate(range(10_000), jobs=os.cpu_count() or 1, to=tmp_path)
    assert found.holds, "\n".join(found.lines())
    assert found.twice == 500


# --- what is drawn -----------------------------------------------------------------------------------------


def test_every_kind_of_fault_is_drawn_and_all_fade() -> None:
    drawn: Counter[str] = Counter()
    for seed in range(400):
        faults = data_of(seed)["faults"]
        drawn.update({name: len(found) for name, found in faults.items()})
        for name, found in faults.items():
            begins = [one.get("at", one.get("from", 0)) for one in found]
            assert max(begins) <= STORM_S, (seed, name)
    wanted = {"submit", "away", "stale", "broken", "again", "kill", "pause", "twins", "clock", "store"}
    assert set(drawn) == wanted | {"beside", "upgrade"}
    assert min(drawn.values()) > 10, drawn


def test_jobs_of_every_kind_are_drawn_and_each_has_an_end() -> None:
    phases: Counter[str] = Counter()
    for seed in range(200):
        story = story_of(seed)
        for one in (story.first(), *story.then):
            assert one.history[-1].lasts is None
            phases[str([*moments(one.history, story.cluster.normalise)][-1].phase)] += 1
    assert set(phases) == {"succeeded", "failed", "preempted", "lost", "gone", "stopped"}


def test_near_seeds_are_not_alike() -> None:
    """One stream begun a step later would give the same stories shifted."""
    streams = [Chance(seed) for seed in range(1000)]
    firsts = [[stream.number() for _ in range(3)] for stream in streams]
    seen = Counter(number for numbers in firsts for number in numbers)
    assert max(seen.values()) == 1


def test_chance_is_even() -> None:
    chance = Chance(7)
    counted = Counter(chance.whole(1, 6) for _ in range(6000))
    assert set(counted) == {1, 2, 3, 4, 5, 6}
    assert min(counted.values()) > 850
    assert abs(sum(chance.normal() for _ in range(4000)) / 4000) < 0.1


# --- the same every time -----------------------------------------------------------------------------------


def test_a_seed_gives_the_same_world_every_time() -> None:
    assert data_of(11) == data_of(11)
    first, second = run(11), run(11)
    assert first.mark
    assert first == second


def test_two_hash_seeds_give_the_same_worlds() -> None:
    seeds = [3]
    one, two = (play_seeds(seeds, jobs=1, hash_seed=number) for number in (1, 2))
    assert one == two
    assert [ran.seed for ran in one] == seeds


def test_the_mark_tells_two_worlds_apart() -> None:
    marks = {run(seed).mark for seed in range(4)}
    assert len(marks) == 4


# --- what fails --------------------------------------------------------------------------------------------

BAD: dict[str, Any] = {
    "title": "A story whose expectation cannot hold, with much that has nothing to do with it.",
    "covers": ["I1"],
    "lenient": True,
    "request": {"name": "drawn", "command": "python work.py", "gpu": 2},
    "policy": {"poll_s": 600},
    "history": [{"phase": "pending", "for": 600}, {"phase": "running", "for": 4000}, "failed"],
    "log": [{"steps": "1..4", "every": 900}],
    "faults": {"away": [{"from": 100, "to": 900}], "kill": [{"point": "wave-observed", "n": 3}]},
    "expect": {"state": "succeeded"},
}


def test_a_failing_story_is_made_small_and_fails_alike(tmp_path: Path) -> None:
    found = shrink(0, BAD, runs_max=80)
    assert set(found) == {"title", "covers", "lenient", "request", "policy", "history", "expect"}
    assert found["history"] == ["failed"]
    assert found["request"] == {"command": "python work.py"}
    wanted = {kind_of_fault(fault) for fault in run_data(0, BAD).faults}
    assert {kind_of_fault(fault) for fault in run_data(0, found).faults} & wanted

    file = save(tmp_path, 7, found, ("it is failed",))
    assert Story.model_validate(yaml.safe_load(file.read_text("utf-8"))) == Story.model_validate(found)
    assert any("should end succeeded" in fault for fault in run_file(file).faults)


def test_what_holds_is_left_as_it_is() -> None:
    holds = {**BAD, "expect": {"state": "failed"}}
    assert shrink(0, holds) == holds


def test_making_smaller_ends_and_keeps_what_fails() -> None:
    asked = 0

    def fails(tried: dict[str, Any]) -> bool:
        nonlocal asked
        asked += 1
        return tried.get("a", {}).get("n", 0) >= 5 and 3 in tried.get("b", [])

    found = smaller({"a": {"n": 40, "m": 1}, "b": [1, 2, 3, 4], "c": "x"}, fails, runs_max=200)
    assert found == {"a": {"n": 5}, "b": [3]}
    assert asked <= 200


def test_a_loop_that_raises_is_a_fault_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    from agent.scenarios import play

    def broken(ports: object) -> list[str]:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(play, "wave", broken)
    ran = run(1)
    assert ran.faults == ("the loop ended with ZeroDivisionError in test_simulation.py:broken: on purpose",)


def test_a_blind_second_submit_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter-example: with look-ups that never find anything, the late job is a twin; two are told of."""
    forever = [{"phase": "running", "for": 40_000}, "succeeded"]
    late = {"n": 1, "answer": "lost", "created": True, "visible_after": 3000}
    story = {**BAD, "expect": {"jobs": 1}, "history": forever, "then": [{"history": forever}]}
    story |= {"faults": {"submit": [late]}, "until": 60_000}
    assert run_data(0, story).faults == ("there should be 1 cluster jobs of ours, and are 2",)

    monkeypatch.setattr("agent.clusters.scripted.ScriptedCluster._observation", _blind)
    assert any("2 live cluster jobs" in fault for fault in run_data(0, story).faults)


def _blind(cluster: Any, ref: Any, at: Any, taken_at: Any) -> Observation:
    """A look that never sees a twin."""
    return Observation(phase=Phase.running, taken_at=taken_at)


# --- the command -------------------------------------------------------------------------------------------


def test_the_command_plays_seeds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert wk(["simulate", "--seeds", "20..21", "--to", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "2 seeds" in said
    assert "1 played twice under two hash seeds, 0 differ" in said
    assert said.rstrip().endswith("all hold")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["nine", "3..", "9..3", "..4", "1..x"])
def test_a_range_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert wk(["simulate", "--seeds", text]) == 2
    assert repr(text) in capsys.readouterr().err


def test_ends_are_ends() -> None:
    assert {str(state) for state in TERMINAL} >= set(run(2).ends) - {"blocked", "submitting"}


# --- the lab -----------------------------------------------------------------------------------------------


def test_lengths_have_the_published_median_and_mean() -> None:
    chance = Chance(1)
    drawn = sorted(log_normal(chance, 122.0, 1414.0) for _ in range(40_000))
    assert abs(drawn[20_000] - 122) < 6
    assert abs(sum(drawn) / len(drawn) - 1414) < 350  # a heavy tail converges slowly


def test_shares_of_endings_are_the_published_ones() -> None:
    shares = {ending: share for share, ending in ENDINGS}
    assert sum(shares.values()) == pytest.approx(100)
    assert shares["cancelled"] == 7.5
    assert 100 - shares["succeeds"] - shares["cancelled"] == pytest.approx(42.9)


def test_a_lab_is_watched_counted_and_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert wk(["simulate", "--lab", "0.004", "--jobs", "2", "--json", "--to", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["runs"] == round(0.004 * RUNS_A_DAY) == 15
    assert found["wrong_stops"] == 0
    assert sum(sum(ends.values()) for ends in found["ends"].values()) == 15
    for name in ("lab-ends", "lab-questions", "lab-days-ended", "lab-days-asked"):
        ElementTree.fromstring((tmp_path / f"{name}.svg").read_text("utf-8"))
    picture = ElementTree.fromstring((tmp_path / "lab-ends.svg").read_text("utf-8"))
    bars_drawn = [one for one in picture.iter() if one.tag.endswith("rect")]
    assert len(bars_drawn) >= sum(bool(ends) for ends in found["ends"].values())


def test_a_month_is_counted_on_the_days_on_which_it_happens() -> None:
    """One is handed over late on the first day, and asks and ends on the second; one ends after the last."""
    run = Watched(
        0,
        0.45,
        0.2 * 86_400,
        "hangs",
        8,
        "stopped",
        1,
        ("looks-off",),
        (0.15 * 86_400,),
        True,
        False,
        9.0,
        0,
        (),
    )
    late = run._replace(number=1, share=0.99, asked_s=(0.0,), seconds=86_400.0)
    found = month([run, late], 2)
    assert found.by_day == [{}, {"asked": 2, "stopped": 1}]
    assert (found.questions_a_day, found.most_questions, found.gpu_hours_kept_a_day) == (1.0, 2, 9.0)
    half = month([run, late], 2, 0.5)
    assert (half.questions_a_day, half.most_questions, half.gpu_hours_kept_a_day) == (2.0, 4, 18.0)
    assert half.by_day == found.by_day


def test_runs_of_the_lab_come_on_all_days() -> None:
    """Each in a stream of its own, so the days must not follow the numbers."""
    runs = [watch(number) for number in range(40)]
    assert {int(run.share * 4) for run in runs} == {0, 1, 2, 3}
    assert sorted(runs, key=lambda run: run.share) != runs
