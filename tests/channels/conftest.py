"""A desk whose messages go somewhere: the product's rows, rules and couriers, and a box at the other end.

Never: a stand-in for anything of the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from agent.channels.base import ChannelError, Parcel, Unsure
from agent.channels.courier import Courier
from agent.channels.links import Links
from agent.channels.parcels import Packer
from agent.deliveries import Deliveries
from agent.store import Store
from states.job import Check
from states.orders import QuietHours
from states.routing import Rule
from tests.agent.fakes import Desk

KEY = "not a secret, only long enough"


class Died(BaseException):
    """The process ended here; nothing that follows a `finally` of its own was done."""


class Box:
    """The other end: it keeps what it took, by key. fails: how the next sends end (None: well); `lost`: it took the
    parcel, and its answer did not come; `died`: the same, and so did we."""

    def __init__(self, name: str, *, threads: bool = False, tells: bool = True) -> None:
        self.name, self.threads, self.tells = name, threads, tells
        self.got: list[Parcel] = []
        self.fails: list[str] = []
        self.down = False

    def send(self, parcel: Parcel) -> str:
        ends = self.fails.pop(0) if self.fails else "down" if self.down else "well"
        if ends == "down":
            raise ChannelError("nobody answers")
        self.got.append(parcel)
        if ends == "lost":
            raise Unsure("no answer")
        if ends == "died":
            raise Died
        return f"at-{len(self.got)}"

    def find(self, parcel: Parcel, since: datetime) -> str | None:
        if not self.tells:
            raise Unsure("it cannot tell")
        places = [f"at-{place}" for place, one in enumerate(self.got, start=1) if one.id == parcel.id]
        return places[0] if places else None

    def test(self) -> str:
        return "a box"

    def shown(self) -> str:
        return "a box"

    @property
    def texts(self) -> list[str]:
        return [parcel.text for parcel in self.got]


class Posted(Desk):
    """A desk with channels. `courier` makes one; `carry` lets all of them work."""

    couriers: dict[str, Courier]

    def courier(
        self, box: Box, rule: Rule | None = None, *, quiet: QuietHours | None = None, **more: Any
    ) -> Courier:
        deliveries = Deliveries(self.store, self.ports.redact)
        links = Links(lambda: KEY, self.clock, base=more.pop("base", "https://wk.example"))
        rule = rule or Rule()
        packer = Packer(
            channel=box.name,
            threads=box.threads,
            store=self.store,
            links=links,
            gathers=rule.group_s > 0,
        )
        made = Courier(
            channel=box,
            rule=rule,
            deliveries=deliveries,
            packer=packer,
            clock=self.clock,
            quiet=quiet,
            **more,
        )
        made.take_in()  # from here on it is a channel of this database
        return made


@pytest.fixture
def posted(tmp_path: Path) -> Iterator[Callable[..., Posted]]:
    """`posted(*scripts, **more)`: a desk over a database in memory; shared: one that several threads are at."""
    stores: list[Store] = []

    def make(*scripts: Any, shared: bool = False, **more: Any) -> Posted:
        store = Store(f"sqlite:///{tmp_path / f'{len(stores)}.db'}" if shared else "sqlite://")
        store.create_schema()
        stores.append(store)
        return Posted(store, tmp_path / str(len(stores)), *scripts, **more)

    yield make
    for store in stores:
        store.close()


def asking(name: str = "image") -> dict[str, Any]:
    """Checks of which one asks for an image until there is one."""
    ask = Check(name=name, level="ask", evidence="There is no image.", question="image")
    fine = Check(name=name, level="fine")
    return {name: lambda job, ports: fine if job.spec.image else ask}
