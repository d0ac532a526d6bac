"""What the lint says: one finding is a place, what is wrong there, and the mend.

Levels as in the preflight report: `refuse` ends the run unsubmitted, `ask` needs a word of the person, `warn` and
`note` are rows of the report (RULES C11, C12, B4, D1, D6).

Never: hold the value of a credential; `lint.py` redacts every text.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Level = Literal["refuse", "ask", "warn", "note"]

Kind: TypeAlias = Literal[
    "package_install",
    "credential",
    "broken_continuation",
    "bad_directive",
    "bad_manifest",
    "figures_contradict",
    "missing_path",
    "keepalive",
    "runtime_download",
    "output_node_local",
    "intermediates_kept",
    "checkpoint_unbounded",
    "no_progress",
    "conda_no_hook",
    "background_no_wait",
    "blank_variable",
    "no_time_limit",
    "stdout_buffered",
    "exit_code_masked",
    "no_effect",
    "quoting",
    "unbounded_wait",
]

ORDER: dict[Level, int] = {"refuse": 0, "ask": 1, "warn": 2, "note": 3}


class Finding(NamedTuple):
    """line counts from 1 in `file`; 0 where something is absent. text: the line as it stands, redacted.

    why: what happens, as a clause; mend: what to do instead, as a sentence.
    """

    kind: Kind
    level: Level
    line: int
    why: str
    mend: str
    file: str = ""
    text: str = ""
