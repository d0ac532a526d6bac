"""The lint: one text in, findings out, each with its place and its mend (RULES C11, C12, B4, D1, D6).

The caller gives the text, what it is, and the scene; where a file would be needed that the scene does not hold, its
path is in `Report.wanted` and the caller may come again with it.

Never: raise on any text; let the value of a credential into a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from states.credentials import find_credentials
from states.lint import (
    background,
    checkpoints,
    code_downloads,
    conda,
    continuation,
    directives,
    downloads,
    effects,
    exit_codes,
    figures,
    installs,
    intermediates,
    manifests,
    outputs,
    paths,
    progress,
    python_code,
    quoting,
    variables,
    waits,
)
from states.lint.facts import PythonText, Walked
from states.lint.finding import ORDER, Finding
from states.lint.following import RUNS_MAX
from states.lint.manifest import Manifest
from states.lint.scene import Report, Scene
from states.lint.walk import Walker
from states.lint.words import Arg, Value

CHARS_MAX = 131_072
"""Characters of one text that are judged."""

TEXT_CHARS_MAX = 300
SAME_MAX = 50
"""Findings of one kind that a report holds."""

_CONFIG = (".yaml", ".yml", ".json", ".toml")
_MEND_KEY = (
    "Take it out, and revoke it if it was shared: let the job read it from the cluster's own secret store, or from a "
    "file below your home that only you can read."
)

SHELL: tuple[Callable[[Walked, Scene], Iterable[Finding]], ...] = (
    installs.find,
    downloads.find,
    figures.find,
    directives.find,
    outputs.find,
    intermediates.find,
    paths.find,
    checkpoints.find,
    lambda walked, scene: waits.find(walked),
    lambda walked, scene: background.find(walked),
    lambda walked, scene: exit_codes.find(walked),
    lambda walked, scene: conda.find(walked),
    lambda walked, scene: variables.find(walked),
    lambda walked, scene: quoting.find(walked),
    lambda walked, scene: continuation.find(walked),
    lambda walked, scene: effects.find(walked),
    lambda walked, scene: progress.find(walked),
)
"""Every concern of the shell's side."""


class Source(NamedTuple):
    """The text to judge. manifest: the parsed documents where kind says so."""

    name: str
    text: str
    kind: Literal["shell", "python", "manifest"] = "shell"
    manifest: Manifest | None = None


def lint(source: Source, scene: Scene) -> Report:
    """Judges one text and everything that it starts and that the scene holds."""
    scene = scene._replace(asked=set())
    walker = Walker(scene)
    texts = {source.name: source.text[:CHARS_MAX]}
    configs: list[tuple[str, str, int, str]] = []
    findings: list[Finding] = []
    unread: list[str] = []
    try:
        configs += _walk(source, scene, walker, findings)
        walked = walker.walked()
        for concern in SHELL:
            findings += concern(walked, scene)
    except RecursionError:
        walked = walker.walked()
        unread.append(f"{source.name} is nested too deeply to be read as a whole")
    if walked.cut:
        unread.append(f"{source.name}: only its first {RUNS_MAX} commands were read")
    for python in walked.pythons:
        findings += _python(python, scene, unread)
    configs += [
        (file, text, offset, path)
        for path, (file, text, offset) in walked.written.items()
        if file != source.name
    ] + [
        (file, text, offset, path)
        for path, (file, text, offset) in walked.written.items()
        if file == source.name
    ]
    for file, text, offset, name in configs:
        if name.endswith(_CONFIG):
            findings += downloads.find_in_config(text, file, offset, scene)
            findings += checkpoints.find_in_config(text, file, offset)
    for text_of in _files(walked, scene):
        texts.update(text_of)
    findings += [finding for name, text in texts.items() for finding in _credentials(name, text)]
    if len(source.text) > CHARS_MAX:
        unread.append(f"{source.name}: only the first {CHARS_MAX} characters were read")
    wanted = tuple(dict.fromkeys((*walked.wanted, *sorted(scene.asked))))
    return Report(tuple(_placed(findings, texts, source.name)), wanted, tuple(unread))


def _walk(
    source: Source, scene: Scene, walker: Walker, findings: list[Finding]
) -> Iterator[tuple[str, str, int, str]]:
    """The walk of the text, whatever it is; yields the configurations that a manifest carries."""
    if source.manifest is not None:
        findings += manifests.find(source.manifest, source.name)
        for name, text, offset in manifests.walk(source.manifest, source.name, walker):
            yield source.name, text, offset, name
    elif source.kind == "python":
        walker.pythons.append(PythonText(source.name, source.text, 0, None))
    else:
        walker.walk_text(source.text[:CHARS_MAX], source.name, env=_given(scene))


def _given(scene: Scene) -> dict[str, Value]:
    """The job's environment as exported variables."""
    return {name: Value((), (Arg(text, 0),), 0, (), exported=True) for name, text in scene.env.items()}


def _python(python: PythonText, scene: Scene, unread: list[str]) -> Iterator[Finding]:
    code = python_code.read(python)
    if code is None:
        unread.append(f"{python.file}: its Python could not be read")
        return
    yield from installs.find_in_code(code)
    yield from code_downloads.find(code, python.run, scene)
    yield from checkpoints.find_in_code(code)
    yield from waits.find_in_code(code)
    yield from figures.find_in_code(code, scene)
    yield from progress.find_in_code(code)
    yield from outputs.find_in_code(code, scene)


def _files(walked: Walked, scene: Scene) -> Iterator[dict[str, str]]:
    """The texts that took part, by the names that findings carry."""
    names = {unit.file for unit in walked.units} | {python.file for python in walked.pythons}
    for name in names:
        text = scene.tree.text(name) if scene.tree is not None else None
        if text is not None:
            yield {name: text[:CHARS_MAX]}


def _credentials(name: str, text: str) -> Iterator[Finding]:
    """RULES B4: where one stands; its value is never copied."""
    for found in find_credentials(text):
        line = text.count("\n", 0, found.start) + 1
        yield Finding(
            "credential", "refuse", line, f"a credential ({found.kind}) stands in the text", _MEND_KEY, name
        )


def _placed(findings: list[Finding], texts: dict[str, str], first: str) -> Iterator[Finding]:
    """Every finding once, in order, with its line's text; credentials in that text are replaced."""
    lines = {name: redacted(text).split("\n") for name, text in texts.items()}
    seen: set[tuple[str, str, int, str]] = set()
    said: Counter[str] = Counter()
    for finding in sorted(findings, key=lambda f: (f.file != first, f.file, f.line, ORDER[f.level])):
        key = (finding.kind, finding.file, finding.line, finding.why)
        if key in seen:
            continue
        seen.add(key)
        said[finding.kind] += 1
        if said[finding.kind] > SAME_MAX:
            continue
        have = lines.get(finding.file, [])
        text = have[finding.line - 1].strip() if 0 < finding.line <= len(have) else ""
        yield finding._replace(text=text[:TEXT_CHARS_MAX], why=redacted(finding.why))


def redacted(text: str) -> str:
    """The text with every credential replaced by its kind; lines stay where they are."""
    out, at = [], 0
    for found in find_credentials(text):
        gone = text[found.start : found.end]
        out += [text[at : found.start], f"[redacted:{found.kind}]", "\n" * gone.count("\n")]
        at = found.end
    return "".join([*out, text[at:]])
