"""The preflight check of the environment, in the order of RULES C6: one that was handed, the library's, a working one
below the workspace, the image's own; and the imports that the script really makes, against its files (C6, D3, D4).

What is refused is not used: it is asked about with the reason, and by default a complete one is built. One that a run
of ours has built and that lacks a library is completed by a run of its own, from the stated requirements alone: a
package is never guessed from the name of an import.

Never: run a file of the workspace; take an environment silently that could not be seen.
"""

from __future__ import annotations

import posixpath
import shlex
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from agent.lint import shell_text
from agent.ports import Ports
from agent.staging import environment as files
from agent.staging.assets import Ground, ground
from agent.staging.scripts import imports
from agent.staging.wheels import REQUIREMENTS
from states.environments import (
    OWN_FOLDER,
    Judged,
    is_our_own,
    judge_environment,
    kept_folders,
    listed,
    python_path,
)
from states.imports import Imports, is_module_name
from states.job import Check, CheckLevel, Job
from states.staging import PREPARE

STANDARD = frozenset(sys.stdlib_module_names) | {"distutils", "imp", "asyncore", "asynchat"}
"""Modules that Python brings, in one version or another."""

CONVENTIONAL = (".venv", "venv")
OWN_MAX = 20
"""Environments of our own that are looked at, the newest first."""


def environment(job: Job, ports: Ports, remembered: Callable[[], Check | None]) -> Check:
    """C6. remembered: the library's fit, asked only when none was handed."""
    where = ground(job)
    found = _imports(job, where)
    outside = found.outside(STANDARD)
    leaning = python_path(job.spec.env.get("PYTHONPATH", ""), _kept(job)) if where.in_image else ""
    if leaning:
        mend = "Take it out of `env`; an environment below the workspace brings all that the run imports."
        return _row("refuse", f"{leaning}.", rule="D3", mend=mend)
    if any(asked.kind == "environment" and asked.chosen == "image" for asked in job.questions):
        said = f"the own one of {job.spec.image}, as answered"
        return _row("fine", said, found={"environment": ""}, facts=_facts(found))
    if job.spec.environment:
        return _of(job, where, job.spec.environment, outside, found, None)
    known = remembered()
    if known is not None:
        return _of(job, where, str(known.found["environment"]), outside, found, known)
    for path in _below_the_workspace(job, where):
        judged = _judge(job, where, path, outside)
        if judged is not None and judged.level == "fine" and outside:
            said = f"{path}, below the workspace: {judged.why}"
            full = posixpath.join(job.spec.workspace, path)
            facts = {**_facts(found), "note": f"environment: {said}"}
            return _row("fine", said, found={"environment": full}, facts=facts)
    return _the_images_own(where, outside, found)


def _of(
    job: Job, where: Ground, path: str, outside: tuple[str, ...], found: Imports, known: Check | None
) -> Check:
    """One that was handed or remembered. A remembered one that is refused is stale (F5, H3)."""
    judged = _judge(job, where, path, outside)
    if judged is None:
        return known or _row("could_not", f"{path} cannot be seen from here")
    if judged.level == "refused":
        return _refused(job, where, path, judged, known)
    if known is not None:
        return known.model_copy(update={"facts": {**known.facts, **_facts(found)}})
    level: CheckLevel = {"note": "warn", "unseen": "could_not"}.get(judged.level, "fine")  # type: ignore[assignment]
    word = _unpacked(where, path)
    return _row(level if not word else "note", f"{path}: {judged.why}{word}", facts=_facts(found))


def _refused(job: Job, where: Ground, path: str, judged: Judged, known: Check | None) -> Check:
    facts = _to_build_from(where)
    own = is_our_own(path, job.spec.workspace)
    if judged.lacks and own and facts.get("requirements") and "repair" not in job.checks:
        said = f"{path}: {judged.why}. It is one of ours, and is completed from {facts['requirements']} first"
        found = dict(known.found) if known is not None else {}
        return _row("note", f"{said}.", found=found, facts={**facts, "environment": path, PREPARE: "repair"})
    if known is not None:
        facts["stale"] = path
    remembered = " It was remembered for this kind of work." if known is not None else ""
    empty = (
        "" if facts.get("requirements") else " A build would hold Python alone: no requirements.txt is there."
    )
    rule = "C6" if judged.lacks or judged.why.startswith("it has no") else "D3"
    return _row("ask", f"{path}: {judged.why}.{remembered}{empty}", rule=rule, facts=facts)


def _the_images_own(where: Ground, outside: tuple[str, ...], found: Imports) -> Check:
    said = "the one that the image or the machine has"
    if not outside:
        return _row("fine", said)
    word = f"{said}; whether it has {listed(outside)}, which the script imports, cannot be seen from here"
    return _row("could_not", word, facts=_facts(found))


def _judge(job: Job, where: Ground, path: str, outside: tuple[str, ...]) -> Judged | None:
    """None where the environment's folder cannot be seen from here."""
    seen = _here(where, path)
    if seen is None or not (seen.parent.exists() or _is_in_workspace(where, seen) or where.local):
        return None
    return judge_environment(files.look(seen), kept=_kept(job), in_image=where.in_image, imports=outside)


def _here(where: Ground, path: str) -> Path | None:
    full = posixpath.normpath(posixpath.join(where.workspace, path))
    return where.on_this_machine(full)


def _is_in_workspace(where: Ground, seen: Path) -> bool:
    return where.here is not None and seen.is_relative_to(where.here)


def _kept(job: Job) -> tuple[str, ...]:
    return kept_folders(job.spec.workspace, job.spec.mounts)


def _below_the_workspace(job: Job, where: Ground) -> Iterator[str]:
    """Those of our own that were built for this image, the newest first; on a cluster without images also what lies
    there under its usual name (in an image, nobody knows which Python it was made from)."""
    if where.here is None:
        return
    own = sorted(islice((where.here / OWN_FOLDER).glob("*/bin/python"), 500), key=_written, reverse=True)
    for python in own[:OWN_MAX]:
        folder = python.parent.parent
        if not where.in_image or _image_of(folder) == job.spec.image:
            yield f"{OWN_FOLDER}/{folder.name}"
    if not where.in_image:
        yield from (name for name in CONVENTIONAL if (where.here / name / "bin").is_dir())


def _written(path: Path) -> float:
    return path.lstat().st_mtime


def _image_of(folder: Path) -> str:
    """The image that a build of ours wrote down beside the interpreter."""
    try:
        return (folder / "image").read_text("utf-8").strip()
    except OSError:
        return ""


def _imports(job: Job, where: Ground) -> Imports:
    return imports(shell_text(job.spec.command), where.here) if where.here is not None else Imports()


def _facts(found: Imports) -> dict[str, str]:
    """What a smoke run imports first: the modules themselves, as the script names them (D4)."""
    names = [name for name in found.needed if name.partition(".")[0] not in STANDARD and is_module_name(name)]
    return {"imports": shlex.join(names)} if names else {}


def _to_build_from(where: Ground) -> dict[str, str]:
    """The requirements that a build would install, below the workspace."""
    if where.here is None:
        return {}
    names = [name for name in REQUIREMENTS if name.endswith(".txt") and (where.here / name).is_file()]
    return {"requirements": names[0]} if names else {}


def _unpacked(where: Ground, path: str) -> str:
    seen = _here(where, path)
    if seen is None or not files.is_an_unpacked_pack(seen):
        return ""
    return "; it was unpacked from a conda pack: `bin/conda-unpack` must have been run in it once"


def _row(
    level: CheckLevel,
    evidence: str,
    *,
    rule: str = "C6",
    mend: str = "",
    found: dict[str, str] | None = None,
    facts: dict[str, str] | None = None,
) -> Check:
    return Check(
        name="environment",
        level=level,
        evidence=evidence,
        mend=mend,
        rule=rule,
        question="environment" if level == "ask" else "",
        found=found or {},
        facts=facts or {},
    )
