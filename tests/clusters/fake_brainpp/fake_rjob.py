"""The fake `rjob`: its grammar, its words and its habits, as public files show them (RJOB 1-3, 7, 9).

Errors of usage end with status 2 as argparse's do; everything else is said as log lines.
"""

from __future__ import annotations

import os
import select
import sys
import time

from fake_platform import Job, Platform, now

Flags = dict[str, list[str]]
VALUED = {
    "--name", "--metadata-name", "--image", "--image-pull-policy", "--gpu", "--cpu", "--memory", "--replica",
    "--charged-group", "--namespace", "--private-machine", "--mount", "--env", "--host-network",
    "--custom-resources", "--gang-start", "--task-type", "--priority", "--preemptible", "--restart-policy",
    "--backoff_limit", "--auto-restart", "--enable-self-health", "--positive-tags", "--negative-tags",
    "--predict-only", "--dry-run", "-e", "-P", "-r", "-n", "--tail-lines", "--termination-grace-period-seconds",
}  # fmt: skip
BARE = {"--enable-sshd", "--store-host-nvme", "--replica-of"}
SUBCOMMANDS = "submit, patch, stop, delete, list, get, logs, events, clone, download-logs"
BOOLEANS = {"--predict-only", "--dry-run", "--gang-start", "--host-network"}


class Usage(Exception):
    """What argparse would complain of."""


def parsed(words: list[str]) -> tuple[Flags, list[str]]:
    """(flags, positional words); a flag that comes twice is a list."""
    flags: Flags = {}
    rest: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        name, given, value = word.partition("=")
        if not word.startswith("-"):
            rest.append(word)
        elif name in BARE:
            flags[name] = ["true"]
        elif name not in VALUED:
            raise Usage(f"unrecognized arguments: {word}")
        else:
            if not given:
                at += 1
                if at >= len(words) or words[at].startswith("-"):
                    raise Usage(f"argument {name}: expected one argument")
                value = words[at]
            if name in BOOLEANS and value.lower() not in ("true", "false"):
                raise Usage(f"argument {name}: invalid choice: {value!r} (choose from 'true', 'false')")
            flags.setdefault(name, []).append(value)
        at += 1
    return flags, rest


def one(flags: Flags, *names: str, default: str = "") -> str:
    return next((flags[name][-1] for name in names if name in flags), default)


def info(text: str) -> None:
    print(time.strftime("%m-%d %H:%M:%S [INFO] ", time.gmtime()) + text)


def fail(text: str) -> int:
    print(time.strftime("%m-%d %H:%M:%S [ERROR] ", time.gmtime()) + text, file=sys.stderr)
    return 1


# --- submit ------------------------------------------------------------------------------------------------


def submit(platform: Platform, words: list[str]) -> int:
    if "--" not in words:
        raise Usage("unrecognized arguments: " + " ".join(words[-1:]))
    at = words.index("--")
    flags, rest = parsed(words[:at])
    command = words[at + 1 :]
    if rest:
        raise Usage(f"unrecognized arguments: {' '.join(rest)}")
    if not one(flags, "--image") or not command:
        raise Usage("the following arguments are required: --image")
    figures = {
        "cpu": int(one(flags, "--cpu", default="1")),
        "gpu": int(one(flags, "--gpu", default="0")),
        "memory": int(one(flags, "--memory", default="1024")),
        "replicas": int(one(flags, "-P", "--replica", default="1")),
        "lane": one(flags, "--task-type", default="normal"),
        "priority": int(one(flags, "--priority", default="5")),
    }
    if figures["lane"] == "idle" and ("--priority" in flags or "--private-machine" in flags):
        return fail("an idle job takes neither --priority nor --private-machine")
    namespace, group = one(flags, "--namespace"), one(flags, "--charged-group")
    if one(flags, "--predict-only").lower() == "true":
        return predict(platform, namespace, group, figures)
    if platform.switches["stderr_noise"]:
        print("WARNING: the configuration of this tool is from an older version", file=sys.stderr)
    if refused := refusal(platform, namespace, group, figures):
        return fail(refused)
    env = dict(pair.split("=", 1) for name in ("-e", "--env") for pair in flags.get(name, []))
    showname = one(flags, "--name", default="somebody-1")
    if one(flags, "--dry-run").lower() == "true":
        return dry_run(showname, (namespace, group), figures, env, command)
    name = one(flags, "--metadata-name")
    if not name or platform.switches["ignores_metadata_name"]:
        name = f"{showname}-{int(now() * 1e7) % 10**8:08d}"
    if platform.find(namespace, name):
        return fail(f'rjobs.rjob.brainpp.cn "{name}" already exists')
    options = {"env": env, "mounts": flags.get("--mount", []), "flags": flags}
    platform.create(name, showname, (namespace, group), figures, command, options)
    return answer(platform, name)


def answer(platform: Platform, name: str) -> int:
    switches = platform.switches
    if switches["hang_s"]:
        platform.__exit__()  # the job is there; only the answer does not come
        select.select([], [], [], switches["hang_s"])
        os._exit(1)
    if not switches["no_answer"]:
        info(f"created rjob_name: {name}")
    return fail("read timed out") if switches["created_but_failed"] else 0


def refusal(platform: Platform, namespace: str, group: str, figures: Job) -> str:
    if platform.switches["sends_to"]:
        return str(platform.switches["sends_to"])
    known = platform.switches["queues"]
    if namespace not in known:
        return f"namespace {namespace} not found"
    if group in platform.switches["workspace_groups"]:
        return f"rjob can only use GPU/CPU workload quotagroup, but {group} is workspace type"
    if group.replace("-", "_") not in [one.replace("-", "_") for one in known[namespace]]:
        return f"quotagroup {group} not found"
    has = platform.has()
    wanted = {kind: figures[kind] * figures["replicas"] for kind in has}
    if any(wanted[kind] > has[kind] for kind in has):
        memory = f"memory : {wanted['memory'] / 1024:.1f}Gi/{has['memory'] / 1024:.1f}Gi"
        gpu = f"nvidia.com/gpu : {wanted['gpu']}/{has['gpu']}"
        return f"insufficient group quota: cpu : {wanted['cpu']}/{has['cpu']} {memory} {gpu}"
    return ""


def predict(platform: Platform, namespace: str, group: str, figures: Job) -> int:
    """Counts, and rc 0 whatever they say."""
    job = {"namespace": namespace, "group": group, "figures": figures}
    total = figures["replicas"]
    fit = total if platform.fits(job) else 0
    if platform.switches["predict_old"]:
        print(f"schedulable: {fit}/{total}")
    else:
        print(f"任务数量统计\n- 总副本数量：{total}\n- 可调度数量：{fit}\n- 不可调度数量：{total - fit}")
    return 0


def dry_run(showname: str, at: tuple[str, str], figures: Job, env: dict[str, str], command: list[str]) -> int:
    """The object as text, with everything that was said in it. at: (namespace, group)."""
    namespace, group = at
    labels = f"{{quotagroup.brainpp.cn/quotagroup: {group}}}"
    notes = (
        f"{{kubebrain.brainpp.cn/showname: {showname}, volcano.brainpp.cn/priority: {figures['priority']}}}"
    )
    print(f"kind: RJob\nmetadata:\n  namespace: {namespace}\n  labels: {labels}\n  annotations: {notes}")
    print(f"spec:\n  replicas: {figures['replicas']}\n  env: {env}\n  command: {command}")
    return 0


# --- reading -----------------------------------------------------------------------------------------------


def show(platform: Platform, job: Job) -> None:
    phase = job["phase"]
    word = "Unknown" if phase == "Inqueue" and platform.switches["unknown_for_inqueue"] else phase
    info(f"rjob {job['name']} (showname={job['showname']}): {word}")
    replicas = job["figures"]["replicas"]
    counts = dict.fromkeys(("active", "succeeded", "failed", "created_failed", "pending", "stopped"), 0)
    kind = {"Running": "active", "Killing": "active", "Succeeded": "succeeded", "Failed": "failed"}
    counts[
        kind.get(phase, {"Stopped": "stopped", "CreatedFailed": "created_failed"}.get(phase, "pending"))
    ] = replicas
    info(f"  |- task t0: {replicas} replicas {counts}")
    if phase in ("Starting", "Running"):
        for rank in range(replicas):
            info(f"  |- replica {job['name']}-{'abcde'[rank % 5] * 5}: {phase.upper()}, node-a{rank + 1}")


def get(platform: Platform, words: list[str]) -> int:
    flags, names = parsed(words)
    platform.step()
    if platform.switches["gibberish"]:
        print("<html>maintenance</html>")
        return 0
    jobs = [platform.find(one(flags, "--namespace"), name) for name in names]
    if platform.switches["missing_is_an_error"] and None in jobs:
        return fail(f"rjobs {names[jobs.index(None)]} not found")
    for job in filter(None, jobs):
        show(platform, job)
    return 0


def listing(platform: Platform, words: list[str]) -> int:
    flags, names = parsed(words)
    platform.step()
    for job in platform.jobs.values():
        named = (not names or job["name"] in names) and one(flags, "--name") in ("", job["showname"])
        if named and job["namespace"] == one(flags, "--namespace"):
            show(platform, job)
    return 0


def logs(platform: Platform, words: list[str]) -> int:
    if not words or words[0] not in ("job", "replica"):
        raise Usage(f"argument kind: invalid choice: {(words or [''])[0]!r} (choose from 'job', 'replica')")
    flags, names = parsed(words[1:])
    platform.step()
    job = platform.find(one(flags, "--namespace"), names[0])
    if job is None:
        return 0
    if not job["started_at"]:
        print('Traceback (most recent call last):\n  File "rjob", line 1, in <module>', file=sys.stderr)
        print("TypeError: 'NoneType' object is not iterable", file=sys.stderr)
        return 1
    data = b""
    for rank in range(job["figures"]["replicas"]):
        path = platform.file(job, "log", rank)
        if os.path.exists(path) and now() - job["started_at"] >= platform.switches["log_after_s"]:
            with open(path, "rb") as file:
                data += file.read()
    lines = data.splitlines(keepends=True)
    if job["ended_at"] and platform.switches["late_lines"] and platform.use("late_lines"):
        lines = lines[:-1]
    count = int(one(flags, "-n", "--tail-lines", default=str(len(lines))))
    sys.stdout.flush()
    sys.stdout.buffer.write(b"".join(lines[-count:] if count else []))
    return 0


def events(platform: Platform, words: list[str]) -> int:
    flags, names = parsed(words)
    platform.step()
    job = platform.find(one(flags, "--namespace"), names[0])
    for line in job["events"] if job else ():
        print(line)
    return 0


# --- acting ------------------------------------------------------------------------------------------------


def stop(platform: Platform, words: list[str]) -> int:
    flags, names = parsed(words)
    for name in names:
        job = platform.find(one(flags, "--namespace"), name)
        if job is None:
            return fail(f"rjob {name} not found")
        platform.kill(job, "stop")
        info(f"stop {name}")
    return 0


def delete(platform: Platform, words: list[str]) -> int:
    flags, names = parsed(words)
    for name in names:
        platform.jobs.pop(f"{one(flags, '--namespace')}/{name}", None)
    return 0


VERBS = {
    "submit": submit, "get": get, "list": listing, "logs": logs, "events": events, "stop": stop, "delete": delete
}  # fmt: skip


def main() -> int:
    argv = sys.argv[1:]
    if argv in (["--help"], ["-h"], []):
        print(f"usage: rjob [-h] {{{SUBCOMMANDS.replace(', ', ',')}}} ...")
        return 0
    with Platform() as platform:
        try:
            platform.greet("rjob", argv)
            if argv[0] not in VERBS:
                raise Usage(f"argument command: invalid choice: {argv[0]!r} (choose from {SUBCOMMANDS})")
            return VERBS[argv[0]](platform, argv[1:])
        except Usage as usage:
            print(f"usage: rjob {argv[0]} [-h] ...\nrjob {argv[0]}: error: {usage}", file=sys.stderr)
            return 2
