"""A desk at which everything leaks: jobs print canaries, the cluster says them, people type them.

Three runs: one that fails, one that asks, one that still trains. The store and the ports redact as in the product.

Never: a part of the product replaced; a canary in what a person may rightly keep (a command, a path).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from agent.channel_settings import SlackSettings
from agent.channels.notify import AppriseChannel
from agent.channels.slack import SlackChannel
from agent.channels.webhook import WebhookChannel
from agent.clock import VirtualClock
from agent.clusters.base import NativeEvent, Ref
from agent.clusters.scripted import JobScript, Moment, ScriptedCluster
from agent.redaction import Redactor
from agent.store import Store
from states.job import Check
from states.observation import Capacity, Phase
from states.routing import Rule
from tests.agent.fakes import START
from tests.channels.conftest import Posted
from tests.channels.servers import Receiver, Slack
from tests.channels.test_outbound import SECRET
from tests.security.canaries import CANARIES, ERROR, KNOWN, LEAKY_LOG

WORDS = "; ".join(canary.text for canary in CANARIES if "\n" not in canary.text)
"""What a cluster says in one line."""


def script(*moments: Moment, exit_code: int | None = None) -> JobScript:
    """A job that prints all of it, then goes the way of these moments."""
    printed = [(31.0 + n / 100, line) for n, line in enumerate(LEAKY_LOG.split("\n"))]
    errors = [(190.0 + n, f"{ERROR}{canary.text}") for n, canary in enumerate(CANARIES)] if exit_code else []
    return JobScript(
        moments=(Moment(0, Phase.pending, {"native": WORDS, "reason": WORDS}), *moments),
        log=(*printed, *errors),
        events=tuple((40.0 + n, "Warning", canary.text) for n, canary in enumerate(CANARIES)),
        record=exit_code,
    )


RUNS = Moment(30, Phase.running, {"native": WORDS, "reason": WORDS})
TRAINS = script(RUNS)
FAILS = script(
    RUNS, Moment(250, Phase.failed, {"exit_code": 1, "native": WORDS, "reason": WORDS}), exit_code=1
)


class LeakyCluster(ScriptedCluster):
    """Its capacity, its previews and its names leak too."""

    def capacity(self, group: str | None = None) -> Capacity:
        return super().capacity(group).model_copy(update={"group": WORDS})

    def events(self, ref: Ref) -> Any:
        return [*super().events(ref), NativeEvent(at=None, kind=KNOWN["LAB_WORD"], message=WORDS)]


def unsure(job: Any, ports: Any) -> Check:
    """A check of which the evidence leaks; it asks for an image."""
    level = "fine" if job.spec.image else "ask"
    return Check(name="image", level=level, evidence=WORDS, mend=WORDS, question="image", rule="C5")


class Leaky(NamedTuple):
    """The desk after the story. runs: by what became of them. file: of the database. receiver, slack: what the
    channels were sent."""

    desk: Posted
    runs: Mapping[str, str]
    file: Path
    receiver: Receiver
    slack: Slack


@contextmanager
def leaky_desk(folder: Path) -> Iterator[Leaky]:
    """A desk over a database file, after its three runs went their way."""
    redactor = Redactor(KNOWN)
    file = folder / "watchkeeper.db"
    store = Store(f"sqlite:///{file}", redact=redactor.value)
    store.create_schema()
    desk = Posted(
        store,
        folder,
        FAILS,
        TRAINS,
        cluster_class=LeakyCluster,
        redact=redactor.text,
        checks={"image": unsure},
    )
    receiver, slack = Receiver(), Slack()
    couriers = [desk.courier(channel, Rule(group_s=0)) for channel in _channels(receiver, slack)]
    try:
        failed = desk.delegate(image="img:1", max_restarts=0, outputs=("out",))
        desk.run_to(failed, "failed")
        asked = desk.delegate(name="asker")
        desk.settle()
        trains = desk.delegate(name="trainer", image="img:1", request_id="r3")
        desk.run_to(trains, "running")
        desk.clock.step(300)
        desk.look()
        for courier in couriers:
            while courier.round():
                pass
        runs = {"failed": failed, "blocked": asked, "running": trains}
        yield Leaky(desk, runs, file, receiver, slack)
    finally:
        receiver.close()
        slack.close()
        store.close()


def _channels(receiver: Receiver, slack: Slack) -> list[Any]:
    """One of each kind, to servers on this machine."""
    url = receiver.url
    told = SlackSettings(kind="slack", conversation="C123", base_url=slack.api)
    return [
        WebhookChannel("ci", url=url, secret=SECRET, timeout_s=5.0, clock=VirtualClock(START)),
        AppriseChannel("phone", url=url.replace("http://", "json://"), timeout_s=5.0),
        SlackChannel("team", told, bot_token="xoxb-of-this-test"),
    ]
