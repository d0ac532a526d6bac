"""What can be known from a piece of a log: the words the reader and the machine share.

Frozen data only. `text` makes lines, `progress` makes a `Progress`, `causes` makes a `Diagnosis`,
`verdict` turns both (with phase, silence and exit code) into a `Verdict`. A `Digest` is what one look
at a log leaves behind; a `Track` is what all looks together have taught, and is kept with the job.

Never: read a clock, a file or the environment; hold more than a bounded number of lines.
"""

from __future__ import annotations

from datetime import datetime
from math import isfinite
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

Owner = Literal["user", "infra", "image", "data", "network", "unknown"]
Role = Literal["root", "cascade", "confirmation", "advice", "noise"]
VerdictName = Literal[
    "starting",
    "progressing",
    "slow",
    "looping",
    "hung",
    "failing",
    "failed",
    "succeeded",
    "ambiguous",
    "unsettled",
]

LOSS_POINTS_MAX = 240
"""Points kept of a series; older ones are thinned, the newest is always kept."""


class Frozen(BaseModel):
    """Base of every value in `states/`: immutable, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


def _named(value: float) -> float | str:
    return value if isfinite(value) else str(value)


Figure = Annotated[float, PlainSerializer(_named, return_type=Any, when_used="json")]
"""A figure of a log. A loss may be NaN or infinite: stored as that word, since JSON has none and PostgreSQL takes no
row with one, it comes back as what it was. (The setting above is heeded where text is made, not where data is.)"""


class Line(NamedTuple):
    """One logical line of a log after clean-up.

    number: 1-based line in the original text, counted by `\\n` only (a `\\r` refresh keeps its line's number).
    text: without ANSI codes, refreshes resolved, without a rank prefix, cut to a bounded length.
    rank: the process that printed it, as written (`rank3`, `pid=77`), or "" when one process speaks.
    prefix: what stood before the text and gave the rank (`[rank3]: `), for quoting the line as it was.
    """

    number: int
    text: str
    rank: str = ""
    prefix: str = ""


class Quote(Frozen):
    """A piece of evidence: the original line number and the cleaned, bounded text that stands there."""

    line: int
    text: str


class Counter(Frozen):
    """A number that counts work. `name` tells counters of one log apart (`epoch`, `step`, `bar:Downloading`)."""

    name: str
    value: Figure
    total: Figure | None = None
    unit: str = ""
    line: int = 0


class Point(Frozen):
    """One value of a metric series at a step (the main counter's value, or an ordinal if there is none)."""

    step: Figure
    value: Figure


class Progress(Frozen):
    """What one piece of a log says about how far the work is.

    main: the counter that stands for the run; counters: every live one, main included.
    losses: the loss series of this piece, oldest first, bounded by LOSS_POINTS_MAX.
    loss_missing_steps: main steps seen since the loss field was last printed as a finite number.
    rate_per_s: main-counter units per second as the log itself shows them (time stamps or its own figure).
    log_eta_s: the ETA that the log itself prints, in seconds.
    stride: main-counter units between two prints of it, None when it was printed once.
    segments: how often the main counter restarted within this piece (resume, second run, reset).
    phase: the last phase sentence recognised (`loading data`, `saving checkpoint`), or "".
    phase_line: its original line; 0 if none.
    finished: the text itself says that the work is complete, and where.
    throughput_only: the log reports throughput without any counter (services).
    anew: several phases of starting up were named since the run's counter last moved: the program was started
        anew, and main is None, for the old step is not the new start's.
    from_zero: how often the main counter fell back to its very start before it was complete, with nothing else
        moving (a download that starts over).
    repeats: how many times the last message came round again without any counter moving (loops, retries).
    """

    main: Counter | None = None
    counters: tuple[Counter, ...] = ()
    losses: tuple[Point, ...] = ()
    loss: Figure | None = None
    loss_nan_run: int = 0
    loss_missing_steps: int = 0
    overflow_run: int = 0
    metrics: dict[str, Figure] = Field(default_factory=dict)
    rate_per_s: float | None = None
    log_eta_s: float | None = None
    cadence_s: float | None = None
    stride: float | None = None
    segments: int = 0
    phase: str = ""
    phase_line: int = 0
    finished: Quote | None = None
    throughput_only: bool = False
    anew: bool = False
    from_zero: int = 0
    repeats: int = 0
    repeated: Quote | None = None


class Sign(Frozen):
    """A known signature that stands in the log."""

    entry: str
    cause: str
    role: Role
    owner: Owner
    retryable: bool
    evidence: Quote
    advice: str = ""
    rank: str = ""


class Diagnosis(Frozen):
    """What started the trouble. `cause` is `layer.cause` or "none"; `also` are other defensible readings."""

    cause: str = "none"
    also: tuple[str, ...] = ()
    owner: Owner = "unknown"
    retryable: bool = False
    evidence: tuple[Quote, ...] = ()
    advice: str = ""
    signs: tuple[Sign, ...] = ()
    fatal: bool = False
    """The text says that a process ended because of it (a traceback to the end, an abort, a kill)."""


class Digest(Frozen):
    """One look at a log: bounded, redacted, and without the log itself.

    fresh: the piece holds output that no earlier look had.
    settle: set when a longer tail or the head would help (`more_tail`, `head`), else "".
    excerpt: at most a few lines for a report or a question, newest last.
    fingerprint: hash of the piece, so that "the same text again" is known without keeping it.
    """

    progress: Progress = Field(default_factory=Progress)
    diagnosis: Diagnosis = Diagnosis()
    fresh: bool = False
    lines_read: int = 0
    bytes_read: int = 0
    excerpt: tuple[Quote, ...] = ()
    found: tuple[Quote, ...] = ()
    """Lines that hold a text of the request's own stop conditions."""
    fingerprint: str = ""
    wrote_at: datetime | None = None
    """When the log was last written, where the cluster can tell; else None and `fresh` decides."""


class Best(Frozen):
    """What a plateau goal remembers: the best value, the step that it was reached at, and the last step seen."""

    value: Figure
    step: Figure
    at_step: Figure


class Track(Frozen):
    """What all looks at one attempt's log have taught so far. Kept in the job's snapshot, so it stays small.

    milestone_at: when a counter or phase was last seen to move (None: never). output_at: last new output.
    cadence_s: learnt seconds between milestones of the present phase; output_cadence_s: between any new output.
    cadences: the cadence learnt for each phase met so far (bounded), so that a phase that comes back is known.
    rate_spread: how far the observed rate varies, as a share of it; eta_spread_s follows from it.
    moved: counters that moved at the latest look. highest: best value per counter within the present segment.
    still_looks: looks in a row without a milestone although there was fresh output.
    still_since: since when no milestone came (equals milestone_at, or the first look).
    """

    started_at: datetime | None = None
    milestone_at: datetime | None = None
    output_at: datetime | None = None
    looked_at: datetime | None = None
    cadence_s: float | None = None
    output_cadence_s: float | None = None
    rate_per_s: float | None = None
    counters: tuple[Counter, ...] = ()
    main: Counter | None = None
    highest: dict[str, Figure] = Field(default_factory=dict)
    losses: tuple[Point, ...] = ()
    nan_since: datetime | None = None
    phase: str = ""
    phase_since: datetime | None = None
    segment: int = 0
    still_looks: int = 0
    repeats: int = 0
    looks: int = 0
    fingerprint: str = ""
    eta_s: float | None = None
    eta_spread_s: float | None = None
    log_eta_s: float | None = None
    cadences: dict[str, float] = Field(default_factory=dict)
    rate_spread: float | None = None
    bests: dict[str, Best] = Field(default_factory=dict)
    """What the plateau goals of the request remember (`conditions.plateaus`)."""


class Scene(Frozen):
    """What is known besides the log when a verdict is asked for.

    phase: the cluster's normalised phase. silence_s: since the last output (None: not known).
    outputs_ok: the declared outputs are all there (None: none declared or not looked at).
    reasons: the scheduler's own words (reasons, events), newest last.
    """

    phase: str = "running"
    reasons: tuple[str, ...] = ()
    exit_code: int | None = None
    signal: int | None = None
    silence_s: float | None = None
    outputs_ok: bool | None = None
    suspended: bool = False


class Verdict(Frozen):
    """The judgement. `settled=False` goes with name "unsettled": `wants` says what would settle it.

    because: rule numbers. provable: safe to act on without a person (E6, E7); never true on a guess.
    """

    name: VerdictName
    settled: bool = True
    provable: bool = False
    diagnosis: Diagnosis = Diagnosis()
    summary: str = ""
    advice: str = ""
    because: tuple[str, ...] = ()
    wants: tuple[Literal["more_tail", "head", "events", "model"], ...] = ()
    topic: str = ""
    """What the concern is, as a stable key (`hung`, `loop:fetch`, `nan`, `network`, `download`): asked about once per
    cause (G5)."""
