"""Variables that programs read: what a run has in its environment, from exports, settings and scheduler options.

Never: count a plain assignment as exported; that it is none is a finding of `effects.py`.
"""

from __future__ import annotations

from states.lint.facts import Run

OFF = frozenset({"", "0", "false", "no", "off"})
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_OFFLINE")


def setting(run: Run, name: str) -> str | None:
    """The value that the run's environment has under this name, None where the text gives none."""
    if name in run.settings:
        return run.settings[name].text
    value = run.env.get(name)
    if value is not None and (value.exported or _exported_later(run, name)):
        return value.text
    for wrapper in run.via:
        for key in ("e", "env", "x", "export", "environment"):
            for given in wrapper.options.get(key, ()):
                for piece in given.text.split(","):
                    label, equals, text = piece.partition("=")
                    if equals and label == name:
                        return text
    return None


def _exported_later(run: Run, name: str) -> bool:
    """`NAME=x` and `export NAME` in two steps, or `set -a`."""
    for other in run.unit.runs:
        words = [arg.text for arg in other.args]
        if words[:1] == ["export"] and name in words[1:]:
            return True
        if words[:1] == ["set"] and any(word in ("-a", "allexport") for word in words[1:]):
            return True
    return False


def is_on(run: Run, name: str) -> bool:
    """Whether a switch is set in the run's environment."""
    value = setting(run, name)
    return value is not None and value.strip().lower() not in OFF


def is_offline(run: Run | None) -> bool:
    """Whether hub libraries are told to stay off the network."""
    return run is not None and any(is_on(run, name) for name in OFFLINE)
