"""`rjob` and `brainctl` as processes: the person's keys in their environment and nowhere else, no proxies.

The tools fall back to keys that lie on the machine when their variables are empty (RJOB 6), and the job would then
run as somebody else. So no call is made without both keys of the person: Refused, before anything is started.

Never: call without keys; put a key into an argument, a message or a result; pass the agent's own environment on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from agent.clusters.base import Refused, Unreachable
from agent.clusters.brainpp_argv import KEYS, PROXY_NAMES
from agent.clusters.brainpp_parse import plain
from agent.clusters.run import NotStarted, Ran, TimedOut, run
from agent.redaction import VALUE_LENGTH_MIN, Redactor
from agent.secrets import SecretsError, advice

GROUP = "BRAINPP_CHARGED_GROUP"
ENTRY_VARIABLE = "KUBEBRAIN_CLUSTER_ENTRY"
NAMESPACE_VARIABLE = "KUBEBRAIN_NAMESPACE"
PASSED_ON = (ENTRY_VARIABLE, "BRAIN_USERNAME")
"""Taken from the agent's environment when the settings do not give them: the tools find the cluster by them."""
PROXIES = tuple(spelt for low in (*PROXY_NAMES, "no_proxy") for spelt in (low, low.upper()))
WORDS_MAX = 300
"""Characters of the tool's own words in a message."""

Secret = Callable[[str], str | None]


class Cli:
    """Both tools. secret: value of a key by name, None if it is not set. variables: for the tools' process."""

    def __init__(
        self, programs: Mapping[str, str], secret: Secret, variables: Mapping[str, str], timeout_s: float
    ) -> None:
        self.programs, self.timeout_s = programs, timeout_s
        self._secret = secret
        given = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
        self._variables = given | dict(variables)

    def __repr__(self) -> str:
        return f"Cli({self.programs['rjob']!r})"

    def setting(self, name: str) -> str:
        """A key's value, "" where it is not set or blank. Raises Refused where the keys cannot be read."""
        try:
            return (self._secret(name) or "").strip()
        except SecretsError as error:
            raise Refused(f"nothing was sent to Brain++: {error}", cause="auth.denied") from None

    def keys(self) -> dict[str, str]:
        """Both keys. Raises Refused with how to set what is missing (RULES B1)."""
        found = {name: self.setting(name) for name in KEYS}
        if missing := [name for name, value in found.items() if not value]:
            raise Refused(
                f"nothing was sent to Brain++: {' and '.join(missing)} not set."
                f" {' '.join(advice(name) for name in missing)}",
                cause="auth.denied",
            )
        return found

    def rjob(self, words: Sequence[str], namespace: str, *, timeout_s: float | None = None) -> Ran:
        """One call of `rjob`. Raises Refused without keys, Unreachable where no answer came."""
        return self._call("rjob", words, namespace, timeout_s)

    def brainctl(self, words: Sequence[str], namespace: str, *, timeout_s: float | None = None) -> Ran:
        """One call of `brainctl`, as `rjob`."""
        return self._call("brainctl", words, namespace, timeout_s)

    def usage(self, tool: str) -> str:
        """What `--help` prints; no key is given to it. Raises Unreachable."""
        return self._run([self.programs[tool], "--help"], {}, self.timeout_s).stdout

    def hide(self, text: str) -> str:
        """The text without any credential, for people."""
        return Redactor({name: self.setting(name) for name in KEYS}).text(text)

    def words(self, ran: Ran) -> str:
        """What a call said, in one bounded line without credentials; the last words count most."""
        said = " ".join(plain(f"{ran.stdout}\n{ran.stderr}").split())
        return self.hide(said[-WORDS_MAX:]) or f"it ended with status {ran.rc} and said nothing"

    def _call(self, tool: str, words: Sequence[str], namespace: str, timeout_s: float | None) -> Ran:
        keys = self.keys()
        if any(value in word for value in _hidden(keys) for word in words):
            raise Refused(
                "one of the keys stands in the request itself; take it out (rule B4)", cause="auth.denied"
            )
        env = {**self._variables, NAMESPACE_VARIABLE: namespace, **keys}
        return self._run([self.programs[tool], *words], env, timeout_s or self.timeout_s)

    def _run(self, argv: Sequence[str], env: Mapping[str, str], timeout_s: float) -> Ran:
        values = _hidden({name: value for name, value in env.items() if name in KEYS})

        def redact(text: str) -> str:
            for value, mark in values.items():
                text = text.replace(value, mark)
            return text

        try:
            return run(
                argv,
                timeout_s=timeout_s,
                env=env,
                drop=PROXIES,
                redact=redact,
                install="the Brain++ command line tools, or give their path in the cluster's options",
            )
        except TimedOut as error:
            raise Unreachable(str(error), retry_after_s=timeout_s) from None
        except NotStarted as error:
            raise NotHere(str(error)) from None


def _hidden(keys: Mapping[str, str]) -> dict[str, str]:
    """What stands in for each value; one that is too short to be a key would blank out ordinary words."""
    return {value: f"[redacted:{name}]" for name, value in keys.items() if len(value) >= VALUE_LENGTH_MIN}


class NotHere(Unreachable):
    """The tool cannot be started on this machine: certainly nothing was sent."""
