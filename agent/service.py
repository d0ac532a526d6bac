"""The application service that every surface calls: delegate, answer, stop, delete, watch, read, wait.

A surface (command line, web page, chat) words what comes back and has no logic of its own. All calls are
idempotent by their keys where a network may repeat them.

Never: a way round the machine: whatever changes a run is an event of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agent.clock import serial
from agent.clusters.base import Cluster, NotThere, Ref, Submission
from agent.library import Library
from agent.ports import Ports
from agent.run_names import name_of, own_key, safe_name
from agent.store import Applied, Unknown
from states.acceptable import filled_in, out_of_reach, unacceptable
from states.actions.asking import closed_words
from states.credentials import find_credentials
from states.events import Answered, AnyEvent, Delegated, DeleteRequested, StopRequested
from states.job import Job, State
from states.naming import attempt_name, fingerprint, job_id
from states.observation import ENDED, Observation, Phase
from states.orders import NO_ORDERS, Standing
from states.policy import Policy, layered
from states.preflight import CHECKS, settled_spec
from states.spec import Existing, Request, draft

IDS_MAX = 10
"""Ids that are told of jobs of one name, the newest."""

ONE_STEP_CHECKS = ("size", "credentials", "group", "image", "workspace")
"""What a single submit looks at: nothing that costs a call to the cluster (A1)."""


class Refusal(Exception):
    """What was asked cannot be done; the message says why and what to do."""


class Delegation(NamedTuple):
    """The run that a delegation led to. new: False when this request id was delegated before."""

    job: Job
    new: bool


class Decision(NamedTuple):
    """One line of `wk why`."""

    seq: int
    at: datetime
    event: str
    outcome: str
    source: str
    to: str
    rule: str
    action: str
    said: str
    asked: tuple[str, ...]


class Sent(NamedTuple):
    """A single submit that was accepted. note: the cluster's own words, redacted."""

    cluster: str
    name: str
    cluster_job_id: str
    note: str


class Service:
    """One Watchkeeper's service. owner: on whose behalf this process acts."""

    def __init__(
        self,
        ports: Ports,
        *,
        library: Library,
        owner: str,
        default_cluster: str,
        policy_layers: Sequence[tuple[str, Mapping[str, object]]] = (),
        language: Literal["en", "zh"] = "en",
        orders: Standing = NO_ORDERS,
    ) -> None:
        self.ports = ports
        self.library = library
        self.owner = owner
        self.default_cluster = default_cluster
        self.policy_layers = policy_layers
        self.language = language
        self.orders = orders

    # --- delegating ------------------------------------------------------------------------------------------

    def delegate(self, request: Request, *, workspace: str, request_id: str = "", by: str = "") -> Delegation:
        """Take a run over. The same request id of the same person gives the same run and changes nothing (I1).

        Raises Refusal for a credential in the request (B4), an unknown cluster, a bad policy number, or a goal that
        could never be met where it is looked for (E8).
        """
        return self._take_over(request, workspace, own_key(by or self.owner, request_id), by)

    def _take_over(self, request: Request, workspace: str, request_id: str, by: str) -> Delegation:
        refuse_credentials(request, self.ports.redact)
        cluster = self.cluster(request.cluster or self.default_cluster)
        name = request.name or name_of(request)
        job = self._job(request, cluster, job_id(name, serial()), workspace, request_id)
        event = Delegated(at=job.created_at, by=by or self.owner, checks=checks_for(request))
        applied = self.ports.store.create(job, event)
        self.ports.announce(applied.job.id)
        return Delegation(applied.job, not applied.duplicate)

    def delegate_child(self, parent: Job, child_id: str, request: Request) -> None:
        """A smoke or preparation run: a job like any other, with an id that was decided in `states/`."""
        cluster = self.cluster(parent.cluster)
        job = self._job(request, cluster, child_id, parent.spec.workspace, f"child:{child_id}", NO_ORDERS)
        job = job.but(
            parent=parent.id,
            owner=parent.owner,
            policy_set=parent.policy_set,
            language=parent.language,
            orders=parent.orders.for_a_child(),
        )
        self.ports.store.create(job, Delegated(at=job.created_at, by=parent.id, checks=()))
        self.ports.announce(child_id)

    def watch(self, existing: Existing, request: Request, *, workspace: str, by: str = "") -> Delegation:
        """Take over a job that is already on the cluster (A10), by its name or its id alone as well.

        Raises Refusal when there is none of that name, NotThere when there is none of that id.
        """
        cluster = self.cluster(request.cluster or self.default_cluster)
        ref = Ref(existing.name, existing.cluster_job_id)
        if not existing.name:
            _look_at(cluster, existing.cluster_job_id)
        matches = cluster.find(existing.name) if existing.name else ()
        if existing.name and not matches:
            raise Refusal(
                f"there is no job named {existing.name!r} on {cluster.name}; `wk list` shows what is there"
            )
        # Of the same name, those that live are meant: the others ran before.
        matches = [match for match in matches if match.phase not in ENDED] or matches
        if len(matches) > 1 and not existing.cluster_job_id:
            ids = ", ".join(match.cluster_job_id for match in matches[-IDS_MAX:])
            raise Refusal(f"{len(matches)} jobs are named {existing.name!r}: give one of the ids {ids}")
        if matches:
            ref = Ref(existing.name, existing.cluster_job_id or matches[0].cluster_job_id)
        taken = request.model_copy(
            update={
                "existing": existing.model_copy(update={"cluster_job_id": ref.cluster_job_id}),
                "max_restarts": 0,
            }
        )
        key = f"watch:{cluster.name}:{ref.cluster_job_id or ref.name}"
        return self._take_over(taken, workspace, key, by)

    def watch_text(
        self, text: str, *, cluster: str = "", may_stop: bool = False, workspace: str = "", by: str = ""
    ) -> Delegation:
        """`watch` for a job given by its name or its id, whichever the cluster knows.

        Raises Refusal for a run of ours, which is watched already, and NotThere.
        """
        where = self.cluster(cluster)
        if where.find(text):
            existing = Existing(name=text, may_stop=may_stop)
        else:
            self._is_no_run_of_ours(text)
            existing = Existing(cluster_job_id=text, may_stop=may_stop)
        request = Request(existing=existing, cluster=where.name, name=safe_name(text))
        return self.watch(existing, request, workspace=workspace, by=by)

    def _is_no_run_of_ours(self, text: str) -> None:
        try:
            job = self.job(text)
        except Unknown:
            return
        raise Refusal(f"{job.id} is a run of yours, and is watched already; follow it: wk follow {job.id}")

    def submit_once(self, request: Request, *, workspace: str) -> Sent:
        """That one step: keys, group, image and workspace are looked at, then ONE submit call; nothing is recorded.

        Raises Refusal with everything that is missing at once (A8, B1, C5), and what the cluster raises.
        """
        cluster, submission = self._one_step(request, workspace)
        sent = cluster.submit(submission)
        return Sent(cluster.name, submission.name, sent.cluster_job_id, self.ports.redact(sent.note))

    def preview_once(self, request: Request, *, workspace: str, how: Literal["predict", "render"]) -> Sent:
        """The same, but for the submit: its feasibility or its native form, in the cluster's words (C13)."""
        cluster, submission = self._one_step(request, workspace)
        words = cluster.predict(submission) if how == "predict" else cluster.render(submission)
        return Sent(cluster.name, submission.name, "", self.ports.redact(words))

    def _one_step(self, request: Request, workspace: str) -> tuple[Cluster, Submission]:
        refuse_credentials(request, self.ports.redact)
        cluster = self.cluster(request.cluster or self.default_cluster)
        job = self._job(request, cluster, job_id(request.name or name_of(request), serial()), workspace, "")
        spec, lacking = job.spec, []
        for name in ONE_STEP_CHECKS:
            found = self.ports.checks[name](job, self.ports)
            spec = settled_spec(spec, found)
            if found.level in ("ask", "refuse"):
                lacking.append(f"{name}: {found.evidence} {found.mend}".strip())
        if lacking:
            raise Refusal("nothing was submitted.\n" + "\n".join(lacking))
        name = attempt_name(job.id, 1, spec)
        return cluster, Submission(name=name, fingerprint=fingerprint(spec), owner=self.owner, spec=spec)

    def _job(
        self,
        request: Request,
        cluster: Cluster,
        new_id: str,
        workspace: str,
        request_id: str,
        orders: Standing | None = None,
    ) -> Job:
        standing = self.orders if orders is None else orders
        request, by_order = filled_in(request, standing)
        spec = draft(request, workspace=workspace)
        if faults := out_of_reach(request, spec):
            raise Refusal("\n".join(faults))
        if 0 in (spec.cpu, spec.memory_mib) and not cluster.capabilities.own_defaults:
            raise Refusal(
                f"0 leaves the cores or the memory to the cluster's own default, and {cluster.name} has none: give a"
                " figure, or leave it out"
            )
        hint = {"poll_s": cluster.capabilities.poll_s} if cluster.capabilities.poll_s else {}
        layers = [("the cluster's hint", hint), *self.policy_layers, ("the request", request.policy)]
        try:
            policy, _ = layered(layers)
        except ValueError as error:
            raise Refusal(str(error)) from None
        return Job(
            id=new_id,
            request=request,
            spec=spec,
            created_at=self.ports.clock.now(),
            request_id=request_id,
            owner=self.owner,
            cluster=cluster.name,
            language=self.language,
            capabilities=cluster.capabilities,
            policy_set=policy.model_dump(exclude_defaults=True),
            orders=standing.for_a_run(),
            by_order=by_order,
        )

    # --- a run -----------------------------------------------------------------------------------------------

    def job(self, run: str) -> Job:
        """A run by id or unique beginning. Raises Unknown."""
        return self.ports.store.load(self.ports.store.find(run))

    def answer(self, question: str, reply: str, *, by: str = "", key: str = "") -> Applied:
        """Answer a question given as `<run>/<number>`, or `<run>` when one is open.

        Raises Refusal for a reply that does not fit (the question stays open) or comes too late (G4), and for one
        that carries a credential (B6: it is not stored).
        """
        if find_credentials(reply):
            raise Refusal(
                "that looks like a credential, so it was not stored. Credentials are set by `wk key set NAME`, "
                "never in an answer; then answer `again`."
            )
        job, number = self._question(question)
        who, now = by or self.owner, self.ports.clock.now()
        event = Answered(at=now, key=own_key(who, key), number=number, reply=reply, by=who)
        applied = self.ports.store.apply(job.id, event)
        self.ports.announce(job.id)
        asked = next((q for q in applied.job.questions if q.number == number), None)
        if asked is not None and asked.is_open:
            raise Refusal(applied.reason)
        if asked is None or not (applied.duplicate or applied.action not in ("", "refuse_answer")):
            raise Refusal(closed_words(applied.job, number))
        return applied

    def stop(self, run: str, *, by: str = "", reason: str = "") -> Applied:
        """Halt a run; its record stays (A2)."""
        event = StopRequested(at=self.ports.clock.now(), by=by or self.owner, reason=reason)
        return self._tell(run, event)

    def delete(self, run: str, *, name: str, by: str = "") -> Applied:
        """Remove the cluster's record of an ended run; `name` must spell its id or attempt name (A7)."""
        return self._tell(run, DeleteRequested(at=self.ports.clock.now(), by=by or self.owner, name=name))

    def why(self, run: str) -> list[Decision]:
        """Every decision of a run: event, rule, evidence, action (I5)."""
        found = self.ports.store.find(run)
        asked: dict[int, list[str]] = {}
        for row in self.ports.store.effects_of(found):
            asked.setdefault(row["seq"], []).append(row["kind"])
        return [_decision(row, asked.get(row["seq"], [])) for row in self.ports.store.journal(found)]

    def _tell(self, run: str, event: AnyEvent) -> Applied:
        applied = self.ports.store.apply(self.ports.store.find(run), event)
        self.ports.announce(applied.job.id)
        if applied.outcome == "ignored":
            raise Refusal(applied.reason)
        return applied

    def _question(self, text: str) -> tuple[Job, int]:
        run, _, number = text.partition("/")
        job = self.job(run)
        if number:
            if not number.isdigit():
                raise Refusal(f"{text!r} is not a question id; `wk questions` lists the open ones")
            return job, int(number)
        open_now = job.open_questions
        if len(open_now) == 1:
            return job, open_now[0].number
        if not open_now:
            raise Refusal(f"{job.id} has no open question; `wk questions` lists the open ones")
        raise Refusal(
            f"{job.id} has {len(open_now)} open questions: {', '.join(q.id for q in open_now)}; name one"
        )

    # --- clusters --------------------------------------------------------------------------------------------

    def cluster(self, name: str = "") -> Cluster:
        """A configured cluster by name; the default one for "". Raises Refusal with the known names."""
        wanted = name or self.default_cluster
        try:
            return self.ports.clusters[wanted]
        except KeyError:
            known = ", ".join(sorted(self.ports.clusters)) or "none"
            raise Refusal(f"there is no cluster {wanted!r}; configured: {known}") from None

    def resolve(self, text: str, cluster: str = "") -> tuple[Cluster, Ref]:
        """What a single step is about: a run of ours, or any job of the cluster by id or name.

        Makes no cluster call for a run of ours, and none for an id either: the step's own call finds out (A1).
        """
        try:
            job = self.job(text)
        except Unknown:
            return self.cluster(cluster), Ref(text, text)
        if not job.attempts:
            raise Refusal(f"{job.id} was not submitted yet; `wk show {job.id}` tells what it waits for")
        attempt = job.attempt
        return self.ports.cluster_of(job), Ref(attempt.name, attempt.cluster_job_id, attempt.intent_at)

    def observe(self, text: str, cluster: str = "") -> Observation:
        """One look at one job: its observation. Raises NotThere."""
        where, ref = self.resolve(text, cluster)
        return _look_at(where, text, ref)


def _look_at(cluster: Cluster, text: str, ref: Ref | None = None) -> Observation:
    """One look at a job given by what a person calls it. Raises NotThere."""
    ref = ref or Ref(text, text)
    seen = cluster.observe([ref]).get(ref.name)
    if seen is None or seen.phase is Phase.gone:
        why = f" ({seen.reason})" if seen is not None and seen.reason else ""
        raise NotThere(f"{cluster.name} has no job {text!r}{why}; `wk list` shows what is there")
    return seen


def refuse_credentials(request: Request, redact: Callable[[str], str] = str) -> None:
    """B4: a request that carries a credential is refused; the value is neither stored nor repeated. So is one with a
    text that no program could be given. redact: takes out what is known to be secret."""
    if why := unacceptable(request, lambda text: redact(text) != text):
        raise Refusal(why)


def checks_for(request: Request) -> tuple[str, ...]:
    """The preflight checks of a request; none for a job that was submitted by somebody else."""
    return () if request.existing is not None else tuple(CHECKS)


def workspace_of(request: Request, *, beside: Path | None, default: Path | None, cwd: Path) -> str:
    """Where the run reads and writes: the request's own (relative to its file), the setting, or this folder."""
    if request.workspace:
        return str(((beside or cwd) / Path(request.workspace).expanduser()).resolve())
    return str((default or cwd).resolve())


def _decision(row: Mapping[str, Any], asked: Sequence[str]) -> Decision:
    same = {name: row[name] for name in Decision._fields if name not in ("event", "asked")}
    return Decision(event=row["kind"], asked=tuple(asked), **same)


__all__ = [
    "Decision",
    "Delegation",
    "Policy",
    "Refusal",
    "Sent",
    "Service",
    "State",
    "checks_for",
    "refuse_credentials",
]
