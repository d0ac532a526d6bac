"""Play the story of one seed, and say in one short text what came of it.

The mark is a hash over everything that was stored and every call that was made, with the ids that are new in each
playing (runs, folders) named alike: two playings of a seed must have the same one.

Never: a check that the scenarios do not have.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from agent.scenarios.invariants import stored_text
from agent.scenarios.model import Story
from agent.scenarios.play import Play
from agent.scenarios.world import World
from agent.simulation.stories import data_of

MEMORY = Path("/dev/shm")

_PREVIEWED = re.compile(r"(run-\d+(?:-[a-z]\d+)?-a\d+)-[0-9a-f]{8}")
"""The name of a preview: its spec is not an attempt's yet."""


class Ran(NamedTuple):
    """What came of a seed. faults: empty when everything held. ends: the states of its runs; mark: see above.

    instants: moments at which something was done; seconds: of virtual time.
    """

    seed: int
    faults: tuple[str, ...]
    ends: tuple[str, ...]
    questions: int
    submits: int
    attempts: int
    instants: int
    seconds: float
    mark: str


def run(seed: int) -> Ran:
    """Draw the story of the seed and play it."""
    return run_data(seed, data_of(seed))


def run_data(seed: int, data: Mapping[str, Any]) -> Ran:
    """Play a story given as data. An exception out of the loop is a fault, with its place."""
    with world_of(Story.model_validate(data)) as world:
        return _ran(seed, world)


@contextmanager
def world_of(story: Story) -> Iterator[World]:
    """A world for one playing, in memory where the machine has such a place."""
    place = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="wk-", dir=place) as folder:
        world = World(story, folder=Path(folder), beside=Path(folder))
        try:
            yield world
        finally:
            world.close()


def _ran(seed: int, world: World) -> Ran:
    try:
        played = Play(world).run()
    except Exception as error:
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        place = (
            f"{Path(where.tb_frame.f_code.co_filename).name}:{where.tb_frame.f_code.co_name}" if where else ""
        )
        fault = f"the loop ended with {type(error).__name__} in {place}: {error}"
        return Ran(seed, (fault,), (), 0, 0, 0, 0, 0.0, "")
    jobs = [world.store.load(job_id) for job_id in world.seen]
    return Ran(
        seed=seed,
        faults=tuple(_alike(world, fault) for fault in played.faults),
        ends=tuple(str(job.state) for job in jobs),
        questions=sum(len(job.questions) for job in jobs),
        submits=world.cluster.count("submit"),
        attempts=sum(len(job.attempts) for job in jobs),
        instants=played.instants,
        seconds=played.seconds,
        mark=mark_of(world),
    )


def mark_of(world: World) -> str:
    """The hash of what was stored and called, ids named alike."""
    calls = "\n".join(f"{call.op} {call.at.isoformat()} {call.name}" for call in world.cluster.calls)
    return hashlib.sha256(_alike(world, stored_text(world) + calls).encode()).hexdigest()[:16]


def _alike(world: World, text: str) -> str:
    """The text without what is new in each playing: run ids, fingerprints (they hold the folder), the folder."""
    pairs: dict[str, str] = {str(world.folder): "/folder"}
    for number, job_id in enumerate(world.seen, start=1):
        if "-s" not in job_id[-4:]:
            pairs[job_id] = f"run-{number}"
    for job_id in world.seen:
        pairs |= {one.fingerprint: "fingerprint" for one in world.store.load(job_id).attempts}
    for old, new in pairs.items():
        text = text.replace(old, new)
    return _PREVIEWED.sub(r"\1-fingerprint", text)
