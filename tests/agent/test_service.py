"""What every surface calls: idempotent by its keys, credentials refused, late words told what already happened."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.clusters.base import NotThere
from agent.clusters.scripted import JobScript
from agent.service import Refusal
from agent.store import Unknown
from states.job import Check, State
from states.spec import Existing
from tests.agent.fakes import ENDLESS, GOOD, Desk

MakeDesk = Callable[..., Desk]

SECRET = "AKIA" + "Q3EGRZT7XBNVJW5D"
"""Shaped like a key, and none."""


def asks(name: str, kind: str) -> Check:
    return Check(name=name, level="ask", evidence=f"{name} is missing.", question=kind)


@pytest.fixture
def asked(desk: MakeDesk) -> tuple[Desk, str]:
    """A run that waits for two answers: its image (1) and its capacity (2)."""
    here = desk(
        checks={
            "image": lambda job, ports: (
                Check(name="image", level="fine") if job.spec.image else asks("image", "image")
            ),
            "capacity": lambda job, ports: asks("capacity", "capacity"),
        }
    )
    job_id = here.delegate()
    here.settle()
    assert here.job(job_id).state is State.blocked
    return here, job_id


class TestDelegate:
    def test_the_same_request_id_is_one_run(self, desk: MakeDesk) -> None:
        here = desk()
        first = here.service.delegate(here.request(), workspace="ws", request_id="r1")
        second = here.service.delegate(here.request(gpu=8), workspace="ws", request_id="r1")
        assert (first.new, second.new) == (True, False)
        assert second.job.id == first.job.id
        assert second.job.spec.gpu == 0
        assert here.kinds(first.job.id) == ["delegated"]

    def test_another_persons_request_id_is_another_run(self, desk: MakeDesk) -> None:
        here = desk()
        taken = [here.service.delegate(here.request(), workspace="ws", request_id="r1", by=by) for by in "ab"]
        assert [one.new for one in taken] == [True, True]

    def test_no_request_id_meets_one_of_ours(self, desk: MakeDesk) -> None:
        """A person's key that is spelled as a child's hides no child, and as a handed-over job's no such job."""
        here = desk()
        parent = here.service.delegate(here.request(), workspace="ws").job
        here.service.delegate(here.request(), workspace="ws", request_id=f"child:{parent.id}-s1")
        here.service.delegate_child(parent, f"{parent.id}-s1", here.request())
        assert here.job(f"{parent.id}-s1").parent == parent.id

    @pytest.mark.parametrize(
        "carrying",
        [
            {"command": ("train", "--key", SECRET)},
            {"env": {"AWS_ACCESS_KEY_ID": SECRET}},
            {"extra_args": (f"--secret={SECRET}",)},
            {"smoke": f"echo {SECRET}"},
        ],
        ids=["command", "env", "extra_args", "smoke"],
    )
    def test_a_credential_is_refused_and_stored_nowhere(
        self, desk: MakeDesk, carrying: dict[str, object]
    ) -> None:
        """B4."""
        here = desk()
        with pytest.raises(Refusal, match="credential") as refused:
            here.delegate(**carrying)
        assert SECRET not in str(refused.value)
        with here.store.read() as connection:
            dump = list(connection.connection.iterdump())  # type: ignore[attr-defined]
        assert SECRET not in "\n".join(dump)

    def test_an_unknown_cluster_is_refused_with_the_known_ones(self, desk: MakeDesk) -> None:
        with pytest.raises(Refusal, match="configured: lab"):
            desk().delegate(cluster="elsewhere")

    def test_an_unknown_policy_number_is_refused_with_the_nearest(self, desk: MakeDesk) -> None:
        with pytest.raises(Refusal, match="poll_s"):
            desk().delegate(policy={"pol_s": 3})


class TestAnswer:
    def test_a_valid_answer_is_taken_and_resumes_at_once(self, asked: tuple[Desk, str]) -> None:
        here, job_id = asked
        here.service.answer(f"{job_id}/1", "reg/a:1")
        here.service.answer(f"{job_id}/2", "wait")
        here.run_to(job_id, State.succeeded)
        assert here.job(job_id).spec.image == "reg/a:1"
        questions = [row for row in here.store.messages(job_id) if row["kind"] == "question"]
        assert len(questions) == 1  # all in one message, and nothing asked again

    def test_one_that_fits_no_option_is_refused_and_the_question_stays(self, asked: tuple[Desk, str]) -> None:
        """G4."""
        here, job_id = asked
        with pytest.raises(Refusal, match="not one of the options"):
            here.service.answer(f"{job_id}/1", "perhaps")
        assert len(here.job(job_id).open_questions) == 2

    def test_a_second_answer_is_told_what_the_first_was(self, asked: tuple[Desk, str]) -> None:
        """G4."""
        here, job_id = asked
        here.service.answer(f"{job_id}/1", "reg/a:1", by="kim")
        with pytest.raises(Refusal, match="question 1 was answered: image"):
            here.service.answer(f"{job_id}/1", "reg/b:1", by="lee")
        assert here.job(job_id).spec.image == "reg/a:1"

    def test_a_late_answer_is_told_of_the_default(self, asked: tuple[Desk, str]) -> None:
        """G4."""
        here, job_id = asked
        here.run(lambda: here.job(job_id).is_terminal)
        with pytest.raises(Refusal, match="question 1 was defaulted: dont-submit"):
            here.service.answer(f"{job_id}/1", "reg/a:1")

    def test_the_same_key_twice_is_one_answer(self, asked: tuple[Desk, str]) -> None:
        here, job_id = asked
        first = here.service.answer(f"{job_id}/1", "reg/a:1", key="m-17")
        again = here.service.answer(f"{job_id}/1", "reg/a:1", key="m-17")
        assert (first.duplicate, again.duplicate) == (False, True)

    def test_a_key_that_is_spelled_as_an_effects_id_hides_no_result(self, asked: tuple[Desk, str]) -> None:
        """The result of an effect bears the effect's id as its key: a person's key must never stand in its way."""
        here, first = asked
        second = here.delegate()
        here.settle()

        def carried(job_id: str, key: str) -> list[str]:
            here.service.answer(f"{job_id}/1", "reg/a:1")
            with pytest.raises(Refusal):
                here.service.answer(f"{job_id}/1", "reg/b:1", key=key)
            here.service.answer(f"{job_id}/2", "wait")
            here.run_to(job_id, State.succeeded)
            effects = here.store.effects_of(job_id)
            return [row["id"].removeprefix(job_id) for row in effects if row["kind"] == "collect"]

        (collected,) = carried(first, "m-19")
        assert carried(second, second + collected) == [collected]

    def test_a_refused_answer_is_refused_again_when_it_is_sent_again(self, asked: tuple[Desk, str]) -> None:
        here, job_id = asked
        for _ in range(2):
            with pytest.raises(Refusal):
                here.service.answer(f"{job_id}/1", "perhaps", key="m-18")

    def test_a_question_that_was_never_asked(self, asked: tuple[Desk, str]) -> None:
        here, job_id = asked
        with pytest.raises(Refusal, match="no question 7"):
            here.service.answer(f"{job_id}/7", "wait")
        with pytest.raises(Refusal, match="not a question id"):
            here.service.answer(f"{job_id}/first", "wait")

    def test_a_run_with_several_open_ones_wants_the_number(self, asked: tuple[Desk, str]) -> None:
        here, job_id = asked
        with pytest.raises(Refusal, match="2 open questions"):
            here.service.answer(job_id, "wait")
        here.service.answer(f"{job_id}/2", "wait")
        here.service.answer(job_id, "reg/a:1")
        with pytest.raises(Refusal, match="no open question"):
            here.service.answer(job_id, "wait")

    def test_a_credential_in_an_answer_is_not_stored(self, asked: tuple[Desk, str]) -> None:
        """B6."""
        here, job_id = asked
        with pytest.raises(Refusal, match="wk key set"):
            here.service.answer(f"{job_id}/1", SECRET)
        assert SECRET not in str(here.store.journal(job_id))


class TestStopAndDelete:
    def test_a_stop_halts_the_job_and_keeps_its_record(self, desk: MakeDesk) -> None:
        """A2."""
        here = desk(ENDLESS)
        job_id = here.delegate()
        here.run_to(job_id, State.running)
        here.service.stop(job_id, by="kim", reason="enough")
        here.run()
        job = here.job(job_id)
        assert (job.state, job.outcome) == (State.stopped, "enough")
        assert here.cluster.count("delete") == 0

    def test_a_stop_of_an_ended_run_says_so(self, desk: MakeDesk) -> None:
        here = desk()
        job_id = here.delegate()
        here.run()
        with pytest.raises(Refusal, match="over"):
            here.service.stop(job_id)

    def test_a_record_is_deleted_only_by_its_name_and_after_the_end(self, desk: MakeDesk) -> None:
        """A7."""
        here = desk()
        job_id = here.delegate()
        here.run_to(job_id, State.queued)
        with pytest.raises(Refusal, match="not over"):
            here.service.delete(job_id, name=job_id)
        here.run()
        with pytest.raises(Refusal, match="not spelled out"):
            here.service.delete(job_id, name="digits")
        assert here.cluster.count("delete") == 0
        here.service.delete(job_id, name=job_id)
        here.settle()
        assert here.cluster.count("delete") == 1

    def test_a_run_that_is_not_there(self, desk: MakeDesk) -> None:
        with pytest.raises(Unknown):
            desk().service.stop("nobody")


class TestWatch:
    def test_somebody_elses_job_is_watched_to_its_end_and_never_submitted(self, desk: MakeDesk) -> None:
        """A10."""
        here = desk()
        here.cluster.add("theirs", GOOD, owner="lee")
        taken = here.service.watch(Existing(name="theirs"), here.request(), workspace=str(here.workspace))
        again = here.service.watch(Existing(name="theirs"), here.request(), workspace=str(here.workspace))
        assert (taken.new, again.new) == (True, False)
        here.run()
        assert here.job(taken.job.id).state is State.succeeded
        assert here.cluster.count("submit") == here.cluster.count("stop") == 0

    def test_one_that_is_not_there_is_refused(self, desk: MakeDesk) -> None:
        here = desk()
        with pytest.raises(Refusal, match="no job named"):
            here.service.watch(Existing(name="theirs"), here.request(), workspace="ws")

    def test_a_name_that_two_jobs_have_wants_the_id(self, desk: MakeDesk) -> None:
        here = desk()
        for _ in range(2):
            here.cluster.add("theirs", GOOD)
        with pytest.raises(Refusal, match="j1, j2"):
            here.service.watch(Existing(name="theirs"), here.request(), workspace="ws")


class TestSingleSteps:
    def test_a_look_at_a_job_is_one_call_and_leaves_no_record(self, desk: MakeDesk) -> None:
        """A1."""
        here = desk()
        here.cluster.add("theirs", JobScript(GOOD.moments))
        here.service.observe("j1")
        assert [call.op for call in here.cluster.calls] == ["observe"]
        assert here.store.live_ids() == []

    def test_a_job_that_is_not_there(self, desk: MakeDesk) -> None:
        with pytest.raises(NotThere):
            desk().service.observe("nobody")


def test_every_decision_can_be_explained(desk: MakeDesk) -> None:
    """I5."""
    here = desk()
    job_id = here.delegate()
    here.run()
    told = here.service.why(job_id)
    assert [line.seq for line in told] == list(range(1, len(told) + 1))
    taken = [line for line in told if line.outcome != "ignored"]
    assert all(line.rule and line.action for line in taken)
    submit = next(line for line in told if "submit" in line.asked)
    assert (submit.source, submit.to, submit.said) == ("preflight", "submitting", "every check is settled")
