"""The preflight check of a staged package set: the whole closure, offline, for the target (RULES D2).

Stated in the request (`packages:`), half a set is refused with the names that are missing. One that only lies in the
workspace under its usual name is checked too: a half one is told, and no build leans on it.

Never: ask an index; take half a set for whole; judge a set for a Python that nobody named and nothing shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agent.ports import Ports
from agent.staging import environment, wheels
from agent.staging.assets import ground
from states.assets import PackageSet
from states.job import Check, CheckLevel, Job
from states.packages import Closure, Staged, Target, Wanted, closure

SAID_MAX = 15
"""Missing packages that the row spells out; the rest is counted."""


def packages(job: Job, ports: Ports) -> Check:
    """D2: every requirement and everything that those require is staged, for the target's Python and platform."""
    stated, here = job.request.packages, ground(job).here
    if here is None:
        if stated is None:
            return _row("fine", "the request states none")
        return _row("could_not", "the workspace cannot be seen from here, so its package set was not checked")
    if stated is not None:
        return _checked(job, here, stated, stated=True)
    for requirements, folder in wheels.by_convention(here):
        return _checked(job, here, PackageSet(requirements=requirements, wheels=folder), stated=False)
    return _row("fine", "none is staged")


def _checked(job: Job, here: Path, wanted: PackageSet, *, stated: bool) -> Check:
    wrong: CheckLevel = "refuse" if stated else "warn"
    try:
        lines = wheels.wanted(here, wanted.requirements)
        shelf = wheels.shelf(here / wanted.wheels) if wanted.wheels else _installed(job, here)
    except (OSError, ValueError) as error:
        return _row(wrong, f"the package set cannot be read: {error}", mend="Name the files that hold it.")
    python = wanted.python or _python_of(job, here) or shelf.python()
    if not python:
        mend = 'Say which Python it is for: `packages: {python: "3.11"}`.'
        return _row(
            "could_not", "nothing tells which Python the set is for, so it was not checked", mend=mend
        )
    target = Target(python, wanted.platform)
    found = closure(lines, shelf.staged, target)
    return _judged(found, lines, shelf, target, wanted, wrong)


def _judged(
    found: Closure,
    lines: Wanted,
    shelf: wheels.Shelf,
    target: Target,
    wanted: PackageSet,
    wrong: CheckLevel,
) -> Check:
    where = f"{wanted.wheels or 'the environment'} for Python {target.python} on {target.platform}"
    broken = f" Not whole archives: {', '.join(shelf.unread[:SAID_MAX])}." if shelf.unread else ""
    if found.missing:
        said = "; ".join(one.words for one in found.missing[:SAID_MAX])
        more = f"; and {len(found.missing) - SAID_MAX} more" if len(found.missing) > SAID_MAX else ""
        count = len(found.missing)
        evidence = (
            f"{count} of what {wanted.requirements} needs {'is' if count == 1 else 'are'} missing in {where}:"
        )
        return _row(wrong, f"{evidence} {said}{more}.{broken}", mend=_mend(wanted, target))
    if found.unread:
        names = ", ".join(found.unread[:SAID_MAX])
        return _row(
            "could_not", f"in {where} nothing else is missing, but these were not checked: {names}.{broken}"
        )
    facts = {"requirements": wanted.requirements, "wheels": wanted.wheels} if wanted.wheels else {}
    told = f"all {len(found.chosen)} packages that {wanted.requirements} needs are in {where}{broken}"
    return _row("fine", told, facts=facts if not wanted.requirements.endswith(".lock") else {})


def _mend(wanted: PackageSet, target: Target) -> str:
    if not wanted.wheels:
        return "Install them into the environment, or name another with `environment:`."
    platform = target.platform if target.platform.startswith("m") else f"manylinux_2_28_{target.arch}"
    return (
        "Stage the rest where there is a network: "
        f"pip download -r {wanted.requirements} -d {wanted.wheels} --only-binary=:all: "
        f"--python-version {target.python} --platform {platform}"
    )


def _installed(job: Job, here: Path) -> wheels.Shelf:
    if not job.spec.environment:
        raise FileNotFoundError("it names no `wheels` folder, and the request no `environment`")
    found: Iterable[Staged] = environment.packages(here / job.spec.environment)
    return wheels.Shelf(tuple(found))


def _python_of(job: Job, here: Path) -> str:
    return environment.look(here / job.spec.environment).version if job.spec.environment else ""


def _row(level: CheckLevel, evidence: str, *, mend: str = "", facts: dict[str, str] | None = None) -> Check:
    return Check(
        name="packages", level=level, evidence=evidence, mend=mend, rule="D2", question="", facts=facts or {}
    )
