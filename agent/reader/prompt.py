"""What is sent to the model: a prompt file as instructions, and one fenced message of data (DESIGN 6, I2).

Whatever comes from a log, a scheduler or a person stands between two lines with a mark that is derived from
the data and does not occur in them, each item on a line of its own behind a name or a number. The same case
gives the same bytes, so that replies can be cached and recorded.

Never: put a word from outside into the instructions; read a credential; decide whether to ask.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from itertools import count
from typing import Any, NamedTuple

from states.excerpt import Shown, render
from states.job import Job
from states.reading import Counter, Frozen
from states.words.wording import plain

INTERPRET_LOG = "interpret_log"
FACT_CHARS_MAX = 300
REASONS_MAX = 6
_SPANS_S = (0, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600)


class PromptFile(NamedTuple):
    """One prompt of the folder `prompts/`: its instructions, version and the schema of the reply."""

    name: str
    version: int
    text: str
    schema: dict[str, Any]

    @property
    def causes(self) -> frozenset[str]:
        """The closed list of causes."""
        return frozenset(self.schema["properties"]["cause"]["enum"])


class Facts(Frozen):
    """What is known of the job besides the log; all of it may hold text of others.

    phase: the cluster's normalised phase. native, reasons: its own words, newest last. silence_s: seconds
    since the last output. situation: what the rules say. cause: what the rules think began it. main: where the
    run's counter stood before. still_looks: looks at the log without a milestone.
    """

    phase: str = "unknown"
    native: str = ""
    reasons: tuple[str, ...] = ()
    exit_code: int | None = None
    signal: int | None = None
    silence_s: float | None = None
    situation: str = ""
    cause: str = "none"
    main: Counter | None = None
    still_looks: int = 0


class Prompt(NamedTuple):
    """One question to the model. shown: the lines a quote is compared with.

    data_key: hash of the data alone, so that a recorded reply outlives a new wording of the instructions.
    """

    file: PromptFile
    data: str
    user: str
    shown: tuple[Shown, ...]

    @property
    def data_key(self) -> str:
        return hashlib.sha256(self.data.encode()).hexdigest()[:32]

    def key(self, *how: object) -> str:
        """Hash of all that the reply depends on: data, prompt name and version, and `how` (model, effort)."""
        parts = (self.file.name, self.file.version, *how, self.data)
        return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()


@cache
def prompt_file(name: str) -> PromptFile:
    """A prompt by its name. Raises FileNotFoundError, or ValueError for a file without name and version."""
    folder = importlib.resources.files("prompts")
    _, head, text = (folder / f"{name}.md").read_text(encoding="utf-8").split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.strip().splitlines())
    if fields.get("name") != name:
        raise ValueError(f"prompts/{name}.md calls itself {fields.get('name')!r}")
    schema = json.loads((folder / fields["schema"]).read_text(encoding="utf-8"))
    return PromptFile(name, int(fields["version"]), text.strip(), schema)


def build(shown: Sequence[Shown], facts: Facts) -> Prompt:
    """The question about these lines. Pure but for reading the prompt file once."""
    data = "\n".join(
        ["[scheduler]", *_scheduler(facts), "[seen before]", *_before(facts), "[log]", render(shown)]
    )
    mark = fence(data)
    user = (
        f"The data of this case stand between the two lines that carry the mark {mark}.\n\n"
        f"<<< {mark}\n{data}\n{mark} >>>\n\n"
        "Read the case by your instructions and answer with the one JSON object of the schema."
    )
    return Prompt(prompt_file(INTERPRET_LOG), data, user, tuple(shown))


def fence(data: str) -> str:
    """A mark of 32 hexadecimal digits that depends on all of the data and does not occur in them.

    Nobody can put it into a log beforehand: a log that holds it would be another log, with another mark.
    """
    lowered = data.casefold()
    marks = (hashlib.blake2b(f"{turn}\n{data}".encode(), digest_size=16).hexdigest() for turn in count())
    return next(mark for mark in marks if mark not in lowered)


def facts_of(job: Job, now: datetime, situation: str = "") -> Facts:
    """What the job's snapshot tells. now: aware; only for how long the log has been silent."""
    seen = job.attempt.seen if job.attempts else None
    output_at = job.track.output_at
    return Facts(
        phase=str(seen.phase) if seen else "unknown",
        native=seen.native if seen else "",
        reasons=(seen.reason,) if seen and seen.reason else (),
        exit_code=seen.exit_code if seen else None,
        signal=seen.signal if seen else None,
        silence_s=(now - output_at).total_seconds() if output_at else None,
        situation=situation,
        cause=job.diagnosis.cause,
        main=job.track.main,
        still_looks=job.track.still_looks,
    )


def _scheduler(facts: Facts) -> list[str]:
    rows = [f"phase: {_one_line(facts.phase)}"]
    if facts.native:
        rows.append(f"its own word: {_one_line(facts.native)}")
    rows += [f"reason: {_one_line(reason)}" for reason in facts.reasons[-REASONS_MAX:]]
    if facts.exit_code is not None:
        rows.append(f"exit code: {facts.exit_code}")
    if facts.signal is not None:
        rows.append(f"signal: {facts.signal}")
    return rows


def _before(facts: Facts) -> list[str]:
    rows = [f"the rules say: {_one_line(facts.situation)}"] if facts.situation else []
    rows.append(f"cause by the rules: {_one_line(facts.cause)}")
    if facts.main is not None:
        total = f" of {facts.main.total:g}" if facts.main.total is not None else ""
        rows.append(f"milestone: {_one_line(facts.main.name)} {facts.main.value:g}{total}")
    if facts.still_looks:
        rows.append(f"looks without a milestone: {'1' if facts.still_looks == 1 else 'several'}")
    if facts.silence_s is not None:
        rows.append(f"silent for: {about(facts.silence_s)}")
    return rows


def about(seconds: float) -> str:
    """A span in coarse steps: a second more or less must not make another case of it (the cache)."""
    floor = max((span for span in _SPANS_S if span <= seconds), default=0)
    if floor == 0:
        return "less than a minute"
    return f"more than {floor // 3600} h" if floor >= 3600 else f"more than {floor // 60} min"


def _one_line(text: str) -> str:
    """A text of others on one line; it can't begin a line or a section of its own."""
    return plain(text, FACT_CHARS_MAX)
