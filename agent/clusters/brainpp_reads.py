"""What can be asked of the tools without changing anything, and what each kind of answer means.

An answer that did not come is Unreachable, one that cannot be read is Unclear, and only an answer that was read in
whole and has no such job is an absence (RJOB 8).

Never: take an empty or unreadable answer for an end; ask once per job what one call tells of all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent.clusters import brainpp_capacity, brainpp_logs
from agent.clusters.base import NotThere, Unclear, Unreachable
from agent.clusters.brainpp_cli import Cli
from agent.clusters.brainpp_parse import Shown, after_the_cut, names_it, plain, shown, was_cut
from agent.clusters.brainpp_words import NOT_FOUND, NOT_READY, normalise
from agent.clusters.local_time import pause
from agent.clusters.run import KEPT_BYTES, Ran
from states.observation import Phase

NAMES_PER_CALL = 1_000
"""So that an answer stays within what the runner keeps, and the words of a call within what a system takes."""
EVENTS_MAX = 200
EVENT_CHARS_MAX = 1_000
USAGE_RC = 2
"""The tool does not know the option; then only the metadata name can be asked for."""
QUEUE_TRIES = 5
QUEUE_PAUSE_S = 0.5


class Reads:
    """Questions to the tools. name: of the cluster, for messages. All raise Unreachable, and Refused without keys."""

    def __init__(self, name: str, cli: Cli) -> None:
        self.name = name
        self._cli = cli

    def get(self, namespace: str, names: Sequence[str]) -> dict[str, Shown]:
        """What `rjob get` shows of these. A name that is not in the result has no record.

        An answer that cannot speak for all (its middle is missing, or one missing name made the call fail)
        is asked for again in halves. Raises Unreachable, and Unclear for an answer without a readable line.
        """
        if len(names) > NAMES_PER_CALL:
            first, rest = names[:NAMES_PER_CALL], names[NAMES_PER_CALL:]
            return self.get(namespace, first) | self.get(namespace, rest)
        ran = self._cli.rjob(["get", *names, f"--namespace={namespace}"], namespace)
        text = f"{ran.stdout}\n{ran.stderr}"
        if ran.rc != 0 and not NOT_FOUND.search(text):
            raise self.unreachable("the jobs", ran)
        seen = {job.name: job for job in shown(text)}
        if ran.rc == 0 and not was_cut(text, KEPT_BYTES):
            return _readable(ran, text, seen, names)
        if len(names) == 1:
            return {name: seen[name] for name in names if name in seen}
        half = len(names) // 2
        return self.get(namespace, names[:half]) | self.get(namespace, names[half:])

    def called(self, namespace: str, name: str) -> Sequence[Shown]:
        """The job of that metadata name, and any that were given it as display name only (a platform that adds
        a suffix of its own although it was told not to)."""
        ran = self._cli.rjob(["list", f"--name={name}", f"--namespace={namespace}"], namespace)
        text = f"{ran.stdout}\n{ran.stderr}"
        if ran.rc not in (0, USAGE_RC) and not NOT_FOUND.search(text):
            raise self.unreachable("the jobs of that name", ran)
        others = {job.name: job for job in shown(text) if job.showname == name}
        return tuple({**others, **self.get(namespace, [name])}.values())

    def phase_of(self, namespace: str, name: str) -> Phase:
        job = self.must_be_there(namespace, name)
        return Phase(normalise({"word": job.word})["phase"])

    def must_be_there(self, namespace: str, name: str) -> Shown:
        job = self.get(namespace, [name]).get(name)
        if job is None:
            raise NotThere(f"{self.name} has no job {name}")
        return job

    def listed(self, namespace: str) -> Sequence[Shown]:
        ran = self._cli.rjob(["list", f"--namespace={namespace}"], namespace)
        if ran.rc != 0:
            raise self.unreachable("the list of jobs", ran)
        return shown(f"{ran.stdout}\n{ran.stderr}")

    def of_creator(self, namespace: str, creator: str) -> frozenset[str]:
        """Names of the account's jobs, by their creator label."""
        items = self.objects(namespace, [])
        return frozenset(
            str(at(item, "metadata", "name"))
            for item in items
            if at(item, "metadata", "labels", "kubebrain.brainpp.cn/creator") == creator
        )

    def objects(self, namespace: str, names: Sequence[str], timeout_s: float | None = None) -> list[Any]:
        """`brainctl get rjobs -o json`. Raises Unreachable, Unclear."""
        words = ["get", "rjobs", *names, "-n", namespace, "-o", "json"]
        ran = self._cli.brainctl(words, namespace, timeout_s=timeout_s)
        if ran.rc != 0:
            raise self.unreachable("the jobs' objects", ran)
        try:
            found = json.loads(ran.stdout or "[]")
        except (ValueError, RecursionError):
            raise Unclear("brainctl answered something that is no JSON, or was cut short") from None
        items = found.get("items", [found]) if isinstance(found, dict) else found
        return items if isinstance(items, list) else []

    def events(self, namespace: str, name: str) -> Sequence[str]:
        ran = self._cli.rjob(["events", name, f"--namespace={namespace}"], namespace)
        if ran.rc != 0:
            if NOT_FOUND.search(f"{ran.stdout}\n{ran.stderr}"):
                raise NotThere(f"{self.name} has no job {name}")
            raise self.unreachable("its events", ran)
        lines = (line.strip() for line in plain(ran.stdout).splitlines())
        return tuple(line[:1000] for line in lines if line)[-EVENTS_MAX:]

    def tail(self, namespace: str, name: str, asked: int) -> brainpp_logs.Had | None:
        ran = self._cli.rjob(["logs", "job", name, "-n", str(asked), f"--namespace={namespace}"], namespace)
        if ran.rc != 0:
            text = f"{ran.stdout}\n{ran.stderr}"
            if NOT_READY.search(text):
                self.must_be_there(namespace, name)
                return None
            if NOT_FOUND.search(text):
                raise NotThere(f"{self.name} has no job {name}")
            raise self.unreachable("its log", ran)
        if not ran.stdout and self.phase_of(namespace, name) in (Phase.pending, Phase.starting):
            return None
        cut = was_cut(ran.stdout, KEPT_BYTES)
        text = after_the_cut(ran.stdout) if cut else ran.stdout
        return brainpp_logs.had(plain(text), asked, cut=cut)

    def unreachable(self, what: str, ran: Ran) -> Unreachable:
        return Unreachable(f"{self.name} did not give {what}: {self._cli.words(ran)}")

    def queues(self, namespace: str) -> list[dict[str, Any]]:
        """Every queue of the cluster, asked for again while the answer is cut short. Raises Unreachable, Unclear."""
        for attempt in range(QUEUE_TRIES):
            if attempt:
                pause(QUEUE_PAUSE_S)
            ran = self._cli.brainctl(["get", "queues", "-o", "json"], namespace)
            if ran.rc != 0:
                raise self.unreachable("the queues", ran)
            found = brainpp_capacity.parse(ran.stdout)
            if found is not None:
                return found
        raise Unclear(f"the list of queues came cut short {QUEUE_TRIES} times; ask again later")


def _readable(ran: Ran, text: str, seen: Mapping[str, Shown], names: Iterable[str]) -> dict[str, Shown]:
    """The jobs asked for. A line that names one without being readable is an unknown word, not an absence."""
    if not seen and ran.stdout.strip() and not NOT_FOUND.search(text):
        raise Unclear(f"rjob answered something that cannot be read: {plain(ran.stdout).strip()[:200]}")
    found = {}
    for name in names:
        if name in seen:
            found[name] = seen[name]
        elif line := names_it(text, name):
            found[name] = Shown(name, "", "Unreadable", line)
    return found


def at(value: Any, *path: str) -> Any:
    """What stands in nested mappings under these fields; None where there is nothing."""
    for field in path:
        value = value.get(field) if isinstance(value, dict) else None
    return value
