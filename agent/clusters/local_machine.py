"""This machine as a cluster: how much it has, where its state lives, the environment of a job.

Never: import a GPU library that is not there; pass on a variable that is neither harmless nor asked for.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from pathlib import Path

from agent.clusters.local_slots import Slots
from agent.clusters.run import clean_environment
from agent.paths import state_dir
from states.spec import Spec

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
PROXY_NAMES = ("http_proxy", "https_proxy", "all_proxy")
MIB = 1 << 20


def default_root(name: str) -> Path:
    """`<the person's state folder>/local/<cluster name>`."""
    return state_dir() / "local" / name


def machine() -> Slots:
    """Cores this process may use, memory (or the container's lower limit), GPUs (0 without pynvml)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no cgroup, or no limit ("max")
        memory = min(memory, int(CGROUP_LIMIT.read_text()))
    return Slots(float(cores), memory // MIB, _gpus())


def _gpus() -> int:
    try:
        pynvml = importlib.import_module("pynvml")
        pynvml.nvmlInit()
        return int(pynvml.nvmlDeviceGetCount())
    except Exception:  # no library, no driver, no device: each is its own class, and all mean none
        return 0


def job_environment(spec: Spec, name: str, total: Slots) -> dict[str, str]:
    """Everything the command will find in its environment, but for the GPUs that it is given at its start.

    spec.environment: folder of a virtual or conda environment, put first on the PATH. spec.proxy: under
    the usual names, small and capital. A job without GPUs sees none.
    """
    env = clean_environment()
    if spec.environment:
        home = Path(spec.environment).expanduser()
        env["PATH"] = f"{home / 'bin'}{os.pathsep}{env['PATH']}"
        env["CONDA_PREFIX" if (home / "conda-meta").is_dir() else "VIRTUAL_ENV"] = str(home)
    if spec.proxy:
        env |= {spelt: spec.proxy for low in PROXY_NAMES for spelt in (low, low.upper())}
    if total.gpu:
        env["CUDA_VISIBLE_DEVICES"] = ""
    return {**env, **spec.env, "WATCHKEEPER_JOB": name}
