"""RULES E6: silence is judged against the cadence of the phase."""

from __future__ import annotations

from datetime import timedelta

import pytest

from states.reading import Progress, Quote, Scene, Track
from tests.states.judging import FULL_BAR, POLICY, START, STEP, judged, quiet_for, steps


class TestSilence:
    """E6: against the cadence of the phase, and an hour when regular output is due."""

    def test_an_hour_and_many_cadences_of_silence_is_hung_and_provable(self) -> None:
        verdict = judged(steps(), quiet_for(POLICY.hung_s))
        assert (verdict.name, verdict.provable, verdict.because, verdict.topic) == (
            "hung",
            True,
            ("E6",),
            "hung",
        )

    def test_a_silence_that_only_the_clusters_clock_knows_of_is_no_proof(self) -> None:
        """It may be hours off ours: what is new just now is not silent, and before our first look nobody listened."""
        hours = quiet_for(2 * POLICY.hung_s)
        assert judged(steps(), hours).provable
        assert not judged(steps(), hours, fresh=True).provable
        now = START + timedelta(seconds=2 * POLICY.hung_s)
        known = Track(cadence_s=30.0, looked_at=now, output_at=START, looks=2)
        began = START + timedelta(seconds=POLICY.hung_s + 60)
        assert not judged(steps(), track=known.model_copy(update={"started_at": began})).provable
        began = START + timedelta(seconds=POLICY.hung_s - 60)
        assert judged(steps(), track=known.model_copy(update={"started_at": began})).provable

    @pytest.mark.parametrize(
        ("progress", "scene", "name"),
        [
            (steps(cadence_s=1200.0), quiet_for(1.5 * 3600.0), "progressing"),
            (steps(cadence_s=1200.0), quiet_for(6 * 3600.0), "slow"),
            (steps(), quiet_for(POLICY.hung_s, "unknown"), "hung"),
            (steps(phase="saving checkpoint", phase_line=95), quiet_for(2 * 3600.0), "ambiguous"),
            (steps(phase="compiling", phase_line=95), quiet_for(1800.0), "progressing"),
            (Progress(throughput_only=True, cadence_s=10.0), quiet_for(2 * 3600.0), "ambiguous"),
            (Progress(phase="initializing"), quiet_for(5400.0), "ambiguous"),
            (steps(finished=Quote(line=99, text="Training done")), quiet_for(5400.0), "ambiguous"),
            (steps(main=STEP.model_copy(update={"value": 1000.0})), quiet_for(5400.0), "ambiguous"),
            (steps(), quiet_for(9 * 3600.0, suspended=True), "progressing"),
            (steps(counters=(STEP, FULL_BAR)), quiet_for(2 * 3600.0), "hung"),
            (steps(), quiet_for(1000.0), "hung"),
            (steps(), quiet_for(500.0), "progressing"),
            (steps(cadence_s=100.0), quiet_for(1000.0), "slow"),
        ],
    )
    def test_other_silence_is_not_provable(self, progress: Progress, scene: Scene, name: str) -> None:
        verdict = judged(progress, scene)
        assert (verdict.name, verdict.provable) == (name, False)

    def test_the_calmer_of_two_cadences_counts(self) -> None:
        verdict = judged(steps(cadence_s=1.0), quiet_for(4000.0), track=Track(cadence_s=600.0))
        assert verdict.name == "slow"

    def test_silence_is_taken_from_the_track_where_nobody_tells(self) -> None:
        track = Track(cadence_s=30.0, looked_at=START + timedelta(hours=2), output_at=START)
        assert judged(steps(), track=track).provable

    def test_output_without_a_milestone_for_long_is_asked_about(self) -> None:
        later = START + timedelta(hours=2)
        track = Track(cadence_s=30.0, milestone_at=START, looked_at=later, output_at=later, still_looks=4)
        verdict = judged(steps(), track=track)
        assert (verdict.name, verdict.topic, verdict.provable) == ("ambiguous", "stuck", False)
