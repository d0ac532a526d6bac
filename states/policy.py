"""The numbers: one frozen model, each with its unit in its name. Nothing else in the product holds a threshold.

Order: built-in < the cluster's hint < site file < the person's standing orders < the request. `layered` keeps
where each number came from, so that `wk config` and `why` can say it.

Never: read a file or the environment (the layers are handed in).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field, ValidationError

from states.reading import Frozen


class Policy(Frozen):
    """Numbers that decide. Seconds unless the name says otherwise."""

    poll_s: float = Field(default=60.0, gt=0)
    """Status look at a job that runs (one call per cluster for all jobs of a wave)."""
    queued_poll_s_first: float = Field(default=15.0, gt=0)
    queued_poll_s_max: float = Field(default=120.0, gt=0)
    """A queued job is looked at a little later each time, between these two (E1)."""
    second_look_s: float = Field(default=120.0, gt=0)
    """preempted, lost and gone are believed at the second look, this much later (a requeue takes up to 2 minutes)."""
    unshown_s: float = Field(default=1800.0, gt=0)
    """An accepted job that no look has shown yet may be shown later: its absence is believed after this (I1)."""

    look_s_first: float = Field(default=60.0, gt=0)
    look_s_max: float = Field(default=1800.0, gt=0)
    """Log looks: the first soon, then at the learnt cadence, never rarer than this (E4: half an hour by itself)."""
    look_s_min: float = Field(default=60.0, gt=0)
    looks_per_cadence: float = Field(default=3.0, gt=0)
    """A look every this many milestones of the learnt cadence."""
    log_lines: int = Field(default=200, gt=0)
    """Bound of an ordinary log read (E2)."""
    log_lines_max: int = Field(default=2000, gt=0)
    """Bound when the tail did not settle it."""

    hung_s: float = Field(default=3600.0, gt=0)
    """Silence that counts as hung when regular output is due (E6)."""
    hung_cadences: float = Field(default=20.0, gt=0)
    """...and it must also be this many times the learnt cadence of output."""
    stuck_cadences: float = Field(default=5.0, gt=0)
    """No milestone for this many cadences, though output flows: looks off, ask (E9)."""
    stuck_s_min: float = Field(default=900.0, gt=0)
    """...but never sooner than this."""
    loop_s: float = Field(default=3600.0, gt=0)
    loop_repeats: int = Field(default=20, gt=0)
    """The same message this often and this long without any milestone: provably looping (E5)."""
    nan_steps: int = Field(default=20, gt=0)
    """This many steps in a row with a NaN loss: diverged (E7)."""
    crash_loops: int = Field(default=3, gt=0)
    """Restarts of the program without a milestone between them: a hard crash loop (E7)."""

    settle_s: float = Field(default=60.0, gt=0)
    """After an unclear submit: look by name until this long after the call can no longer land (DESIGN 4.3)."""
    look_up_s: float = Field(default=10.0, gt=0)
    """Between two look-ups by name."""
    look_up_s_max: float = Field(default=3600.0, gt=0)
    """Not settled within this: a question."""
    late_look_s: float = Field(default=3600.0, gt=0)
    """A send whose answer was lost and whose job was not there: looked for by name this long after it, though its run
    may be over by then. What lives is stopped and told."""
    late_look_retry_s: float = Field(default=600.0, gt=0)
    """...and again this much later while one lives or the cluster cannot be asked, for a day at most."""
    submit_sends_max: int = Field(default=3, gt=0)
    submit_retry_s: float = Field(default=60.0, gt=0)
    """A refusal that may pass (rate limit, full submit queue) is tried again this much later, so many times."""

    answer_s: float = Field(default=4 * 3600.0, gt=0)
    """A question's deadline; then its default is carried out (G2)."""
    answer_s_no_submit: float = Field(default=24 * 3600.0, gt=0)
    """Deadline of the questions whose default is not to submit: nothing runs meanwhile, so there is time."""
    answer_s_queue: float = Field(default=900.0, gt=0)
    """Deadline of the capacity question: its default is to queue, and a place in the queue is lost by waiting."""
    unreachable_report_s: float = Field(default=1800.0, gt=0)
    unreachable_ask_s: float = Field(default=6 * 3600.0, gt=0)
    unreachable_poll_s_max: float = Field(default=600.0, gt=0)
    """A cluster that does not answer: back off, say so, and after a while ask (default: keep waiting)."""
    starting_ask_s: float = Field(default=3600.0, gt=0)
    """Assigned to a node but not running (pull, mounts) for this long: ask (RJOB 8, WISHES 8)."""
    queued_ask_s: float = Field(default=24 * 3600.0, gt=0)
    """Queued for this long: ask whether to go on waiting (default: wait)."""
    finishing_ask_s: float = Field(default=1800.0, gt=0)
    """The work is over but the cluster does not close it: ask (PHASES: stuck COMPLETING)."""
    preflight_s: float = Field(default=300.0, gt=0)
    """Checks that have not answered by then are asked again."""
    stop_retry_s: float = Field(default=30.0, gt=0)
    stop_report_s: float = Field(default=600.0, gt=0)
    """A stop is repeated until the cluster shows the end; said aloud when it takes this long."""
    collect_retry_s: float = Field(default=20.0, gt=0)
    collect_tries_max: int = Field(default=5, gt=0)

    report_s: float = Field(default=4 * 3600.0, gt=0)
    """A routine report at most this often while nothing changes."""
    infra_resubmits_max: int = Field(default=2, ge=0)
    """Resubmissions after a fault of the infrastructure (never of the user's code)."""
    interpret_max: int = Field(default=20, ge=0)
    """Model readings per run (PAID)."""
    expensive_gpu_hours: float = Field(default=8.0, gt=0)
    """A spec above this (or of unknown length with GPUs) is previewed and smoke-tested first (C13, D4)."""
    smoke_runs_max: int = Field(default=20, gt=0)
    prepare_runs_max: int = Field(default=3, gt=0)
    """Failed smoke runs, and failed runs of one kind that prepare something; then nothing is submitted (D4)."""
    light_s: float = Field(default=60.0, gt=0)
    """Without a GPU and said to run no longer than this: a light, quick step (C1)."""
    idle_restart_s_max: float = Field(default=1800.0, gt=0)
    """Idle lane only when a restart costs no more than this (C8: minutes, not hours)."""


class PolicyError(ValueError):
    """A layer holds a number that is not there or not allowed; the message names the layer and the nearest name."""


def layered(layers: Sequence[tuple[str, Mapping[str, object]]]) -> tuple[Policy, dict[str, str]]:
    """Fold layers, lowest first, into a policy and {number: name of the layer it came from}.

    layers: (name, {number: value}). Raises PolicyError on an unknown number or a value out of range.
    """
    values: dict[str, object] = {}
    origin = dict.fromkeys(Policy.model_fields, "built-in")
    for layer, numbers in layers:
        for number, value in numbers.items():
            if number not in Policy.model_fields:
                raise PolicyError(f"{layer}: there is no policy number {number!r}{_nearest(number)}")
            values[number] = value
            origin[number] = layer
    try:
        return Policy.model_validate(values), origin
    except ValidationError as error:
        first = error.errors()[0]
        number = str(first["loc"][0])
        raise PolicyError(f"{origin[number]}: {number}: {first['msg']}") from None


def _nearest(number: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(number, Policy.model_fields, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
