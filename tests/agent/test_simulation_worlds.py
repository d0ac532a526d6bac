"""What a simulated world can hold beside one run and one process: upgrades, several runs, a second process, clusters'
own words. Each really happens, and a product that is broken there is found out."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from agent import crash, leases, migrations
from agent.clock import Clock
from agent.clusters import slurm_states
from agent.leases import Lease
from agent.ports import Ports
from agent.scenarios import play
from agent.scenarios.faults import UpgradeStory
from agent.scenarios.memory import MortalStore
from agent.scenarios.model import JobStory, Story
from agent.scenarios.play import Play
from agent.scenarios.scripts import moments
from agent.scenarios.upgrade import OLDER_MACHINE, set_back, shape_of
from agent.simulation.chance import Chance
from agent.simulation.jobs import job
from agent.simulation.run import run_data, world_of
from agent.simulation.stories import data_of
from agent.simulation.words import WORDS, spoken
from agent.store import Store
from agent.tables import SCHEMA_VERSION
from agent.turn import turn
from states.job import MACHINE_VERSION
from states.observation import Phase

STORY: dict[str, Any] = {
    "title": "A run of two hours and a bit, in which nothing goes wrong by itself.",
    "covers": ["I1"],
    "request": {"name": "drawn", "command": "python work.py"},
    "history": [{"phase": "pending", "for": 600}, {"phase": "running", "for": 8000}, "succeeded"],
    "log": [{"steps": "1..20", "every": 300}],
    "expect": {"state": "succeeded", "jobs": 1, "attempts": 1},
}


def test_each_is_drawn_by_a_share_of_seeds() -> None:
    drawn: Counter[str] = Counter()
    for seed in range(400):
        data = data_of(seed)
        drawn["runs"] += "runs" in data
        drawn["words"] += "normalise" in data["cluster"]
        drawn["beside"] += "beside" in data["faults"]
        upgrades = data["faults"].get("upgrade", [])
        drawn["upgrade"] += bool(upgrades)
        drawn["upgrade, killed"] += any("point" in one for one in upgrades)
        drawn["upgrade, older form"] += any(int(one["form"]) < SCHEMA_VERSION for one in upgrades)
    assert min(drawn.values()) >= 20, drawn
    assert drawn["upgrade"] > drawn["upgrade, killed"]


# --- an upgrade in the middle --------------------------------------------------------------------------------


def upgraded(**upgrade: Any) -> dict[str, Any]:
    return {**STORY, "faults": {"upgrade": [{"at": 3000, **upgrade}]}}


@pytest.mark.parametrize("form", [f"{number:04}" for number in range(1, SCHEMA_VERSION + 1)])
@pytest.mark.parametrize("ends", [{}, {"down": 1800}, {"point": "wave-observed", "down": 60}])
def test_a_run_goes_on_over_what_the_release_before_left(
    form: str, ends: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[str, int, int]] = []
    before = Store.create_schema

    def looked_at(store: Store) -> None:
        with store.read() as connection:
            here = migrations.current(connection)
            if here and connection.execute(text("SELECT count(*) FROM job")).scalar():
                left = "SELECT json_extract(snapshot, '$.version') FROM job"
                marked = "SELECT count(*) FROM event WHERE version < :now OR json_extract(body, '$.v') < :now"
                runs = connection.execute(text(left)).scalar()
                events = connection.execute(text(marked), {"now": MACHINE_VERSION}).scalar()
                found.append((here, int(runs or 0), int(events or 0)))
        before(store)

    monkeypatch.setattr(Store, "create_schema", looked_at)
    assert run_data(0, upgraded(form=form, **ends)).faults == ()
    assert [one[:2] for one in found] == [(form, OLDER_MACHINE)]
    assert found[0][2] > 10, "events from before must carry the mark of the machine before"


@pytest.mark.parametrize("number", range(1, SCHEMA_VERSION))
def test_a_form_that_is_set_back_is_what_the_revisions_made_of_it(number: int) -> None:
    store = Store("sqlite://")
    store.create_schema()
    form = f"{number:04}"
    set_back(store.engine, form)
    after = shape_of(form)
    with store.read() as connection:
        tables = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        names = {row[0] for row in tables} - {"alembic_version"}
        assert names == set(after.columns) - {"alembic_version"}
        for table in names:
            columns = connection.execute(text(f"PRAGMA table_info({table})"))
            assert {row[1] for row in columns} == set(after.columns[table])
        assert migrations.current(connection) == form
    store.create_schema()
    with store.read() as connection:
        assert migrations.current(connection) == migrations.HEAD
    store.close()


def test_the_mark_is_older_and_no_lift_is_passed_over() -> None:
    """On the day on which a machine writes another form, `set_back` has to write the one before."""
    assert OLDER_MACHINE < MACHINE_VERSION
    with pytest.raises(ValueError, match="no form '9999'"):
        UpgradeStory.model_validate({"at": 1, "form": "9999"})


def test_a_run_that_is_not_lifted_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.store.lift_snapshot", dict)
    assert any("I5" in fault for fault in run_data(0, upgraded()).faults)


def test_events_that_are_not_lifted_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.store.lift_event", dict)
    assert any("not lifted" in fault for fault in run_data(0, upgraded()).faults)


def test_a_migration_that_loses_events_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = migrations.migrate

    def losing(connection: Any, revision: str) -> None:
        whole(connection, revision)
        connection.execute(text("DELETE FROM event WHERE seq = 3"))

    shape_of(f"{1:04}")
    monkeypatch.setattr(migrations, "migrate", losing)
    assert any("gap" in fault for fault in run_data(0, upgraded(form="0001")).faults)


def test_a_look_before_the_upgrade_that_migrates_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(store: MortalStore) -> list[Any]:
        store.create_schema()
        return []

    monkeypatch.setattr("agent.scenarios.world.live_runs", looked)
    assert any("look before an upgrade" in fault for fault in run_data(0, upgraded(form="0001")).faults)


# --- several runs --------------------------------------------------------------------------------------------

SEVERAL: dict[str, Any] = {
    **STORY,
    "lenient": True,
    "until": 40_000,
    "runs": [
        {"at": 100, "history": [{"phase": "running", "for": 5000}, "failed"]},
        {"at": 900, "request": {"name": "other", "command": "make", "outputs": ["a.bin"]}}
        | {"history": [{"phase": "running", "for": 900}, "succeeded"], "files": ["a.bin"]},
    ],
    "expect": {"settled": True},
}


def test_several_runs_are_played_each_with_jobs_of_its_own() -> None:
    with world_of(Story.model_validate(SEVERAL)) as world:
        assert Play(world).run().faults == ()
        runs = [world.store.load(world.run_of(number)) for number in range(3)]
        assert [str(run.state) for run in runs] == ["succeeded", "failed", "succeeded"]
        assert [world.number_of(run) for run in runs] == [0, 1, 2]
        assert [run.request.name for run in runs] == ["drawn", "drawn", "other"]
        assert [one.path for one in runs[2].collected.artifacts] == ["a.bin"]
        assert len({run.attempt.cluster_job_id for run in runs}) == 3


def test_answers_and_stops_are_for_the_run_that_they_name() -> None:
    held = [{"phase": "pending", "for": 9000, "reason": "JobHeldUser", "held": True}, "succeeded"]
    story = {**SEVERAL, "history": held, "runs": [{"at": 50, "history": held}, {"at": 60, "history": held}]}
    story["answers"] = [{"question": "held", "reply": "stop", "after": 60, "run": 1}]
    story["actions"] = [{"at": 500, "do": "stop", "run": 2}]
    ends = run_data(0, story).ends
    assert ends == ("succeeded", "stopped", "stopped")


def test_a_run_is_handed_over_again_until_somebody_is_there() -> None:
    down = {"kill": [{"point": "wave-claimed", "n": 1, "down": 3000}]}
    story = {**SEVERAL, "faults": down}
    ran = run_data(0, story)
    assert ran.faults == ()
    assert len(ran.ends) == 3


def test_a_run_is_handed_over_again_while_the_first_hand_over_still_stands() -> None:
    story = {
        "title": "Seed 1738: the process stands still in the middle of a second hand-over, and another goes on.",
        "covers": ["I1"],
        "lenient": True,
        "request": {"command": "python work.py", "policy": {}},
        "policy": {"poll_s": 434},
        "history": ["preempted"],
        "runs": [
            {"at": 670, "request": {"command": "python work.py", "policy": {}}, "history": ["succeeded"]}
        ],
        "faults": {
            "pause": [{"point": "submit-before-call", "n": 5, "lasts": 114}],
            "beside": [{"to": 900}],
        },
    }
    ran = run_data(1738, story)
    assert (ran.faults, len(ran.ends)) == ((), 2)


def test_a_run_whose_effects_are_forgotten_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    first: list[str] = []

    def first_only(job_id: str, ports: Ports) -> int:
        first.append(job_id)
        return turn(job_id, ports) if job_id == first[0] else 0

    monkeypatch.setattr(play, "turn", first_only)
    faults = run_data(0, SEVERAL).faults
    assert sum("should have ended" in fault for fault in faults) == 2


def test_a_cluster_job_of_two_runs_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from agent.clusters.base import Submitted
    from agent.clusters.scripted import ScriptedCluster

    whole = ScriptedCluster.submit

    def always_the_first(cluster: ScriptedCluster, submission: Any) -> Submitted:
        whole(cluster, submission)
        return Submitted(cluster.jobs[0].id)

    monkeypatch.setattr(ScriptedCluster, "submit", always_the_first)
    assert any("are both of the cluster job" in fault for fault in run_data(0, SEVERAL).faults)


# --- clusters' own words -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(WORDS))
def test_words_mean_what_the_plain_look_means(kind: str) -> None:
    chance = Chance(5)
    counted: Counter[tuple[Phase, bool]] = Counter()
    for _ in range(300):
        plain = job(chance, wrapper=False, outputs=False)
        told = spoken(plain, kind)
        wanted = moments(JobStory.model_validate(plain).history, "")
        found = moments(JobStory.model_validate(told).history, kind)
        for one, other, look in zip(wanted, found, told["history"], strict=True):
            assert (one.at_s, one.phase) == (other.at_s, other.phase), look
            for field in ("held", "finishing", "suspended"):
                assert bool(one.fields.get(field)) == bool(other.fields.get(field)), look
            counted[other.phase, isinstance(look, dict) and "native" in look] += 1
    assert counted[Phase.running, True] > 200
    assert counted[Phase.succeeded, True] > 100
    assert not counted[Phase.failed, False]


def test_a_drawn_world_speaks_in_every_job(monkeypatch: pytest.MonkeyPatch) -> None:
    data = next(
        data for seed in range(400) if (data := data_of(seed))["cluster"].get("normalise") and "runs" in data
    )
    jobs = [data, *data["then"], *data["runs"], *(one for run in data["runs"] for one in run["then"])]
    spoke = [any("native" in look for look in one["history"] if isinstance(look, dict)) for one in jobs]
    assert all(spoke)


def test_a_word_that_is_read_wrongly_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    story = {**STORY, "cluster": {"normalise": "slurm"}, **spoken(STORY, "slurm"), "until": 90_000}
    story |= {"lenient": True, "expect": {"settled": True}}
    assert run_data(0, story).faults == ()
    monkeypatch.setattr(slurm_states, "BASE", {**slurm_states.BASE, "COMPLETED": Phase.running})
    assert any("should have ended" in fault for fault in run_data(0, story).faults)


# --- two processes -------------------------------------------------------------------------------------------

BESIDE: dict[str, Any] = {**STORY, "faults": {"beside": [{"from": 0, "to": 30_000, "every": 4}]}}


def test_a_second_process_does_what_is_due_in_the_middle_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def turned(job_id: str, ports: Ports) -> int:
        done = turn(job_id, ports)
        turns.append((id(ports.checks), done))
        return done

    turns: list[tuple[int, int]] = []
    monkeypatch.setattr(play, "turn", turned)
    ran = run_data(0, BESIDE)
    assert ran.faults == ()
    assert ran.submits == 1
    done = Counter(process for process, done in turns if done)
    assert len(done) == 2
    assert min(done.values()) >= 3


def test_leases_that_hold_nobody_off_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def everybody(store: Store, clock: Clock, job_id: str, *, lease_s: float = leases.LEASE_S) -> Lease:
        crash.point("lease-claimed")
        return Lease(job_id, "mine", clock.now() + timedelta(seconds=lease_s))

    monkeypatch.setattr(leases, "claim", everybody)
    monkeypatch.setattr(leases, "renew", lambda store, clock, lease: lease)
    assert any("two processes at once" in fault for fault in run_data(0, BESIDE).faults)
