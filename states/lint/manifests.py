"""Kubernetes manifests: what the server rejects, the missing time limit, and the commands of the containers.

The rules are those of the Job, pod and container types in the API's reference. A value with a template's marks
(`{{ }}`, `${ }`) is left alone.

Never: know a cluster; whether a name exists there is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from states.lint.facts import Unit
from states.lint.finding import Finding
from states.lint.installs import runtime_environment
from states.lint.manifest import Manifest, Row, Table, Text, Yaml, tables
from states.lint.shell import Script
from states.lint.walk import Walker
from states.lint.words import Arg, Value

_MEND = "Correct the manifest; `kubectl apply --dry-run=server -f FILE` checks it without creating anything."
_QUANTITY = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+|[KMGTPE]i|[numkMGTPE])?")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_TEMPLATE = re.compile(r"\{\{|\$\{|\$\(|<[A-Za-z]")
_JOB_FIELDS = frozenset(
    "parallelism completions backoffLimit activeDeadlineSeconds ttlSecondsAfterFinished template completionMode"
    " suspend selector manualSelector podFailurePolicy successPolicy backoffLimitPerIndex maxFailedIndexes"
    " podReplacementPolicy managedBy".split()
)
_CONTAINER_FIELDS = frozenset(
    "name image imagePullPolicy command args env envFrom resources volumeMounts volumeDevices ports workingDir"
    " securityContext lifecycle livenessProbe readinessProbe startupProbe terminationMessagePath"
    " terminationMessagePolicy stdin stdinOnce tty resizePolicy restartPolicy restartPolicyRules".split()
)


def find(manifest: Manifest, file: str) -> Iterator[Finding]:
    """What is rejected, and the time limit."""
    for line, words in manifest.faults:
        yield Finding("bad_manifest", "refuse", line, f"this is no YAML: {words}", _MEND, file)
    for document in manifest.documents:
        if not isinstance(document, Table):
            continue
        for table in tables(document):
            yield from _twice(table, file)
            environment = table.get("runtimeEnvYAML")
            if isinstance(environment, Text):
                yield from runtime_environment(Arg(environment.value, environment.line), file)
            if table.text("kind") == "Job" and isinstance(table.get("spec"), Table):
                yield from _job(table, file)
        for pod in pods(document):
            yield from _pod(pod, file)


def _refuse(line: int, why: str, file: str) -> Finding:
    return Finding("bad_manifest", "refuse", line, why, _MEND, file)


def _twice(table: Table, file: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for key, _ in table.entries:
        if key.value in seen and key.value != "<<":
            yield _refuse(key.line, f"`{key.value}` stands twice in one place", file)
        seen.add(key.value)


def _job(table: Table, file: str) -> Iterator[Finding]:
    kind, spec = table.key("kind"), table.table("spec")
    line = kind.line if kind else table.line
    if spec is None:
        return
    version = table.text("apiVersion")
    if (
        version
        and version not in ("batch/v1", "batch.volcano.sh/v1alpha1", "batch/v1beta1")
        and "/" not in version
    ):
        yield _refuse(_line(table, "apiVersion"), f"a Job is no kind of {version}: batch/v1 is", file)
    if not version.startswith("batch/v1"):
        return
    for key, _ in spec.entries:
        if key.value not in _JOB_FIELDS and not _TEMPLATE.search(key.value):
            yield _refuse(key.line, f"a Job's spec has no field `{key.value}`", file)
    name = _name(table)
    if name and not _NAME.fullmatch(name) and not _TEMPLATE.search(name):
        metadata = table.table("metadata")
        place = _line(metadata, "name") if metadata is not None else line
        yield _refuse(place, f"{name!r} is no name: lower case letters, digits and hyphens", file)
    pod = spec.table("template", "spec")
    if pod is None:
        yield _refuse(line, "the Job has no template.spec", file)
        return
    policy = pod.text("restartPolicy")
    if policy not in ("Never", "OnFailure") and not _TEMPLATE.search(policy):
        place = _line(pod, "restartPolicy") if policy else line
        yield _refuse(place, "a Job's pods need restartPolicy Never or OnFailure", file)
    if spec.text("completionMode") == "Indexed" and not spec.text("completions"):
        yield _refuse(_line(spec, "completionMode"), "Indexed needs `completions`", file)
    if not (spec.text("activeDeadlineSeconds") or pod.text("activeDeadlineSeconds")):
        mend = "Give `activeDeadlineSeconds`: a hung run is then ended by the cluster too."
        yield Finding("no_time_limit", "note", line, "no time limit is given", mend, file)


def _line(table: Table, key: str) -> int:
    found = table.key(key)
    return found.line if found is not None else table.line


def pods(document: Table) -> Iterator[Table]:
    """Every pod spec of the document, whatever kind it is wrapped in."""
    return (table for table in tables(document) if isinstance(table.get("containers"), Row))


def _pod(pod: Table, file: str) -> Iterator[Finding]:
    names = {item.text("name") for item in pod.row("volumes") if isinstance(item, Table)}
    for item in (*pod.row("containers"), *pod.row("initContainers")):
        if not isinstance(item, Table):
            continue
        for key, value in item.entries:
            if key.value not in _CONTAINER_FIELDS and not _TEMPLATE.search(key.value):
                yield _refuse(key.line, f"a container has no field `{key.value}`", file)
            if key.value in ("command", "args"):
                yield from _words(key, value, file)
        yield from _environment(item, file)
        for mount in item.row("volumeMounts"):
            name = mount.text("name") if isinstance(mount, Table) else ""
            if isinstance(mount, Table) and name and name not in names and not _TEMPLATE.search(name):
                yield _refuse(_line(mount, "name"), f"no volume is called `{name}`", file)
        yield from _resources(item, file)


def _words(key: Text, value: Yaml, file: str) -> Iterator[Finding]:
    if isinstance(value, Text) and value.kind != "null" and not _TEMPLATE.search(value.value):
        yield _refuse(value.line, f"`{key.value}` is a list of words, not one text", file)
    for item in value.items if isinstance(value, Row) else ():
        if not isinstance(item, Text) or (item.kind != "str" and not _TEMPLATE.search(item.value)):
            yield _refuse(item.line, f"a word of `{key.value}` is no text: quote it", file)


def _environment(container: Table, file: str) -> Iterator[Finding]:
    for item in container.row("env"):
        if not isinstance(item, Table):
            continue
        value = item.get("value")
        if isinstance(value, (Row, Table)) or (
            isinstance(value, Text)
            and value.kind not in ("str", "null")
            and not _TEMPLATE.search(value.value)
        ):
            yield _refuse(value.line, "a variable's value is a text: quote it", file)
        if value is not None and item.get("valueFrom") is not None:
            yield _refuse(item.line, "`value` and `valueFrom` exclude each other", file)


def _resources(container: Table, file: str) -> Iterator[Finding]:
    limits, requests = container.table("resources", "limits"), container.table("resources", "requests")
    for table in (limits, requests):
        for key, value in table.entries if table is not None else ():
            text = value.value if isinstance(value, Text) else ""
            if not text or _TEMPLATE.search(text):
                continue
            if not _QUANTITY.fullmatch(text):
                yield _refuse(key.line, f"{text!r} is no quantity (64Gi, 500m, 8)", file)
            elif "/gpu" in key.value and not text.isdigit():
                yield _refuse(key.line, "GPUs come whole", file)
    for key, value in requests.entries if requests is not None and limits is not None else ():
        if "/" not in key.value or not isinstance(value, Text):
            continue
        limit = limits.text(key.value) if limits is not None else ""
        if not _TEMPLATE.search(value.value) and limit != value.value and not _TEMPLATE.search(limit):
            yield _refuse(key.line, f"{key.value}: request and limit must be the same", file)


# --- commands ------------------------------------------------------------------------------------------------


def walk(manifest: Manifest, file: str, walker: Walker) -> list[tuple[str, str, int]]:
    """Walks the command of every container; returns the texts of ConfigMaps as (name, text, lines before)."""
    configs: list[tuple[str, str, int]] = []
    maps: dict[str, list[tuple[str, Text]]] = {}
    for document in manifest.documents:
        if isinstance(document, Table) and document.text("kind") == "ConfigMap":
            data = document.table("data")
            held = [(k.value, v) for k, v in data.entries if isinstance(v, Text)] if data is not None else []
            maps[_name(document)] = held
            configs += [(name, text.value, text.line - 1) for name, text in held]
    for document in manifest.documents:
        if not isinstance(document, Table):
            continue
        for pod in pods(document):
            _mounted(pod, maps, file, walker)
            for item in (*pod.row("initContainers"), *pod.row("containers")):
                if isinstance(item, Table):
                    _container(item, file, walker)
        for table in tables(document):
            entry = table.get("entrypoint")
            if isinstance(entry, Text) and table.get("rayClusterSpec") is not None:
                lines = tuple(range(entry.line, entry.line + entry.value.count("\n") + 1))
                walker.walk_text(entry.value, file, lines, how="manifest")
    return configs


def _name(document: Table) -> str:
    metadata = document.table("metadata")
    return metadata.text("name") if metadata is not None else ""


def _mounted(pod: Table, maps: Mapping[str, list[tuple[str, Text]]], file: str, walker: Walker) -> None:
    """Files of ConfigMaps at the paths where the containers see them."""
    volumes = {v.text("name"): v.table("configMap") for v in pod.row("volumes") if isinstance(v, Table)}
    for item in (*pod.row("initContainers"), *pod.row("containers")):
        for mount in item.row("volumeMounts") if isinstance(item, Table) else ():
            source = volumes.get(mount.text("name")) if isinstance(mount, Table) else None
            if source is None or not isinstance(mount, Table):
                continue
            for name, text in maps.get(source.text("name"), []):
                sub = mount.text("subPath")
                path = mount.text("mountPath").rstrip("/") + ("" if sub == name else f"/{name}")
                walker.written[path] = (file, text.value, text.line - 1)


def _container(item: Table, file: str, walker: Walker) -> None:
    words = [w for key in ("command", "args") for w in item.row(key) if isinstance(w, Text)]
    env: dict[str, Value] = {}
    for given in item.row("env"):
        if isinstance(given, Table) and given.text("name"):
            value = given.get("value")
            name = given.text("name")
            plain = isinstance(value, Text)
            arg = (
                Arg(value.value, value.line)
                if isinstance(value, Text)
                else Arg(f"${name}", given.line, False)
            )
            env[name] = Value((), (arg,), arg.line, (), sure=plain, exported=True)
    unit = Unit(file, Script(()), "", (), "manifest", env=env)
    walker.units.append(unit)
    walker.cwd = item.text("workingDir") or "."
    args = tuple(Arg(word.value, word.line) for word in words)
    if args and not args[0].text.startswith("-"):
        walker.walk_args(args, unit, env)
    elif args:
        # Options for the image's own entry point: a program that the manifest does not name.
        walker.walk_args((Arg("entrypoint", args[0].line), *args), unit, env)
