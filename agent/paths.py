"""Where settings, keys and state of one person live: the XDG folders, or one folder for everything.

`WATCHKEEPER_HOME` puts config, state and data below one folder (a demo, a test, a second set-up).
Folders are made for their owner only (0700), since what is in them tells what somebody runs and where.

Never: change the permissions of a folder that was there before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

APP = "watchkeeper"
HOME_VARIABLE = "WATCHKEEPER_HOME"


def config_dir(env: Mapping[str, str] | None = None) -> Path:
    """`config.yaml` and the keys: $XDG_CONFIG_HOME/watchkeeper, by default ~/.config/watchkeeper."""
    return _place("config", "XDG_CONFIG_HOME", ".config", env)


def state_dir(env: Mapping[str, str] | None = None) -> Path:
    """Database and logs: $XDG_STATE_HOME/watchkeeper, by default ~/.local/state/watchkeeper."""
    return _place("state", "XDG_STATE_HOME", ".local/state", env)


def data_dir(env: Mapping[str, str] | None = None) -> Path:
    """Recorded scenarios: $XDG_DATA_HOME/watchkeeper, by default ~/.local/share/watchkeeper."""
    return _place("data", "XDG_DATA_HOME", ".local/share", env)


def private(folder: Path) -> Path:
    """The folder, made with its missing parents for the owner only (0700). Raises OSError as `mkdir` does."""
    if not folder.is_dir():
        if folder.parent != folder:
            private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _place(kind: str, variable: str, below_home: str, env: Mapping[str, str] | None) -> Path:
    """The folder of this kind; nothing is made. A relative XDG path is ignored, as its specification says."""
    env = os.environ if env is None else env
    if own := env.get(HOME_VARIABLE):
        return Path(own).expanduser().absolute() / kind
    base = env.get(variable, "")
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    return (Path(base) if base.startswith("/") else home / below_home) / APP
