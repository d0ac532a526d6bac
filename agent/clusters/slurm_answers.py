"""A row of Slurm's records as the answers of the seam: a match, an observation, events, a prediction.

Never: say more than a row says; take another job's wrapper record for this one's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from agent.clusters import wrapper
from agent.clusters.slurm_match import Found, folder_of
from agent.clusters.slurm_parse import Row
from agent.clusters.slurm_script import agrees
from agent.clusters.slurm_states import moment, normalise, state_words
from states.observation import ENDED, Match, NativeEvent, Observation, Phase

NOT_KNOWN_YEARS = 5
"""A start so far away is Slurm's way of not knowing one (ENGINES: 2090)."""


def observation(found: Found, at: datetime) -> Observation:
    """One look at one job."""
    row = found.row
    if row is None:
        phase = Phase.gone if found.asked else Phase.unknown
        return Observation(phase=phase, taken_at=at, reason=found.why)
    twins = tuple(match(twin) for twin in found.twins)
    running = {} if found.running is None else {"OwnRunning": str(found.running)}
    seen = Observation(taken_at=at, twins=twins, **normalise(row | running))
    if seen.phase not in ENDED:
        return seen
    seen = confirmed(seen, row)
    if seen.phase is Phase.succeeded and not (found.asked or seen.confirmed):
        return Observation(phase=Phase.unknown, taken_at=at, reason=found.why)
    return seen


def match(row: Row, fingerprint: str = "", owner: str = "") -> Match:
    name = row["JobName"]
    return Match(
        cluster_job_id=row["JobId"],
        name=name,
        phase=normalise(row)["phase"],
        ours=agrees(row["Comment"], fingerprint=fingerprint, owner=owner, name=name),
        submitted_at=moment(row["SubmitTime"]),
    )


def confirmed(seen: Observation, row: Row) -> Observation:
    """What the job's own wrapper wrote of this end, if it did: the command's code, not the shell's around it."""
    folder = folder_of(row)
    if folder is None:
        return seen
    if "Tasks" in row:
        return _confirmed_array(seen, [wrapper.record(start.parent) for start in folder.glob("*/start")])
    written = wrapper.record(folder)
    if written is None or written.ended_at is None or written.id != row["JobId"]:
        return seen
    told: dict[str, Any] = {"confirmed": True}
    if seen.phase is Phase.failed and seen.exit_code is not None:
        told |= {"exit_code": written.exit_code, "signal": written.signal}
    return seen.model_copy(update=told)


def _confirmed_array(seen: Observation, tasks: Sequence[wrapper.WrapperRecord | None]) -> Observation:
    """Every task has written its end. Without accounting the controller may have forgotten the one that failed, and
    call the rest an array that succeeded."""
    codes = [task.exit_code for task in tasks if task is not None and task.exit_code is not None]
    if not tasks or len(codes) < len(tasks):
        return seen
    worst = max(codes)
    if seen.phase is Phase.succeeded and worst:
        why = f"a task that Slurm does not list any more ended with code {worst}"
        return seen.model_copy(
            update={"phase": Phase.failed, "exit_code": worst, "reason": why, "confirmed": True}
        )
    return seen.model_copy(update={"confirmed": True})


def events(row: Row) -> list[NativeEvent]:
    """What one stay in the queue tells; a stay before a requeue is over, whatever the job does now."""
    seen = normalise(row)
    again = "REQUEUED" in state_words(row["JobState"])
    began = moment(row["StartTime"]) if again else seen["started_at"]
    ended = moment(row["EndTime"]) if again else seen["ended_at"]
    told = [NativeEvent(at=moment(row["SubmitTime"]), kind="Queued", message=f"partition {row['Partition']}")]
    if began:
        told.append(NativeEvent(at=began, kind="Started", message=f"on {row['NodeList']}"))
    kind = "Requeued" if again else "Ended" if ended else "Now"
    return [*told, NativeEvent(at=ended, kind=kind, message=seen["native"])]


def with_times(words: str, now: datetime) -> str:
    """`to start at 1796038104` with the time for people; one far in the future means that Slurm cannot tell."""

    def told(found: re.Match[str]) -> str:
        at = datetime.fromtimestamp(int(found[1]), UTC)
        unknown = (
            " (so far away that Slurm does not know a start)" if at.year > now.year + NOT_KNOWN_YEARS else ""
        )
        return f"start at {at.isoformat()}{unknown}"

    return re.sub(r"start at (\d{9,})", told, words)
