"""Which runs are the job's work, and which only surround it: echoes, set-up, servers, watchers.

Never: guess from a file's content; names of programs and of scripts are all that counts here.
"""

from __future__ import annotations

import re

from states.lint.facts import Run, Walked
from states.lint.wrappers import SUBMITTERS

_TALK = frozenset(
    "echo printf date hostname whoami pwd ls cat head tail env printenv which type true false : nvidia-smi free df"
    " du lscpu uname id groups sleep wait exit return set shopt ulimit umask trap export unset declare local"
    " readonly typeset alias cd pushd popd mkdir touch chmod chown ln module ml source . conda mamba micromamba"
    " deactivate shift read getopts scontrol squeue sacct scancel nc ping seq kill pkill break continue let test ["
    " clear tput tree wc grep sed awk sort cut tr basename dirname realpath readlink tee less more logger"
    " column diff uniq md5sum sha256sum stat file jq yq bc expr shuf pgrep pstree lsof nproc dmesg".split()
)
_SETTING_UP = frozenset(
    "cp mv rm rsync tar unzip gunzip wget curl git scp ssh find xargs zip gzip pip uv".split()
)
_SETTING_UP_TOO = frozenset(
    "apt apt-get yum dnf apk npm yarn pnpm poetry pdm spack huggingface-cli hf wandb aws gsutil gcloud rclone azcopy"
    " s5cmd ray redis-cli nvidia-cuda-mps-control service systemctl mount umount fusermount modprobe sysctl"
    " kubectl docker sshpass dos2unix patch make cmake ninja gdown modelscope kaggle easy_install"
    " gem cargo dpkg rpm brew".split()
)
_HELPERS = re.compile(
    r"nvidia-smi|tensorboard|gpustat|nvitop|htop|top|dstat|vmstat|iostat|sar|jupyter(?:-\w+)?|redis-server|mongod"
    r"|mysqld|postgres|etcd|Xvfb|vncserver|mlflow|aim|ray|ollama|nginx|tail|watch|sleep|dcgmi"
    r"|nvidia-cuda-mps-control"
    r"|sshd|ssh|socat|frpc|autossh|code-server|filebrowser|minio|mosquitto|prometheus|node_exporter|wandb|syncer"
    r"|echo|inotifywait|rclone|rsync|carb|carla\w*|roscore|vllm|sglang|lmdeploy|text-generation-launcher"
    r"|trtllm-serve"
)
_SERVING = re.compile(
    r"serv(?:e|er|ing)|api|daemon|monitor|watch|tensorboard|logger|controller|http|proxy|worker_?pool|router|"
    r"openai|gateway|dashboard|heartbeat|sync|backend|redis|queue",
    re.IGNORECASE,
)
_SCRIPT = re.compile(r"\.(?:sh|bash|slurm|sbatch)$")


def is_work(run: Run) -> bool:
    """Whether this run is what the job is for."""
    if run.outer and not (run.outer_work and run.args and _SCRIPT.search(run.args[0].text)):
        return False
    if run.where.condition and not run.python:
        return False
    if run.python:
        if run.code or not run.args:
            return False
        first = run.args[0].text
        return not (
            run.module and first in ("pip", "venv", "ensurepip", "torch.utils.collect_env", "compileall")
        )
    name = run.name
    if not name or name in _TALK or name in _SETTING_UP:
        return False
    return name not in SUBMITTERS and name not in ("srun", "sbatch") and not _is_set_up(name)


def _is_set_up(name: str) -> bool:
    return name in (
        "apt",
        "apt-get",
        "yum",
        "dnf",
        "apk",
        "npm",
        "yarn",
        "poetry",
        "spack",
        "huggingface-cli",
        "hf",
    )


def is_helper(run: Run) -> bool:
    """Whether a background run only serves or watches the work: it need not be waited for."""
    if run.where.background and any(_HELPERS.fullmatch(w.name) for w in run.via[len(run.unit.via) :]):
        return True
    if _HELPERS.fullmatch(run.name) is not None:
        return True
    head = " ".join(arg.text for arg in run.args[:3])
    return run.python and bool(_SERVING.search(head.rsplit("/", 1)[-1] if not run.module else head))


def works(walked: Walked) -> list[Run]:
    """Every run that is work, in order. A started shell script whose text is not known counts as work."""
    return [run for run in walked.runs if is_work(run)]
