"""RULES F1, F4: how a run ended, from all that is known."""

from __future__ import annotations

import pytest

from states.reading import Diagnosis, Progress, Quote, Scene
from tests.states.judging import STEP, judged, steps, trouble


class TestTheEnd:
    """F1, F4: record, exit code, outputs and log together."""

    done = steps(finished=Quote(line=99, text="Training complete"))

    @pytest.mark.parametrize(
        ("phase", "code", "outputs", "diagnosis", "progress", "name"),
        [
            ("succeeded", 0, None, None, steps(), "succeeded"),
            ("succeeded", 0, True, trouble("code.exception"), steps(), "succeeded"),
            ("succeeded", 0, None, trouble("code.exception"), steps(), "ambiguous"),
            ("succeeded", 0, False, None, steps(), "ambiguous"),
            ("succeeded", 0, False, trouble("storage.full"), steps(), "failed"),
            ("succeeded", 0, None, trouble("comm.error", line=50), done, "succeeded"),
            ("unknown", 0, None, None, steps(), "succeeded"),
            ("unknown", 1, None, trouble("code.exception"), steps(), "failed"),
            ("failed", 1, None, trouble("memory.gpu"), steps(), "failed"),
            ("failed", 1, True, trouble("comm.error", line=50), done, "ambiguous"),
            ("stopped", None, None, None, steps(), "failed"),
            ("gone", None, None, None, steps(), "ambiguous"),
        ],
    )
    def test_what_ended(
        self,
        phase: str,
        code: int | None,
        outputs: bool | None,
        diagnosis: Diagnosis | None,
        progress: Progress,
        name: str,
    ) -> None:
        verdict = judged(progress, Scene(phase=phase, exit_code=code, outputs_ok=outputs), diagnosis)
        assert (verdict.name, verdict.provable) == (name, False)

    @pytest.mark.parametrize(
        ("phase", "cause"), [("preempted", "scheduling.preempted"), ("lost", "node.lost")]
    )
    def test_the_record_names_the_cause_where_the_log_does_not(self, phase: str, cause: str) -> None:
        assert judged(steps(), Scene(phase=phase)).diagnosis.cause == cause

    def test_an_exit_code_beside_a_live_phase_is_of_an_earlier_start(self) -> None:
        assert judged(steps(), Scene(phase="running", exit_code=1)).name == "progressing"

    def test_a_process_that_died_while_the_job_runs_is_failing_until_silence_proves_it(self) -> None:
        fatal = trouble("memory.gpu")
        assert judged(steps(), diagnosis=fatal).name == "failing"
        assert not judged(steps(), diagnosis=fatal).provable
        assert judged(steps(), Scene(phase="unknown"), fatal).name == "failed"

    def test_the_text_says_it_is_complete(self) -> None:
        assert judged(self.done).name == "succeeded"
        evaluating = self.done.model_copy(update={"phase": "evaluating", "phase_line": 100})
        assert judged(evaluating).name == "progressing"

    def test_full_counters_end_a_file_but_not_a_running_job(self) -> None:
        full = STEP.model_copy(update={"value": 1000.0})
        progress = steps(main=full, counters=(full,))
        assert judged(progress, Scene(phase="unknown")).name == "succeeded"
        assert judged(progress).name == "progressing"
