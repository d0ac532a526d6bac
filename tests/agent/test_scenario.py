"""The runner of scenarios: a wrong story fails in words, a wrong file names its line, faults really happen."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.app import build
from agent.scenario import files_of, new, record, run_file, run_files
from agent.scenarios.memory import Killed
from agent.scenarios.model import Story
from agent.scenarios.play import Play
from agent.scenarios.recorded import Recorded, replay
from agent.scenarios.scripts import script
from agent.scenarios.units import seconds
from agent.scenarios.world import World
from agent.yamlfile import UserFileError, read_yaml
from states.job import State
from states.observation import Phase
from states.replay import apart, fold, origin, retold
from states.rulebook import RULES, SECTIONS, STATIC

ROOT = Path(__file__).parents[2]

RUN = """
title: A run goes from preflight to success while the test looks on.
covers: [A4]
request: {name: train, command: python train.py, outputs: [out.bin]}
cluster: {wrapper: true}
history: [pending 2m, running 20m, succeeded]
record: 0
files: [out.bin]
log: [{steps: 1..20, every: 1m}]
"""


def story(text: str) -> Story:
    return read_yaml(text, model=Story, what="the scenario")


def faults(tmp_path: Path, more: str, base: str = RUN) -> list[str]:
    """What is wrong with the base story and these further lines."""
    path = tmp_path / "story.yaml"
    path.write_text(base + more, encoding="utf-8")
    return list(run_file(path).faults)


def played(tmp_path: Path, text: str) -> tuple[World, Play]:
    world = World(story(text), folder=tmp_path / "world", beside=tmp_path)
    play = Play(world)
    play.run()
    return world, play


# --- what a story says must hold -------------------------------------------------------------------------


def test_a_story_that_holds_has_no_faults(tmp_path: Path) -> None:
    assert faults(tmp_path, "expect: {state: succeeded, calls: {submit: 1}, questions: []}") == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("expect: {state: failed}", "should end failed, and is succeeded"),
        (
            "expect: {states: [preflight, running]}",
            "the states should be preflight, running, and were preflight,",
        ),
        ("expect: {calls: {submit: 2}}", "there should be 2 of the call submit, and were 1"),
        ("expect: {calls: {observe: '< 3'}}", "there should be < 3 of the call observe"),
        ("expect: {questions: [{kind: image}]}", "the questions should be image, and were none"),
        ("expect: {reports: [{stage: wrap-up, contains: tulips}]}", "should say 'tulips'"),
        ("expect: {reports: [{stage: stopping}]}", "there should be a message 'stopping'"),
        ("expect: {why: [E7]}", "no decision names rule E7"),
        ("expect: {said: {every check is settled: 2}}", "of the decisions that say every check is settled"),
        ("expect: {sent: [{gpu: 8}]}", "submit 1 should have gpu 8, and has 0"),
        (
            "expect: {library: [{purpose: train}]}",
            "the library should hold an entry for 'train', and is empty",
        ),
        ("expect: {artifacts: []}", "the artifacts should be [], and are ['out.bin']"),
        ("expect: {at: [{t: 5m, state: queued}]}", "at 300 s the run should be queued, and is running"),
        ("never: {states: [running]}", "the state running must never be seen"),
        ("never: {calls: [submit]}", "the call submit must never be made"),
        ("never: {stored: [python train.py]}", "must never be stored"),
        ("answers: [{question: image, after: 1m, reply: x}]", "was never given"),
        ("actions: [{at: 1m, do: delete, name: x}]", "was refused: the run is not over"),
        ("actions: [{at: 1m, do: capacity, refused: no}]", "the story says it is refused"),
    ],
)
def test_a_wrong_expectation_fails_in_words(tmp_path: Path, more: str, words: str) -> None:
    assert words in "\n".join(faults(tmp_path, more))


@pytest.mark.parametrize(
    ("more", "line", "words"),
    [
        ("expect: {sate: failed}", 10, "did you mean 'state'?"),
        ("histroy: []", 10, "did you mean 'history'?"),
        ("until: 5 minutes", 10, "not a duration"),
        ("never:\n  calls: [sumbit]", 11, "did you mean 'submit'?"),
        ("faults: {kill: [{point: nowhere}]}", 10, "no crash point"),
        ("faults: {broken: [{effect: colect, to: 1h}]}", 10, "no effect 'colect'"),
        ("expect: {why: [Z9]}", 10, "no rule 'Z9'"),
    ],
)
def test_a_wrong_file_names_its_line(tmp_path: Path, more: str, line: int, words: str) -> None:
    said = "\n".join(faults(tmp_path, more))
    assert f"story.yaml:{line}:" in said
    assert words in said


def test_native_words_need_a_cluster_that_has_a_normaliser(tmp_path: Path) -> None:
    text = RUN.replace("[pending 2m, running 20m, succeeded]", "[{native: {state: x}}]")
    assert "needs `cluster: {normalise: KIND}`" in "\n".join(faults(tmp_path, "", base=text))
    unknown = text.replace("wrapper: true", "normalise: punchcards")
    assert "there is no cluster 'punchcards'" in "\n".join(faults(tmp_path, "", base=unknown))


@pytest.mark.parametrize(
    ("text", "wanted"), [("90s", 90), ("1h30m", 5400), ("2d", 172_800), ("500ms", 0.5), (7, 7)]
)
def test_durations(text: Any, wanted: float) -> None:
    assert seconds(text) == wanted


def test_a_history_and_a_log_become_moments_and_timed_lines(tmp_path: Path) -> None:
    told = story(RUN)
    made = script(told.first(), beside=tmp_path)
    assert [(moment.at_s, moment.phase) for moment in made.moments] == [
        (0.0, Phase.pending),
        (120.0, Phase.running),
        (1320.0, Phase.succeeded),
    ]
    assert made.log[0] == (0.0, "step 1/20 loss 0.5000")
    assert [at for at, _ in made.log] == [60.0 * number for number in range(20)]


def test_a_log_file_must_lie_beside_the_story(tmp_path: Path) -> None:
    told = story(RUN.replace("{steps: 1..20, every: 1m}", "{file: ../secret.txt}"))
    with pytest.raises(UserFileError, match="not a file beside the story"):
        script(told.first(), beside=tmp_path)


# --- faults really happen ----------------------------------------------------------------------------------


def test_a_lost_answer_leaves_the_job_there_and_raises(tmp_path: Path) -> None:
    world, _ = played(tmp_path, RUN + "faults: {submit: [{n: 1, answer: lost}]}")
    (job_id,) = world.seen
    kinds = [row["kind"] for row in world.store.journal(job_id)]
    assert "submit_unclear" in kinds
    assert "submitted" not in kinds
    assert [call.op for call in world.cluster.calls].count("find") >= 1
    assert len(world.cluster.jobs) == 1


def test_a_killed_process_cannot_write_and_its_lease_stays(tmp_path: Path) -> None:
    text = RUN + "faults: {kill: [{point: submit-after-call}]}\nuntil: 2m"
    world, _ = played(tmp_path, text)
    (job_id,) = world.seen
    assert world.store.load(job_id).state is State.submitting  # held by the lease of the dead process
    assert world.store.next_effect_at() == world.at(240)
    world.store.dead = True
    with pytest.raises(Killed), world.store.write():
        pass


def test_an_away_cluster_answers_nothing_and_is_told(tmp_path: Path) -> None:
    world, _ = played(tmp_path, RUN + "faults: {away: [{from: 5m, to: 15m, calls: [observe]}]}")
    (job_id,) = world.seen
    assert "cluster_unreachable" in [row["kind"] for row in world.store.journal(job_id)]
    assert world.store.load(job_id).state is State.succeeded


def test_a_broken_effect_is_tried_again_and_given_up_and_no_fault_of_the_loop(tmp_path: Path) -> None:
    """Only the effect that is meant is broken, and only for as long as the story says."""
    text = RUN + "faults: {broken: [{effect: run_check, name: capacity, to: 1m}, {effect: ask, to: 1d}]}"
    world, _ = played(tmp_path, text)
    (job_id,) = world.seen
    checks = {
        row["body"]["name"]: row for row in world.store.effects_of(job_id) if row["kind"] == "run_check"
    }
    assert checks["capacity"]["tries"] == 4  # after 5, 10, 20 and 40 seconds it can be done
    assert {row["tries"] for name, row in checks.items() if name != "capacity"} == {0}
    assert faults(tmp_path, text.removeprefix(RUN) + "\nexpect: {state: succeeded}") == []


def test_a_broken_effect_that_stays_broken_is_given_up(tmp_path: Path) -> None:
    world, _ = played(tmp_path, RUN + "faults: {broken: [{effect: run_check, name: capacity, to: 1h}]}")
    (job_id,) = world.seen
    (given_up,) = [row for row in world.store.journal(job_id) if row["action"] == "note_lost_check"]
    assert "run_check cannot be done now" in given_up["said"]


def test_a_broken_invariant_is_a_fault(tmp_path: Path) -> None:
    """What ended is moved by hand, behind the machine's back: the guard says so."""
    world, play = played(tmp_path, RUN)
    (job_id,) = world.seen
    with world.store.write() as connection:
        connection.exec_driver_sql("DELETE FROM event WHERE seq = 3")
    play.invariants._folded.clear()
    play.invariants.close()
    assert any("the journal has a gap" in fault for fault in play.invariants.broken), job_id


def test_the_same_story_twice_is_the_same_history(tmp_path: Path) -> None:
    def history(folder: str) -> list[tuple[str, str, timedelta]]:
        world, _ = played(tmp_path / folder, RUN)
        (job_id,) = world.seen
        return [(row["kind"], row["to"], row["at"] - world.at(0)) for row in world.store.journal(job_id)]

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert history("a") == history("b")


# --- replay and record -------------------------------------------------------------------------------------


def test_the_fold_of_a_history_is_the_run(tmp_path: Path) -> None:
    world, _ = played(tmp_path, RUN)
    (job_id,) = world.seen
    job = world.store.load(job_id)
    assert apart(fold(origin(job), world.store.history(job_id)), job) is None
    shorter = fold(origin(job), world.store.history(job_id)[:-1])
    assert "snapshot" in str(apart(shorter, job))
    assert retold(origin(job), [], [])[1] is None


def test_a_recorded_run_is_scrubbed_and_decided_again(tmp_path: Path, home: Path) -> None:
    world, _ = played(tmp_path, RUN.replace("python train.py", "python /data/people/zhou/train.py"))
    (job_id,) = world.seen

    class Recorder:
        store = world.store

    text = record(job_id[:8], Recorder())
    assert job_id not in text
    assert str(tmp_path) not in text
    assert "/data/people/zhou" not in text
    file = tmp_path / "recorded.yaml"
    file.write_text(text, encoding="utf-8")
    assert run_file(file).faults == ()
    data = yaml.safe_load(text)
    data["recorded"][-1]["to"] = "failed"
    assert "recorded 'failed', recomputed 'succeeded'" in str(replay(Recorded.model_validate(data)))
    assert build({"HOME": str(home)}).settings is not None


# --- the command's side ------------------------------------------------------------------------------------


def test_new_writes_a_story_that_holds(tmp_path: Path) -> None:
    file = new(tmp_path / "scenarios" / "mine.yaml")
    outcome = run_files([file])
    assert outcome.failed == 0, outcome.lines
    with pytest.raises(UserFileError, match="is there already"):
        new(file)


def test_the_table_says_what_no_file_shows(tmp_path: Path) -> None:
    outcome = run_files([new(tmp_path / "mine.yaml")], table=True)
    text = "\n".join(outcome.lines)
    assert "  A4   A delegated run goes from launch to wrap-up" in text
    assert f"2 of {len(RULES) - len(STATIC)} rules are shown" in text


def test_paths_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserFileError, match="no such file or folder"):
        files_of([tmp_path / "nowhere"])
    with pytest.raises(UserFileError, match="wk scenario new"):
        files_of([tmp_path])


def test_the_rule_book_has_every_rule_in_order() -> None:
    counts = {"A": 10, "B": 6, "C": 15, "D": 6, "E": 13, "F": 7, "G": 7, "H": 4, "I": 5}
    assert list(RULES) == [f"{letter}{n}" for letter, count in counts.items() for n in range(1, count + 1)]
    assert list(SECTIONS) == list(counts)
    assert set(RULES) >= STATIC


def test_every_story_of_this_repository_can_be_read() -> None:
    files = files_of([ROOT / "scenarios"])
    assert len(files) >= 45
    for file in files:
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 60, file


# --- the plugin, in somebody's own repository --------------------------------------------------------------


def test_the_plugin_collects_stories_in_a_foreign_folder(tmp_path: Path) -> None:
    folder = tmp_path / "scenarios" / "mine"
    folder.mkdir(parents=True)
    (folder / "holds.yaml").write_text(RUN + "expect: {state: succeeded}", encoding="utf-8")
    (folder / "fails.yaml").write_text(RUN + "expect: {state: failed}", encoding="utf-8")
    (folder / "values.yaml").write_text("replicas: 3\n", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    plugin = [] if _is_installed() else ["-p", "agent.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", "-q", "-rf", "scenarios"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT), "PATH": ""}
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "the run should end failed, and is succeeded" in done.stdout
    assert "scenarios/mine/fails.yaml::story" in done.stdout
    assert "Traceback" not in done.stdout


def _is_installed() -> bool:
    from importlib.metadata import entry_points

    return any(point.value == "agent.pytest_plugin" for point in entry_points(group="pytest11"))
