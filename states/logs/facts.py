"""All that one line tells about progress, worked out once per text: two looks at a log share most of their lines.

Never: depend on the lines around it (headings, series and repeats do: `tables`, `series`, `progress`); keep long
lines, or more than a bounded number of them.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from states.logs.bars import Reading
from states.logs.counters import Keyed, keyed, readings
from states.logs.losses import loss_name
from states.logs.phrases_of_progress import Sentences, sentences, served
from states.logs.pulse import Pulse, pulse
from states.logs.stamps import Stamp, stamp

FACTS_MAX = 2_048
FACT_CHARS_MAX = 600
"""Longer lines are worked out each time, so that what is kept stays small (redacted text, in this process only)."""


_LAUNCHER = re.compile(r"\s{0,8}(?:srun|slurmstepd(?:-\S{1,64})?|salloc|sbatch): ")
"""Slurm's own lines: the step that they number is one of its books (`StepId=815.0`), never of the work."""


class Facts(NamedTuple):
    """readings: numbers that may count work. pieces: every `key: number`, with the loss that each names or "".

    served: a request that succeeded.
    """

    readings: tuple[Reading, ...]
    pieces: tuple[Keyed, ...]
    losses: tuple[str, ...]
    pulse: Pulse
    said: Sentences
    served: bool
    stamp: Stamp | None


def facts(text: str) -> Facts:
    """What a line tells."""
    return _kept(text) if len(text) <= FACT_CHARS_MAX else _facts(text)


def _facts(text: str) -> Facts:
    of_the_launcher = _LAUNCHER.match(text) is not None
    pieces = [] if of_the_launcher else keyed(text)
    return Facts(
        () if of_the_launcher else tuple(readings(text, pieces)),
        tuple(pieces),
        tuple(map(loss_name, pieces)),
        pulse(text),
        sentences(text),
        served(text),
        stamp(text),
    )


_kept = functools.lru_cache(maxsize=FACTS_MAX)(_facts)
