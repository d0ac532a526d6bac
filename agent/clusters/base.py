"""The seam between Watchkeeper and a cluster: one protocol, its capabilities, its typed answers and errors.

A cluster carries the mechanism (syntax, flags, parsing); it never decides. It is given an attempt's name that
is unique for ever, and must be able to find a job by it: that name is the idempotency key of the submit.

    ClusterError
      Unreachable   could not ask: time-out, refused connection, controller away. Concludes nothing.
      Refused       the cluster said no, with its reason and, where the words tell, a cause code.
      NotThere      the cluster answered and has no such job.
      Unclear       it answered something that cannot be read.

Never: import the store or the machine; keep a truth that is lost with the process; start a shell line
from a request's words (argv lists only).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from states.observation import Capabilities, Capacity, Match, NativeEvent, Observation
from states.reading import Frozen
from states.spec import Spec


class ClusterError(Exception):
    """Base of what a cluster may raise. `str(error)` is for people: short, redacted, says what to do."""


class Unreachable(ClusterError):
    """The cluster could not be asked. Says nothing about any job."""

    def __init__(self, reason: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class Refused(ClusterError):
    """The cluster understood and said no. `cause` is a `layer.cause` code or ""; `retryable`: the same
    words may be accepted later (rate limits, a full submit queue)."""

    def __init__(self, reason: str, *, cause: str = "", retryable: bool = False) -> None:
        super().__init__(reason)
        self.cause = cause
        self.retryable = retryable


class NotThere(ClusterError):
    """The cluster answered: there is no such job."""


class Unclear(ClusterError):
    """The answer cannot be read. For a submit: the job may exist."""


class Ref(NamedTuple):
    """What identifies an attempt on a cluster. `cluster_job_id` is "" until an answer told it.

    submitted_at bounds look-ups, since ids are recycled: a record older than it is somebody else's.
    """

    name: str
    cluster_job_id: str = ""
    submitted_at: datetime | None = None


class Submission(Frozen):
    """One submit call: the attempt's name, its fingerprint (kept with the job where the cluster can), the spec."""

    name: str
    fingerprint: str
    owner: str
    spec: Spec


class LogPiece(Frozen):
    """A bounded piece of a log: decoded with bad bytes replaced, newest output last.

    cursor: opaque, hand it back to read on from there. truncated: earlier output exists that is not in `text`.
    wrote_at: when the log was last written, where the cluster can tell. ready: False while no log can exist yet.
    """

    text: str
    cursor: str = ""
    truncated: bool = False
    wrote_at: datetime | None = None
    ready: bool = True
    path: str = ""


class JobLine(Frozen):
    """One row of `list`."""

    cluster_job_id: str
    name: str
    observation: Observation
    ours: bool = True


class Submitted(NamedTuple):
    """The cluster accepted: its id, and anything worth telling (native words, bounded)."""

    cluster_job_id: str
    note: str = ""


ODD = re.compile("[\x00\ud800-\udfff]")


def refuse_odd_texts(spec: Spec) -> None:
    """Raises Refused for what no program can be given and no manifest can hold: a NUL byte, or half a character."""
    for name, value in spec:
        texts = (*value, *value.values()) if isinstance(value, Mapping) else value
        for text in (texts,) if isinstance(texts, str) else texts if isinstance(texts, tuple) else ():
            if ODD.search(text):
                raise Refused(f"{name} holds a NUL byte or half a character (a lone surrogate): take it out")


@runtime_checkable
class Cluster(Protocol):
    """One cluster. All calls block, each with its own time-out, and raise `ClusterError` only.

    name: the configured name; kind: which driver.
    """

    kind: ClassVar[str]
    name: str
    capabilities: Capabilities

    def capacity(self, group: str | None = None) -> Capacity:
        """Free and total of the person's default group, or of `group`."""
        ...

    def submit(self, submission: Submission) -> Submitted:
        """Create the job. Refused: it does not exist. Unclear or Unreachable: it may exist, look by name."""
        ...

    def find(self, name: str, *, fingerprint: str = "", owner: str = "") -> Sequence[Match]:
        """Every job that answers to `name`, ended ones included; empty means provably not there (now)."""
        ...

    def observe(self, refs: Sequence[Ref]) -> Mapping[str, Observation]:
        """One status call for any number of jobs: {ref.name: observation}. A job without record is Phase.gone."""
        ...

    def list(self, *, everyone: bool = False) -> Sequence[JobLine]:
        """The person's jobs (or everyone's, where the cluster shows them)."""
        ...

    def logs(self, ref: Ref, *, lines: int = 200, cursor: str = "", head: bool = False) -> LogPiece:
        """At most `lines` lines: the tail, or the head, or what came after `cursor`."""
        ...

    def events(self, ref: Ref) -> Sequence[NativeEvent]:
        """Scheduling and lifecycle events, oldest first."""
        ...

    def stop(self, ref: Ref) -> None:
        """Ask the cluster to halt the job. May return before it has; stopping a job that ended is no error."""
        ...

    def delete(self, ref: Ref) -> None:
        """Remove the record. Refused while the job lives."""
        ...

    def predict(self, submission: Submission) -> str:
        """Feasibility in the cluster's own words, creating nothing."""
        ...

    def render(self, submission: Submission) -> str:
        """The exact native form that `submit` would send, redacted, creating nothing."""
        ...
