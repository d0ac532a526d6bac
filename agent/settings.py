"""The settings: built-in values, `config.yaml` over them, `WATCHKEEPER_*` over both; each knows its source.

`WATCHKEEPER_MODEL__NAME` sets `model.name`; a list or mapping is given as in YAML (`[a, b]`). A wrong setting
is refused with its file and line, or the name of its variable. Read by hand and not with pydantic-settings,
which costs another 0.1 s at every start and knows no lines.

Never: hold a key (agent/secrets.py does); accept a name that is not a setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator

from agent.channel_settings import ChannelSettings
from agent.paths import config_dir, state_dir
from agent.redaction import Redactor
from agent.yamlfile import Document, Loc, plain_scalar, read_document, validate

PREFIX = "WATCHKEEPER_"
NOT_SETTINGS = ("WATCHKEEPER_HOME", "WATCHKEEPER_JOB_", "WATCHKEEPER_CRASH_")
"""Variables of the product that are no settings: the folder of everything, what a job is told about itself,
and the crash points of the tests. Names, or beginnings ending in _."""

SHORT = {"WATCHKEEPER_LOG": "LOGGING__FORMAT"}
"""Variables with a name of their own, and the setting that each is."""

VALUE = "value"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class ModelSettings(_Section):
    """The model that reads what the rules cannot settle (DESIGN 6); prices and figures from STACK 1."""

    enabled: bool = True
    """False: never asked. True without a key is the same."""
    name: str = "claude-haiku-5-5"
    base_url: str | None = None
    """Another server that speaks the same protocol; None is the provider's own."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with every request, as a gateway may want."""
    effort: Literal["low", "medium", "high"] = "low"
    timeout_s: float = Field(default=30.0, gt=0, le=600)
    output_tokens: int = Field(default=4000, ge=1000, le=32_000)
    """Bound of one reply; thinking counts toward it."""
    job_budget_usd: float = Field(default=0.10, ge=0)
    day_budget_usd: float = Field(default=2.0, ge=0)


class LoggingSettings(_Section):
    """The program's own log, on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class RetentionSettings(_Section):
    """How long ended runs are kept whole; 0: for good. Runs, decisions and messages stay in any case."""

    journal_days: float = Field(default=180.0, ge=0)
    """Then the journal is cut to its decisions: `wk why` tells the same, a replay is no longer possible."""
    delivery_days: float = Field(default=30.0, ge=0)
    """Then it is forgotten which message went to which channel."""


class Described(NamedTuple):
    """One setting for `wk config`: dotted name, value (redacted), and where it came from."""

    name: str
    value: Any
    source: str


class Settings(_Section):
    """Everything that can be set. Frozen; made by `load_settings`."""

    database_url: str = ""
    """SQLAlchemy URL; a SQLite file in the state folder unless given."""
    workspace: Path | None = None
    """Where jobs read and write; the folder that `run` is called in unless given."""
    cluster: str = "local"
    """The cluster of a request that names none."""
    clusters: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options by cluster; each cluster checks its own."""
    language: Literal["en", "zh"] = "en"
    policy: dict[str, Any] = Field(default_factory=dict)
    """Numbers that differ from the built-in ones; states/policy.py checks them."""
    model: ModelSettings = Field(default_factory=ModelSettings)
    workers: int = Field(default=4, ge=1, le=256)
    """Threads that take turns; one job is never in two."""
    sweep_s: float = Field(default=5.0, gt=0, le=600)
    """Seconds between looks at what is due, whatever the timer says."""
    wave_s: float = Field(default=1.0, gt=0, le=60)
    """Grid that wakes are rounded to, so that jobs due together share one status call."""
    keyring: Literal["auto", "on", "off"] = "auto"
    causes_files: tuple[Path, ...] = ()
    """Log signatures of one's own, beside the built-in ones; relative to the folder of `config.yaml`."""
    logging: LoggingSettings = Field(default_factory=LoggingSettings)
    retention: RetentionSettings = Field(default_factory=RetentionSettings)
    channels: dict[str, ChannelSettings] = Field(default_factory=dict)
    """Where messages are sent, beside the inbox, by a name of your own."""
    public_url: str = ""
    """Where people reach the page, as https://watch.example.org; messages carry links to it then."""
    metrics: bool = False
    """Figures for Prometheus at /metrics of the page."""
    tracing: bool = False
    """Spans by OpenTelemetry, sent where the OTEL_* variables say."""

    _sources: dict[Loc, str] = PrivateAttr(default_factory=dict)

    @field_validator("public_url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value and not value.startswith(("https://", "http://")):
            raise ValueError("must begin with https:// or http://")
        return value.rstrip("/")

    @field_validator("database_url")
    @classmethod
    def _is_a_url(cls, value: str) -> str:
        if value and "://" not in value:
            raise ValueError("must be a URL, as sqlite:////path/to/file.db or postgresql://host/name")
        return value

    def describe(self) -> list[Described]:
        """Each value, credentials redacted, and its source: `built-in`, `file:line` or `environment NAME`."""
        hide = Redactor(())
        found = []
        for loc, value in _leaves(self.model_dump(mode="json"), ()):
            shown = hide.value({loc[-1]: value})[loc[-1]]
            found.append(Described(".".join(map(str, loc)), shown, self._sources.get(loc, "built-in")))
        return found


def load_settings(env: Mapping[str, str]) -> Settings:
    """The settings of this environment: $XDG_CONFIG_HOME/watchkeeper/config.yaml and WATCHKEEPER_* over it.

    Raises UserFileError that names file and line, or the variable, of each thing that is wrong.
    """
    folder = config_dir(env)
    file = folder / "config.yaml"
    document = read_document(file, what="the settings") if file.exists() else Document({}, {}, {})
    document.labels.pop((), None)
    _overlay(document, env)
    settings = validate(document, Settings)
    files = tuple(folder / path.expanduser() for path in settings.causes_files)
    url = settings.database_url or f"sqlite:///{state_dir(env) / 'watchkeeper.db'}"
    settings = settings.model_copy(update={"database_url": url, "causes_files": files})
    settings._sources.update(document.labels)
    return settings


def _overlay(document: Document, env: Mapping[str, str]) -> None:
    """Put each WATCHKEEPER_* variable into the document, labelled with its name."""
    for variable in sorted(env):
        reserved = any(variable == n or (n.endswith("_") and variable.startswith(n)) for n in NOT_SETTINGS)
        if not variable.startswith(PREFIX) or reserved or not env[variable]:
            continue
        label, target = f"environment {variable}", document.data
        spelled = SHORT.get(variable, variable.removeprefix(PREFIX))
        *sections, last = spelled.lower().split("__")
        place: Loc = ()
        for section in sections:
            name = _same_name(target, section)
            place = (*place, name)
            document.labels.setdefault(place, label)
            if not isinstance(target.get(name), dict):
                target[name] = {}
            target = target[name]
        name = _same_name(target, last)
        place = (*place, name)
        _forget_below(document, place)
        given = _given(env[variable], label)
        target[name] = given.data[VALUE]
        document.labels.update({place + loc[1:]: label for loc in given.labels if loc})
        document.texts.update({place + loc[1:]: text for loc, text in given.texts.items()})


def _given(text: str, label: str) -> Document:
    """A scalar, or a list or mapping in brackets, as YAML reads it; under the name VALUE."""
    if text.startswith(("[", "{")):
        return read_document(f"{VALUE}: {text}", what=label)
    return Document({VALUE: plain_scalar(text)}, {(VALUE,): label}, {(VALUE,): text})


def _same_name(target: Mapping[str, Any], name: str) -> str:
    """The name as the file writes it: a variable cannot hold `-` or tell capitals."""
    return next((key for key in target if key.lower().replace("-", "_") == name), name)


def _forget_below(document: Document, place: Loc) -> None:
    for kept in (document.labels, document.texts):
        for loc in [loc for loc in kept if loc[: len(place)] == place]:
            del kept[loc]


def _leaves(value: Any, loc: Loc) -> Iterator[tuple[Loc, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, (*loc, name))
    else:
        yield loc, value
