"""What a submission becomes: a batch/v1 Job and, for several replicas, the headless Service of their rendezvous.

Kubernetes itself rewrites `$(NAME)` and `$$` in commands and in the values of variables; both are escaped, so that
words arrive as they were written. Nothing is restarted by Kubernetes unless the settings say so: the machine
restarts. A pod that somebody else ended (DisruptionTarget) fails the Job with that word, so that it stays known.

Never: put a secret of the agent's into a manifest; let extra arguments change whose job it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from agent.clusters.base import Refused, Submission, refuse_odd_texts
from agent.clusters.kubernetes_mounts import SHARED_MEMORY, mounts_of, volumes
from agent.clusters.kubernetes_objects import INDEX, JOB_NAME
from agent.clusters.kubernetes_options import Group, Options
from agent.clusters.kubernetes_overlay import fragment, overlaid, paths_laid_over, starts_elsewhere
from agent.clusters.kubernetes_states import QUEUE
from states.credentials import find_credentials, is_secret
from states.spec import Spec

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "watchkeeper"
ATTEMPT = "watchkeeper/attempt"
FINGERPRINT = "watchkeeper/fingerprint"
OWNER = "watchkeeper/owner"
SELECTOR = f"{MANAGED_BY}={MANAGER}"

NAME_MAX = 52
"""So that the name of a pod of an Indexed Job, `<name>-<index>`, is still a host's name (63)."""
PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
HIDDEN = "<hidden>"
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")
_IN_ENVIRONMENT = 'PATH="$0/bin:$PATH" VIRTUAL_ENV="$0"; export PATH VIRTUAL_ENV; exec "$@"'
"""The image's own PATH is not known here, so the environment is put before it where it is known."""


def check(submission: Submission, options: Options) -> None:
    """Refuse what would be refused or changed on its way. Raises Refused."""
    spec = submission.spec
    if not _NAME.fullmatch(submission.name) or len(submission.name) > NAME_MAX:
        rule = f"lower-case letters, digits and `-`, at most {NAME_MAX}"
        raise Refused(f"{submission.name!r} cannot be a Job's name: {rule}")
    if not spec.command:
        raise Refused("there is no command to run")
    if not spec.image:
        raise Refused("a Kubernetes job needs an image; name one", cause="image.not_found")
    refuse_odd_texts(spec)
    if odd := next((name for name in spec.env if not _VARIABLE.fullmatch(name)), None):
        raise Refused(f"{odd!r} cannot be the name of a variable here")
    if spec.lane == "idle" and not options.idle_priority_class:
        raise Refused("this cluster has no idle lane; set `idle_priority_class` in its options")
    group_of(spec, options)


def group_of(spec: Spec, options: Options) -> Group:
    """Namespace and queue of the spec's group, "" where the cluster's own count. Raises Refused if unknown."""
    if not spec.group:
        return Group(queue=options.queue)
    if spec.group not in options.groups:
        raise Refused("that group is not configured for this cluster; add it to `groups` in its options")
    found = options.groups[spec.group]
    return found.model_copy(update={"queue": found.queue or options.queue})


def job(submission: Submission, options: Options) -> dict[str, Any]:
    """The Job. Raises Refused for a spec that cannot be one."""
    check(submission, options)
    spec, labels = submission.spec, labels_of(submission, options)
    laid_over = [fragment(words) for words in spec.extra_args]
    queue = group_of(spec, options).queue
    made: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": submission.name,
            "labels": labels | ({QUEUE: queue} if queue else {}),
            "annotations": {OWNER: submission.owner},
        },
        "spec": {
            "backoffLimit": options.backoff_limit,
            "completions": spec.replicas,
            "parallelism": spec.replicas,
            "podFailurePolicy": {
                "rules": [
                    {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
                ]
            },
            "template": {"metadata": {"labels": labels}, "spec": _pod(submission, options, laid_over)},
        },
    }
    if spec.replicas > 1:
        made["spec"]["completionMode"] = "Indexed"
    if options.keep_s is not None:
        made["spec"]["ttlSecondsAfterFinished"] = int(options.keep_s)
    if queue:
        made["spec"]["suspend"] = True  # Kueue lets it go; without this it might start before Kueue sees it
    for one in laid_over:
        made = overlaid(made, one)
    return _still_ours(made, submission)


def service(submission: Submission) -> dict[str, Any] | None:
    """The headless Service by which replicas find each other (`<name>-0.<name>`); None for a single one."""
    if submission.spec.replicas < 2:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": submission.name, "labels": {MANAGED_BY: MANAGER, ATTEMPT: submission.name}},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {JOB_NAME: submission.name},
        },
    }


def labels_of(submission: Submission, options: Options) -> dict[str, str]:
    """Whose job it is; values that labels cannot hold are cut and told apart by a checksum."""
    return {
        **options.labels,
        MANAGED_BY: MANAGER,
        ATTEMPT: submission.name,
        FINGERPRINT: label(submission.fingerprint),
        OWNER: label(submission.owner),
    }


def label(value: str) -> str:
    """A value as a label: itself where it can be one, else what is left of it and eight hex digits."""
    if re.fullmatch(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", value):
        return value
    left = re.sub(r"[^A-Za-z0-9]+", "-", value).strip("-")[:40]
    return f"{left}-{hashlib.sha256(value.encode()).hexdigest()[:8]}".lstrip("-")


def rendered(manifests: Sequence[Mapping[str, Any]], spec: Spec) -> str:
    """The manifests as YAML, credentials in variables hidden."""
    secret = {name for name, value in spec.env.items() if is_secret(name, value) or find_credentials(value)}
    shown = [_without(manifest, secret) for manifest in manifests]
    return yaml.safe_dump_all(shown, sort_keys=False, allow_unicode=True, width=110)


# --- the pod -----------------------------------------------------------------------------------------------


def _pod(submission: Submission, options: Options, laid_over: Sequence[Any]) -> dict[str, Any]:
    spec = submission.spec
    beside = paths_laid_over(options.pod, laid_over)
    elsewhere = starts_elsewhere(options.pod, laid_over)
    made, inside = volumes(mounts_of(spec, options.storage, beside, optional=elsewhere))
    taken = beside | {entry["mountPath"] for entry in inside}
    if options.shared_memory and spec.gpu and "/dev/shm" not in taken:
        made, inside = [*made, SHARED_MEMORY["volume"]], [*inside, SHARED_MEMORY["mount"]]
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": options.stop_grace_s,
        "enableServiceLinks": False,
        "containers": [_container(submission, options, inside)],
    }
    if made:
        pod["volumes"] = made
    if spec.replicas > 1:
        pod["subdomain"] = submission.name
    if spec.time_limit_s is not None:
        # The Job's own deadline would count waiting and pulling too.
        pod["activeDeadlineSeconds"] = max(1, round(spec.time_limit_s))
    if priority := _priority_class(spec, options):
        pod["priorityClassName"] = priority
    if options.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in options.pull_secrets]
    if options.service_account:
        pod["serviceAccountName"] = options.service_account
    else:
        pod["automountServiceAccountToken"] = False
    if spec.exclude_nodes:
        pod["affinity"] = _away_from(spec.exclude_nodes)
    made_pod: dict[str, Any] = overlaid(pod, options.pod)
    return made_pod


def _container(submission: Submission, options: Options, inside: list[dict[str, Any]]) -> dict[str, Any]:
    spec = submission.spec
    words = (
        ("sh", "-c", _IN_ENVIRONMENT, spec.environment, *spec.command) if spec.environment else spec.command
    )
    figures = {
        "cpu": f"{round(spec.cpu * 1000)}m" if spec.cpu else "",
        "memory": f"{spec.memory_mib}Mi" if spec.memory_mib else "",
        options.gpu_resource: str(spec.gpu) if spec.gpu else "",
    }
    amounts = {
        kind: amount for kind, amount in figures.items() if amount
    }  # what is 0 is the namespace's to say
    made: dict[str, Any] = {
        "name": "main",
        "image": spec.image,
        "command": [literal(word) for word in words],
        "env": _variables(submission, options),
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
    }
    if inside:
        made["volumeMounts"] = inside
    if spec.workspace:
        made["workingDir"] = spec.workspace
    return made


def _variables(submission: Submission, options: Options) -> list[dict[str, Any]]:
    spec = submission.spec
    values = {"WATCHKEEPER_JOB": submission.name}
    if spec.proxy:
        values |= dict.fromkeys(PROXIES, spec.proxy)
    from_labels: dict[str, Any] = {}
    if spec.replicas > 1:
        values |= {
            "MASTER_ADDR": f"{submission.name}-0.{submission.name}",
            "MASTER_PORT": str(options.rendezvous_port),
            "WORLD_SIZE": str(spec.replicas),
            "NNODES": str(spec.replicas),
        }
        index = {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}
        from_labels = {"RANK": index, "NODE_RANK": index}
    values |= spec.env
    told = [{"name": name, "value": literal(value)} for name, value in values.items()]
    return told + [
        {"name": name, "valueFrom": where} for name, where in from_labels.items() if name not in values
    ]


def literal(word: str) -> str:
    """A word that arrives as it is: Kubernetes makes `$$` into `$`, and `$(NAME)` into a variable's value."""
    return word.replace("$", "$$")


def _priority_class(spec: Spec, options: Options) -> str:
    if spec.lane == "idle":
        return options.idle_priority_class
    return options.priority_classes.get(spec.priority, options.priority_class)


def _away_from(nodes: Sequence[str]) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in nodes]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _still_ours(made: dict[str, Any], submission: Submission) -> dict[str, Any]:
    try:
        labels = made["metadata"]["labels"]
        inside = made["spec"]["template"]["metadata"]["labels"]
        ours = (
            (made["kind"], made["metadata"]["name"]) == ("Job", submission.name)
            and "namespace" not in made["metadata"]
            and (labels[ATTEMPT], labels[MANAGED_BY]) == (submission.name, MANAGER)
            and labels[FINGERPRINT] == label(submission.fingerprint)
            and (inside[ATTEMPT], inside[MANAGED_BY]) == (submission.name, MANAGER)
        )
    except (KeyError, TypeError):
        ours = False
    if not ours:
        raise Refused(
            "an extra argument changes the Job's name or the labels that say whose it is; leave them out"
        )
    return made


def _without(manifest: Mapping[str, Any], secret: set[str]) -> Any:
    """A copy in which the values of these variables, and of those that look like credentials, are hidden."""

    def shown(value: Any) -> Any:
        if isinstance(value, Mapping):
            hidden = value.get("name") in secret and "value" in value
            return {key: HIDDEN if hidden and key == "value" else shown(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [shown(one) for one in value]
        return HIDDEN if isinstance(value, str) and find_credentials(value) else value

    return shown(manifest)
