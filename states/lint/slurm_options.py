"""The options that sbatch knows, as its manual lists them.

Never: logic.
"""

from __future__ import annotations

LONG = frozenset(
    "account acctg-freq array batch bb bbf begin bell chdir cluster-constraint clusters comment"
    " constraint container container-id container-image container-mount-home container-mounts"
    " container-name container-workdir container-writable contiguous core-spec cores-per-socket cpu-freq"
    " cpus-per-gpu cpus-per-node cpus-per-task deadline delay-boot dependency distribution error exclude"
    " exclusive export export-file external-launcher extra extra-node-info get-user-env gid gpu-bind"
    " gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags help hint hold ignore-pbs"
    " immediate input job-name kill-on-invalid-dep licenses mail mail-type mail-user mcs-label mem"
    " mem-bind mem-per-cpu mem-per-gpu mincpus network nice no-bell no-container-mount-home no-kill"
    " no-requeue nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node"
    " ntasks-per-socket open-mode output overcommit oversubscribe parsable parsable2 partition power"
    " prefer priority profile propagate qos quiet reboot requeue reservation resource-monitor resv-ports"
    " segment share signal sockets-per-node spread-job stepmgr switches tasks-per-node test-only"
    " thread-spec threads-per-core time time-min tmp tres-bind tres-per-task uid usage use-min-nodes"
    " verbose version wait wait-all-nodes wckey workdir wrap".split()
)
FLAGS = frozenset(
    "exclusive requeue no-requeue hold contiguous overcommit oversubscribe share parsable quiet verbose test-only"
    " wait spread-job use-min-nodes reboot ignore-pbs get-user-env nice propagate no-kill help"
    " usage version immediate"
    " container-writable no-container-mount-home container-mount-home external-launcher no-bell bell"
    " stepmgr".split()
)
"""Those that may stand without a value."""

SHORT = {
    "A": "account",
    "a": "array",
    "b": "begin",
    "B": "extra-node-info",
    "C": "constraint",
    "c": "cpus-per-task",
    "d": "dependency",
    "D": "chdir",
    "e": "error",
    "F": "nodefile",
    "G": "gpus",
    "H": "hold",
    "h": "help",
    "I": "immediate",
    "i": "input",
    "J": "job-name",
    "k": "no-kill",
    "L": "licenses",
    "M": "clusters",
    "m": "distribution",
    "N": "nodes",
    "n": "ntasks",
    "O": "overcommit",
    "o": "output",
    "p": "partition",
    "Q": "quiet",
    "q": "qos",
    "S": "core-spec",
    "s": "oversubscribe",
    "t": "time",
    "u": "usage",
    "V": "version",
    "v": "verbose",
    "W": "wait",
    "w": "nodelist",
    "x": "exclude",
}
