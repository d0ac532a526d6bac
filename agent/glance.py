"""One look at one job (A3): its status and a bounded piece of its log, judged by the rules; nothing is left behind.

Exactly two calls to the cluster: one status, one log. The judgement is that of `wk read`, with the cluster's words.

Never: a record, a timer, an event of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from agent.clusters.base import Cluster, ClusterError, NotThere, Ref
from agent.pieces import pieces
from states.observation import Observation, Phase
from states.policy import Policy
from states.reading import Scene, Track
from states.verdict import Looked, look


class Glance(NamedTuple):
    """What one look showed. looked: None where there is no log (yet); log_said: why not."""

    observation: Observation
    looked: Looked | None
    log_said: str
    lines: int


def glance(
    cluster: Cluster,
    ref: Ref,
    *,
    at: datetime,
    lines: int,
    redact: Callable[[str], str],
    policy: Policy,
    before: Track,
) -> Glance:
    """Look once. before: what a watch has learnt about this job, or an empty track. Raises ClusterError."""
    seen = cluster.observe([ref]).get(ref.name)
    if seen is None or seen.phase is Phase.gone:
        raise NotThere(
            f"{cluster.name} has no job {ref.cluster_job_id or ref.name!r}; `wk list` shows what is there"
        )
    seen = seen.model_copy(update={"native": redact(seen.native), "reason": redact(seen.reason)})
    try:
        piece = cluster.logs(ref, lines=lines)
    except ClusterError as error:
        return Glance(seen, None, redact(str(error)), 0)
    if not piece.ready:
        return Glance(seen, None, "there is no log yet", 0)
    kept = pieces([piece.text.encode("utf-8", "replace")], redact=redact)
    silence_s = None
    if piece.wrote_at is not None and seen.phase is Phase.running:
        silence_s = max((at - piece.wrote_at).total_seconds(), 0.0)
    scene = Scene(
        phase=seen.phase.value,
        reasons=tuple(filter(None, (seen.native, seen.reason))),
        exit_code=seen.exit_code,
        signal=seen.signal,
        silence_s=silence_s,
        suspended=seen.suspended,
    )
    looked = look(
        kept.lines, scene, policy, before=before, fingerprint=kept.fingerprint, bytes_read=kept.bytes_read
    )
    return Glance(seen, looked, "", len(kept.lines))
