"""What must hold after a soak, told from the stored rows, the clusters' own records and what the jobs wrote down.

Never: the product's word for what a job did; an exception for a kind of kill.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent.store import Store
from states.job import Job, State
from states.replay import Asked, apart, origin, retold
from tests.soak.drive import HEALTHY_S, Delegated
from tests.soak.ground import CANARY, OnCluster
from tests.soak.trainee import SICK


class Evidence(NamedTuple):
    """Everything that is looked at. told: the jobs' own ledger; stopped: runs that a person stopped; kept: files in
    which no key's value may stand; alive: attempts of which a program lives; said_alive: attempts whose cluster calls
    them alive, true or not."""

    store: Store
    delegated: Sequence[Delegated]
    stopped: frozenset[str]
    jobs: Sequence[OnCluster]
    told: Sequence[Mapping[str, Any]]
    kept: Sequence[Path]
    alive: frozenset[str] = frozenset()
    said_alive: frozenset[str] = frozenset()

    def runs(self) -> dict[str, Job]:
        """Every stored run by its id."""
        with self.store.read() as connection:
            ids = [row[0] for row in connection.exec_driver_sql("SELECT id FROM job ORDER BY created_at, id")]
        return {run: self.store.load(run) for run in ids}

    def of(self, name: str, what: str) -> list[Mapping[str, Any]]:
        """What the job of an attempt wrote down of one kind."""
        return [line for line in self.told if line["name"] == name and line["what"] == what]


Found = Iterator[str]


def settled(evidence: Evidence, runs: Mapping[str, Job]) -> Found:
    """Every request is one run, and every run has ended or asks something.

    But for one whose cluster calls its job alive, in the end still: a killed controller forgets an end for good, and
    what waits for that job's node waits for ever. Both are rightly watched on.
    """
    for key, run in {(one.label, one.run) for one in evidence.delegated}:
        if run not in runs:
            yield f"{key} was delegated as {run}, which is not stored"
    wanted = {one.run for one in evidence.delegated}
    yield from (
        f"{run} was delegated by nobody" for run in runs if run not in wanted and not runs[run].parent
    )
    keys = Counter(job.request_id for job in runs.values() if job.request_id)
    yield from (f"{times} runs have the request id {key}" for key, times in keys.items() if times > 1)
    for job in runs.values():
        watched = bool(job.attempts) and job.attempt.name in evidence.said_alive
        if not job.is_terminal and not job.open_questions and not watched:
            yield f"{job.id} is {job.state} and asks nothing"
        if job.is_terminal and job.open_questions:
            yield f"{job.id} is over and asks something"


def one_job_each(evidence: Evidence, runs: Mapping[str, Job]) -> Found:
    """One cluster job for each attempt, each of an attempt that is known, and never two programs of a run at once."""
    attempts = {attempt.name: (job, attempt) for job in runs.values() for attempt in job.attempts}
    by_name: dict[str, set[str]] = {}
    for one in evidence.jobs:
        # What a killed slurmctld forgot before it began is not there any more, and was rightly sent again.
        began = any(line["job"] == one.id for line in evidence.of(one.name, "start"))
        if began or one.cluster == "local" or one.ended != "lost":
            by_name.setdefault(one.name, set()).add(one.id)
    for name, ids in by_name.items():
        if name not in attempts:
            yield f"{name} is on a cluster ({', '.join(ids)}) and no run knows it"
        elif len(ids) > 1:
            yield f"{name} has {len(ids)} cluster jobs: {', '.join(sorted(ids))}"
    for name, (job, attempt) in attempts.items():
        if (
            attempt.cluster_job_id
            and job.cluster == "local"
            and attempt.cluster_job_id not in by_name.get(name, ())
        ):
            yield f"{name} is said to be {attempt.cluster_job_id}, which its cluster does not have"
        # A killed slurmctld may start a job again under its id; that two run at once is told below.
        if job.cluster == "local" and (begun := len(evidence.of(name, "start"))) > 1:
            yield f"the program of {name} began {begun} times"
    yield from (
        f"two programs of {line['label']} ran at once"
        for line in evidence.told
        if line["what"] == "two at once"
    )


def told_truly(evidence: Evidence, runs: Mapping[str, Job]) -> Found:
    """What is said to have succeeded did, by its own word and its cluster's; and the other way round."""
    ends = {one.name: one.ended for one in evidence.jobs}
    for job in runs.values():
        if not job.attempts:
            continue
        name = job.attempt.name
        did = any(line["code"] == 0 for line in evidence.of(name, "end"))
        # A killed slurmctld forgets ends and starts: there the program's own word alone is true.
        doubted = job.cluster == "local" and ends.get(name) not in ("good", "lost")
        if job.state is State.succeeded and (not did or doubted):
            yield f"{job.id} is said to have succeeded; its program {'did' if did else 'did not'}, " + (
                f"its cluster says {ends.get(name, 'nothing')!r}"
            )
        if did and ends.get(name) == "good" and job.state is not State.succeeded and job.stop is None:
            yield f"{job.id} is {job.state} ({job.outcome}), but its program and its cluster say it succeeded"
        if job.is_terminal and ends.get(name) == "":
            yield f"{job.id} is {job.state}, and its cluster job {name} lives"
        if (
            job.is_terminal and job.cluster == "local" and name in evidence.alive
        ):  # a killed controller leaves some
            yield f"{job.id} is {job.state}, and its program lives"


def none_stopped_unasked(evidence: Evidence, runs: Mapping[str, Job]) -> Found:
    """No program that was well got a signal that nobody asked for. One that itself stood still may look hung."""
    kinds = {one.run: one.kind for one in evidence.delegated}
    for job in runs.values():
        if kinds.get(job.id) in SICK:
            continue
        terms = [line for attempt in job.attempts for line in evidence.of(attempt.name, "term")]
        slow = any(line["slowest_s"] >= HEALTHY_S for line in terms)
        answered = any(question.chosen == "stop" for question in job.questions)
        # What Slurm was not asked to stop it aborted by itself: a killed slurmctld knows the job no longer.
        asked = any(row["kind"] == "stop_job" for row in evidence.store.effects_of(job.id))
        if (
            terms
            and (asked or job.cluster == "local")
            and job.id not in evidence.stopped
            and not answered
            and not slow
        ):
            why = f"{job.stop.rule}: {job.stop.reason}" if job.stop else "and it does not know why"
            yield f"{job.id} was well and got a signal at {terms[0]['at']} ({why})"


def journals_hold(evidence: Evidence, runs: Mapping[str, Job]) -> Found:
    """No gap in a journal, and its fold is the stored run and asks for the same effects."""
    for job in runs.values():
        rows = evidence.store.journal(job.id)
        if [row["seq"] for row in rows] != list(range(1, job.seq + 1)):
            yield f"the journal of {job.id} has a gap"
            continue
        asked: dict[int, list[dict[str, Any]]] = {}
        for row in evidence.store.effects_of(job.id):
            asked.setdefault(row["seq"], []).append(row["body"])
        recorded = [Asked(row["seq"], row["to"], tuple(asked.get(row["seq"], ()))) for row in rows]
        folded, differs = retold(origin(job), evidence.store.history(job.id), recorded)
        if differs := differs or apart(folded, job):
            yield f"{job.id}: {differs}"


def nothing_left(evidence: Evidence, runs: Mapping[str, Job]) -> Found:
    """Whatever was asked for was done or given up aloud."""
    for job in runs.values():
        for row in evidence.store.effects_of(job.id):
            if row["done_at"] is None:
                yield f"{row['kind']} of {job.id} was asked for at event {row['seq']} and never done"


def told_once(evidence: Evidence, runs: Mapping[str, Job]) -> Found:
    """No message twice."""
    for run in runs:
        told = Counter((row["stage"], row["text"]) for row in evidence.store.messages(run))
        yield from (f"{run} was told {times} times: {words}" for words, times in told.items() if times > 1)


def nothing_leaks(evidence: Evidence, runs: Mapping[str, Job]) -> Found:
    """The key's value stands in no row and in no file that the product keeps."""
    if not any(line["kind"] == "leaky" and line["what"] == "end" for line in evidence.told):
        return  # nobody printed it
    for file in evidence.kept:
        if CANARY.encode() in file.read_bytes():
            yield f"the key's value stands in {file}"
    database = str(evidence.store.engine.url.database)
    with sqlite3.connect(f"{Path(database).as_uri()}?mode=ro", uri=True) as connection:
        if any(CANARY in line for line in connection.iterdump()):
            yield "the key's value stands in the database"
    connection.close()


PROMISES: Mapping[str, Callable[[Evidence, Mapping[str, Job]], Found]] = {
    "each request is one run, and it has ended or asks": settled,
    "one cluster job for each attempt": one_job_each,
    "success is said of what succeeded, and of all that did": told_truly,
    "nothing healthy was stopped unasked": none_stopped_unasked,
    "journals have no gap and fold to what is stored": journals_hold,
    "nothing that was asked is left undone": nothing_left,
    "nothing was told twice": told_once,
    "no key's value was kept": nothing_leaks,
}


def broken(evidence: Evidence) -> dict[str, list[str]]:
    """{promise: where it did not hold}, every promise."""
    runs = evidence.runs()
    return {name: list(look(evidence, runs)) for name, look in PROMISES.items()}
