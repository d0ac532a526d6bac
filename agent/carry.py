"""The loop of a process that carries runs while it stays: `serve`, and `run` or `follow` where nobody is resident.

A delegated run is never unwatched. So who leaves while something is still live leaves a resident agent behind first,
and who follows takes over when the resident one is gone. Both at once are safe: leases and claims keep them apart.

Never: a decision about a run; leave before somebody else holds the place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent import background
from agent.resident import Presence

if TYPE_CHECKING:
    from agent.app import App


class Carrier:
    """Timers and workers of this process, started only when they are needed."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._wakes: Any = None
        self._office: Any = None
        self._listener: Any = None

    @property
    def carries(self) -> bool:
        """Whether this process has a loop of its own."""
        return self._wakes is not None

    def tend(self) -> None:
        """Called again and again: take over where nobody is resident, and look when the bell was rung."""
        rung = self._app.bell.heard()
        if self._wakes is not None:
            if rung:
                self._wakes.nudge()
        elif self._app.resident.holder() is None:
            self.start()

    def start(self) -> None:
        """Carry runs from here on."""
        enter(self._app)
        self._app.observed()
        self._office = channels_of(self._app)
        self._wakes = self._app.wakes() if self._office is None else self._app.wakes(self._office.nudge)
        self._wakes.start()
        self._listener = self._app.notices.listen(self._wakes.nudge)
        if self._office is not None:
            self._office.start()

    def close(self) -> None:
        """Finish the turns under way and stop. What is left is in the store."""
        if self._wakes is not None:
            if self._listener is not None:
                self._listener.close()
            self._wakes.close()
            self._wakes = None
            if self._office is not None:
                self._office.close()
                self._office = None
            self._app.unobserved()
            self._app.watchers.leave()

    def leave(self) -> Presence | None:
        """Stop, with a resident agent left behind if anything is live. Returns the one that was started, if so.

        Raises background.NotStarted; the loop has been stopped then all the same.
        """
        try:
            return self._left_behind() if is_busy(self._app) else None
        finally:
            self.close()

    def _left_behind(self) -> Presence | None:
        present, started = background.ensure(self._app.env, self._app.state_dir, self._app.clock)
        return present if started else None


def enter(app: App) -> None:
    """Be one of those who carry runs. The first one takes over at once what a process that was killed still held."""
    app.watchers.enter(alone=lambda: take_over(app))


def take_over(app: App) -> None:
    """Nobody else carries runs: leases and claims of this database are of processes that died; none is waited for.

    Only where the database lies in the state folder: another may be shared with processes not seen from here.
    """
    from agent.leases import free_all

    if str(app.state_dir) in app.settings.database_url:
        free_all(app.store, app.clock)


def channels_of(app: App) -> Any:
    """The channels of the settings (`agent.channels.office`); None where none is set."""
    if not app.settings.channels:
        return None
    from agent.channels.office import Office

    return Office(app)


def is_busy(app: App) -> bool:
    """Whether anything is left to carry: a live run, an effect that was asked for, a message on its way."""
    if app.store.live_ids() or app.store.next_effect_at() is not None:
        return True
    office = channels_of(app)
    return office is not None and office.is_busy()
