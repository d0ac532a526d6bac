"""Environments on a real disk, and the check that judges them against what the script imports (C6, D3, D4)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from agent.perform.checks_environment import environment
from agent.staging.environment import look
from states.job import Check, Job
from states.observation import Capabilities
from states.questions import Question
from states.spec import Request, draft
from tests.states.builders import T0


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "t.py").write_text("import json\nimport sparsegrid.fast\n")
    return folder


def made(where: Path, *libraries: str, **options: Any) -> Path:
    """A real virtual environment, with empty libraries in it."""
    venv.EnvBuilder(**options).create(where)
    site = next(where.glob("lib/python3*/site-packages"))
    for name in libraries:
        (site / name).mkdir()
        (site / name / "__init__.py").touch()
    return where


def job_for(workspace: Path, *, in_image: bool = False, cluster: str = "far", **request: Any) -> Job:
    asked = Request(command=("python", "t.py"), **request)
    return Job(
        id="t-1",
        request=asked,
        spec=draft(asked, workspace=str(workspace)),
        created_at=T0,
        cluster=cluster,
        capabilities=Capabilities(needs_image=in_image),
    )


def check(job: Job, remembered: Check | None = None) -> Check:
    return environment(job, None, lambda: remembered)  # type: ignore[arg-type]


class TestLook:
    def test_a_real_one_is_read_by_its_files(self, tmp_path: Path) -> None:
        found = look(made(tmp_path / "env", "sparsegrid"))
        assert (found.kind, found.runs, found.system) == ("venv", True, False)
        assert found.version == f"3.{sys.version_info.minor}"
        assert "sparsegrid" in found.modules
        assert found.made_for == str(tmp_path / "env")

    def test_system_packages_and_path_files_are_seen(self, tmp_path: Path) -> None:
        where = made(tmp_path / "env", system_site_packages=True)
        site = next(where.glob("lib/python3*/site-packages"))
        (tmp_path / "src").mkdir()
        (tmp_path / "src/mine.py").touch()
        (site / "x.pth").write_text(f"import os; os.getpid()\n{tmp_path}/src\n# a comment\n")
        found = look(where)
        assert found.system
        assert found.pth == (f"{tmp_path}/src",)
        assert "mine" in found.modules

    def test_a_dangling_interpreter_is_followed_to_where_it_led(self, tmp_path: Path) -> None:
        where = made(tmp_path / "env")
        (where / "bin/python").unlink()
        (where / "bin/python").symlink_to("/usr/bin/python9.9")
        found = look(where)
        assert (found.python, found.runs) == ("/usr/bin/python9.9", False)

    def test_extension_modules_and_single_files_count(self, tmp_path: Path) -> None:
        site = tmp_path / "env/lib/python3.11/site-packages"
        site.mkdir(parents=True)
        for name in (
            "fast.cpython-311-x86_64-linux-gnu.so",
            "one.py",
            "a-1.dist-info",
            "n.pth",
            "_low.abi3.so",
        ):
            (site / name).touch()
        assert look(tmp_path / "env").modules == {"fast", "one", "_low"}

    def test_a_copy_names_the_folder_it_was_made_for(self, tmp_path: Path) -> None:
        shutil.copytree(made(tmp_path / "env"), tmp_path / "copy", symlinks=True)
        assert look(tmp_path / "copy").made_for == str(tmp_path / "env")


class TestCheck:
    def test_one_that_has_all_is_fine_and_tells_what_to_prove(self, workspace: Path) -> None:
        made(workspace / "env", "sparsegrid")
        row = check(job_for(workspace, environment="env"))
        assert row.level == "fine"
        assert row.facts == {"imports": "sparsegrid.fast"}

    def test_one_that_lacks_a_library_is_asked_about_with_what_to_build_from(self, workspace: Path) -> None:
        made(workspace / "env")
        (workspace / "requirements.txt").write_text("sparsegrid\n")
        row = check(job_for(workspace, environment="env"))
        assert (row.level, row.question, row.rule) == ("ask", "environment", "C6")
        assert "it lacks sparsegrid" in row.evidence
        assert row.facts == {"requirements": "requirements.txt"}

    def test_nothing_to_build_from_is_said(self, workspace: Path) -> None:
        made(workspace / "env")
        assert "no requirements.txt is there" in check(job_for(workspace, environment="env")).evidence

    def test_our_own_is_completed_once(self, workspace: Path) -> None:
        path = ".watchkeeper/environments/old"
        made(workspace / path)
        (workspace / "requirements.txt").write_text("sparsegrid\n")
        job = job_for(workspace, environment=path)
        row = check(job)
        assert (row.level, row.facts["prepare"], row.facts["environment"]) == ("note", "repair", path)
        again = check(job.but(checks={"repair": Check(name="repair", level="fine")}))
        assert (again.level, again.question) == ("ask", "environment")

    def test_a_working_one_below_the_workspace_comes_before_the_images(self, workspace: Path) -> None:
        """C6's order; the newest of our own that was built for this image."""
        path = made(workspace / ".watchkeeper/environments/old", "sparsegrid")
        (path / "image").write_text("lab/fit:1\n")
        assert check(job_for(workspace, in_image=True, image="lab/fit:1")).found == {"environment": str(path)}
        assert check(job_for(workspace, in_image=True, image="lab/fit:2")).found == {}

    def test_one_of_a_usual_name_is_taken_only_where_it_surely_does(self, workspace: Path) -> None:
        made(workspace / ".venv", "sparsegrid")
        assert check(job_for(workspace)).found == {"environment": f"{workspace}/.venv"}
        assert check(job_for(workspace, in_image=True, image="lab/fit:1")).found == {}
        (workspace / "t.py").write_text("import another\n")
        assert check(job_for(workspace)).found == {}

    def test_what_the_image_has_is_not_passed_in_silence(self, workspace: Path) -> None:
        row = check(job_for(workspace, in_image=True, image="lab/fit:1"))
        assert row.level == "could_not"
        assert "whether it has sparsegrid" in row.evidence

    def test_a_python_path_into_the_image_is_refused(self, workspace: Path) -> None:
        env = {"PYTHONPATH": "/usr/lib/python3/dist-packages"}
        row = check(job_for(workspace, in_image=True, image="lab/fit:1", env=env))
        assert (row.level, row.rule) == ("refuse", "D3")

    def test_a_link_into_the_image_is_not_used(self, workspace: Path, tmp_path: Path) -> None:
        made(tmp_path / "image-env", "sparsegrid")
        (workspace / "env").symlink_to(tmp_path / "image-env")
        row = check(job_for(workspace, in_image=True, image="lab/fit:1", environment="env"))
        assert (row.level, row.rule) == ("ask", "D3")
        assert check(job_for(workspace, environment="env")).level == "fine"

    def test_a_remembered_one_that_is_refused_is_stale(self, workspace: Path) -> None:
        """F5, H3."""
        known = Check(name="environment", level="fine", found={"environment": "env"})
        row = check(job_for(workspace), known)
        assert (row.level, row.facts["stale"]) == ("ask", "env")

    def test_a_folder_that_cannot_be_seen_is_said(self, workspace: Path) -> None:
        assert check(job_for(workspace, environment="/no-such-share/envs/a")).level == "could_not"

    def test_an_answer_that_names_an_image_leaves_the_environment_out(self, workspace: Path) -> None:
        asked = Question(
            id="t-1/1", number=1, kind="environment", topic="t", asked_at=T0, answer_by=T0, chosen="image"
        )
        job = job_for(workspace, environment="env").but(questions=(asked,))
        assert check(job).found == {"environment": ""}

    def test_an_unpacked_conda_pack_is_recognised(self, workspace: Path) -> None:
        pack = workspace / "pack"
        (pack / "conda-meta").mkdir(parents=True)
        (pack / "lib/python3.11/site-packages/sparsegrid").mkdir(parents=True)
        (pack / "bin").mkdir()
        for name in ("python", "conda-unpack"):
            shutil.copy(sys.executable, pack / "bin" / name)
        row = check(job_for(workspace, environment="pack"))
        assert row.level == "note"
        assert "conda-unpack" in row.evidence


def test_no_file_of_the_workspace_is_run(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter of the environment is a trap that would tell."""
    made(workspace / "env", "sparsegrid")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was run")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(os, "execve", refuse)
    assert check(job_for(workspace, environment="env")).level == "fine"
