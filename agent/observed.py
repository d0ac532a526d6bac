"""A cluster whose calls are told of (`agent.observe`): a thin hull that is put on only where somebody listens.

Never: a change of what a call is given or gives.
"""

from __future__ import annotations

from typing import Any

from agent import observe

OPERATIONS = frozenset("capacity submit find observe list logs events stop delete predict render".split())


class ObservedCluster:
    """The same cluster, each operation a `cluster_call`."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._cluster, name)
        if name not in OPERATIONS:
            return found

        def told(*given: Any, **more: Any) -> Any:
            with observe.during("cluster_call", cluster=self._cluster.name, operation=name):
                return found(*given, **more)

        return told
