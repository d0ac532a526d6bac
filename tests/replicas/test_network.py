"""A replica whose network is really gone: a link that is taken down, and TCP that learns nothing of it.

Wants network namespaces, so the superuser; elsewhere `test_processes.py` cuts a socket instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.replicas.conftest import Lab
from tests.replicas.test_processes import (
    Eventually,
    all_over,
    delegate,
    delegate_asking,
    nothing_is_wrong,
    running,
)

pytestmark = pytest.mark.slow

HERE, THERE = "10.213.77.1", "10.213.77.2"


class Link(NamedTuple):
    """A namespace and this machine's end of the link to it."""

    space: str
    device: str

    def set(self, how: str) -> None:
        subprocess.run(["ip", "link", "set", self.device, how], check=True)


@pytest.fixture
def link() -> Iterator[Link]:
    space, device = f"wk-{os.getpid()}", f"wk{os.getpid() % 100_000}"
    words = [
        f"netns add {space}",
        f"link add {device} type veth peer name {device}p netns {space}",
        f"addr add {HERE}/30 dev {device}",
        f"link set {device} up",
        f"-n {space} addr add {THERE}/30 dev {device}p",
        f"-n {space} link set {device}p up",
        f"-n {space} link set lo up",
    ]
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces want `ip` and the superuser")
    try:
        for line in words:
            made = subprocess.run(["ip", *line.split()], capture_output=True, text=True, check=False)
            if made.returncode != 0:
                pytest.skip(f"no network namespaces here: {made.stderr.strip()}")
        yield Link(space, device)
    finally:
        subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", device], capture_output=True, check=False)


def test_a_replica_without_a_network_notices_is_replaced_and_comes_back(
    lab: Lab, link: Link, eventually: Eventually
) -> None:
    far, near = lab.replica_in(link.space, HERE), lab.replica()
    eventually(far.is_ready)
    eventually(near.is_ready)
    runs, asking = delegate(lab, 9), delegate_asking(lab, 2)
    eventually(lambda: running(lab) >= 2)
    link.set("down")
    mine = set(runs)
    eventually(lambda: not mine & set(lab.app.store.live_ids()), within_s=120)
    eventually(lambda: "OperationalError" in far.log.read_text(), within_s=90)
    link.set("up")
    near.kill()
    runs += delegate(lab, 4, first=100)
    eventually(lambda: all_over(lab), within_s=240)
    nothing_is_wrong(lab, runs, asking)
