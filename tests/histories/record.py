"""Writes the histories of this release: `python -m tests.histories.record RELEASE`, once, when it is made.

Each story is a run on a virtual clock, exported at a moment that an upgrade may meet it in, or after its end.

Never: the histories of a release written anew by a later one (a folder that is there is refused).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from agent.archive import export
from agent.clusters.scripted import Away, SubmitFault
from agent.redaction import Redactor
from agent.store import Store
from states.job import Check, Job
from tests.agent.fakes import BROKEN, ENDLESS, GOOD, WAITING, Desk, at

HERE = Path(__file__).parent


def succeeded(desk: Desk) -> str:
    return until(desk, "succeeded")


def until(desk: Desk, state: str) -> str:
    run = desk.delegate()
    desk.run_to(run, state)
    desk.settle()
    return run


def delegated(desk: Desk) -> str:
    return desk.delegate()


def submitting(desk: Desk) -> str:
    run = desk.delegate()
    desk.perform_up_to(run, "submit")
    return run


def stopping(desk: Desk) -> str:
    run = until(desk, "running")
    desk.service.stop(run, reason="enough")
    return run


def stopped(desk: Desk) -> str:
    run = stopping(desk)
    desk.run_to(run, "stopped")
    return run


def watched_for_long(desk: Desk) -> str:
    run = desk.delegate()
    desk.run(lambda: desk.clock.now() >= at(1200))
    return run


def answered(desk: Desk) -> str:
    run = until(desk, "blocked")
    desk.service.answer(f"{run}/1", "lab/image:1")
    desk.run_to(run, "succeeded")
    return run


def no_image(job: Job, ports: object) -> Check:
    if job.spec.image:
        return Check(name="image", level="fine")
    return Check(name="image", level="ask", evidence="no image is known", question="image")


Story = tuple[Callable[[Desk], str], Callable[[Store, Path], Desk]]

STORIES: Mapping[str, Story] = {
    "succeeded": (succeeded, lambda s, f: Desk(s, f, GOOD)),
    "failed": (lambda d: until(d, "failed"), lambda s, f: Desk(s, f, BROKEN)),
    "just-delegated": (delegated, lambda s, f: Desk(s, f, GOOD, checks={"image": no_image})),
    "submit-open": (submitting, lambda s, f: Desk(s, f, GOOD)),
    "queued": (lambda d: until(d, "queued"), lambda s, f: Desk(s, f, WAITING)),
    "running": (watched_for_long, lambda s, f: Desk(s, f, ENDLESS)),
    "stop-open": (stopping, lambda s, f: Desk(s, f, ENDLESS)),
    "stopped": (stopped, lambda s, f: Desk(s, f, ENDLESS)),
    "question-open": (
        lambda d: until(d, "blocked"),
        lambda s, f: Desk(s, f, GOOD, checks={"image": no_image}),
    ),
    "question-answered": (answered, lambda s, f: Desk(s, f, GOOD, checks={"image": no_image})),
    "question-defaulted": (
        lambda d: until(d, "not_submitted"),
        lambda s, f: Desk(s, f, GOOD, checks={"image": no_image}),
    ),
    "submit-unclear": (
        succeeded,
        lambda s, f: Desk(s, f, GOOD, faults={1: SubmitFault(answer="lost", created=True, visible_s=20)}),
    ),
    "cluster-away": (
        succeeded,
        lambda s, f: Desk(s, f, GOOD, away=[Away(at(120), at(2400))]),
    ),
}


def record(release: str) -> int:
    """Write every story; the number of files. Raises FileExistsError for a release that has its folder."""
    folder = HERE / release
    folder.mkdir()
    for name, (story, desk_of) in STORIES.items():
        with tempfile.TemporaryDirectory() as workspace:
            store = Store("sqlite://")
            store.create_schema()
            desk = desk_of(store, Path(workspace))
            desk.workspace = Path(workspace)
            lines = list(export(store, story(desk), Redactor(()).value, desk.clock.now()))
            store.close()
            text = "\n".join([*lines, ""])
            (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return len(STORIES)


if __name__ == "__main__":
    print(record(sys.argv[1]))
