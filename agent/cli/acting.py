"""After a command changed a run: its turn is taken here and now, and somebody goes on watching.

So an answer or a stop takes effect at once, whether or not a resident agent is there; leases keep both apart.

Never: a change of a run of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.cli.output import hint

if TYPE_CHECKING:
    from agent.app import App


def carried_on(app: App, run: str) -> None:
    """Perform what the run asks for now; then see to it that a live run is watched. Raises NotStarted."""
    from agent.background import ensure
    from agent.carry import enter
    from agent.turn import turn

    enter(app)
    try:
        turn(run, app.carrying_ports)
    finally:
        app.watchers.leave()
    app.bell.ring()
    if app.watchers.anyone() or app.store.load(run).is_terminal:
        return
    present, started = ensure(app.env, app.state_dir, app.clock)
    if started:
        hint(f"Nobody was watching; process {present.pid} does now, until nothing is left to watch.")
