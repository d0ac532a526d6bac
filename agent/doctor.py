"""What this installation needs to do its work, looked at one by one; each finding says how it is mended.

Settings, folders, database, clusters, keys by name, resident agent, versions. A look creates nothing but what every
command creates. Each cluster looks at itself where it can (`doctor()`: is its program the right one, are keys and
group there, does it answer, do the clocks agree); then it is asked for its capacity.

Never: a value of a key; a finding without a way out.
"""

from __future__ import annotations

import platform
import stat
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from agent.clusters.base import ClusterError
from agent.paths import config_dir
from agent.secrets import SecretsError, advice
from states.observation import Capacity

if TYPE_CHECKING:
    from agent.app import App

PACKAGES = ("transitions", "apscheduler", "pydantic", "sqlmodel", "sqlalchemy", "anthropic", "typer", "rich")
PYTHON_MIN = (3, 11)

Level = Literal["ok", "warn", "fail"]


class Finding(NamedTuple):
    """One row. mend: what to do, empty when it is fine."""

    name: str
    level: Level
    said: str
    mend: str = ""


def examine(app: App) -> list[Finding]:
    """Every finding, in a fixed order. A look that breaks is a finding itself."""
    looks: tuple[Callable[[App], Iterator[Finding]], ...] = (
        _program,
        _settings,
        _folders,
        _database,
        _clusters,
        _channels,
        _keys,
        _watching,
    )
    return [finding for look in looks for finding in _guarded(look, app)]


def examine_upgrade(app: App) -> list[Finding]:
    """What this version makes of the runs that are under way (`agent.shadow`). Nothing is changed: not even the
    database's form, which every other command brings up to date."""
    return list(_guarded(_upgrade, app))


def _upgrade(app: App) -> Iterator[Finding]:
    from agent.database import Database
    from agent.shadow import form_of, is_newer, live_runs
    from agent.tables import SCHEMA_VERSION

    url = app.settings.database_url
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        yield Finding("database", "ok", "there is none yet")
        return
    database = Database(url)
    try:
        form = form_of(database)
        if is_newer(form):
            said = f"its form is {form}, this version knows {SCHEMA_VERSION:04}"
            yield Finding("database", "fail", said, "Take a newer Watchkeeper for this database.")
            return
        ahead = (
            "as it is"
            if form == f"{SCHEMA_VERSION:04}"
            else f"from {form or 'nothing'} to {SCHEMA_VERSION:04}"
        )
        yield Finding("database", "ok", f"its form at the next start: {ahead}")
        seen = list(live_runs(database)) if form else []
    finally:
        database.close()
    same = sum(run.level in ("same", "reworded") for run in seen)
    yield Finding("runs under way", "ok", f"{same} of {len(seen)} are decided as they were")
    for run in seen:
        if run.level in ("different", "impossible"):
            level: Level = "fail" if run.level == "impossible" else "warn"
            mend = f"Let it end under the version that carries it, or report it with: wk export {run.run}"
            yield Finding(f"run {run.run}", level, app.redactor.text(f"{run.level}: {run.said}"), mend)


def _guarded(look: Callable[[App], Iterator[Finding]], app: App) -> Iterator[Finding]:
    try:
        yield from look(app)
    except Exception as error:
        name = look.__name__.strip("_")
        yield Finding(
            name, "fail", f"{type(error).__name__}: {error}", "Mend what it names, then look again."
        )


def _program(app: App) -> Iterator[Finding]:
    here = platform.python_version()
    old = sys.version_info[:2] < PYTHON_MIN
    yield Finding("python", "fail" if old else "ok", here, "Use Python 3.11 or newer." if old else "")
    lacking = [name for name in PACKAGES if not _version(name)]
    told = ", ".join(f"{name} {_version(name)}" for name in PACKAGES if _version(name))
    if lacking:
        yield Finding("packages", "fail", f"missing: {', '.join(lacking)}", "Install watchkeeper anew.")
    yield Finding("versions", "ok", f"watchkeeper {_version('watchkeeper') or 'from a checkout'}, {told}")


def _settings(app: App) -> Iterator[Finding]:
    file = config_dir(app.env) / "config.yaml"
    yield Finding("settings", "ok", f"{file}" if file.exists() else f"built-in ones ({file} is not there)")


def _folders(app: App) -> Iterator[Finding]:
    for name, folder in (("state folder", app.state_dir), ("config folder", config_dir(app.env))):
        if not folder.exists():
            yield Finding(name, "ok", f"{folder} (made when it is needed)")
            continue
        open_to_others = stat.S_IMODE(folder.stat().st_mode) & 0o077
        said = f"{folder} can be read by others" if open_to_others else f"{folder}"
        mend = f"chmod 700 {folder}" if open_to_others else ""
        yield Finding(name, "warn" if open_to_others else "ok", said, mend)


def _database(app: App) -> Iterator[Finding]:
    url = app.redactor.text(app.settings.database_url)
    live = len(app.store.live_ids())
    yield Finding("database", "ok", f"{url} opens; live runs: {live}")
    path = app.settings.database_url.removeprefix("sqlite:///")
    if path != app.settings.database_url and not Path(path).is_absolute():
        yield Finding(
            "database", "warn", f"{path} is relative to where a command is called", "Give an absolute path."
        )


def _clusters(app: App) -> Iterator[Finding]:
    default = app.settings.cluster
    if default not in app.clusters:
        known = ", ".join(sorted(app.clusters))
        yield Finding(
            "cluster", "fail", f"the default {default!r} is not configured", f"Set cluster: to {known}"
        )
    for name in app.clusters:
        yield from _cluster(app, name, is_default=name == default)


def _cluster(app: App, name: str, *, is_default: bool) -> Iterator[Finding]:
    """What a cluster finds of itself, then its capacity unless something is wrong. Of a cluster that is not the
    default one nothing is worse than a warning, but options that cannot be read."""
    told = f"cluster {name}" + (" (default)" if is_default else "")
    worst: Level = "fail" if is_default else "warn"
    try:
        cluster = app.clusters[name]
        look = getattr(cluster, "doctor", None)
        found = tuple(look()) if callable(look) else ()
        for row in found:
            level = {"fine": "ok", "wrong": worst}.get(row.level, "warn")
            mend = row.mend or ("" if level == "ok" else "Mend it, then `wk doctor` again.")
            said, way_out = app.redactor.text(row.said), app.redactor.text(mend)
            yield Finding(f"{told}: {row.name}", level, said, way_out)
        if not any(row.level == "wrong" for row in found):
            yield Finding(told, "ok", _free(cluster.capacity()))
    except ClusterError as error:
        yield Finding(told, worst, app.redactor.text(str(error)), "Mend it, then `wk capacity`.")
    except Exception as error:
        yield Finding(told, "fail", app.redactor.text(str(error)), f"Check clusters.{name} in config.yaml.")


def _free(capacity: Capacity) -> str:
    figures = (("GPUs", capacity.free_gpu), ("CPU cores", capacity.free_cpu))
    return ", ".join(f"{count:g} {what} free" for what, count in figures if count is not None) or "answers"


def _channels(app: App) -> Iterator[Finding]:
    """Each channel: whether it can be made, and how it has done; nothing is sent (`wk channels test` does)."""
    if not app.settings.channels:
        return
    from agent.channels.office import Broken, Office, stands

    office = Office(app)
    for name, channel in office.channels.items():
        told = f"channel {name}"
        shown = app.redactor.text(channel.shown())
        if isinstance(channel, Broken):
            yield Finding(told, "fail", shown, "Do what it says; what is meant for it waits.")
            continue
        standing = office.deliveries.standing(name, app.clock.now())
        said = f"{shown}; {stands(standing)}"
        if standing.failing_since is not None:
            yield Finding(told, "fail", said, f"Mend it, then `wk channels test {name}`.")
        else:
            yield Finding(told, "ok", said)


def _keys(app: App) -> Iterator[Finding]:
    wanted = {name for cluster in app.clusters for name in _needs(app, cluster)}
    for name in sorted(wanted | {"ANTHROPIC_API_KEY"}):
        try:
            source = app.secrets.source(name)
        except SecretsError as error:
            yield Finding("keys", "fail", str(error), "Do what it says, then look again.")
            return
        if source:
            yield Finding(f"key {name}", "ok", f"set ({source})")
        elif name in wanted:
            yield Finding(
                f"key {name}", "warn", "not set; nothing is submitted where it is needed", advice(name)
            )
        else:
            yield Finding(f"key {name}", "ok", "not set; logs are read by the rules alone")


def _needs(app: App, cluster: str) -> tuple[str, ...]:
    try:
        return app.clusters[cluster].capabilities.needs_credentials
    except Exception:  # its own row says what is wrong with it
        return ()


def _watching(app: App) -> Iterator[Finding]:
    present = app.resident.holder()
    live = len(app.store.live_ids())
    if present is not None:
        yield Finding("resident agent", "ok", f"process {present.pid}, since {present.started_at}")
    elif app.watchers.anyone():
        yield Finding("resident agent", "ok", "none; a followed run carries all of them meanwhile")
    elif live:
        yield Finding("resident agent", "fail", f"none, and {live} live runs are not watched", "wk serve")
    else:
        yield Finding("resident agent", "ok", "none, and nothing is live")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
