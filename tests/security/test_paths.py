"""No path that a job or a person wrote leads out of the workspace, and none of them breaks the wrap-up.

Never: a file outside that is only not shown: it is not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agent.clusters.base import ClusterError, Ref
from agent.clusters.local import LocalCluster
from agent.perform.collect import _artifacts as artifacts_of
from agent.service import Refusal
from tests.agent.fakes import GOOD
from tests.channels.conftest import Posted

SECRET = "what lies outside"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace beside a file that is none of its business."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file.pt").write_text(SECRET * 100)
    inside = tmp_path / "work"
    (inside / "out").mkdir(parents=True)
    (inside / "out" / "best.pt").write_text("weights")
    return inside


def links(folder: Path) -> None:
    """What a job may leave among its results."""
    (folder / "dangling").symlink_to("pruned-checkpoint")
    (folder / "circle").symlink_to("circle")
    (folder / "out-file").symlink_to(folder.parents[1] / "outside" / "file.pt")
    (folder / "out-folder").symlink_to(folder.parents[1] / "outside")
    (folder / "up").symlink_to("../..")
    (folder / "latest").symlink_to("best.pt")
    os.mkfifo(folder / "pipe")
    (folder / os.fsdecode(b"caf\xe9\n\x1b[31m.pt")).write_text("1")


@pytest.mark.parametrize(
    "pattern", ["out", "out/*", "out/**", "**/*", "out/out-folder/*", "out/up/*", "*/*/*.pt"]
)
def test_what_a_job_left_is_counted_inside_only(workspace: Path, pattern: str) -> None:
    links(workspace / "out")
    found = {artifact.path: artifact.size_bytes for artifact in artifacts_of(workspace, pattern)}
    assert not [
        path for path in found if "outside" in path or "out-f" in path or path.startswith(("/", ".."))
    ]
    assert sum(found.values()) < len(SECRET) * 100
    assert all(path.encode() for path in found)  # a name that is no text can be written down
    assert pattern not in ("out", "out/*") or found


@pytest.mark.parametrize(
    "pattern",
    [
        "../outside/file.pt",
        "out/../../outside/*",
        "/etc/passwd",
        "{root}/../outside/*",
        "{root}/../../*",
        "~/*",
        "..",
        "/",
    ],
)
def test_a_pattern_that_leads_out_finds_nothing(workspace: Path, pattern: str) -> None:
    assert list(artifacts_of(workspace, pattern.format(root=workspace))) == []


STEPS = ["..", ".", "out", "*", "**", "**x", "/", "~", "[", "]", "outside", "file.pt", " ", "\\", "?"]


@given(some.lists(some.sampled_from(STEPS), max_size=7).map("/".join) | some.text(max_size=30))
def test_any_pattern_stays_inside(tmp_path_factory: pytest.TempPathFactory, pattern: str) -> None:
    top = tmp_path_factory.getbasetemp() / "any-pattern"
    if not top.exists():
        (top / "work" / "out").mkdir(parents=True)
        (top / "file.pt").write_text(SECRET)
        (top / "work" / "link").symlink_to("..")
    found = list(artifacts_of(top / "work", pattern))
    assert not [artifact for artifact in found if artifact.path.endswith("file.pt")]


@pytest.mark.parametrize("pattern", ["out", "out/*", "**/*", "a\x00b", "[", "**x", "***", "out/\udce9"])
def test_a_run_ends_whatever_its_outputs_are_called(posted: Callable[..., Posted], pattern: str) -> None:
    """A wrap-up that raises would be tried for ever, and a finished run never handed back."""
    desk = posted(GOOD)
    (desk.workspace / "out").mkdir(exist_ok=True)
    links(desk.workspace / "out")
    try:
        run = desk.delegate(outputs=(pattern,))
    except Refusal:
        return
    desk.run()
    assert desk.job(run).is_terminal


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "/etc/passwd", "..", ".", "a/../../b", "a\x00b", "~root"]
)
def test_a_job_that_is_called_like_a_path_has_no_log(tmp_path: Path, name: str) -> None:
    cluster = LocalCluster("local", {"root": str(tmp_path / "root")})
    for ref in (Ref(name, name), Ref(name), Ref("x", name)):
        try:
            text = cluster.logs(ref, cursor=name).text
        except (ClusterError, ValueError) as error:
            text = str(error)
        assert "root:" not in text
        assert cluster.observe([ref])[ref.name].phase.value == "gone"
