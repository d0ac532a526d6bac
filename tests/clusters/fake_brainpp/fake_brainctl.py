"""The fake `brainctl`: `get queues -o json` and `get rjobs [NAME] -n NS -o json`, as public files show them."""

from __future__ import annotations

import json
import sys

from fake_platform import Platform


def queues(platform: Platform) -> int:
    platform.step()
    items = []
    for namespace, groups in platform.switches["queues"].items():
        for group in groups:
            used, has = platform.used((namespace, group)), platform.has()
            waiting = [
                job for job in platform.jobs.values()
                if job["phase"] == "Inqueue" and (job["namespace"], job["group"]) == (namespace, group)
            ]  # fmt: skip
            items.append({
                "kind": "Queue",
                "metadata": {"name": f"{namespace}-{group.replace('_', '-')}"},
                "spec": {"capability": {
                    "cpu": f"{has['cpu'] * 1000}m", "memory": f"{has['memory']}Mi", "nvidia.com/gpu": str(has["gpu"])
                }},
                "status": {
                    "allocated": {
                        "cpu": used["cpu"], "memory": f"{used['memory']}Mi", "nvidia.com/gpu": str(used["gpu"])
                    },
                    "pending": len(waiting),
                },
            })  # fmt: skip
    text = json.dumps({"kind": "List", "items": items}, indent=1)
    print(text[: len(text) // 2] if platform.use("short_queues") else text)
    return 0


def rjobs(platform: Platform, names: list[str], namespace: str) -> int:
    platform.step()
    items = []
    for job in platform.jobs.values():
        if job["namespace"] == namespace and (not names or job["name"] in names):
            group = platform.switches["group"] or job["group"]
            priority = platform.switches["priority"] or job["figures"]["priority"]
            items.append({
                "metadata": {
                    "name": job["name"],
                    "namespace": namespace,
                    "labels": {
                        "kubebrain.brainpp.cn/creator": job["creator"],
                        "quotagroup.brainpp.cn/quotagroup": group,
                    },
                    "annotations": {
                        "kubebrain.brainpp.cn/showname": job["showname"],
                        "volcano.brainpp.cn/priority": str(priority),
                    },
                },
                "status": {"phase": job["phase"]},
            })  # fmt: skip
    print(json.dumps(items[0] if names and items else {"items": items}))
    return 0


def main() -> int:
    argv = sys.argv[1:]
    if argv in (["--help"], []):
        print("brainctl controls the cluster: get, describe, exec, launch")
        return 0
    with Platform() as platform:
        platform.greet("brainctl", argv)
        if argv[:2] == ["get", "queues"]:
            return queues(platform)
        if argv[:2] == ["get", "rjobs"] and "-n" in argv:
            at = argv.index("-n")
            return rjobs(platform, argv[2:at], argv[at + 1])
        print(f'error: unknown command "{" ".join(argv)}"', file=sys.stderr)
        return 1
