"""What the manuals say about programs that start another program: their flags, subcommands and operands.

Never: logic; `launchers.py` reads these tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

SUBMITTERS = frozenset({"sbatch", "qsub", "bsub", "rjob", "rlaunch", "ray", "kubectl", "brainctl", "salloc"})
"""What stands after these runs somewhere else: their own status is not the job's."""

WORKERS = frozenset(
    {"torchrun", "accelerate", "deepspeed", "tune", "composer", "colossalai", "horovodrun", "mpirun", "srun"}
)
"""Programs that start the inner command several times."""

COMMANDS: Mapping[str, str] = {
    # name -> flags without a value; every other option takes one, joined by = or as the next word
    "srun": "-l --label -u --unbuffered -K --exclusive -v -Q --quiet -O -s -X -E --overlap --pty -k --no-kill -I"
    " --immediate --kill-on-bad-exit --multi-prog --no-container-mount-home --container-mount-home -H --hold",
    "salloc": "--exclusive -K --no-shell -Q -v",
    "mpirun": "--allow-run-as-root --oversubscribe --report-bindings -v --verbose --bynode --tag-output -q"
    " --display-map --use-hwthread-cpus -l --nooversubscribe --enable-recovery",
    "jsrun": "--immediate",
    "horovodrun": "--verbose --disable-cache --gloo --mpi --version",
    "timeout": "--foreground --preserve-status -v --verbose",
    "env": "-i -0 --ignore-environment",
    "nohup": "",
    "nice": "",
    "ionice": "-t",
    "time": "-p -v -a",
    "stdbuf": "",
    "unbuffer": "-p",
    "setsid": "-f -w -c --fork --wait",
    "exec": "-c -l",
    "command": "-p",
    "numactl": "-l --localalloc --show -s --hardware -H",
    "taskset": "-c -a --cpu-list --all-tasks",
    "sudo": "-E -H -n -i -S",
    "xvfb-run": "-a -l --auto-servernum",
    "flock": "-n -x -s -e --nonblock",
    "catchsegv": "",
    "tini": "-s -g -v -w",
    "dumb-init": "-v -c",
    "nsys": "--help",
    "ncu": "-f --force-overwrite --target-processes-all",
    "kernprof": "-l -v -b --line-by-line --view",
    "strace": "-f -c -v -q -y",
    "proxychains4": "-q",
    "conda": "--no-capture-output --live-stream -v",
    "micromamba": "-v",
    "mamba": "--no-capture-output --live-stream",
    "uv": "--isolated --frozen --locked --no-sync --no-project --offline --active --all-extras --no-dev -q -v",
    "poetry": "-q -v -n --no-interaction",
    "pdm": "-q -v",
    "pipenv": "",
    "pixi": "--frozen --locked",
    "hatch": "",
    "apptainer": "--nv --nvccli --rocm --writable-tmpfs --writable -w -e -c -C --cleanenv --contain --containall"
    " -p --pid -i --ipc --no-home --fakeroot -f --userns -u --no-init --compat --vm --silent -s",
    "docker": "--rm -i -t -it -ti -d --init --privileged --detach --interactive --tty --read-only -P",
    "ssh": "-n -t -tt -q -A -a -f -N -T -v -x -X -Y -C -4 -6",
    "kubectl": "-i -t -it --stdin --tty -q --rm --attach",
    "rjob": "--gang-start --store-host-nvme --enable-sshd --preemptible --dry-run --predict-only -h",
    "rlaunch": "--store-host-nvme --enable-sshd",
    "brainctl": "",
    "ray": "--no-wait --verbose -v",
    "torchrun": "--standalone --use_env --use-env --no_python --no-python -m --module --run_path --run-path",
    "accelerate": "--multi_gpu --multi-gpu --cpu --tpu --use_deepspeed --use-deepspeed --use_fsdp --use-fsdp -q"
    " --use_megatron_lm -m --module --no_python --no-python --debug --same_network --same-network --quiet"
    " --ipex --use_xpu --enable_cpu_affinity",
    "deepspeed": "--no_ssh --force_multi -m --module --no_python --no_local_rank --elastic_training --no_ssh_check",
    "tune": "--standalone",
    "composer": "-v --verbose -m --module_mode -c --command_mode",
    "colossalai": "",
    "xargs": "-0 -r -t -p -x --null --no-run-if-empty",
    "parallel": "-k -u --ungroup --keep-order --bar --progress --linebuffer --lb --will-cite --dry-run",
    "ts": "",
}
ALIASES: Mapping[str, str] = {
    "mpiexec": "mpirun",
    "orterun": "mpirun",
    "mpirun.openmpi": "mpirun",
    "mpiexec.hydra": "mpirun",
    "ibrun": "mpirun",
    "aprun": "mpirun",
    "singularity": "apptainer",
    "podman": "docker",
    "nerdctl": "docker",
    "gtime": "time",
    "xvfb": "xvfb-run",
    "proxychains": "proxychains4",
    "gtimeout": "timeout",
}
SUBCOMMANDS: Mapping[str, frozenset[str]] = {
    # these programs start a command only under these words
    "conda": frozenset({"run"}),
    "mamba": frozenset({"run"}),
    "micromamba": frozenset({"run"}),
    "uv": frozenset({"run"}),
    "poetry": frozenset({"run"}),
    "pdm": frozenset({"run"}),
    "pipenv": frozenset({"run"}),
    "pixi": frozenset({"run"}),
    "hatch": frozenset({"run"}),
    "apptainer": frozenset({"exec", "run"}),
    "docker": frozenset({"exec", "run"}),
    "kubectl": frozenset({"exec", "run"}),
    "ray": frozenset({"submit", "exec"}),
    "rjob": frozenset({"submit", "create", "run"}),
    "brainctl": frozenset({"launch", "run", "exec"}),
    "accelerate": frozenset({"launch"}),
    "tune": frozenset({"run"}),
    "colossalai": frozenset({"run"}),
    "nsys": frozenset({"profile"}),
}
OPERANDS: Mapping[str, int] = {"timeout": 1, "taskset": 1, "flock": 1, "apptainer": 1, "docker": 1, "ssh": 1}
"""Words that the wrapper takes for itself before the command starts: a duration, a mask, an image, a host."""

DASHED = frozenset({"ray", "rjob", "rlaunch", "brainctl", "kubectl"})
"""Only what stands after `--` is the command."""

SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash"})
PYTHON = re.compile(r"(?:python|pypy)[\d.]{0,6}(?:-intel64)?|py")
MODULE_LAUNCHERS = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "paddle.distributed.launch": "torchrun",
    "bagua.distributed.launch": "torchrun",
    "composer.cli.launcher": "composer",
}
PYTHON_FLAGS = frozenset("-u -O -OO -B -E -s -S -I -q -v -b -i -x -P -bb".split())
