"""Heavy intermediates that go below the workspace instead of the job's own temporary space (RULES D6).

A note and no more: it costs room and speed on the shared disk, and harms no result.

Never: take an output, a checkpoint or a cache of downloads for an intermediate; those are kept on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from states.lint.environment import setting
from states.lint.facts import Run, Walked
from states.lint.finding import Finding
from states.lint.options import options
from states.lint.scene import PLACES_OF_A_NODE, Scene
from states.lint.work import is_work

_MEND = (
    "Let it go to the job's own temporary space on the node, and keep only final results below the workspace."
)
_NAMES = re.compile(
    r"(?:\w+_)?(?:(?:tmp|temp|temporary)_?(?:dir|directory|folder|path|root)|(?:scratch|spill|shuffle)_?\w*)"
)
VARIABLES = ("TMPDIR", "TMP", "TEMP", "RAY_TMPDIR", "SPARK_LOCAL_DIRS", "JOBLIB_TEMP_FOLDER")


def find(walked: Walked, scene: Scene) -> Iterator[Finding]:
    """One note for each place that a run names for what it only needs meanwhile."""
    told: set[str] = set()
    for run in walked.runs:
        if not is_work(run):
            continue
        for name, path in _places(run):
            if path not in told and _is_kept(path, scene):
                told.add(path)
                why = f"{name} sends temporary files to {path}, below the workspace"
                yield Finding("intermediates_kept", "note", run.line, why, _MEND, run.unit.file)


def _places(run: Run) -> Iterator[tuple[str, str]]:
    for option in options(run):
        if option.value is not None and _NAMES.fullmatch(option.name) and "/" in option.value.text:
            yield option.flag.text.partition("=")[0], option.value.text
    for name in VARIABLES:
        path = setting(run, name)
        if path is not None and "/" in path:
            yield name, path


def _is_kept(path: str, scene: Scene) -> bool:
    """Below the workspace, or relative to where the job starts; not a folder of the node or of a variable."""
    return not path.startswith(("$", "~", *PLACES_OF_A_NODE)) and scene.keeps(path)
