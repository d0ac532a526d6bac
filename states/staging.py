"""Judgement over staging: what the looks at the assets add up to, and the runs that put in place what is missing.

A row of the report may say `prepare` in its facts: something is missing that a run of its own can put in place
(`stage` fetches assets, `repair` completes an environment of our own). That run goes first; when it passed, the
row's check looks again (RULES D1, C6). The looks themselves are `agent/staging`.

Never: copy what is on a cluster path already; pass an asset that could not be seen; fetch into a hidden place.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from states.assets import Asset
from states.events import ChildFinished
from states.job import Check, CheckLevel, Job
from states.spec import Request
from states.words.wording import size

STAGE_FOLDER = ".watchkeeper/stage"
"""Below the workspace: the fetching program and its list, one folder for each run."""

PREPARE = "prepare"
"""The fact of a row that names the purpose of the run which would put in place what is missing."""

PREPARATIONS: Mapping[str, str] = {"assets": "stage", "environment": "repair"}
"""Rows that may ask for a preparation, and its purpose."""

QUESTIONS: Mapping[str, str] = {"smoke": "smoke-failed", "stage": "assets", "repair": "environment"}

Place = Literal["there", "linked", "mounted", "absent", "outside", "unseen", "partial"]


class Found(NamedTuple):
    """What a look at one asset found. where: the path it was seen at or sought under. size_bytes: of what is to be
    fetched, None where the server does not say. why: what a person should know of it."""

    asset: Asset
    place: Place
    where: str = ""
    size_bytes: int | None = None
    why: str = ""


WORDS: Mapping[Place, str] = {
    "there": "there",
    "linked": "linked to {where}",
    "mounted": "mounted",
    "absent": "not there",
    "outside": "at {where}, which the job does not see: neither below the workspace nor below a mount",
    "unseen": "cannot be seen from here",
    "partial": "only in part at {where}",
}
LEVELS: Mapping[Place, CheckLevel] = {
    "there": "fine",
    "linked": "fine",
    "mounted": "fine",
    "absent": "ask",
    "outside": "ask",
    "unseen": "could_not",
    "partial": "ask",
}
_WORST: tuple[CheckLevel, ...] = ("ask", "warn", "could_not", "note", "fine")


def assets_row(
    found: Sequence[Found], job: Job, *, facts: Mapping[str, str], env: Mapping[str, str] | None = None
) -> Check:
    """The row `assets` (D1). facts: what a fetch needs, where one is possible. env: variables that the run needs to
    find what is there (a cache of the hub). What a staging run was to fetch and is still missing is asked about."""
    if not found:
        return Check(name="assets", level="fine", evidence="the request states none", rule="D1")
    told = _told(job)
    missing = [one for one in found if _to_fetch(one)]
    fetch = bool(missing) and bool(facts) and not told
    levels = [_level(one, fetch=fetch, told=told) for one in found]
    level = next(level for level in _WORST if level in levels)
    said = "; ".join(_words(one) for one in found if one.place not in ("there",) or len(found) <= 6)
    if fetch:
        said += f". To be fetched first: {_sizes(missing)}"
    elif missing and told:
        said += f". {told}"
    mends = [one.why for one, its in zip(found, levels, strict=True) if its == level and one.why]
    mounts = tuple(one.asset.mount for one in found if one.asset.mount)
    values: dict[str, object] = {"mounts": mounts} if mounts else {}
    if env:
        values["env"] = dict(env)
    return Check(
        name="assets",
        level=level,
        evidence=f"{said or f'all {len(found)} are there'}.",
        mend=" ".join(dict.fromkeys(mends))
        or ("Put it there, or name the right path." if level == "ask" else ""),
        rule="D1",
        question="assets" if level == "ask" else "",
        found=values,
        facts={**facts, PREPARE: "stage"} if fetch and level != "ask" else {},
    )


def _to_fetch(one: Found) -> bool:
    return one.asset.can_be_fetched and one.place in ("absent", "partial")


def _told(job: Job) -> str:
    """What a staging run came to, where one is over; "" before."""
    row = job.checks.get("stage")
    if row is None:
        return ""
    if "stage" in job.overridden or row.level == "warn":
        return "The run goes on without it"
    return "It was fetched, and is not where it should be"


def _level(one: Found, *, fetch: bool, told: str) -> CheckLevel:
    if _to_fetch(one) and fetch:
        return "note"
    if _to_fetch(one) and told.startswith("The run goes on"):
        return "warn"
    return LEVELS[one.place]


def _words(one: Found) -> str:
    return f"{one.asset.name}: {WORDS[one.place].format(where=one.where)}"


def _sizes(missing: Sequence[Found]) -> str:
    known = [one.size_bytes for one in missing if one.size_bytes is not None]
    unknown = len(missing) - len(known)
    parts = [size(sum(known))] if known else []
    if unknown:
        parts.append(f"{unknown} of a size that is not known")
    return " and ".join(parts)


# --- the run that proves ---------------------------------------------------------------------------------------

SMOKE_CODE = """\
import importlib, sys, traceback
failed = 0
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException:
        traceback.print_exc()
        failed = 1
print(f"imported: {len(sys.argv) - 1 if not failed else 'not all of them'}")
sys.exit(failed)
"""
"""Imports every name of its arguments and tells all that fail, not only the first."""


# --- the runs that prepare -------------------------------------------------------------------------------------


def preparation_due(job: Job) -> str:
    """The row whose missing part a run of its own should put in place now; "" if none."""
    for name, purpose in PREPARATIONS.items():
        row = job.checks.get(name)
        wanted = row is not None and row.facts.get(PREPARE) == purpose and name not in job.overridden
        running = purpose in job.children.values()
        if wanted and not running and purpose not in job.checks and purpose not in job.overridden:
            return name
    return ""


def look_again_due(job: Job) -> tuple[str, ...]:
    """Rows whose preparation passed, or was given up, since they were looked at: their checks look again."""
    over = [
        name
        for name, purpose in PREPARATIONS.items()
        if name in job.checks and PREPARE in job.checks[name].facts and purpose in job.checks
    ]
    return tuple(name for name in over if _is_over(job, PREPARATIONS[name]))


def _is_over(job: Job, purpose: str) -> bool:
    return job.checks[purpose].level in ("fine", "warn") or purpose in job.overridden


def preparation_request(job: Job, name: str) -> Request:
    """The run that puts in place what the row `name` misses."""
    facts = job.checks[name].facts
    command = stage_command(facts) if name == "assets" else repair_command(facts)
    return prepared(job, command, purpose=f"{PREPARATIONS[name]} for {job.id}")


def prepared(job: Job, command: tuple[str, ...], *, purpose: str) -> Request:
    """A preparation run: in the target image, with the recorded proxy (C7), one core, no GPU, no restart."""
    return Request(
        command=command,
        name=job.request.name,
        purpose=purpose,
        cluster=job.cluster,
        image=job.spec.image or None,
        proxy=job.spec.proxy or None,
        group=job.request.group,
        mounts=job.spec.mounts,
        env={name: value for name, value in job.spec.env.items() if name.startswith("HF_")},
        workspace=job.spec.workspace,
        max_restarts=0,
        insist=True,
    )


def stage_command(facts: Mapping[str, str]) -> tuple[str, ...]:
    """Runs the fetching program that the look has put below the workspace, by the first Python there is."""
    folder = shlex.quote(facts["folder"])
    environment = facts.get("environment", "")
    first = f"{shlex.quote(environment)}/bin/python " if environment else ""
    run = f'command -v "$p" >/dev/null && exec "$p" {folder}/fetch.py {folder}/plan.json'
    none = "echo 'there is no Python in this image to fetch with' >&2; exit 1"
    return ("bash", "-c", f"for p in {first}python3 python; do {run}; done; {none}")


def repair_command(facts: Mapping[str, str]) -> tuple[str, ...]:
    """Completes an environment of our own from its requirements, and writes the lock anew (C6)."""
    return ("bash", "-c", f"set -e; {install_line(facts['environment'], facts)}")


def install_line(folder: str, facts: Mapping[str, str]) -> str:
    """Install the stated requirements, offline where a complete set of wheels is staged, and freeze what came of it
    to `requirements.lock` beside the interpreter: the lock of the environment, in the workspace."""
    python = f"{shlex.quote(folder)}/bin/python"
    source = f" -r {shlex.quote(facts['requirements'])}" if facts.get("requirements") else ""
    wheels = f" --no-index --find-links {shlex.quote(facts['wheels'])}" if facts.get("wheels") else ""
    install = f"{python} -m pip install{wheels}{source} && " if source else ""
    return f"{install}{python} -m pip freeze --all > {shlex.quote(folder)}/requirements.lock"


def failed_runs(job: Job, purpose: str) -> int:
    """How many runs of one kind have failed."""
    return sum(what == f"{purpose}:failed" for what in job.children.values())


# --- what comes back from them ---------------------------------------------------------------------------------

WITHOUT = "without"
COPY = "mounts"
"""Keys of what an answer given to a staging run settles: the download is gone on without; a copy is used."""


def settled_in_child(child: Job) -> dict[str, str]:
    """What the answer to a dragging download settles for the run that asked for it (E11)."""
    for question in child.questions:
        if question.kind == "download" and question.chosen == "without":
            return {WITHOUT: "the download was stopped"}
        if question.kind == "download" and question.chosen == "path":
            return {COPY: question.value}
    return {}


def with_child_row(job: Job, event: ChildFinished) -> Job:
    """The end of a run that was made on the way, as a row of the report. One that failed is asked about, by what
    failed: the network (C7), or what should have been put in place. What an answer settled already is not."""
    copy = event.found.get(COPY, "")
    settled = "fine" if event.ok or copy else "warn" if WITHOUT in event.found else "ask"
    network = event.purpose == "stage" and event.cause.startswith(("network.", "download."))
    row = Check.model_validate(
        {
            "name": event.purpose,
            "level": settled,
            "evidence": f"{event.found.get(WITHOUT, '')} {event.summary}".strip(),
            "rule": "D4" if event.purpose == "smoke" else "D1" if event.purpose == "stage" else "C6",
            "question": "network" if network else QUESTIONS.get(event.purpose, "environment"),
            "facts": {"copy": copy} if copy else {},
        }
    )
    noted = job.but(checks={**job.checks, event.purpose: row})
    if event.purpose != "stage" or event.ok:
        return noted
    kept = f"what {event.child} fetched in part is kept as NAME.part below the workspace; a later try goes on from it"
    return noted.with_note(f"{kept}, and it may be removed")


def purpose_of_child(purpose: str) -> str:
    """What a run that was made on the way is for: the word that its parent knows it by."""
    if purpose.startswith("environment of"):
        return "build"
    return next((known for known in ("stage", "repair") if purpose.startswith(f"{known} for")), "smoke")
