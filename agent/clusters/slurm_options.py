"""What the settings may say of a Slurm cluster: how to reach it, where jobs go, what its words mean here.

    clusters:
      big:
        kind: slurm
        partition: gpu
        account: lab
        idle: {partition: scavenge}
        prefix: [ssh, login.example.org]

Never: a value that this site alone could know as a default (C5).
"""

from __future__ import annotations

from pydantic import Field

from states.reading import Frozen


class Lane(Frozen):
    """Where the jobs of a lane go; what is empty is left to Slurm's own default."""

    partition: str = ""
    account: str = ""
    qos: str = ""


class Options(Lane):
    """Every option may be left out. Times in seconds.

    conf: path of slurm.conf, when it is not the usual one. programs: folder of sbatch and its kin, when it is
    not on the PATH. prefix: words before every command, for a login node (`[ssh, host]`); the workspace must
    be the same folder on both sides. idle: where preemptible jobs go; without it there is no idle lane.
    gres: name of a GPU (`gpu`, `gpu:h200`). qos_of_priority: priority (1 to 9) -> QOS. nice_step: each priority
    below 9 adds this much niceness. singleton: Slurm itself holds back a second job of one name. requeue: ask
    Slurm to put a job back after a node failure or preemption (None: the site's habit). sbatch_args: further
    arguments of every submit. container: words before the image and the command (`[apptainer, exec, --nv]`);
    bind: the switch of that program for a mount. queue_json: read `squeue --json` (None: from 23.02 on).
    """

    conf: str = ""
    programs: str = ""
    prefix: tuple[str, ...] = ()
    idle: Lane | None = None
    gres: str = "gpu"
    qos_of_priority: dict[int, str] = {}
    nice_step: int = Field(default=0, ge=0)
    singleton: bool = False
    requeue: bool | None = None
    sbatch_args: tuple[str, ...] = ()
    container: tuple[str, ...] = ()
    bind: str = "--bind"
    queue_json: bool | None = None
    timeout_s: float = Field(default=30.0, gt=0)
    submit_timeout_s: float = Field(default=60.0, gt=0)
