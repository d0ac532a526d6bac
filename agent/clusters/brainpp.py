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
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from agent.clusters import brainpp_argv, brainpp_capacity, brainpp_doctor, brainpp_logs, wrapper
from agent.clusters.base import (
    JobLine,
    LogPiece,
    NotThere,
    Ref,
    Refused,
    Submission,
    Submitted,
    Unclear,
    Unreachable,
)
from agent.clusters.brainpp_argv import KEYS, PrivateMachine, Site
from agent.clusters.brainpp_cli import ENTRY_VARIABLE, GROUP, Cli, NotHere
from agent.clusters.brainpp_notes import Note, Notes, end_of
from agent.clusters.brainpp_parse import (
    SAFE_NAME,
    Shown,
    after_the_cut,
    created,
    names_it,
    plain,
    predicted,
    shown,
    was_cut,
)
from agent.clusters.brainpp_words import ALREADY_THERE, MAY_BE_A_PREEMPTION, NOT_FOUND, NOT_READY, normalise, refusal
from agent.clusters.local_time import monotonic_s, now, pause
from agent.clusters.run import KEPT_BYTES, Ran
from agent.paths import state_dir
from agent.secrets import advice
from states.credentials import MalformedGroups, Pair, find_pair, groups
from states.observation import ENDED, Capabilities, Capacity, Match, NativeEvent, Observation, Phase
from states.reading import Frozen
from states.spec import Spec

__all__ = ["BrainppCluster", "normalise"]

NAMES_PER_CALL = 2_000
"""So that the words of one call stay far below what a system takes."""
EVENTS_PER_LOOK = 20
"""Ended jobs whose events one look reads to tell a preemption from a failure; the others wait for the next."""
EVENTS_MAX = 200
QUEUE_TRIES = 5
QUEUE_PAUSE_S = 0.5
SETTLE_TRIES = 3
SETTLE_WITHIN_S = 120.0
"""How long after an end was seen the last lines of a log may still be on their way (RJOB 3: about a minute)."""
BEGIN_WITHIN_S = 180.0
"""How long `Running` may be said before the wrapper's record appears; after that the word is believed."""
VERIFY_S = 15.0
CURSOR_LINES = 500
FROM_THE_CLUSTER_MAX = 2_000


class Options(Frozen):
    """What the settings may say of a Brain++ cluster. Times in seconds; the rest: docs/clusters/brainpp.md."""

    rjob: str = "rjob"
    brainctl: str = "brainctl"
    entry: str = ""
    variables: dict[str, str] = {}
    storage: dict[str, str] = {}
    wrapper: bool = True
    private_machine: PrivateMachine = "group"
    creator: str = ""
    timeout_s: float = Field(default=30.0, gt=0)
    submit_timeout_s: float = Field(default=60.0, gt=0)
    log_settle_s: float = Field(default=2.0, ge=0)
    root: Path | None = None


class BrainppCluster:
    """The `Cluster` protocol over the command line tools. Holds nothing that is lost with the process."""

    kind: ClassVar[str] = "brainpp"

    def __init__(self, name: str = "brainpp", options: Mapping[str, Any] | None = None) -> None:
        given = dict(options or {})
        secret: Callable[[str], str | None] = given.pop("secrets", lambda _: None)
        self.name = name
        self.options = Options.model_validate(given)
        variables = dict(self.options.variables)
        if self.options.entry:
            variables[ENTRY_VARIABLE] = self.options.entry
        programs = {"rjob": self.options.rjob, "brainctl": self.options.brainctl}
        self._cli = Cli(programs, secret, variables, self.options.timeout_s)
        self._site = Site(self.options.storage, self.options.private_machine)
        self._notes = Notes(self.options.root or state_dir() / "brainpp" / name)
        self._first_seen: dict[tuple[str, str], float] = {}
        self.capabilities = Capabilities(
            name_is_unique=False,
            visible_within_s=30.0,
            submit_timeout_s=self.options.submit_timeout_s + VERIFY_S,
            wrapper=self.options.wrapper,
            lanes=("normal", "idle"),
            keeps_ended_s=None,
            needs_image=True,
            needs_credentials=KEYS,
            needs_group=True,
        )

    # --- asking about jobs ---------------------------------------------------------------------------------

    def find(self, name: str, *, fingerprint: str = "", owner: str = "") -> Sequence[Match]:
        """The job of that name in each configured namespace. Ours by the note of its submit; without one, by the
        fingerprint that an attempt's name ends with. Every namespace must have answered."""
        if not SAFE_NAME.fullmatch(name):
            return ()
        matches = []
        for namespace in self._namespaces():
            for job in self._get(namespace, [name]).values():
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
            for name, job in self._get(namespace, names).items()
        }
        at, budget = now(), [EVENTS_PER_LOOK]
        looks = {}
        for ref, found in places.items():
            place = next((place for place in found if place in seen), None)
            fields = normalise({}) if place is None else self._fields(place, seen[place], budget)
            looks[ref.name] = Observation(taken_at=at, **fields)
        return looks

    def list(self, *, everyone: bool = False) -> Sequence[JobLine]:
        """The jobs of the configured namespaces. The tool shows everybody's; ours are those that were submitted
        from here, those named like an attempt, and with the option `creator` all of that account."""
        at = now()
        lines = []
        for namespace in self._namespaces():
            mine = self._of_creator(namespace) if self.options.creator else frozenset()
            for job in self._listed(namespace):
                ours = job.name in mine or self._is_ours(namespace, job.name)
                if ours or everyone:
                    fields = self._fields((namespace, job.name), job, [0])
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
        namespace, name = self._place(ref)
        lines = min(lines, brainpp_logs.LINES_MAX)
        most = brainpp_logs.LINES_MAX
        asked = most if head else max(lines, CURSOR_LINES) if cursor else lines + 1
        had = self._tail(namespace, name, asked)
        if had is not None and not brainpp_logs.reached(had, cursor) and asked < most:
            had = self._tail(namespace, name, most)
        if had is None:
            return LogPiece(text="", cursor=cursor, ready=False)
        return brainpp_logs.piece(had, lines=lines, cursor=cursor, head=head)

    def events(self, ref: Ref) -> Sequence[NativeEvent]:
        """The lines of `rjob events` as they are: their layout is not publicly known."""
        namespace, name = self._place(ref)
        told = self._events(namespace, name)
        if not told:
            self._must_be_there(namespace, name)
        return tuple(NativeEvent(at=None, kind="event", message=line) for line in told)

    def capacity(self, group: str | None = None) -> Capacity:
        """Of the default pair's group, or of a configured one that is named. Raises Unclear when every answer
        was cut short."""
        pair = self._pair(group or "")
        for attempt in range(QUEUE_TRIES):
            if attempt:
                pause(QUEUE_PAUSE_S)
            ran = self._cli.brainctl(["get", "queues", "-o", "json"], pair.namespace)
            if ran.rc != 0:
                raise self._unreachable("the queues", ran)
            queues = brainpp_capacity.parse(ran.stdout)
            if queues is None:
                continue
            found = brainpp_capacity.capacity_of(queues, pair)
            if found is None:
                said = f"the cluster has no queue for the group {pair.group!r} in its namespace"
                raise Refused(f"{said}; check {GROUP}", cause="scheduling.unsatisfiable")
            return found
        raise Unclear(f"the list of queues came cut short {QUEUE_TRIES} times; ask again later")

    # --- acting on jobs ------------------------------------------------------------------------------------

    def submit(self, submission: Submission) -> Submitted:
        """One `rjob submit`. The name that it reports counts, whatever the exit status (RJOB 7)."""
        pair, spec = self._pair(submission.spec.group), submission.spec
        argv = self._argv(submission, pair, stage=True)
        self._cli.keys()
        self._notes.put(pair.namespace, submission.name, self._note(submission))
        try:
            ran = self._cli.rjob(argv, pair.namespace, timeout_s=self.options.submit_timeout_s)
            text = f"{ran.stdout}\n{ran.stderr}"
            name = created(text, submission.name)
            if not name:
                raise self._turned_down(ran, plain(text), spec)
        except NotHere as error:
            self._notes.drop(pair.namespace, submission.name)
            raise Refused(str(error)) from None
        except Refused:
            self._notes.drop(pair.namespace, submission.name)
            raise
        notes = [self._difference(pair, name, spec)]
        if name != submission.name:
            self._notes.put(pair.namespace, name, self._note(submission))
            notes.append(f"the platform named it {name}, although the name was given")
        if ran.rc != 0:
            notes.append(f"rjob ended with status {ran.rc} although the job was created: {self._cli.words(ran)}")
        return Submitted(f"{pair.namespace}/{name}", "; ".join(filter(None, notes)))

    def stop(self, ref: Ref) -> None:
        """`rjob stop`; it may return before the job is down. A job that ended is left alone."""
        namespace, name = self._place(ref)
        if self._phase_of(namespace, name) not in ENDED:
            self._do("stop", namespace, name)

    def delete(self, ref: Ref) -> None:
        """`rjob delete`, of an ended job only; what it left in its workspace stays."""
        namespace, name = self._place(ref)
        phase = self._phase_of(namespace, name)
        if phase not in ENDED:
            raise Refused(f"{name} has not ended ({phase}); stop it first", retryable=True)
        self._do("delete", namespace, name)
        self._notes.drop(namespace, name)

    # --- before a job --------------------------------------------------------------------------------------

    def predict(self, submission: Submission) -> str:
        """`--predict-only`: what the platform expects now. It has said yes to what it then refused (RJOB 0.7)."""
        text = self._only("--predict-only", submission)
        counts = predicted(text)
        words = self._cli.hide(text.strip())[-FROM_THE_CLUSTER_MAX:]
        if counts is None:
            return words or "the cluster said nothing"
        fit, total = counts
        return f"{fit} of {total} replicas can be placed now\n{words}"

    def render(self, submission: Submission) -> str:
        """The words of the call, one a line, and the object the platform would make of them, if it tells. The
        values of variables are hidden in both."""
        pair = self._pair(submission.spec.group)
        argv = self._argv(submission, pair, hide_values=True)
        told = "\n".join(["rjob", *(f"  {json.dumps(word, ensure_ascii=False)}" for word in argv)])
        try:
            made = self._only("--dry-run", submission).strip()
        except (Refused, Unreachable, Unclear) as error:
            made = f"(the cluster was not asked what it would make of it: {error})"
        return self._cli.hide(f"{told}\n\n{made[-FROM_THE_CLUSTER_MAX:]}")

    def doctor(self) -> Sequence[brainpp_doctor.Finding]:
        """Is this machine set up for it, and how to mend what is not."""
        return brainpp_doctor.examine(self._cli, self.options.storage)

    # --- whom it is billed to, and where it lives ----------------------------------------------------------

    def _pairs(self) -> tuple[Pair, ...]:
        value = self._cli.setting(GROUP)
        if not value:
            raise Refused(f"nothing was sent to Brain++: {GROUP} is not set. {advice(GROUP)}")
        try:
            return groups(value)
        except MalformedGroups as error:
            raise Refused(str(error)) from None

    def _pair(self, group: str) -> Pair:
        """The default pair, or the configured one that is named; Refused for any other (RULES B3)."""
        pairs = self._pairs()
        pair = find_pair(pairs, group) if group else pairs[0]
        if pair is None:
            said = f"the group {group!r} is not one of your configured pairs; nothing was sent"
            raise Refused(f"{said}. Leave `group` out to use the default pair, or add it to {GROUP}.")
        return pair

    def _namespaces(self) -> Sequence[str]:
        return tuple(dict.fromkeys(pair.namespace for pair in self._pairs()))

    def _places(self, ref: Ref) -> Sequence[tuple[str, str]]:
        """Where the job may be: as its id says, else under its name in every configured namespace."""
        namespace, _, name = ref.cluster_job_id.rpartition("/")
        name = name or ref.name
        if not SAFE_NAME.fullmatch(name) or (namespace and not SAFE_NAME.fullmatch(namespace)):
            return ()
        return [(one, name) for one in ([namespace] if namespace else self._namespaces())]

    def _place(self, ref: Ref) -> tuple[str, str]:
        """The one place of the job. Raises NotThere."""
        places = self._places(ref)
        if len(places) == 1:
            return places[0]
        for namespace, name in places:
            if self._get(namespace, [name]):
                return namespace, name
        raise NotThere(f"{self.name} has no job {ref.cluster_job_id or ref.name}")

    def _is_ours(self, namespace: str, name: str) -> bool:
        return self._notes.get(namespace, name) is not None

    # --- reading the tools' answers ------------------------------------------------------------------------

    def _get(self, namespace: str, names: Sequence[str]) -> dict[str, Shown]:
        """What `rjob get` shows of these. A name that is not in the result has no record.

        An answer that cannot speak for all (its middle is missing, or one missing name made the call fail)
        is asked for again in halves. Raises Unreachable, and Unclear for an answer without a readable line.
        """
        if len(names) > NAMES_PER_CALL:
            first, rest = names[:NAMES_PER_CALL], names[NAMES_PER_CALL:]
            return self._get(namespace, first) | self._get(namespace, rest)
        ran = self._cli.rjob(["get", *names, f"--namespace={namespace}"], namespace)
        text = f"{ran.stdout}\n{ran.stderr}"
        if ran.rc != 0 and not NOT_FOUND.search(text):
            raise self._unreachable("the jobs", ran)
        seen = {job.name: job for job in shown(text)}
        if ran.rc == 0 and not was_cut(text, KEPT_BYTES):
            return _readable(ran, text, seen, names)
        if len(names) == 1:
            return {name: seen[name] for name in names if name in seen}
        half = len(names) // 2
        return self._get(namespace, names[:half]) | self._get(namespace, names[half:])

    def _fields(self, place: tuple[str, str], job: Shown, budget: list[int]) -> dict[str, Any]:
        """Fields of the job's observation; budget[0]: how many more events may be read."""
        note = self._notes.get(*place)
        word = job.word.lower()
        phase = normalise({"word": word})["phase"]
        if phase in (Phase.pending, Phase.starting):
            self._first_seen.pop(place, None)
        waits = phase in (Phase.pending, Phase.starting, Phase.unknown)
        end = end_of(None if waits else note, place[1])
        native = {**job._asdict(), **end._asdict()}
        fields = normalise(native)
        maybe = word == "killed" or (note is None or note.lane == "idle")
        if word in MAY_BE_A_PREEMPTION and maybe and not end.is_its_own:
            fields = self._ended_by_whom(place, native, budget)
        if fields["phase"] in ENDED | {Phase.preempted, Phase.running}:
            since = self._first_seen.setdefault((place[0], f"{place[1]}:{fields['phase']}"), monotonic_s())
            begins = fields["phase"] is Phase.running and note is not None and note.wrapped
            if begins and end.started_at is None and monotonic_s() - since < BEGIN_WITHIN_S:
                fields["phase"] = Phase.starting
        return fields

    def _ended_by_whom(self, place: tuple[str, str], native: Mapping[str, Any], budget: list[int]) -> dict[str, Any]:
        """Its events tell whether it was preempted; while they cannot be read it counts as alive (PHASES 4)."""
        if budget[0] <= 0:
            return normalise({**native, "word": "Unknown", "rest": f"({native['word']}; its events are not read yet)"})
        budget[0] -= 1
        try:
            return normalise({**native, "events": self._events(*place)})
        except (Unreachable, NotThere):
            return normalise({**native, "word": "Unknown", "rest": f"({native['word']}; its events cannot be read)"})

    def _phase_of(self, namespace: str, name: str) -> Phase:
        job = self._must_be_there(namespace, name)
        return Phase(normalise({"word": job.word})["phase"])

    def _must_be_there(self, namespace: str, name: str) -> Shown:
        job = self._get(namespace, [name]).get(name)
        if job is None:
            raise NotThere(f"{self.name} has no job {name}")
        return job

    def _listed(self, namespace: str) -> Sequence[Shown]:
        ran = self._cli.rjob(["list", f"--namespace={namespace}"], namespace)
        if ran.rc != 0:
            raise self._unreachable("the list of jobs", ran)
        return shown(f"{ran.stdout}\n{ran.stderr}")

    def _of_creator(self, namespace: str) -> frozenset[str]:
        """Names of the account's jobs, by their creator label."""
        items = self._objects(namespace, [])
        return frozenset(
            str(_at(item, "metadata", "name"))
            for item in items
            if _at(item, "metadata", "labels", "kubebrain.brainpp.cn/creator") == self.options.creator
        )

    def _objects(self, namespace: str, names: Sequence[str], timeout_s: float | None = None) -> list[Any]:
        """`brainctl get rjobs -o json`. Raises Unreachable, Unclear."""
        words = ["get", "rjobs", *names, "-n", namespace, "-o", "json"]
        ran = self._cli.brainctl(words, namespace, timeout_s=timeout_s)
        if ran.rc != 0:
            raise self._unreachable("the jobs' objects", ran)
        try:
            found = json.loads(ran.stdout or "[]")
        except ValueError:
            raise Unclear("brainctl answered something that is no JSON, or was cut short") from None
        items = found.get("items", [found]) if isinstance(found, dict) else found
        return items if isinstance(items, list) else []

    def _events(self, namespace: str, name: str) -> Sequence[str]:
        ran = self._cli.rjob(["events", name, f"--namespace={namespace}"], namespace)
        if ran.rc != 0:
            if NOT_FOUND.search(f"{ran.stdout}\n{ran.stderr}"):
                raise NotThere(f"{self.name} has no job {name}")
            raise self._unreachable("its events", ran)
        lines = (line.strip() for line in plain(ran.stdout).splitlines())
        return tuple(line[:1000] for line in lines if line)[-EVENTS_MAX:]

    def _tail(self, namespace: str, name: str, asked: int) -> brainpp_logs.Had | None:
        """The last lines; None while no log can exist. Just after an end, read until two reads are the same."""
        had = self._tail_once(namespace, name, asked)
        if not self._ended_lately(namespace, name):
            return had
        for _ in range(SETTLE_TRIES):
            pause(self.options.log_settle_s)
            again = self._tail_once(namespace, name, asked)
            if again == had:
                break
            had = again
        return had

    def _tail_once(self, namespace: str, name: str, asked: int) -> brainpp_logs.Had | None:
        ran = self._cli.rjob(["logs", "job", name, "-n", str(asked), f"--namespace={namespace}"], namespace)
        if ran.rc != 0:
            text = f"{ran.stdout}\n{ran.stderr}"
            if NOT_READY.search(text):
                self._must_be_there(namespace, name)
                return None
            if NOT_FOUND.search(text):
                raise NotThere(f"{self.name} has no job {name}")
            raise self._unreachable("its log", ran)
        if not ran.stdout:
            if self._phase_of(namespace, name) in (Phase.pending, Phase.starting):
                return None
        cut = was_cut(ran.stdout, KEPT_BYTES)
        text = after_the_cut(ran.stdout) if cut else ran.stdout
        return brainpp_logs.had(plain(text), asked, cut=cut)

    def _ended_lately(self, namespace: str, name: str) -> bool:
        seen = (self._first_seen.get((namespace, f"{name}:{phase}")) for phase in (*ENDED, Phase.preempted))
        return any(since is not None and monotonic_s() - since < SETTLE_WITHIN_S for since in seen)

    def _unreachable(self, what: str, ran: Ran) -> Unreachable:
        return Unreachable(f"{self.name} did not give {what}: {self._cli.words(ran)}")

    # --- the submit ----------------------------------------------------------------------------------------

    def _argv(
        self, submission: Submission, pair: Pair, *, stage: bool = False, only: str = "", hide_values: bool = False
    ) -> list[str]:
        brainpp_argv.check(submission)
        script = ""
        if self.options.wrapper:
            script = self._stage(submission.spec) if stage else wrapper.place(submission.spec.workspace)
        return brainpp_argv.submit_argv(
            submission, pair, self._site, script=script, only=only, hide_values=hide_values
        )

    def _stage(self, spec: Spec) -> str:
        try:
            return str(wrapper.stage(spec.workspace))
        except OSError as error:
            said = f"the workspace {spec.workspace} cannot be written from here: {error.strerror}"
            raise Refused(f"{said}; make it, give another one, or set `wrapper: false` for this cluster") from None

    def _only(self, flag: str, submission: Submission) -> str:
        """A submit that creates nothing; what it said. The values of variables do not leave for it."""
        pair = self._pair(submission.spec.group)
        argv = self._argv(submission, pair, only=flag, hide_values=True)
        ran = self._cli.rjob(argv, pair.namespace, timeout_s=self.options.submit_timeout_s)
        if ran.rc != 0:
            raise self._turned_down(ran, plain(f"{ran.stdout}\n{ran.stderr}"), submission.spec)
        return plain(f"{ran.stdout}\n{ran.stderr}")

    def _turned_down(self, ran: Ran, text: str, spec: Spec) -> Exception:
        """No job was reported: refused where the words leave no doubt, else it may be there."""
        words = self._cli.words(ran)
        said = refusal(text, ran.rc, asked=brainpp_argv.asked(spec)) if ran.rc != 0 else None
        if said is not None:
            return Refused(f"Brain++ refused it: {words}", cause=said.cause, retryable=said.retryable)
        if ALREADY_THERE.search(text):
            return Unclear(f"a job of that name is there already: {words}")
        return Unclear(f"rjob reported no created job (status {ran.rc}): {words}")

    def _note(self, submission: Submission) -> Note:
        spec = submission.spec
        return Note(
            workspace=spec.workspace,
            owner=submission.owner,
            fingerprint=submission.fingerprint,
            submitted_at=now(),
            lane=spec.lane,
            replicas=spec.replicas,
            wrapped=self.options.wrapper,
            time_limit_s=spec.time_limit_s,
        )

    def _difference(self, pair: Pair, name: str, spec: Spec) -> str:
        """What of the created object is not as it was asked (RJOB 8); "" if it is. Never fails a submit."""
        try:
            items = self._objects(pair.namespace, [name], timeout_s=VERIFY_S)
        except (Refused, Unreachable, Unclear) as error:
            return f"priority and group of the created job could not be checked: {error}"
        item = next((item for item in items if _at(item, "metadata", "name") == name), {})
        asked = {"group": pair.group.replace("_", "-")}
        made = {"group": str(_at(item, "metadata", "labels", "quotagroup.brainpp.cn/quotagroup") or "").replace("_", "-")}
        if spec.lane == "normal":
            asked["priority"] = str(spec.priority)
            made["priority"] = str(_at(item, "metadata", "annotations", "volcano.brainpp.cn/priority") or "")
        odd = [f"{what} {made[what]} instead of {asked[what]}" for what in asked if made[what] not in ("", asked[what])]
        return f"the created job has {' and '.join(odd)}" if odd else ""

    def _do(self, verb: str, namespace: str, name: str) -> None:
        ran = self._cli.rjob([verb, name, f"--namespace={namespace}"], namespace)
        if ran.rc == 0:
            return
        if NOT_FOUND.search(f"{ran.stdout}\n{ran.stderr}"):
            raise NotThere(f"{self.name} has no job {name}")
        raise Unreachable(f"{self.name} did not {verb} {name}: {self._cli.words(ran)}")


def _readable(ran: Ran, text: str, seen: Mapping[str, Shown], names: Iterable[str]) -> dict[str, Shown]:
    """The jobs asked for. A line that names one without being readable is an unknown word, not an absence."""
    if not seen and ran.stdout.strip():
        raise Unclear(f"rjob answered something that cannot be read: {plain(ran.stdout).strip()[:200]}")
    found = {}
    for name in names:
        if name in seen:
            found[name] = seen[name]
        elif line := names_it(text, name):
            found[name] = Shown(name, "", "Unreadable", line)
    return found


def _at(value: Any, *path: str) -> Any:
    for field in path:
        value = value.get(field) if isinstance(value, dict) else None
    return value
