"""The worlds that messages are said in, and the tables of messages: `english.txt`, `chinese.txt`, `no_acts.txt`.

They were written for these tests; each kind of slip that one of them showed was mended as a kind.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from states.chat import Context, context_of


def world(*runs: str, questions: list[dict[str, Any]] | None = None) -> Context:
    """`name:state` of each run, and the questions."""
    jobs = [dict(zip(("name", "state"), run.split(":"), strict=True)) for run in runs]
    return context_of({"jobs": jobs, "questions": questions or []})


LOOKS_OFF = {
    "id": "Q-7",
    "job": "gpt-mini-3",
    "options": ["keep running", "stop"],
    "default": 1,
    "free_text": False,
}
NO_ROOM = {
    "id": "Q-8",
    "job": "seg-unet-2",
    "options": ["queue and wait", "reduce to 4 GPUs"],
    "default": 1,
    "free_text": False,
}
WORLDS = {
    "none": world(),
    "one": world("gpt-mini-3:running"),
    "two": world("gpt-mini-3:running", "seg-unet-2:running"),
    "mixed": world("gpt-mini-3:running", "seg-unet-2:failed", "bleu-eval-9:succeeded"),
    "failed": world("seg-unet-2:failed"),
    "failed3": world("gpt-mini-3:running", "seg-unet-2:failed", "seg-unet-4:failed", "seg-unet-5:failed"),
    "alike": world("gpt-mini-3:running", "gpt-mini-30:running", "gpt-mini-4:queued"),
    "queued": world("gpt-mini-3:queued"),
    "done": world("bleu-eval-9:succeeded"),
    "q": world("gpt-mini-3:running", questions=[LOOKS_OFF]),
    "qb": world("gpt-mini-3:running", "seg-unet-2:running", questions=[LOOKS_OFF]),
    "q2": world("gpt-mini-3:running", "seg-unet-2:not submitted", questions=[LOOKS_OFF, NO_ROOM]),
    "qimg": world(
        "fresh-run:blocked",
        questions=[
            {"id": "Q-9", "job": "fresh-run", "options": ["don't submit"], "default": 1, "free_text": True}
        ],
    ),
    "qdl": world(
        "fetch-laion:running",
        questions=[
            {
                "id": "Q-10",
                "job": "fetch-laion",
                "options": ["keep waiting", "use a cluster path", "stop the download, go on without"],
                "default": 3,
                "free_text": [2],
            }
        ],
    ),
    "qnet": world(
        "fetch-hub:blocked",
        questions=[
            {
                "id": "Q-11",
                "job": "fetch-hub",
                "options": ["a proxy (free text)", "go on offline"],
                "default": "go on offline",
                "free_text": True,
            }
        ],
    ),
    "qclosed": world("gpt-mini-3:running", questions=[{**LOOKS_OFF, "closed": True}]),
}


class Phrase(NamedTuple):
    """One message and its reading; intents and ask are empty where only acts matter."""

    world: str
    message: str
    intents: tuple[str, ...] = ()
    ask: str = ""


def phrases(name: str) -> list[Phrase]:
    """The lines of a table beside this file."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line and not line.startswith("#")]
    return [
        Phrase(row[0], row[1], tuple(row[2].split()) if row[2:] else (), row[3] if row[3:] else "")
        for row in rows
    ]
