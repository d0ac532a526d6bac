"""The composition root: the only file that picks the concrete clock, store, clusters, reader and library.

Imports of drivers are lazy and by name, so that a command pays only for what it uses; third parties add a cluster
by the entry point group `watchkeeper.clusters`.

Never: logic of its own.
"""

from __future__ import annotations

import getpass
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from agent import observe
from agent.clock import Clock, SystemClock
from agent.clusters.base import Cluster
from agent.paths import config_dir, private, state_dir
from agent.redaction import RedactingFilter, Redactor
from agent.resident import Bell, Resident, Watchers
from agent.secrets import Secrets
from agent.settings import ModelSettings, Settings, load_settings
from agent.yamlfile import UserFileError

DRIVERS: Mapping[str, str] = {
    "local": "agent.clusters.local:LocalCluster",
    "brainpp": "agent.clusters.brainpp:BrainppCluster",
    "slurm": "agent.clusters.slurm:SlurmCluster",
    "kubernetes": "agent.clusters.kubernetes:KubernetesCluster",
    "ray": "agent.clusters.ray:RayCluster",
}
"""Built-in drivers by kind: `module:class`, called with (name, options)."""

ENTRY_POINTS = "watchkeeper.clusters"

LOG_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"
LOG_TIME = "%Y-%m-%dT%H:%M:%S%z"


@dataclass(frozen=True)
class App:
    """What a command works with. Each part is made when it is first used."""

    env: Mapping[str, str]
    settings: Settings
    clock: Clock

    @cached_property
    def secrets(self) -> Secrets:
        return Secrets(config_dir(self.env) / "keys", env=self.env, keyring=self.settings.keyring)

    @cached_property
    def redactor(self) -> Redactor:
        return Redactor(self.secrets.values())

    @cached_property
    def state_dir(self) -> Path:
        return private(state_dir(self.env))

    @cached_property
    def bell(self) -> Bell:
        """Rung when this process put something into the store; heard by whoever carries runs."""
        return Bell(self.state_dir)

    @cached_property
    def resident(self) -> Resident:
        return Resident(self.state_dir, self.clock)

    @cached_property
    def watchers(self) -> Watchers:
        return Watchers(self.state_dir)

    @cached_property
    def clusters(self) -> Mapping[str, Cluster]:
        return Clusters(self._make_cluster, {"local": {}, **self.settings.clusters})

    @cached_property
    def store(self) -> Any:
        from agent.store import Store

        private(state_dir(self.env))
        store = Store(self.settings.database_url, redact=self.redactor.value, grid_s=self.settings.wave_s)
        store.create_schema()
        return store

    @cached_property
    def library(self) -> Any:
        from agent.library import Library

        return Library(self.store)

    @cached_property
    def orders(self) -> Any:
        """The standing orders in force, with where each stands. Raises UserFileError."""
        from agent.orders import load_orders

        return load_orders(self.env)

    @cached_property
    def signatures(self) -> Any:
        """The person's own log signatures with the built-in ones; None without files. Raises UserFileError."""
        if not self.settings.causes_files:
            return None
        from states.logs.signatures import SignatureError, load

        try:
            return load(
                [(str(file), file.read_text(encoding="utf-8")) for file in self.settings.causes_files]
            )
        except (SignatureError, OSError) as error:
            raise UserFileError(f"causes_files: {error}") from None

    @property
    def model_settings(self) -> ModelSettings:
        """The model's settings with the budgets that standing orders set."""
        standing = self.orders.standing
        ordered = {"job_budget_usd": standing.model_usd(), "day_budget_usd": standing.model_usd_day()}
        told = {name: usd for name, usd in ordered.items() if usd is not None}
        return self.settings.model.model_copy(update=told)

    @cached_property
    def reader(self) -> Any:
        """The model that reads what the rules cannot settle; None without a key (I3)."""
        key = self.secrets.get("ANTHROPIC_API_KEY")
        if not self.settings.model.enabled or not key:
            return None
        from agent.reader import model_reader
        from agent.readings import Readings

        ledger = Readings(self.store, self.redactor.text)
        return model_reader(
            self.model_settings, key, clock=self.clock, ledger=ledger, redact=self.redactor.text
        )

    @cached_property
    def ports(self) -> Any:
        from agent.checks import every_check
        from agent.ports import Ports
        from agent.staging.sizes import size_of

        return Ports(
            store=self.store,
            clock=self.clock,
            clusters=self.clusters,
            redact=self.redactor.text,
            reader=self.reader,
            signatures=self.signatures,
            library=self.library,
            checks=every_check(self.secrets, measure=size_of),
            announce=self._announce,
        )

    @cached_property
    def notices(self) -> Any:
        """What replicas on one PostgreSQL tell each other (`agent.notify`)."""
        from agent.notify import Notices

        return Notices(self.store)

    def _announce(self, job_id: str) -> None:
        self.bell.ring()
        self.notices.tell()

    @cached_property
    def carrying_ports(self) -> Any:
        """The ports of a process that takes turns: it can also delegate what a run itself asks for."""
        return replace(self.ports, delegate_child=self.service.delegate_child)

    @cached_property
    def service(self) -> Any:
        from agent.service import Service

        return Service(
            self.ports,
            library=self.library,
            owner=owner(self.env),
            default_cluster=self.settings.cluster,
            policy_layers=[("config.yaml", self.settings.policy)],
            language=self.orders.standing.language or self.settings.language,
            orders=self.orders.standing,
        )

    def wakes(self, announce: Callable[[str], None] = lambda job_id: None) -> Any:
        """The loop of a process that carries runs: timers and workers over this app's ports."""
        from agent.wakes import Wakes

        ports = replace(self.carrying_ports, announce=announce)
        return Wakes(ports, workers=self.settings.workers, sweep_s=self.settings.sweep_s, tidy=self.tidy)

    def tidy(self) -> Any:
        """Let go of what the settings keep no longer (`agent.retention`)."""
        from agent.retention import tidy

        return tidy(self.store, self.clock.now(), **self.settings.retention.model_dump())

    def _make_cluster(self, name: str, options: Mapping[str, Any]) -> Cluster:
        kind = str(options.get("kind", name))
        own = {key: value for key, value in options.items() if key != "kind"}
        if kind in ("local", "brainpp", "ray"):
            own.setdefault("root", str(self.state_dir / name))
        if kind in ("brainpp", "ray"):
            own["secrets"] = self.secrets.get
        if kind == "kubernetes":
            own["redact"] = self.redactor.text
        made: Cluster = driver(kind)(name, own)
        if self.settings.metrics or self.settings.tracing:
            from agent.observed import ObservedCluster

            observed: Any = ObservedCluster(made)
            return observed  # type: ignore[no-any-return]
        return made

    @cached_property
    def metrics(self) -> Any:
        """Figures for Prometheus; None unless they are set. Raises UserFileError without the package."""
        if not self.settings.metrics:
            return None
        try:
            from agent.metrics import Metrics
        except ImportError:
            raise UserFileError("metrics: needs a package: pip install 'watchkeeper[metrics]'") from None
        return Metrics(self.store, self.clock, tuple(self.settings.channels))

    @cached_property
    def tracing(self) -> Any:
        """Spans by OpenTelemetry; None unless they are set. Raises UserFileError without the package."""
        if not self.settings.tracing:
            return None
        try:
            from agent.tracing import Tracing
        except ImportError:
            raise UserFileError("tracing: needs a package: pip install 'watchkeeper[tracing]'") from None
        return Tracing()

    def observed(self) -> None:
        """Let what is set listen to the loop of this process (`agent.observe`)."""
        for listener in (self.metrics, self.tracing):
            if listener is not None:
                observe.listen(listener)

    def unobserved(self) -> None:
        """Nothing listens any more; what was gathered is sent."""
        for listener in (self.metrics, self.tracing):
            if listener is not None:
                observe.forget(listener)
        if self.tracing is not None:
            self.tracing.close()


class Clusters(Mapping[str, Cluster]):
    """The configured clusters; a driver is imported and made when its name is first asked for."""

    def __init__(
        self, make: Callable[[str, Mapping[str, Any]], Cluster], configured: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._make = make
        self._configured = configured
        self._made: dict[str, Cluster] = {}

    def __getitem__(self, name: str) -> Cluster:
        if name not in self._made:
            self._made[name] = self._make(name, self._configured[name])
        return self._made[name]

    def __iter__(self) -> Any:
        return iter(self._configured)

    def __len__(self) -> int:
        return len(self._configured)


def driver(kind: str) -> Callable[[str, Mapping[str, Any]], Cluster]:
    """The class of a kind of cluster. Raises UserFileError with the known kinds."""
    if kind in DRIVERS:
        module, _, attribute = DRIVERS[kind].partition(":")
        found: Callable[[str, Mapping[str, Any]], Cluster] = getattr(import_module(module), attribute)
        return found
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == kind:
            loaded: Callable[[str, Mapping[str, Any]], Cluster] = point.load()
            return loaded
    known = sorted({*DRIVERS, *(point.name for point in entry_points(group=ENTRY_POINTS))})
    raise UserFileError(
        f"there is no kind of cluster {kind!r}; known: {', '.join(known)} (set `kind:` in its options)"
    )


def build(env: Mapping[str, str] | None = None, *, clock: Clock | None = None) -> App:
    """The app of this environment. Raises UserFileError for settings that are wrong."""
    environment = dict(os.environ if env is None else env)
    return App(env=environment, settings=load_settings(environment), clock=clock or SystemClock())


def owner(env: Mapping[str, str]) -> str:
    """Whom runs belong to: the login name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return env.get("USER", "unknown")


def log_to(app: App, handler: logging.Handler) -> None:
    """Redacted logging of this process. `transitions` at WARNING: a DEBUG line costs ten times a step."""
    json_lines = app.settings.logging.format == "json"
    handler.setFormatter(JsonLines() if json_lines else logging.Formatter(LOG_LINE, datefmt=LOG_TIME))
    handler.addFilter(RedactingFilter(app.redactor))
    logging.basicConfig(level=app.settings.logging.level.upper(), handlers=[handler], force=True)
    for noisy in ("transitions", "apscheduler"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def log_to_stderr(app: App) -> None:
    """For the resident agent."""
    log_to(app, logging.StreamHandler(sys.stderr))


def log_to_file(app: App) -> None:
    """For a command that shows something else on the terminal: `watch.log` in the state folder, bounded."""
    from logging.handlers import RotatingFileHandler

    file = app.state_dir / "watch.log"
    file.touch(mode=0o600)
    log_to(app, RotatingFileHandler(file, maxBytes=1 << 20, backupCount=1, encoding="utf-8", delay=True))


class JsonLines(logging.Formatter):
    """One JSON object a record."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "at": self.formatTime(record, LOG_TIME),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **observe.here(),
        }
        if record.exc_text or record.exc_info:
            told["trace"] = record.exc_text or self.formatException(record.exc_info)  # type: ignore[arg-type]
        return json.dumps(told, ensure_ascii=False)
