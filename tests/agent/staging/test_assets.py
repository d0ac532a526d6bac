"""The look at stated assets on a real disk: what is there, linked, mounted, missing, or cannot be seen (D1)."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.perform.checks_assets import assets
from agent.staging.assets import look
from states.assets import Asset
from states.job import Check, Job
from states.observation import Capabilities
from states.spec import Request, draft
from tests.states.builders import T0


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def job_for(
    workspace: Path, *stated: Any, in_image: bool = False, cluster: str = "far", **request: Any
) -> Job:
    asked = Request(command=("python", "t.py"), assets=stated, **request)
    return Job(
        id="t-1",
        request=asked,
        spec=draft(asked, workspace=str(workspace)),
        created_at=T0,
        cluster=cluster,
        capabilities=Capabilities(needs_image=in_image),
    )


def places(job: Job) -> list[str]:
    return [found.place for found in look(job, None)]


def check(job: Job) -> Check:
    return assets(job, None)  # type: ignore[arg-type]


def written(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def cached(folder: Path, repository: str = "models--org--name", commit: str = "c0ffee") -> Path:
    """A repository as the hub's client leaves it in a cache."""
    written(folder / repository / "refs/main", commit)
    written(folder / repository / "snapshots" / commit / "config.json")
    return folder / repository


def test_the_page_shows_requests_that_are_taken() -> None:
    page = (Path(__file__).parents[3] / "docs" / "staging.md").read_text("utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        text = block.replace("sha256: ...", f"sha256: {'a' * 64}")
        assert Request.model_validate({"command": "true", **yaml.safe_load(text)})


def test_paths(workspace: Path, tmp_path: Path) -> None:
    written(workspace / "data/a.idx")
    (workspace / "empty").mkdir()
    outside = written(tmp_path / "share/b.idx")
    stated = ("data/a.idx", "data", "data/no.idx", "empty", str(outside), str(tmp_path / "share/no.idx"))
    assert places(job_for(workspace, *stated)) == ["there", "there", "absent", "absent", "there", "absent"]


def test_a_path_outside_is_not_seen_by_a_job_in_an_image(workspace: Path, tmp_path: Path) -> None:
    outside = written(tmp_path / "share/b.idx")
    assert places(job_for(workspace, str(outside), in_image=True)) == ["outside"]
    mounted = job_for(workspace, str(outside), in_image=True, mounts=f"{tmp_path}/share:{tmp_path}/share")
    assert places(mounted) == ["there"]


def test_a_mount_is_looked_at_where_this_machine_has_its_source(workspace: Path, tmp_path: Path) -> None:
    written(tmp_path / "share/b.idx")
    mounts = f"{tmp_path}/share:/mnt/data"
    assert places(job_for(workspace, "/mnt/data/b.idx", in_image=True, mounts=mounts)) == ["there"]
    assert places(job_for(workspace, "/mnt/data/no.idx", in_image=True, mounts=mounts)) == ["absent"]


def test_what_cannot_be_seen_is_never_called_missing_nor_there(workspace: Path) -> None:
    """D1: could not, said aloud."""
    assert places(job_for(workspace, "/no-such-share/a.idx")) == ["unseen"]
    assert places(job_for(workspace, "/no-such-share/a.idx", cluster="local")) == ["absent"]
    assert places(job_for(workspace, "/mnt/d/a", mounts="pool://lab/d:/mnt/d")) == ["unseen"]
    row = check(job_for(workspace / "gone", "a.idx", "hf:org/name"))
    assert row.level == "could_not"


def test_a_stated_mount_goes_to_the_mounts(workspace: Path, tmp_path: Path) -> None:
    written(tmp_path / "share/b.idx")
    there, gone = f"{tmp_path}/share:/mnt/a", f"{tmp_path}/none:/mnt/b"
    assert places(job_for(workspace, there, gone, "pool://lab/c:/mnt/c")) == ["mounted", "absent", "unseen"]
    assert check(job_for(workspace, there)).found == {"mounts": (there,)}


class TestLinks:
    def test_a_path_is_linked_to_where_the_command_looks_and_not_copied(
        self, workspace: Path, tmp_path: Path
    ) -> None:
        outside = written(tmp_path / "share/b.bin")
        job = job_for(workspace, Asset(path=str(outside), to="weights/b.bin"))
        assert places(job) == ["linked"]
        assert os.readlink(workspace / "weights/b.bin") == str(outside)
        assert places(job) == ["linked"]

    def test_what_is_there_is_not_replaced(self, workspace: Path, tmp_path: Path) -> None:
        outside = written(tmp_path / "share/b.bin")
        mine = written(workspace / "b.bin", "mine")
        row = check(job_for(workspace, Asset(path=str(outside), to="b.bin")))
        assert (row.level, mine.read_text()) == ("ask", "mine")
        assert "nothing was replaced" in row.mend

    def test_no_link_is_made_outside_the_workspace(self, workspace: Path, tmp_path: Path) -> None:
        outside = written(tmp_path / "share/b.bin")
        (workspace / "out").symlink_to(tmp_path / "share")
        assert places(job_for(workspace, Asset(path=str(outside), to="out/deep/c.bin"))) == ["outside"]
        assert not (tmp_path / "share/deep").exists()


class TestHub:
    def test_a_repository_in_the_workspaces_own_cache(self, workspace: Path) -> None:
        cached(workspace / ".watchkeeper/hf/hub")
        row = check(job_for(workspace, "hf:org/name"))
        assert (row.level, row.found) == ("fine", {"env": {"HF_HOME": f"{workspace}/.watchkeeper/hf"}})

    def test_one_that_lies_on_a_mount_is_linked(self, workspace: Path, tmp_path: Path) -> None:
        cached(tmp_path / "share/huggingface/hub")
        job = job_for(workspace, "hf:org/name", mounts=f"{tmp_path}/share:/mnt/share", in_image=True)
        assert places(job) == ["linked"]
        link = workspace / ".watchkeeper/hf/hub/models--org--name"
        assert os.readlink(link) == "/mnt/share/huggingface/hub/models--org--name"

    def test_where_the_request_names_a_cache_that_is_used_as_it_is(self, workspace: Path) -> None:
        cached(workspace / "cache/hub", "datasets--org--name")
        job = job_for(workspace, "hf:datasets/org/name", env={"HF_HOME": f"{workspace}/cache"})
        row = check(job)
        assert (row.level, row.found) == ("fine", {})

    def test_a_revision_that_is_not_there_is_missing(self, workspace: Path) -> None:
        cached(workspace / ".watchkeeper/hf/hub")
        assert places(job_for(workspace, "hf:org/name@v2")) == ["partial"]
        assert places(job_for(workspace, "hf:org/name@c0ffee")) == ["there"]

    def test_a_download_that_broke_off_is_not_taken_for_whole(self, workspace: Path) -> None:
        written(cached(workspace / ".watchkeeper/hf/hub") / "blobs/ab.incomplete")
        assert places(job_for(workspace, "hf:org/name")) == ["partial"]


class TestFetching:
    STATED = (
        Asset(url="https://files.example/w.bin", to="w/w.bin", sha256="0" * 64),
        Asset(hub="org/name@v2"),
    )

    def test_what_is_missing_is_written_into_a_plan(self, workspace: Path) -> None:
        asked: list[str] = []

        def measure(url: str, proxy: str) -> int:
            asked.append(url)
            return 5 * 2**20

        row = assets(job_for(workspace, *self.STATED), None, measure)  # type: ignore[arg-type]
        assert (row.level, row.facts["prepare"]) == ("note", "stage")
        assert "5.0 MiB and 1 of a size that is not known" in row.evidence
        assert asked == ["https://files.example/w.bin"]
        planned = json.loads((workspace / row.facts["folder"] / "plan.json").read_text())
        assert planned["files"] == [
            {"url": "https://files.example/w.bin", "to": "w/w.bin", "sha256": "0" * 64}
        ]
        assert planned["repositories"] == [
            {
                "repo": "org/name",
                "kind": "models",
                "revision": "v2",
                "cache": f"{workspace}/.watchkeeper/hf/hub",
            }
        ]
        assert (workspace / row.facts["folder"] / "fetch.py").is_file()

    def test_what_is_there_is_not_fetched(self, workspace: Path) -> None:
        written(workspace / "w/w.bin")
        row = check(job_for(workspace, self.STATED[0]))
        assert (row.level, row.facts) == ("fine", {})
        assert not (workspace / ".watchkeeper").exists()

    @pytest.mark.parametrize("copy", ["{share}/w.bin", "{share}", "{share}:{share}"])
    def test_a_copy_that_was_named_is_linked_in_its_place(
        self, workspace: Path, tmp_path: Path, copy: str
    ) -> None:
        """E11: the cluster path instead of the download."""
        written(tmp_path / "share/w.bin")
        row = Check(name="stage", level="fine", facts={"copy": copy.format(share=tmp_path / "share")})
        job = job_for(workspace, self.STATED[0]).but(checks={"stage": row})
        assert places(job) == ["linked"]
        assert (workspace / "w/w.bin").read_text() == "x"
