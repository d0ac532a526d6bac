"""Brain++: `rjob` and `brainctl` behind the `Cluster` protocol (RJOB 8; what is not publicly known: RJOB 10).

A job's id is `<namespace>/<metadata name>`; it is submitted with both names, so a lost answer is settled by asking
for the name. One `rjob get NAME...` for each namespace tells any number of jobs; the wrapper's record below the
workspace adds how the command ended. Namespace and group come as a pair from BRAINPP_CHARGED_GROUP.

Options: `storage` (path -> gpfs source), `rjob`, `brainctl` (paths), `entry`, `variables`, `wrapper`,
`private_machine`, `creator`, `timeout_s`, `submit_timeout_s`, `log_settle_s`, `root`; `secrets`: name -> value,
given by the composition root. Without it every call is refused.

Never: call with keys that are not the person's; read "no answer" or an unreadable one as "no such job"; delete of
its own accord; show which groups are configured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from agent.clusters import brainpp_billing, brainpp_capacity, brainpp_doctor, brainpp_logs
from agent.clusters.base import (
    ClusterError,
    JobLine,
    LogPiece,
    NotThere,
    Ref,
    Refused,
    Submission,
    Submitted,
    Unreachable,
)
from agent.clusters.brainpp_argv import KEYS, Site
from agent.clusters.brainpp_cli import GROUP, Cli
from agent.clusters.brainpp_looks import EVENTS_PER_LOOK, Looks, Place
from agent.clusters.brainpp_notes import Notes
from agent.clusters.brainpp_options import Options
from agent.clusters.brainpp_parse import SAFE_NAME, predicted
from agent.clusters.brainpp_reads import Reads
from agent.clusters.brainpp_submit import VERIFY_S, Submits
from agent.clusters.brainpp_words import NOT_FOUND, normalise
from agent.clusters.local_time import now
from agent.paths import state_dir
from states.observation import ENDED, Capabilities, Capacity, Match, NativeEvent, Observation

__all__ = ["BrainppCluster", "normalise"]

CURSOR_LINES = 500
"""Lines asked for first to find a cursor's place; if it is further back, as many as may be asked for."""
FROM_THE_CLUSTER_MAX = 2_000
"""Characters of the tools' own words in a prediction or a rendering."""


class BrainppCluster:
    """The `Cluster` protocol over the command line tools. Holds nothing that is lost with the process."""

    kind: ClassVar[str] = "brainpp"

    def __init__(self, name: str = "brainpp", options: Mapping[str, Any] | None = None) -> None:
        given = dict(options or {})
        secret: Callable[[str], str | None] = given.pop("secrets", lambda _: None)
        self.name = name
        self.options = settings = Options.model_validate(given)
        programs = {"rjob": settings.rjob, "brainctl": settings.brainctl}
        self._cli = Cli(programs, secret, settings.for_the_tools(), settings.timeout_s)
        self._notes = Notes(settings.root or state_dir() / "brainpp" / name)
        self._reads = Reads(name, self._cli)
        self._looks = Looks(self._reads, self._notes, settings.log_settle_s)
        site = Site(settings.storage, settings.private_machine)
        self._submits = Submits(
            self._cli, self._reads, self._notes, site,
            wrapped=settings.wrapper, timeout_s=settings.submit_timeout_s,
        )  # fmt: skip
        self.capabilities = Capabilities(
            name_is_unique=False,
            visible_within_s=30.0,
            submit_timeout_s=settings.submit_timeout_s + VERIFY_S,
            wrapper=settings.wrapper,
            lanes=("normal", "idle"),
            keeps_ended_s=None,
            needs_image=True,
            needs_credentials=KEYS,
            needs_group=True,
        )

    # --- asking about jobs ---------------------------------------------------------------------------------

    def find(self, name: str, *, fingerprint: str = "", owner: str = "") -> Sequence[Match]:
        """The jobs of that name in each configured namespace, by either of their two names. Ours by the note of
        the submit; without one, by the fingerprint that an attempt's name ends with. All must have answered."""
        if not SAFE_NAME.fullmatch(name):
            return ()
        matches = []
        for namespace in brainpp_billing.namespaces(self._cli):
            for job in self._reads.called(namespace, name):
                note = self._notes.get(namespace, name)
                named = not fingerprint or name.endswith(f"-{fingerprint}")
                matches.append(
                    Match(
                        cluster_job_id=f"{namespace}/{job.name}",
                        name=name,
                        phase=normalise({"word": job.word})["phase"],
                        ours=note.is_of(fingerprint, owner) if note else named,
                        submitted_at=note.submitted_at if note else None,
                    )
                )
        return tuple(matches)

    def observe(self, refs: Sequence[Ref]) -> Mapping[str, Observation]:
        """One `rjob get` for each namespace concerned, whatever the number of jobs.

        Beyond that, the events of at most EVENTS_PER_LOOK jobs that ended and may have been preempted.
        """
        places = {ref: self._places(ref) for ref in refs}
        wanted: dict[str, list[str]] = {}
        for namespace, name in dict.fromkeys(place for found in places.values() for place in found):
            wanted.setdefault(namespace, []).append(name)
        seen = {
            (namespace, name): job
            for namespace, names in wanted.items()
            for name, job in self._reads.get(namespace, names).items()
        }
        at, events_left = now(), [EVENTS_PER_LOOK]
        looks = {}
        for ref, found in places.items():
            place = next((place for place in found if place in seen), None)
            fields = normalise({}) if place is None else self._looks.fields(place, seen[place], events_left)
            looks[ref.name] = Observation(taken_at=at, **fields)
        return looks

    def list(self, *, everyone: bool = False) -> Sequence[JobLine]:
        """The jobs of the configured namespaces. The tool shows everybody's; ours are those that were submitted
        from here, those named like an attempt, and with the option `creator` all of that account."""
        at = now()
        lines = []
        for namespace in brainpp_billing.namespaces(self._cli):
            mine = self._mine(namespace)
            for job in self._reads.listed(namespace):
                ours = job.name in mine or self._notes.get(namespace, job.name) is not None
                if ours or everyone:
                    fields = self._looks.fields((namespace, job.name), job, [0])
                    lines.append(
                        JobLine(
                            cluster_job_id=f"{namespace}/{job.name}",
                            name=job.name,
                            observation=Observation(taken_at=at, **fields),
                            ours=ours,
                        )
                    )
        return tuple(lines)

    def logs(self, ref: Ref, *, lines: int = 200, cursor: str = "", head: bool = False) -> LogPiece:
        """Always a bounded tail (`-n`); the cursor is emulated (`brainpp_logs`). Just after an end it is read
        until it stays the same, since the last lines arrive late."""
        place = self._place(ref)
        most = brainpp_logs.LINES_MAX
        lines = min(lines, most)
        asked = most if head else max(lines, CURSOR_LINES) if cursor else lines + 1
        had = self._looks.tail(place, asked)
        if had is not None and asked < most and not brainpp_logs.reached(had, cursor):
            had = self._looks.tail(place, most)
        if had is None:
            return LogPiece(text="", cursor=cursor, ready=False)
        return brainpp_logs.piece(had, lines=lines, cursor=cursor, head=head)

    def events(self, ref: Ref) -> Sequence[NativeEvent]:
        """The lines of `rjob events` as they are: their layout is not publicly known."""
        place = self._place(ref)
        told = self._reads.events(*place)
        if not told:
            self._reads.must_be_there(*place)
        return tuple(NativeEvent(at=None, kind="event", message=line) for line in told)

    def capacity(self, group: str | None = None) -> Capacity:
        """Of the default pair's group, or of a configured one that is named. Raises Unclear when every answer
        was cut short."""
        pair = brainpp_billing.pair_of(self._cli, group or "")
        found = brainpp_capacity.capacity_of(self._reads.queues(pair.namespace), pair)
        if found is None:
            said = f"the cluster has no queue for the group {pair.group!r} in its namespace"
            raise Refused(f"{said}; check {GROUP}", cause="scheduling.unsatisfiable")
        return found

    # --- acting on jobs ------------------------------------------------------------------------------------

    def submit(self, submission: Submission) -> Submitted:
        """One `rjob submit`, and one look at what it made (`brainpp_submit`)."""
        pair = brainpp_billing.pair_of(self._cli, submission.spec.group)
        name, note = self._submits.submit(submission, pair)
        return Submitted(f"{pair.namespace}/{name}", note)

    def stop(self, ref: Ref) -> None:
        """`rjob stop`; it may return before the job is down. A job that ended is left alone."""
        place = self._place(ref)
        if self._reads.phase_of(*place) not in ENDED:
            self._do("stop", place)

    def delete(self, ref: Ref) -> None:
        """`rjob delete`, of an ended job only; what it left in its workspace stays."""
        place = self._place(ref)
        phase = self._reads.phase_of(*place)
        if phase not in ENDED:
            raise Refused(f"{place[1]} has not ended ({phase}); stop it first", retryable=True)
        self._do("delete", place)
        self._notes.drop(*place)

    # --- before a job --------------------------------------------------------------------------------------

    def predict(self, submission: Submission) -> str:
        """`--predict-only`: what the platform expects now. It has said yes to what it then refused (RJOB 0.7)."""
        pair = brainpp_billing.pair_of(self._cli, submission.spec.group)
        text = self._submits.only("--predict-only", submission, pair)
        words = self._cli.hide(text[-FROM_THE_CLUSTER_MAX:])
        counts = predicted(text)
        if counts is None:
            return words or "the cluster said nothing"
        return f"{counts[0]} of {counts[1]} replicas can be placed now\n{words}"

    def render(self, submission: Submission) -> str:
        """The words of the call, one a line, and the object that the platform would make of them, if it tells.
        The values of variables are hidden in both."""
        pair = brainpp_billing.pair_of(self._cli, submission.spec.group)
        argv = self._submits.argv(submission, pair, hide_values=True)
        told = "\n".join(["rjob", *(f"  {json.dumps(word, ensure_ascii=False)}" for word in argv)])
        try:
            made = self._submits.only("--dry-run", submission, pair)[-FROM_THE_CLUSTER_MAX:]
        except ClusterError as error:
            made = f"(the cluster was not asked what it would make of it: {error})"
        return self._cli.hide(f"{told}\n\n{made}")

    def doctor(self) -> Sequence[brainpp_doctor.Finding]:
        """Is this machine set up for it, and how to mend what is not."""
        return brainpp_doctor.examine(self._cli, self.options.storage)

    # --- which job is meant --------------------------------------------------------------------------------

    def _places(self, ref: Ref) -> Sequence[Place]:
        """Where the job may be: as its id says, else under its name in every configured namespace."""
        namespace, _, name = ref.cluster_job_id.rpartition("/")
        name = name or ref.name
        if not SAFE_NAME.fullmatch(name) or (namespace and not SAFE_NAME.fullmatch(namespace)):
            return ()
        found = [namespace] if namespace else brainpp_billing.namespaces(self._cli)
        return [(one, name) for one in found]

    def _place(self, ref: Ref) -> Place:
        """The one place of the job. Raises NotThere."""
        places = self._places(ref)
        if len(places) == 1:
            return places[0]
        for namespace, name in places:
            if self._reads.get(namespace, [name]):
                return namespace, name
        raise NotThere(f"{self.name} has no job {ref.cluster_job_id or ref.name}")

    def _mine(self, namespace: str) -> frozenset[str]:
        creator = self.options.creator
        return self._reads.of_creator(namespace, creator) if creator else frozenset()

    def _do(self, verb: str, place: Place) -> None:
        namespace, name = place
        ran = self._cli.rjob([verb, name, f"--namespace={namespace}"], namespace)
        if ran.rc == 0:
            return
        if NOT_FOUND.search(f"{ran.stdout}\n{ran.stderr}"):
            raise NotThere(f"{self.name} has no job {name}")
        raise Unreachable(f"{self.name} did not {verb} {name}: {self._cli.words(ran)}")
