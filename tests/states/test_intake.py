"""First learn, then decide: what an event teaches is in the job before a guard is asked."""

from __future__ import annotations

from states.intake import best_diagnosis, scene, take_in
from states.job import Check
from states.observation import Observation, Phase
from states.reading import Diagnosis, Digest
from tests.states import builders as b


def test_a_check_brings_its_row_its_values_and_its_note() -> None:
    job = b.in_preflight()
    row = Check(name="image", level="fine", found={"image": "reg/c:3"}, facts={"note": "image: reg/c:3"})
    event = b.check_is("image")(job, b.after(5)).model_copy(update={"check": row})
    learnt = take_in(job, event)
    assert (learnt.checks["image"], learnt.checks_open) == (row, ("capacity",))
    assert (learnt.spec.image, learnt.notes) == ("reg/c:3", ("image: reg/c:3",))
    assert learnt.state is job.state


def test_a_log_brings_a_track_and_a_verdict() -> None:
    job = b.led(b.in_queued(), b.seen(Phase.running), start_s=20)
    learnt = take_in(job, b.log(b.moving())(job, b.after(99)))
    assert learnt.track.main == b.STEP
    assert learnt.verdict is not None
    assert learnt.verdict.name == "progressing"


def test_a_log_of_another_attempt_or_one_that_could_not_be_read_teaches_nothing() -> None:
    job = b.in_running()
    event = b.log(b.moving())(job, b.after(99))
    assert take_in(job, event.model_copy(update={"name": "another"})) is job
    assert take_in(job, event.model_copy(update={"readable": False})) is job


def test_a_smoke_run_is_a_row_and_a_build_is_an_environment() -> None:
    waiting = b.new_job().but(children={"digits-k3f9-s1": "smoke", "digits-k3f9-s2": "build"})
    smoked = take_in(waiting, b.child_is(False)(waiting, b.after(9)))
    assert (smoked.checks["smoke"].level, smoked.checks["smoke"].question) == ("ask", "smoke-failed")
    built = take_in(waiting, b.child_is(True, "build")(waiting, b.after(9)))
    assert built.spec.environment == "ws/.watchkeeper/environments/digits-k3f9"
    assert built.children["digits-k3f9-s2"] == "build:passed"


def test_a_run_that_nobody_waits_for_teaches_nothing() -> None:
    job = b.in_preflight()
    assert take_in(job, b.child_is(False)(job, b.after(9))) is job
    done = job.but(children={"digits-k3f9-s1": "smoke:passed"})
    assert take_in(done, b.child_is(False)(done, b.after(9))) is done


def test_a_final_read_without_a_cause_keeps_the_earlier_one() -> None:
    root = Diagnosis(cause="memory.gpu")
    job = b.in_collecting(Phase.failed).but(diagnosis=root)
    assert best_diagnosis(job, Digest(), final=True) == root
    assert best_diagnosis(job, Digest(), final=False) == Diagnosis()
    named = Digest(diagnosis=Diagnosis(cause="node.fault"))
    assert best_diagnosis(job, named, final=True).cause == "node.fault"


def test_the_scene_is_what_the_cluster_said() -> None:
    seen = Observation(phase=Phase.failed, taken_at=b.T0, reason="OOM", native="F", exit_code=137, signal=9)
    told = scene(seen, 12.0)
    assert (told.phase, told.reasons, told.exit_code, told.signal, told.silence_s) == (
        "failed", ("OOM", "F"), 137, 9, 12.0,
    )  # fmt: skip
    assert scene(None, None).phase == "unknown"
