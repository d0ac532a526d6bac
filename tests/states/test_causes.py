"""Causes of failed runs: whole little logs, invented here, from the shapes that real tools print."""

from __future__ import annotations

import re
import time

import pytest

from states import signatures, text
from states.causes import diagnose
from states.reading import Diagnosis, Line

FRAMES = '''Traceback (most recent call last):
  File "/w/train.py", line 88, in <module>
    main()
'''


def read(log: str, **known: object) -> Diagnosis:
    return diagnose(text.lines(log), **known)  # type: ignore[arg-type]


def block(*frames: str, error: str) -> str:
    """A traceback through the given `path:function`s that ends in `error`."""
    told = "".join(f'  File "{path}", line 7, in {name}\n    call()\n' for path, _, name in (f.partition(":") for f in frames))
    return f"Traceback (most recent call last):\n{told}{error}\n"


DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
CHILD = """E0102 03:04:05.678000 77 torch/distributed/elastic/multiprocessing/api.py:826] failed (exitcode: 1) local_rank: 0 (pid: 78) of binary: /env/bin/python
Traceback (most recent call last):
  File "/env/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 78)
  traceback : To enable traceback see: the elastic manual
============================================================
"""
STEPS = "".join(f"step {n}/500 loss: {3.0 / n:.4f}\n" for n in range(1, 9))
HF = ("/env/lib/requests/adapters.py:send", "/env/lib/huggingface_hub/file_download.py:_request_wrapper")

FAILED: list[tuple[str, str, str, str]] = [
    (
        "module",
        "env.missing_module",
        "No module named 'demo_kernels'",
        block("/w/train.py:<module>", error="ModuleNotFoundError: No module named 'demo_kernels'") + CHILD,
    ),
    (
        "import-falls-back-then-fails",
        "env.abi",
        "libdemo_rt.so.3",
        block("/w/k.py:<module>", error="ImportError: libdemo_rt.so.3: cannot open shared object file: No such file or directory")
        + DURING
        + block("/w/k.py:build", error="RuntimeError: Error building extension 'demo_fused'"),
    ),
    (
        "oom-on-one-rank",
        "memory.gpu",
        "CUDA out of memory",
        STEPS
        + "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/w/t.py\", line 9, in step\n[rank3]:     y = f(x)\n"
        + "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 3 has a total capacity of 23.65 GiB\n"
        + "[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)\n"
        + CHILD,
    ),
    (
        "disk-full-at-save",
        "storage.full",
        "No space left on device",
        STEPS + block("/env/lib/torch/serialization.py:save", error="OSError: [Errno 28] No space left on device") + CHILD,
    ),
    (
        "data-file",
        "data.missing",
        "/corpus/part-03.jsonl",
        block("/w/data.py:open_part", error="FileNotFoundError: [Errno 2] No such file or directory: '/corpus/part-03.jsonl'"),
    ),
    (
        "config-file",
        "config.missing",
        "/w/conf/exp7.yaml",
        block("/w/cfg.py:load", error="FileNotFoundError: [Errno 2] No such file or directory: '/w/conf/exp7.yaml'"),
    ),
    (
        "checkpoint-file",
        "model.load",
        "model-00002.safetensors",
        block("/w/m.py:load", error="FileNotFoundError: [Errno 2] No such file or directory: '/m/model-00002.safetensors'"),
    ),
    (
        "program-of-subprocess",
        "command.not_found",
        "nvccx",
        block(
            "/usr/lib/python3.11/subprocess.py:_execute_child",
            error="FileNotFoundError: [Errno 2] No such file or directory: 'nvccx'",
        ),
    ),
    ("json-data", "data.corrupt", "JSONDecodeError", block("/w/dataset.py:rows", error="json.decoder.JSONDecodeError: Extra data: line 3 column 1 (char 90)")),
    (
        "json-config",
        "code.exception",
        "JSONDecodeError",
        block("/env/lib/deepspeed/runtime/config.py:__init__", error="json.decoder.JSONDecodeError: Expecting ',' delimiter: line 9 column 3 (char 200)"),
    ),
    (
        "hub-unreachable",
        "network.dns",
        "Name or service not known",
        block(*HF, error="socket.gaierror: [Errno -2] Name or service not known")
        + DURING
        + block(*HF, error="requests.exceptions.ConnectionError: (MaxRetryError('HTTPSConnectionPool(host=hub.example, port=443): Max retries exceeded'))")
        + DIRECT
        + block("/w/t.py:main", error="OSError: We couldn't connect to 'hub.example' to load this file"),
    ),
    (
        "gated",
        "auth.denied",
        "401 Client Error",
        block(*HF, error="requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: hub.example/m")
        + DIRECT
        + block("/w/t.py:main", error="OSError: You are trying to access a gated repo."),
    ),
    (
        "wrong-hub-name",
        "model.load",
        "is not a local folder",
        block(*HF, error="requests.exceptions.HTTPError: 404 Client Error: Not Found for url: hub.example/m")
        + DIRECT
        + block("/w/t.py:main", error="OSError: demo/m9 is not a local folder and is not a valid model identifier listed on the hub"),
    ),
    (
        "loader-worker",
        "data.corrupt",
        "cannot identify image file",
        block("/w/t.py:epoch", error="PIL.UnidentifiedImageError: Caught UnidentifiedImageError in DataLoader worker process 3.")
        + "Original Traceback (most recent call last):\n  File \"/w/d.py\", line 4, in __getitem__\n    im = Image.open(p)\n"
        + "PIL.UnidentifiedImageError: cannot identify image file '/corpus/9.jpg'\n",
    ),
    (
        "rank-timeout-only",
        "comm.timeout",
        "Watchdog caught collective operation timeout",
        STEPS
        + "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=BROADCAST)\n"
        + "[rank1]:[E ProcessGroupNCCL.cpp:621] [Rank 1] To avoid data inconsistency, we are taking the entire process down.\n"
        + "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        + CHILD,
    ),
    (
        "time-limit",
        "scheduling.time_limit",
        "DUE TO TIME LIMIT",
        STEPS + "slurmstepd: error: *** JOB 88 ON n1 CANCELLED AT 2024-05-06T07:08:09 DUE TO TIME LIMIT ***\nKilling subprocess 9\n",
    ),
    (
        "oom-event",
        "memory.host",
        "oom_kill event",
        STEPS + "go.sh: line 4: 991 Killed                  python train.py\nslurmstepd: error: Detected 1 oom_kill event in StepId=88.batch.\n",
    ),
    ("bare-kill", "process.killed", "Killed", STEPS + "go.sh: line 4: 991 Killed                  python train.py\n"),
    ("argparse", "command.bad_argument", "unrecognized arguments", "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --lrr 3\n"),
    ("shell-typo", "command.not_found", "pyhton", "+ cd /w\ngo.sh: line 9: pyhton: command not found\n"),
    ("shell-syntax", "command.syntax", "syntax error", "go.sh: line 9: syntax error near unexpected token `done'\n"),
    ("script-missing", "command.not_found", "can't open file", "python: can't open file '/w/trian.py': [Errno 2] No such file or directory\n"),
    (
        "server-out-of-room",
        "memory.gpu",
        "No available memory for the cache blocks",
        "ERROR 01-02 03:04:05 [core.py:77] EngineCore failed to start.\nERROR 01-02 03:04:05 [core.py:77] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:05 [core.py:77]   File \"/env/lib/vllm/core.py\", line 9, in run\nERROR 01-02 03:04:05 [core.py:77]     go()\n"
        "ERROR 01-02 03:04:05 [core.py:77] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.\n"
        + block("/env/lib/vllm/api.py:run", error="RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"),
    ),
    (
        "ray-actor-oom",
        "memory.host",
        "running low on memory",
        "(raylet) node 1: 2 Workers (tasks / actors) killed due to memory pressure (OOM)\n"
        + block("/w/m.py:fit", error="ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."),
    ),
    (
        "ray-task-error",
        "code.exception",
        "ValueError: batch of 7",
        block("/w/m.py:main", error="ray.exceptions.RayTaskError(ValueError): ray::W.fit() (pid=7, ip=192.0.2.1)")
        + "  File \"/w/w.py\", line 3, in fit\n    raise ValueError()\nValueError: batch of 7 is odd\n",
    ),
    (
        "jax-oom",
        "memory.gpu",
        "RESOURCE_EXHAUSTED",
        block("/w/j.py:step", error="jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 99 bytes."),
    ),
    (
        "port-taken",
        "comm.rendezvous",
        "Address already in use",
        block("/env/lib/torch/distributed/rendezvous.py:_env", error="torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 4077, useIpv6: false, code: -98, name: EADDRINUSE, message: Address already in use"),
    ),
    (
        "device-assert",
        "gpu.fault",
        "Assertion `t >= 0",
        "../aten/Loss.cu:77: nll: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n` failed.\n" * 3
        + block("/w/t.py:step", error="RuntimeError: CUDA error: device-side assert triggered"),
    ),
    ("xid", "gpu.hardware", "fallen off the bus", STEPS + "[99.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen off the bus.\n"),
    ("scale-at-minimum", "numerics.nan", "already at minimum", STEPS + block("/w/t.py:step", error="Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.")),
    ("stopped-by-hand", "process.killed", "KeyboardInterrupt", STEPS + block("/w/t.py:step", error="KeyboardInterrupt")),
    ("plain-bug", "code.exception", "AssertionError: width 7", STEPS + block("/w/t.py:step", error="AssertionError: width 7 is odd") + CHILD),
    (
        "handled-then-other",
        "code.exception",
        "ValueError: unknown head 'x'",
        block("/w/t.py:get", error="KeyError: 'x'") + DURING + block("/w/t.py:main", error="ValueError: unknown head 'x'"),
    ),
    (
        "direct-cause",
        "code.exception",
        "ZeroDivisionError",
        block("/w/t.py:rate", error="ZeroDivisionError: division by zero") + DIRECT + block("/w/t.py:main", error="DemoError: no report"),
    ),
    ("pip", "env.missing_module", "No matching distribution", "ERROR: Could not find a version that satisfies the requirement demo==9\nERROR: No matching distribution found for demo==9\n"),
    (
        "pip-without-network",
        "network.timeout",
        "Retrying (Retry(total=1",
        "WARNING: Retrying (Retry(total=1, connect=None)) after connection broken by 'NewConnectionError'\n"
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError'\n"
        "ERROR: Could not find a version that satisfies the requirement demo==9 (from versions: none)\n",
    ),
    ("quota", "storage.full", "Disk quota exceeded", block("/w/s.py:save", error="OSError: [Errno 122] Disk quota exceeded: '/p/x.pt'")),
    ("stale", "mount.stale", "Stale file handle", block("/w/s.py:log", error="OSError: [Errno 116] Stale file handle")),
    ("fuse-gone", "mount.stale", "Transport endpoint", block("/w/s.py:log", error="OSError: [Errno 107] Transport endpoint is not connected: '/jfs/a'")),
    ("no-rights", "mount.permission", "PermissionError", block("/w/s.py:mk", error="PermissionError: [Errno 13] Permission denied: '/ro/out'")),
    ("old-driver", "env.abi", "driver on your system is too old", block("/w/t.py:cuda", error="RuntimeError: The NVIDIA driver on your system is too old (found version 11040).")),
    ("segfault", "code.exception", "Segmentation fault", STEPS + "go.sh: line 3: 77 Segmentation fault      (core dumped) python train.py\n"),
    ("truncated-checkpoint", "model.load", "PytorchStreamReader", block("/env/lib/torch/serialization.py:load", error="RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory")),
    ("bus", "memory.shm", "Bus error", STEPS + block("/w/t.py:loss", error="RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.")),
    (
        "preempted",
        "scheduling.preempted",
        "DUE TO PREEMPTION",
        STEPS + "WARNING: Received Signals.SIGTERM death signal, shutting down workers\nslurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2024-05-06T07:08:09 DUE TO PREEMPTION ***\n",
    ),
    (
        "grouped",
        "auth.denied",
        "token refused",
        "  + Exception Group Traceback (most recent call last):\n  |   File \"/w/a.py\", line 3, in main\n  |     go()\n"
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n    |   File \"/w/a.py\", line 9, in ask\n    |     raise\n"
        "    | demo.AuthenticationError: token refused\n    +------------------------------------\n",
    ),
    (
        "boxed",
        "code.exception",
        "ValueError: no such stage",
        "╭──────── Traceback (most recent call last) ────────╮\n│ /w/cli.py:9 in main                                │\n"
        "│ ❱  9     run(stage)                                │\n╰────────────────────────────────────────────────────╯\nValueError: no such stage 'sft2'\n",
    ),
    ("hccl", "comm.timeout", "EI0002", STEPS + "[ERROR] HCCL: EI0002: The wait execution of the Notify register times out. Reason: task of rank 3 absent\n" + block("/w/t.py:step", error="RuntimeError: synchronize demo failed")),
    ("npu-oom", "memory.gpu", "NPU out of memory", block("/w/t.py:step", error="RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)")),
    ("chinese", "storage.full", "磁盘空间不足", "开始训练\n保存失败: 磁盘空间不足\n任务运行失败, 退出码: 1\n"),
    ("bash-chinese", "command.not_found", "未找到命令", "go.sh: 行 3: trainx: 未找到命令\n"),
    ("nan-then-interrupt", "numerics.nan", "loss nan", "".join(f"iter {n}: loss nan\n" for n in range(30)) + block("/w/t.py:step", error="KeyboardInterrupt")),
    ("never-started", "hang.silent", "0/900", "  0%|          | 0/900 [00:00<?, ?it/s]\nslurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2024-05-06T07:08:09 ***\n"),
    ("megatron-sizes", "command.bad_argument", "is not divisible by", block("/w/t.py:init", error="AssertionError: global batch size (30) is not divisible by micro batch size (4) times data parallel size (8)")),
    ("size-mismatch", "model.load", "size mismatch for head", block("/w/t.py:load", error="RuntimeError: Error(s) in loading state_dict for Demo:\n\tsize mismatch for head: copying a param with shape torch.Size([9]) from checkpoint")),
    ("mpi-abort", "code.exception", "ValueError: cell 3", block("/w/t.py:main", error="ValueError: cell 3 is open") + "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\n"),
    ("no-gpu", "gpu.hardware", "No CUDA GPUs", block("/w/t.py:main", error="RuntimeError: No CUDA GPUs are available")),
    ("restarts", "crash.loop", "ValueError: bad shard", ("start\n" + block("/w/t.py:main", error="ValueError: bad shard") + "worker exited, restarting in 3 s\n") * 4),
    ("proxy-407", "network.proxy", "407", "fatal: unable to access 'https://git.example/x/': CONNECT tunnel failed, response 407\n"),
    ("git-key", "auth.denied", "publickey", "git@git.example: Permission denied (publickey).\nfatal: Could not read from remote repository.\n"),
    ("wget-404", "data.missing", "ERROR 404", "2024-05-06 07:08:09 ERROR 404: Not Found.\ngo.sh: line 3: exit 8\nCommand exited with non-zero status 8\n"),
    ("conda-env", "env.missing_module", "EnvironmentNameNotFound", "EnvironmentNameNotFound: Could not find conda environment: demo\n"),
]


@pytest.mark.parametrize(("cause", "root", "log"), [case[1:] for case in FAILED], ids=[case[0] for case in FAILED])
def test_failed_run_has_its_cause_and_the_line_that_shows_it(cause: str, root: str, log: str) -> None:
    said = read(log)
    assert said.cause == cause
    assert any(root in quote.text for quote in said.evidence), said.evidence
    assert all(quote.text in log.split("\n")[quote.line - 1] for quote in said.evidence)


HEALTHY: list[tuple[str, str]] = [
    ("steps", STEPS),
    ("megatron-counts", STEPS + "number of skipped iterations: 0 | number of nan iterations: 0 |\n"),
    ("caught-and-retried", block("/w/d.py:fetch", error="ValueError: shard 3 unreadable") + STEPS),
    ("advice", "UserWarning: you may encounter an out-of-memory (OOM) error if your card is small\n" + STEPS),
    ("options", "Namespace(timeout=1800, on_error='CUDA out of memory')\nNCCL_TIMEOUT=1800\n" + STEPS),
    ("usage", "usage: t.py [-h]\n  --retry N   what to do on CUDA out of memory\n"),
    ("source-line", block("/w/d.py:f", error="KeyError: 3").replace("call()", 'raise ValueError("CUDA out of memory")') + STEPS),
    ("torn-down", STEPS + "Training completed.\n[rank0]:[W ProcessGroupNCCL.cpp:77] Warning: destroy_process_group() was not called\n"),
    ("deleter", STEPS + "Exception ignored in: <function D.__del__ at 0x1>\n" + block("/w/d.py:__del__", error="TypeError: 'NoneType' object is not callable")),
    ("tf-chatter", "W0000 op_level_cost_estimator.cc:9] Error in PredictCost() for the op: x\nUnable to register cuDNN factory: again\n" + STEPS),
    ("nccl-info", "n1:7:7 [0] NCCL INFO Call to connect returned Connection refused, retrying\n" + STEPS),
    ("optional", "WARNING flash_attn is not installed, falling back to sdpa. Please install it.\n" + STEPS),
    ("overflow-warm-up", "[INFO] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n" + STEPS),
    ("first-nan-only", "iter 0: loss nan\n" + STEPS),
    ("fetch-retried", "WARNING: Retrying (Retry(total=4)) after connection broken by 'ReadTimeoutError'\n" + STEPS),
    ("pip-grumbles", "ERROR: pip's dependency resolver does not currently take into account all the packages\nSuccessfully installed demo-1\n"),
    ("corrected-pcie", "pcieport 0000:00:02.0: AER: Corrected error received: id=0010\n" + STEPS),
    ("orderly-stop", "INFO:     Shutting down\nINFO:     Waiting for application shutdown.\nINFO:     Application shutdown complete.\n"),
]


@pytest.mark.parametrize("log", [case[1] for case in HEALTHY], ids=[case[0] for case in HEALTHY])
def test_scary_lines_in_a_healthy_log_are_no_failure(log: str) -> None:
    said = read(log)
    assert (said.cause, said.fatal) == ("none", False), said


SAID: list[tuple[tuple[str, ...], int | None, str, str]] = [
    (("OOMKilled",), 137, "go.sh: line 3: 7 Killed   python t.py\n", "memory.host"),
    ((), 137, "go.sh: line 3: 7 Killed   python t.py\n", "memory.host"),
    ((), 137, STEPS, "process.killed"),
    (("TIMEOUT",), None, STEPS, "scheduling.time_limit"),
    (("PREEMPTED",), None, STEPS + "[rank0]: RuntimeError: Connection reset by peer\n", "scheduling.preempted"),
    (("NODE_FAIL",), None, STEPS, "node.lost"),
    (("ImagePullBackOff",), None, "", "image.not_found"),
    (("ImagePullBackOff", 'Failed to pull image "hub.example/a": pull access denied'), None, "", "image.auth"),
    (("Evicted", "The node was low on resource: ephemeral-storage."), None, STEPS, "storage.full"),
    (("Priority",), None, "", "scheduling.capacity"),
    (("0/4 nodes are available: 4 Insufficient example.com/gpu.",), None, "", "scheduling.capacity"),
    (("insufficient group quota: cpu : 65/64",), None, "", "scheduling.quota"),
    (("Error",), 1, block("/w/t.py:m", error="ValueError: odd"), "code.exception"),
    (("Running", "Started container main"), None, STEPS, "none"),
    ((), 127, "", "command.not_found"),
]


@pytest.mark.parametrize(("reasons", "exit_code", "log", "cause"), SAID)
def test_what_the_scheduler_says_confirms_or_starts(
    reasons: tuple[str, ...], exit_code: int | None, log: str, cause: str
) -> None:
    assert read(log, reasons=reasons, exit_code=exit_code).cause == cause


def test_a_confirmed_kill_keeps_the_other_reading() -> None:
    said = read("go.sh: line 3: 7 Killed   python t.py\n")
    assert said.cause == "process.killed"
    assert "memory.host" in said.also


def test_waiting_in_the_queue_is_not_fatal() -> None:
    assert not read("", reasons=("Priority",)).fatal


def test_a_loop_of_failed_fetches_is_named_but_not_fatal() -> None:
    said = read("curl: (7) Failed to connect to files.example port 443\n" * 9)
    assert (said.cause, said.fatal) == ("network.timeout", False)


def test_evidence_keeps_the_original_line_numbers() -> None:
    said = read("one\rtwo\n\n" + block("/w/t.py:m", error="ValueError: odd"))
    assert [quote.line for quote in said.evidence] == [6]


def test_every_built_in_entry_matches_its_own_sample_and_passes_the_checks() -> None:
    known = signatures.load()
    assert len(known.entries) >= 250
    assert len({entry.id for entry in known.entries}) == len(known.entries)
    for entry in known.entries:
        where = "reason" if entry.where == "reason" else "log"
        assert entry.id in [hit.entry.id for hit in known.match(entry.sample, where)], entry.id
        assert signatures.patterns.hazard(entry.signature) == "", entry.id
        assert entry.cause in known.causes
        assert set(entry.also) <= set(known.causes)
        assert entry.advice or entry.cause == "none"


def test_samples_of_noise_and_advice_are_no_evidence() -> None:
    for entry in signatures.load().entries:
        if entry.role in ("noise", "advice"):
            assert diagnose([Line(1, entry.sample)]).cause == "none", entry.id


GOOD = """[[entry]]
id = "house-scheduler"
signature = 'HOUSE-\\d{3} no tickets left'
cause = "scheduling.quota"
sample = "HOUSE-417 no tickets left"
source = "our scheduler"
"""

BAD: list[tuple[str, str, str]] = [
    ("own.toml:3", "back-reference", GOOD.replace("no tickets left'", "(no) tickets \\1'")),
    ("own.toml:3", "repeat inside a repeat", GOOD.replace("\\d{3}", "(?:\\d+)+")),
    ("own.toml:3", "must be bounded", GOOD.replace("\\d{3}", ".*")),
    ("own.toml:3", "literal", GOOD.replace("HOUSE-\\d{3} no tickets left", "\\d+")),
    ("own.toml:3", "not a regular expression", GOOD.replace("\\d{3}", "(")),
    ("own.toml:4", "unknown cause", GOOD.replace("scheduling.quota", "scheduling.luck")),
    ("own.toml:5", "sample", GOOD.replace('"HOUSE-417 no', '"HOUSE-417 some')),
    ("own.toml:2", "exists already", GOOD.replace("house-scheduler", "cuda-oom")),
    ("own.toml:9", "exists already", GOOD + "\n" + GOOD),
    ("own.toml:1", "needs a text `source`", GOOD.replace('source = "our scheduler"\n', "")),
    ("own.toml:7", "role", GOOD + 'role = "hero"\n'),
    ("own.toml:7", "colour", GOOD + 'colour = "red"\n'),
    ("own.toml:3", "not TOML", GOOD.replace("cause", "cause cause").replace("signature", "signature signature")),
]


@pytest.mark.parametrize(("where", "what", "toml"), BAD)
def test_a_bad_entry_of_the_users_is_refused_with_its_line(where: str, what: str, toml: str) -> None:
    with pytest.raises(signatures.SignatureError, match=re.escape(what)) as refused:
        signatures.load((("own.toml", toml),))
    assert str(refused.value).startswith(where + ":")


def test_entries_of_the_users_are_used() -> None:
    known = signatures.load((("own.toml", GOOD),))
    assert diagnose([Line(4, "HOUSE-901 no tickets left")], signatures=known).cause == "scheduling.quota"


def test_a_faster_matcher_can_be_plugged_in() -> None:
    known = signatures.load()
    asked: list[str] = []

    def candidates(line: str) -> list[int]:
        asked.append(line)
        return [at for at, entry in enumerate(known.entries) if entry.id == "cuda-oom"]

    assert diagnose([Line(1, "CUDA out of memory")], candidates=candidates).cause == "memory.gpu"
    assert asked == ["CUDA out of memory"]


def test_hostile_lines_cost_no_more_than_linear_time() -> None:
    hostile = [
        "Traceback (most recent call last): " * 300,
        "CUDA error: " + "a" * 12_000,
        "nodes are available: " * 600,
        "Error: " * 1700,
        '  File "' + "x" * 12_000,
        "NCCL WARN " * 1200,
        "loss: nan " * 1200,
        "(pid=" * 2400,
    ]
    begun = time.perf_counter()
    diagnose([Line(number, one) for number, one in enumerate(hostile * 5, 1)])
    assert time.perf_counter() - begun < 5.0
