"""An `rjob submit` line as a request (RJOB 2: the flags that public files show).

Both `--flag=value` and `--flag value` are read; an option has all words up to the next one, since `--mount` and `-e`
take several. What has a field becomes that; every other flag goes through as it is.

Never: a flag that says whose job it is, or that it is only a question, among the words passed through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.native.converted import Building, Converted
from agent.yamlfile import UserFileError, plain_scalar

NAMES: Mapping[str, str] = {
    "-P": "--replica", "--replicas": "--replica", "-e": "--env", "--set-env": "--env", "-r": "--restart-policy",
}  # fmt: skip
FIGURES: Mapping[str, str] = {
    "--gpu": "gpu", "--cpu": "cpu", "--memory": "memory_mib", "--replica": "replicas", "--priority": "priority",
}  # fmt: skip
TEXTS: Mapping[str, str] = {"--image": "image", "--task-type": "lane"}
WITHOUT_MEANING: Mapping[str, str] = {
    "--metadata-name": "each attempt has a name of its own",
    "--namespace": "the namespace is the one of the charged group's pair (`wk key set BRAINPP_CHARGED_GROUP`)",
    "--predict-only": "that is a question, not a submit; preflight asks it",
    "--dry-run": "that is a question, not a submit; `wk submit` and `wk run` send",
}
RESTARTS = frozenset({"--restart-policy", "--auto-restart", "--backoff_limit", "--enable-self-health"})


class Flag(NamedTuple):
    """One flag by its usual name, with the words that belong to it."""

    name: str
    values: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """As words, each value with the flag before it."""
        return tuple(f"{self.name}={value}" for value in self.values) or (self.name,)


def from_line(words: Sequence[str]) -> Converted:
    """The request of `rjob submit ... -- COMMAND`. Raises UserFileError with everything that is wrong."""
    flags, command = _split(list(words[2:]))
    built = Building("rjob")
    faults: list[str] = []
    given: dict[str, str] = {}
    for flag in flags:
        value = flag.values[-1] if flag.values else ""
        given[flag.name] = value
        if flag.name in FIGURES:
            built.request[FIGURES[flag.name]] = number = plain_scalar(value)
            if not isinstance(number, int | float) or isinstance(number, bool):
                faults.append(f"rjob: {flag.name} takes a number, not {value!r}")
        elif flag.name in TEXTS:
            built.request[TEXTS[flag.name]] = value
        elif flag.name == "--mount":
            built.request.setdefault("mounts", []).extend(flag.values)
        elif flag.name == "--env":
            faults += _variables(built, flag.values)
        elif flag.name == "--folder" and value.startswith("/"):
            built.request["workspace"] = value
        elif flag.name not in ("--name", "--charged-group", "--group", *WITHOUT_MEANING):
            _keep(built, flag)
    _whose(built, given)
    built.request["command"] = command
    if faults:
        raise UserFileError(*faults)
    return built.done()


def _split(words: list[str]) -> tuple[list[Flag], list[str]]:
    """Flags, and the command behind `--`."""
    if "---" in words[: words.index("--")] if "--" in words else "---" in words:
        raise UserFileError(
            "rjob: a job of several tasks (`---`) is not one run; submit its tasks one by one"
        )
    if "--" not in words or not words[words.index("--") + 1 :]:
        raise UserFileError("rjob: there is no command behind `--`; does a line lack its backslash?")
    place = words.index("--")
    command = words[place + 1 :]
    if "---" in command:
        raise UserFileError(
            "rjob: a job of several tasks (`---`) is not one run; submit its tasks one by one"
        )
    flags: list[Flag] = []
    for word in words[:place]:
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            if not word.startswith("--") and len(word) > 2 and not equals:
                name, value, equals = word[:2], word[2:], "="
            flags.append(Flag(NAMES.get(name, name), (value,) if equals else ()))
        elif flags:
            flags[-1] = flags[-1]._replace(values=(*flags[-1].values, word))
        else:
            raise UserFileError(f"rjob: {word!r} belongs to no flag; the command stands behind `--`")
    return flags, command


def _variables(built: Building, pairs: Sequence[str]) -> list[str]:
    found, faults = built.request.setdefault("env", {}), []
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if sign:
            found[name] = value
        else:
            faults.append(f"rjob: -e {name}: give it as NAME=VALUE")
    return faults


def _whose(built: Building, given: Mapping[str, str]) -> None:
    """Name and group; a namespace that stands beside a group makes the pair exact (RULES B3)."""
    if name := given.get("--name") or given.get("--metadata-name"):
        built.name(name)
    group = given.get("--charged-group") or given.get("--group")
    namespace = given.get("--namespace")
    if group:
        built.request["group"] = f"{namespace}:{group}" if namespace else group
    for flag, why in WITHOUT_MEANING.items():
        if flag in given and not (flag == "--namespace" and group):
            built.note(f"{flag} is left out: {why}")


def _keep(built: Building, flag: Flag) -> None:
    for word in flag.words:
        built.keep(word)
    if flag.name in RESTARTS:
        built.note(f"{flag.name}: the platform itself may start it again, under the same name")
    if flag.name == "--negative-tags":
        built.note("--negative-tags: it takes the place of the nodes that a resubmission keeps away from")
