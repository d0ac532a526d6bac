"""What the settings may say of a Kubernetes cluster: how to reach it, where jobs go, how storage is mounted.

    clusters:
      prod:
        kind: kubernetes
        context: prod
        namespace: lab
        storage: {/workspace: claim:workspace}
        idle_priority_class: preemptible

Never: a value that this site alone could know as a default (C5); a token (the kubeconfig or the pod has it).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from states.reading import Frozen

KEEP_S_MIN = 3600.0
"""An ended Job must be there for several looks at it, whatever the interval."""


class Group(Frozen):
    """What a group's name stands for here; what is empty is as for the others."""

    namespace: str = ""
    queue: str = ""


class Options(Frozen):
    """Every option may be left out. Times in seconds.

    kubeconfig, context: as for kubectl; in_cluster: use the pod's own account (None: when there is no kubeconfig).
    proxy: of the API server; the environment's own proxies are not used. namespace: None takes the context's.
    groups: name of a group -> its namespace and Kueue queue. queue: Kueue's local queue. priority_class,
    idle_priority_class, priority_classes: of a lane, of a priority (1 to 9); without an idle class there is no
    idle lane. gpu_resource: what a GPU is called. storage: a path as people write it -> `claim:NAME[/PATH]`,
    `host:/PATH` or `nfs:SERVER:/PATH`. pull_secrets: names. service_account: without one the job gets no token.
    pod: fields laid over the pod's spec. keep_s: how long an ended Job is kept (None: until it is deleted).
    backoff_limit: pods that Kubernetes itself makes anew after a failure; 0 leaves that to Watchkeeper. root:
    folder for the last lines of stopped jobs. owner: whose jobs `list` shows.
    """

    kubeconfig: str = ""
    context: str = ""
    in_cluster: bool | None = None
    proxy: str = ""
    namespace: str | None = None
    groups: dict[str, Group] = {}
    queue: str = ""
    priority_class: str = ""
    idle_priority_class: str = ""
    priority_classes: dict[int, str] = {}
    gpu_resource: str = "nvidia.com/gpu"
    storage: dict[str, str] = {}
    pull_secrets: tuple[str, ...] = ()
    service_account: str = ""
    pod: dict[str, Any] = {}
    labels: dict[str, str] = {}
    shared_memory: bool = True
    rendezvous_port: int = Field(default=29_500, ge=1, le=65_535)
    keep_s: float | None = Field(default=7 * 86_400.0, ge=KEEP_S_MIN)
    backoff_limit: int = Field(default=0, ge=0)
    stop_grace_s: int = Field(default=30, ge=0)
    timeout_s: float = Field(default=10.0, gt=0)
    watch_from: int = Field(default=200, ge=0)
    """From this many objects on a look reads what changed (a watch of one second) in place of everything."""
    root: Path | None = None
    owner: str = ""
