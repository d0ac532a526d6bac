"""The gate before the submit: what its rows say together, and the runs it asks for."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from states.guards import a_preview_is_due
from states.job import Check, CheckLevel, Job
from states.preflight import (
    build_request,
    environment_folder,
    is_settled,
    needs_preview,
    needs_smoke,
    refusals,
    settled_spec,
    smoke_request,
    unanswered,
    with_values,
    without_smoke,
)
from tests.states import builders as b


def job_with(**levels: CheckLevel) -> Job:
    rows = {name: Check(name=name, level=level) for name, level in levels.items()}
    return b.new_job().but(checks=rows)


def test_only_asking_and_refusing_rows_hold_it_up() -> None:
    assert is_settled(job_with(image="fine", capacity="note", network="warn", assets="could_not"))
    assert not is_settled(job_with(image="ask"))
    assert not is_settled(job_with(group="refuse"))


def test_what_is_open_is_not_settled() -> None:
    assert not is_settled(job_with(image="fine").but(checks_open=("capacity",)))
    assert not is_settled(job_with(image="fine").but(children={"digits-k3f9-s1": "smoke"}))
    assert is_settled(job_with(image="fine").but(children={"digits-k3f9-s1": "smoke:passed"}))


def test_a_finding_that_was_overridden_needs_no_answer() -> None:
    job = job_with(image="ask", group="refuse").but(overridden=("image", "group"))
    assert unanswered(job) == []
    assert [check.name for check in refusals(job)] == ["group"]


def test_a_smoke_run_is_needed_until_it_passed_or_was_waived() -> None:
    """D4."""
    job = b.new_job(request={"smoke": "true"})
    assert needs_smoke(job)
    assert not needs_smoke(job.but(checks={"smoke": Check(name="smoke", level="fine")}))
    assert needs_smoke(job.but(checks={"smoke": Check(name="smoke", level="ask")}))
    assert not needs_smoke(job.but(overridden=("smoke",)))
    assert not needs_smoke(b.new_job())


class TestPreview:
    """C13."""

    LATER = ("preview",)

    def test_a_dear_spec_is_previewed_once(self) -> None:
        job = b.new_job(request={"gpu": 8}).but(checks_later=self.LATER)
        assert needs_preview(job)
        assert not needs_preview(job.but(checks={"preview": Check(name="preview", level="note")}))
        assert not needs_preview(job.but(overridden=("preview",)))

    def test_a_cheap_one_a_run_on_the_way_and_one_that_was_not_to_be_are_not(self) -> None:
        dear = b.new_job(request={"gpu": 8}).but(checks_later=self.LATER)
        assert not needs_preview(dear.but(checks_later=()))
        assert not needs_preview(dear.but(parent="digits-p2q4"))
        assert not needs_preview(b.new_job(request={"gpu": 0}).but(checks_later=self.LATER))

    def test_it_comes_when_all_others_have_answered(self) -> None:
        asked = b.led(b.new_job(request={"gpu": 8}), b.delegated("image", "preview"))
        assert asked.checks_open == ("image",)
        previewing = b.led(asked, b.check_is("image"), start_s=5)
        assert (previewing.state, previewing.checks_open) == ("preflight", ("preview",))
        sent = b.led(previewing, b.check_is("preview", "note"), start_s=9)
        assert sent.state == "submitting"

    def test_it_waits_for_a_run_on_the_way(self) -> None:
        dear = b.new_job(request={"gpu": 8}).but(checks_later=self.LATER)
        assert a_preview_is_due(dear, None)
        assert not a_preview_is_due(dear.but(children={"digits-k3f9-s1": "build"}), None)

    def test_a_new_value_after_a_refused_submit_is_previewed_in_its_turn(self) -> None:
        refused = b.led(
            b.new_job(request={"gpu": 8}),
            b.delegated("image", "preview"),
            b.check_is("image"),
            b.check_is("preview", "note"),
            b.rejected("image.not_found"),
        )
        again = b.led(refused, b.answered("reg/b:2"), start_s=20)
        assert (again.state, again.checks_open) == ("preflight", ("image",))
        assert b.led(again, b.check_is("image"), start_s=30).checks_open == ("preview",)

    def test_a_refused_one_is_asked_about_and_looked_at_again(self) -> None:
        asked = b.led(
            b.new_job(request={"gpu": 8}),
            b.delegated("image", "preview"),
            b.check_is("image"),
            b.check_is("preview", "ask", "rejected"),
        )
        assert (asked.state, [q.kind for q in asked.open_questions]) == ("blocked", ["rejected"])
        again = b.led(asked, b.answered("again"), start_s=20)
        assert (again.state, again.checks_open, again.attempts) == ("preflight", ("preview",), ())


def test_a_dear_run_says_that_nothing_proved_its_set_up() -> None:
    """D4."""
    dear = b.new_job(request={"gpu": 8, "smoke": "true"})
    assert "names no" in without_smoke(dear)
    assert "waived" in without_smoke(dear.but(overridden=("smoke",)))
    assert without_smoke(dear.but(children={"digits-k3f9-s1": "smoke:passed"})) == ""
    assert without_smoke(dear.but(parent="digits-p2q4")) == ""
    assert without_smoke(b.new_job(request={"gpu": 0})) == ""


class TestValues:
    SPEC = b.new_job().spec.model_copy(update={"mounts": ("/data",)})

    def test_found_values_are_settled_and_checked(self) -> None:
        found = Check(name="image", level="fine", found={"image": "reg/c:3"})
        assert settled_spec(self.SPEC, found).image == "reg/c:3"
        assert with_values(self.SPEC, {"gpu": "2"}).gpu == 2
        with pytest.raises(ValidationError):
            with_values(self.SPEC, {"lane": "fast"})

    def test_mounts_are_added_never_replaced(self) -> None:
        assert with_values(self.SPEC, {"mounts": "/more"}).mounts == ("/data", "/more")
        assert with_values(self.SPEC, {"mounts": ("/data", "/x")}).mounts == ("/data", "/x")

    def test_nothing_found_changes_nothing(self) -> None:
        assert with_values(self.SPEC, {}) is self.SPEC


class TestOwnRuns:
    def test_a_smoke_run_has_the_image_and_is_small(self) -> None:
        job = b.new_job(request={"smoke": "python check.py", "gpu": 8, "replicas": 4, "lane": "idle"})
        small = smoke_request(job)
        assert small.command == ("bash", "-c", "python check.py")
        assert (small.image, small.gpu, small.replicas, small.lane) == ("reg/a:1", 1, 1, "normal")
        assert (small.max_restarts, small.smoke, small.insist) == (0, (), True)

    def test_a_build_is_made_in_the_workspace_and_in_the_target_image(self) -> None:
        """C6, D3."""
        facts = {"requirements": "requirements.txt", "wheels": "wheels"}
        row = Check(name="environment", level="ask", facts=facts)
        build = build_request(b.new_job().but(checks={"environment": row}))
        assert build.image == "reg/a:1"
        assert environment_folder(b.new_job()) in build.command[2]
        assert "--no-index --find-links wheels -r requirements.txt" in build.command[2]
        assert "--system-site-packages" not in build.command[2]
