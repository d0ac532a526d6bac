"""The channels of a process that carries runs: made from the settings, a thread each, woken when something was told.

A channel that cannot be made (a key is missing, a package is not installed) counts as one that fails: what was meant
for it waits, and the others are told.

Never: a channel's failure in the way of a run; a message sent by a thread that was told to end.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, tzinfo
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from agent.channel_settings import AppriseSettings, ChannelSettings, SlackSettings, WebhookSettings
from agent.channels.base import Channel, ChannelError, Parcel
from agent.channels.courier import Courier
from agent.channels.links import Links
from agent.channels.parcels import Packer
from agent.deliveries import Deliveries, Standing
from agent.people import People

if TYPE_CHECKING:
    from agent.app import App

log = logging.getLogger(__name__)

SWEEP_S = 5.0
"""Between two looks into the inbox, whether or not anything rang."""
END_S = 15.0
WAITED_TRIES = 3
"""A process that ends when nothing is left to do does not wait for what failed more often than this."""
INSTALL = "install it: pip install 'watchkeeper[channels]'"


class Broken:
    """A channel that cannot be made: nothing goes out, and why."""

    threads = False

    def __init__(self, name: str, why: str) -> None:
        self.name, self._why = name, why

    def send(self, parcel: Parcel) -> str:
        raise ChannelError(self._why)

    def find(self, parcel: Parcel, since: datetime) -> str | None:
        return None

    def test(self) -> str:
        raise ChannelError(self._why)

    def shown(self) -> str:
        return self._why


class Post:
    """One channel's thread: a round whenever something falls due, was told, or SWEEP_S is over."""

    def __init__(self, courier: Courier, sweep_s: float = SWEEP_S) -> None:
        self._courier, self._sweep_s = courier, sweep_s
        self._wake, self._ended = Event(), Event()
        self._thread = Thread(target=self._run, name=f"channel-{courier.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def nudge(self) -> None:
        self._wake.set()

    def close(self) -> None:
        """One more round, then end."""
        self._ended.set()
        self._wake.set()
        self._thread.join(END_S)

    def _run(self) -> None:
        while True:
            last = self._ended.is_set()
            self._wake.clear()
            try:
                self._courier.round()
            except Exception:  # the database may be away; what waits there is not lost
                log.exception("a round of the channel %s failed; the next one goes on", self._courier.name)
            if last:
                return
            self._wake.wait(self._pause_s())

    def _pause_s(self) -> float:
        try:
            due = self._courier.next_at()
        except Exception:
            return self._sweep_s
        left = (due - self._courier.clock.now()).total_seconds() if due else self._sweep_s
        return min(max(left, 0.05), self._sweep_s)


class Office:
    """All channels of one app. `start` them in the process that carries runs."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.deliveries = Deliveries(app.store, app.redactor.text)
        self.channels = {name: made(app, name) for name in app.settings.channels}
        self._posts: list[Post] = []
        self._ears: list[Any] = []

    def start(self) -> None:
        """Send and listen from here on."""
        self._posts = [Post(self.courier(name)) for name in self.channels]
        self._ears = [ear for name in self.channels if (ear := self._ear(name)) is not None]
        for one in (*self._posts, *self._ears):
            one.start()

    def nudge(self, run: str = "") -> None:
        """Something may have been told of this run."""
        for post in self._posts:
            post.nudge()

    def close(self) -> None:
        """Send what is due once more, and end."""
        for one in (*self._ears, *self._posts):
            one.close()
        self._posts, self._ears = [], []

    def courier(self, name: str) -> Courier:
        """The courier of a channel."""
        app, channel = self._app, self.channels[name]
        quiet, zone = quiet_hours(app)
        packer = Packer(
            channel=name,
            threads=channel.threads,
            store=app.store,
            links=links_of(app),
            language=app.service.language,
            public_url=app.settings.public_url,
            gathers=app.settings.channels[name].group_s > 0,
        )
        return Courier(
            channel=channel,
            rule=app.settings.channels[name].rule,
            deliveries=self.deliveries,
            packer=packer,
            clock=app.clock,
            others=[other for other in self.channels if other != name],
            quiet=quiet,
            zone=zone,
            language=app.service.language,
            tell=self.nudge,
        )

    def is_busy(self) -> bool:
        """Whether anything is still to be sent that is worth waiting for."""
        able = [name for name, channel in self.channels.items() if not isinstance(channel, Broken)]
        return bool(able) and self.deliveries.open_count(able, tries_max=WAITED_TRIES) > 0

    def _ear(self, name: str) -> Any:
        settings = self._app.settings.channels[name]
        if not isinstance(settings, SlackSettings) or isinstance(self.channels[name], Broken):
            return None
        app_token = self._app.secrets.get(settings.app_token)
        if not app_token:
            log.warning("%s does not listen: the key %s is not set", name, settings.app_token)
            return None
        from agent.channels.chat import Chat
        from agent.channels.slack_listen import SlackEar

        return SlackEar(
            name,
            settings,
            Chat(self._app.service),
            self.deliveries,
            bot_token=self._app.secrets.get(settings.bot_token) or "",
            app_token=app_token,
        )


def links_of(app: App) -> Links:
    """Signs and reads the answer links of this app."""
    return Links(People.of(app.env).signing_key, app.clock, base=app.settings.public_url)


def quiet_hours(app: App) -> tuple[Any, tzinfo]:
    """The quiet hours of the standing orders, and their zone."""
    quiet = app.orders.standing.quiet_hours
    return quiet, (ZoneInfo(quiet.zone) if quiet is not None else UTC)


def made(app: App, name: str) -> Channel:
    """The channel of this name; a Broken one where that cannot be."""
    settings: ChannelSettings = app.settings.channels[name]
    lacking = [key for key in keys_of(settings) if not app.secrets.get(key)]
    if lacking:
        return Broken(name, f"the key {lacking[0]} is not set: wk key set {lacking[0]}")
    try:
        return _made(app, name, settings)
    except ImportError as error:
        return Broken(name, f"the package {error.name} is missing; {INSTALL}")


def keys_of(settings: ChannelSettings) -> tuple[str, ...]:
    """Names of the keys without which nothing goes out."""
    match settings:
        case SlackSettings():
            return (settings.bot_token,)
        case AppriseSettings():
            return (settings.url,)
        case WebhookSettings():
            return tuple(key for key in (settings.secret, settings.url) if key)


def _made(app: App, name: str, settings: ChannelSettings) -> Channel:
    def key(of: str | None) -> str:
        return (app.secrets.get(of) or "") if of else ""

    match settings:
        case SlackSettings():
            _needs("slack_bolt")
            from agent.channels.slack import SlackChannel

            return SlackChannel(name, settings, bot_token=key(settings.bot_token))
        case AppriseSettings():
            _needs("apprise")
            from agent.channels.notify import AppriseChannel

            language = app.service.language
            return AppriseChannel(
                name, url=key(settings.url), timeout_s=settings.timeout_s, language=language
            )
        case WebhookSettings():
            from agent.channels.webhook import WebhookChannel

            url, secret = key(settings.url), key(settings.secret)
            return WebhookChannel(name, url=url, secret=secret, timeout_s=settings.timeout_s, clock=app.clock)


def _needs(package: str) -> None:
    """Raises ImportError for a package that is not installed, without importing it."""
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise ImportError(package, name=package)


def stands(standing: Standing) -> str:
    """How a channel does, in a few words."""
    waiting = f"; {standing.waiting} wait" if standing.waiting else ""
    if standing.failing_since is not None:
        since = standing.failing_since.isoformat(timespec="seconds")
        return f"fails since {since}: {standing.said}{waiting}"
    if standing.sent_at is None:
        return f"nothing was sent yet{waiting}"
    return f"sent at {standing.sent_at.isoformat(timespec='seconds')}{waiting}"
