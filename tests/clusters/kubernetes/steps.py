"""Steps of the tests of the Kubernetes cluster: what was asked, and what goes wrong once.

Never: change what a test did not ask for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from states.observation import Observation
from tests.clusters.kubernetes.bench import KubernetesBench
from tests.clusters.kubernetes.server import Call

Until = Callable[..., Observation]


def calls(bench: KubernetesBench, method: str, words: str = "") -> list[Call]:
    return [call for call in bench.emulator.calls if call.method == method and words in call.path]


def overlay(**spec: Any) -> tuple[str, ...]:
    """An extra argument that lays these fields over the Job's spec."""
    return (json.dumps({"spec": spec}),)


def once(doing: Callable[[Call], None], method: str, words: str) -> Callable[[Call], None]:
    """A hook for the first such request only."""
    left = [True]

    def hook(call: Call) -> None:
        if left[0] and call.method == method and words in call.path:
            left[0] = False
            doing(call)

    return hook


def lost(_: Call) -> None:
    raise ConnectionError
