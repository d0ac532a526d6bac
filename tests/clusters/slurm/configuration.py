"""The configuration files of the tests' Slurm: virtual nodes, fake GPUs, partitions that preempt.

Fast reactions, believed hardware, and no file outside its own folder. Partitions: `solo` and `solospot` share node
n1 (the contract's small cluster); `normal`, `idle` (preempted: requeued) and `spot` (preempted: cancelled) share the
others; `down` and `short` refuse by their nature.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

CPUS, MEMORY_MIB, GPUS = 4, 8000, 2
NODES = ("n1", "n2", "n3")

SLURM = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={root}/state
SlurmctldPidFile={root}/slurmctld.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdPidFile={root}/slurmd.%n.pid
SlurmdLogFile={root}/slurmd.%n.log
SlurmdSpoolDir={root}/spool.%n
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ProctrackType={track}
TaskPlugin={task}
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1,bf_continue,requeue_delay=1
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=1
MinJobAge=3600
MessageTimeout={message_timeout_s}
SlurmctldTimeout=2
SlurmdTimeout=0
ReturnToService=2
MaxArraySize=1001
DefMemPerCPU=100
{accounting}
JobCompType=jobcomp/none
NodeName=DEFAULT CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory} \
Gres=gpu:{gpus} State=UNKNOWN
{nodes}
PartitionName=DEFAULT DefaultTime=01:00:00 MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF Nodes={others}
PartitionName=normal Default=YES
PartitionName=idle PriorityTier=1 PreemptMode=REQUEUE
PartitionName=spot PriorityTier=1 PreemptMode=CANCEL
PartitionName=solo Nodes={first}
PartitionName=solospot Nodes={first} PriorityTier=1 PreemptMode=CANCEL
PartitionName=down State=DOWN
PartitionName=short MaxTime=00:05:00
"""

ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePass={root}/munge.socket
AccountingStoragePort={ports[1]}
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu"""

NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"

DATABASE = """\
AuthType=auth/munge
AuthInfo=socket={root}/munge.socket,cred_expire=5
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports[1]}
SlurmUser=root
LogFile={root}/slurmdbd.log
PidFile={root}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[2]}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""

ASSOCIATIONS = """\
add qos gpu2,grp2,one,wall,rich
modify qos gpu2 set MaxTRESPerUser=gres/gpu=2
modify qos grp2 set GrpTRES=gres/gpu=2
modify qos one set MaxJobsPerUser=1 MaxSubmitJobsPerUser=2
modify qos wall set MaxWall=00:02:00 Flags=DenyOnLimit
modify qos rich set GrpTRESMins=cpu=0
add account lab Description=lab Organization=lab
add user root account=lab qos=normal,gpu2,grp2,one,wall,rich defaultqos=normal
modify user root set defaultaccount=lab
add user {stranger} account=lab qos=normal,one defaultqos=normal
"""

CGROUP = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
AllowedSwapSpace=0
"""


def devices(root: Path) -> None:
    """A character device for each GPU (the null device: slurmd refuses ordinary files), the same on every node."""
    for number in range(GPUS):
        path = root / f"gpu{number}"
        if not path.exists():
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    (root / "gres.conf").write_text(f"Name=gpu File={root}/gpu[0-{GPUS - 1}]\n")


def write(
    root: Path,
    host: str,
    ports: list[int],
    *,
    accounting: bool,
    cgroups: bool,
    name: str = "slurm.conf",
    message_timeout_s: int = 5,
) -> Path:
    """All files of one cluster below `root`; ports: controller, slurmdbd, database, then one a node."""
    nodes = "\n".join(
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}"
        for node, port in zip(NODES, ports[3:], strict=True)
    )
    conf = root / name
    conf.write_text(
        SLURM.format(
            root=root, host=host, ports=ports, nodes=nodes, first=NODES[0], others=",".join(NODES[1:]),
            cpus=CPUS, memory=MEMORY_MIB, gpus=GPUS,
            message_timeout_s=message_timeout_s,
            track="proctrack/cgroup" if cgroups else "proctrack/linuxproc",
            task="task/cgroup" if cgroups else "task/none",
            accounting=(ACCOUNTING if accounting else NO_ACCOUNTING).format(root=root, ports=ports),
        )
    )  # fmt: skip
    devices(root)
    if cgroups:
        (root / "cgroup.conf").write_text(CGROUP)
    if accounting:
        database = root / "slurmdbd.conf"
        database.touch(mode=0o600)
        database.write_text(DATABASE.format(root=root, ports=ports))
    return conf
