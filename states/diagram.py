"""The machine as pictures and sentences, generated from the table (mermaid needs no program to be drawn).

Never: a second description of the lifecycle; everything here is read from `table.py`.
"""

from __future__ import annotations

from states.job import TERMINAL, State
from states.table import TABLE, Row


def mermaid() -> str:
    """A mermaid state diagram: one arrow per (source, to), labelled with its events."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for line in TABLE:
        for source in line.source:
            if line.to is not None and line.to is not source:
                labels = arrows.setdefault((source, line.to), [])
                labels += [kind for kind in line.on if kind not in labels]
    lines = ["stateDiagram-v2", f"    [*] --> {State.preflight}"]
    lines += [f"    {source} --> {to}: {', '.join(labels)}" for (source, to), labels in arrows.items()]
    lines += [f"    {state} --> [*]" for state in State if state in TERMINAL]
    return "\n".join(lines)


def read_aloud() -> str:
    """Every row as a sentence."""
    return "\n".join(_sentence(line) for line in TABLE)


def _sentence(line: Row) -> str:
    on = " or ".join(_words(kind) for kind in line.on)
    sources = ", ".join(line.source)
    when = f", when {_words(line.when.__name__)}" if line.when else ""
    to = f", then go to {line.to}" if line.to else ""
    return f"[{line.why}] On {on} in {sources}{when}: {_words(line.do.__name__)}{to}."


def _words(name: str) -> str:
    return name.replace("_", " ")
