"""SIGKILL at every point of a message's way to a channel, a new process, and nothing that interrupts is missing (G2).

A channel that can tell what it has gets each message once. Of one that cannot, what interrupts may come again, and
says so then; a routine update is not doubled.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agent import crash
from agent.channels.base import Parcel, Unsure
from agent.clock import VirtualClock
from agent.deliveries import HELD
from agent.store import Store
from states.job import State
from states.routing import Rule
from tests.agent.fakes import GOOD
from tests.channels.conftest import Box, Posted
from tests.crash.boundaries import OF_DELIVERY
from tests.crash.lives import Kill, striker

AGAIN = "(Again:"
EACH = Rule(group_s=0)


class KeptBox(Box):
    """A box whose truth is a file: it has what it took before the kill."""

    def __init__(self, folder: Path, *, tells: bool) -> None:
        super().__init__("team", tells=tells)
        self.file = folder / "taken"

    def send(self, parcel: Parcel) -> str:
        with self.file.open("a", encoding="utf-8") as taken:
            taken.write(f"{parcel.id}\t{'again' if parcel.text.startswith(AGAIN) else 'first'}\n")
        return parcel.id

    def find(self, parcel: Parcel, since: datetime) -> str | None:
        if not self.tells:
            raise Unsure("it cannot tell")
        return parcel.id if parcel.id in {key for key, _ in self.taken()} else None

    def taken(self) -> list[tuple[str, str]]:
        """(the parcel's key, whether it said that it comes again), in order."""
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        return [(line.split("\t")[0], line.split("\t")[1]) for line in lines]


def told(folder: Path) -> tuple[set[str], set[str]]:
    """A run to its end whose messages no courier has carried yet: (ids of all messages, of those that interrupt)."""
    store = Store(f"sqlite:///{folder / 'watchkeeper.db'}")
    store.create_schema()
    desk = Posted(store, folder, GOOD)
    desk.courier(KeptBox(folder, tells=True), EACH)
    run = desk.delegate()
    desk.run_to(run, State.succeeded)
    rows = store.messages(run)
    (folder / "now").write_text(desk.clock.now().isoformat())
    store.close()
    return {row["id"] for row in rows}, {row["id"] for row in rows if row["must_not_miss"]}


def carried(folder: Path, *, tells: bool, kill: Kill | None = None) -> bool:
    """One life of the courier in a child. True: it ended; False: it was killed where it should be."""
    child = os.fork()
    if child == 0:
        try:
            _carry(folder, tells=tells, kill=kill)
        except BaseException:
            (folder / "trouble").write_text(traceback.format_exc())
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert os.WEXITSTATUS(status) == 0, (folder / "trouble").read_text()
    return True


def _carry(folder: Path, *, tells: bool, kill: Kill | None) -> None:
    store = Store(f"sqlite:///{folder / 'watchkeeper.db'}")
    desk = Posted(store, folder, GOOD)
    desk.clock = VirtualClock(datetime.fromisoformat((folder / "now").read_text()))
    courier = desk.courier(KeptBox(folder, tells=tells), EACH)
    if kill is not None:
        crash.arm(striker(kill))
    courier.round()
    store.close()


def later(folder: Path) -> None:
    """What the dead one had claimed is free."""
    at = datetime.fromisoformat((folder / "now").read_text()) + HELD + timedelta(seconds=1)
    (folder / "now").write_text(at.isoformat())


@pytest.mark.parametrize("tells", [True, False], ids=["the channel tells", "it cannot tell"])
@pytest.mark.parametrize("point", OF_DELIVERY)
def test_a_kill_on_the_way_to_a_channel_loses_nothing(tmp_path: Path, point: str, tells: bool) -> None:
    every, loud = told(tmp_path)
    assert not carried(tmp_path, tells=tells, kill=Kill(point, 1))
    later(tmp_path)
    second = carried(tmp_path, tells=tells, kill=Kill(point, 2))
    assert second is (point == "delivery-claimed")  # which a life passes once
    later(tmp_path)
    assert carried(tmp_path, tells=tells)
    taken = KeptBox(tmp_path, tells=tells).taken()
    arrived = Counter(key.partition(":")[2] for key, _ in taken)
    assert set(arrived) <= every
    assert set(arrived) >= (every if tells else loud)
    if tells:
        assert set(arrived.values()) == {1}
    for key, _ in taken:
        says = [mark for other, mark in taken if other == key]
        assert says == ["first"] + ["again"] * (len(says) - 1) or not tells
    if not tells:
        assert {key for key, count in arrived.items() if count > 1} <= loud
