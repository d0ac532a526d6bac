"""The reports of a run beside its results: whole, redacted, rewritten only when they change."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent.keep import MESSAGES_MAX, keep
from states.job import Job
from tests.agent.fakes import at
from tests.states import builders as b

SECRET = "sec-" + "ret-4711"


def job_in(workspace: Path) -> Job:
    job = b.in_running()
    return job.but(spec=job.spec.model_copy(update={"workspace": str(workspace), "env": {"MODE": "fast"}}))


def message(
    number: int, text: str = "It runs.", stage: str = "routine", *, must: bool = False
) -> dict[str, Any]:
    told = {"id": f"m{number}", "kind": "report", "stage": stage, "text": text, "must_not_miss": must}
    return {**told, "at": at(number)}


def hide(text: str) -> str:
    return text.replace(SECRET, "[redacted]")


def test_both_files_hold_every_message_in_order(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    keep(job, [message(1, "First."), message(2, "Second.", "wrap-up", must=True)], hide)
    folder = tmp_path / ".watchkeeper" / "reports" / job.id
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {job.id}\n")
    assert re.findall(r"^## \S+ (.*)$", text, re.MULTILINE) == ["routine", "wrap-up **!**"]
    assert text.index("First.") < text.index("Second.")
    data = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert (data["run"], data["state"], data["spec"]["gpu"], data["env"]) == (job.id, "running", 1, ["MODE"])
    assert [one["text"] for one in data["messages"]] == ["First.", "Second."]
    assert sorted(path.name for path in folder.iterdir()) == ["report.json", "report.md"]
    assert (tmp_path / ".watchkeeper" / ".gitignore").read_text() == "*\n"


def test_what_has_not_changed_is_not_written_again(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    keep(job, [message(1)], hide)
    file = tmp_path / ".watchkeeper" / "reports" / job.id / "report.md"
    before = file.stat().st_ino
    keep(job, [message(1)], hide)
    assert file.stat().st_ino == before
    keep(job, [message(1), message(2)], hide)
    assert file.stat().st_ino != before


def test_no_secret_is_kept_and_no_text_leaves_its_fence(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    keep(job, [message(1, f"log line 3 | key={SECRET}\n```\n# not a heading\n````")], hide)
    folder = tmp_path / ".watchkeeper" / "reports" / job.id
    for file in folder.iterdir():
        assert SECRET not in file.read_text(encoding="utf-8")
    assert "`````text" in (folder / "report.md").read_text(encoding="utf-8")


def test_many_messages_are_bounded_with_the_first_and_the_newest(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    keep(job, [message(number, f"no {number}") for number in range(MESSAGES_MAX + 50)], hide)
    file = tmp_path / ".watchkeeper" / "reports" / job.id / "report.json"
    kept = [one["text"] for one in json.loads(file.read_text(encoding="utf-8"))["messages"]]
    assert (len(kept), kept[0], kept[-1]) == (MESSAGES_MAX, "no 0", f"no {MESSAGES_MAX + 49}")


def test_a_workspace_is_never_made(tmp_path: Path) -> None:
    keep(job_in(tmp_path / "gone"), [message(1)], hide)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_an_error_for_the_caller(tmp_path: Path) -> None:
    (tmp_path / ".watchkeeper").write_text("in the way", encoding="utf-8")
    with pytest.raises(OSError, match=r"exists|directory"):
        keep(job_in(tmp_path), [message(1)], hide)
