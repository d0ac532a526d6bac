"""Package installs in the job (RULES C12): the environment is settled before the run, never in it.

An install is found as a command, in a runtime environment that is built at the start, and as a call from Python. A
text that installs and does nothing else is a staging job: a note.

Never: take `pip list`, `pip uninstall`, an echo or a comment for an install.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from states.lint.facts import Run, Walked
from states.lint.finding import Finding
from states.lint.python_code import Code
from states.lint.scene import Scene
from states.lint.words import Arg
from states.lint.work import works

MEND = (
    "Install before the run: put the packages into an environment below the workspace by a preparation job in the "
    "same image (wheels staged, lock written down), or take an image that has them; then only start it here."
)
_VERBS: dict[str, frozenset[str]] = {
    "pip": frozenset({"install"}),
    "conda": frozenset({"install", "create", "update", "upgrade"}),
    "apt": frozenset({"install", "upgrade", "dist-upgrade", "full-upgrade"}),
    "yum": frozenset({"install", "update", "localinstall", "groupinstall"}),
    "apk": frozenset({"add"}),
    "npm": frozenset({"install", "i", "ci", "add"}),
    "poetry": frozenset({"install", "add", "update", "sync"}),
    "uv": frozenset({"sync", "add"}),
    "cargo": frozenset({"install"}),
    "mim": frozenset({"install"}),
    "pipx": frozenset({"install", "inject"}),
    "playwright": frozenset({"install"}),
}
_SAME = {
    "mamba": "conda",
    "micromamba": "conda",
    "apt-get": "apt",
    "aptitude": "apt",
    "dnf": "yum",
    "microdnf": "yum",
    "zypper": "yum",
    "brew": "cargo",
    "yarn": "npm",
    "pnpm": "npm",
    "pdm": "poetry",
    "pipenv": "poetry",
    "pixi": "poetry",
    "gem": "cargo",
    "go": "cargo",
    "spack": "cargo",
}
_STARTS = ("system", "popen", "run", "call", "check_call", "check_output", "Popen", "getoutput", "main")
_PIP = re.compile(r"pip[\d.]{0,5}")
_INSTALLER = re.compile(r"(?:Mini|Ana)(?:conda|forge)\d?[\w.-]{0,60}\.sh|Mambaforge[\w.-]{0,60}\.sh")
_IN_TEXT = re.compile(
    r"(?:^|[\s;&|!/])(?:pip[\d.]{0,5}|conda|mamba|apt|apt-get|yum)[ \t]{1,9}"
    r"(?:-\w[\w-]{0,20}[ \t]{1,9}){0,4}install\b"
)
_R = re.compile(r"install\.packages|install_github|BiocManager::install|Pkg\.add")
_RUNTIME = re.compile(
    r"""["']?(packages|pip|conda|uv)["']?[ \t]{0,9}:[ \t]{0,9}(?:[\[{"']|$)""", re.MULTILINE
)


def find(walked: Walked, scene: Scene) -> Iterator[Finding]:
    """Installs among the runs and in runtime environments."""
    only_stages = scene.staging or not works(walked)
    for run in walked.runs:
        if _installs(run):
            yield _said(run.line, run.unit.file, only_stages)
        for wrapper in run.via[len(run.unit.via) :]:
            if wrapper.name == "uv" and (given := wrapper.option("with", "with_requirements")):
                yield _said(given.line, run.unit.file, only_stages)
            if wrapper.name == "ray":
                for value in wrapper.options.get("runtime_env_json", ()):
                    yield from runtime_environment(value, run.unit.file)
                for value in wrapper.options.get("runtime_env", ()):
                    text = scene.tree.text(value.text) if scene.tree else None
                    if text is not None:
                        yield from runtime_environment(Arg(text, 1), value.text)


def _said(line: int, file: str, only_stages: bool) -> Finding:
    if only_stages:
        return Finding("package_install", "note", line, "a staging job that installs on purpose", "", file)
    return Finding("package_install", "refuse", line, "packages are installed inside the job", MEND, file)


def _installs(run: Run) -> bool:
    words = [arg.text for arg in run.args]
    if not words or "--dry-run" in words or "--help" in words:
        return False
    if run.python:
        name = words[0].rsplit("/", 1)[-1]
        if run.module and words[0] in ("pip", "uv", "pipx", "poetry", "playwright"):
            return _verb(words[0], words[1:])
        return name == "setup.py" and bool({"install", "develop"} & set(words[1:3]))
    name = words[0].rsplit("/", 1)[-1]
    if name in ("R", "Rscript", "julia"):
        return any(_R.search(word) for word in words[1:])
    if name in ("easy_install", "pip-sync") or _INSTALLER.fullmatch(name):
        return True
    if name in ("dpkg", "rpm"):
        return bool({"-i", "-U", "-Uvh", "-ivh", "--install"} & set(words[1:4]))
    if name == "yarn" and len(words) == 1:
        return True
    return _verb(name, words[1:])


def _verb(name: str, words: list[str]) -> bool:
    """Whether the first plain words are an install of this package manager."""
    plain = [word for word in words if not word.startswith("-")][:3]
    family = "pip" if _PIP.fullmatch(name) else _SAME.get(name, name)
    if family == "uv" and plain[:1] == ["pip"]:
        return bool({"install", "sync"} & set(plain[1:2]))
    if family == "uv" and plain[:2] == ["tool", "install"]:
        return True
    if family == "conda" and plain[:1] == ["env"]:
        return bool({"create", "update"} & set(plain[1:2]))
    verbs = _VERBS.get(family)
    return verbs is not None and bool(
        verbs & set(plain[:2] if family in ("conda", "apt", "yum") else plain[:1])
    )


def runtime_environment(value: Arg, file: str) -> Iterator[Finding]:
    """The packages of a Ray runtime environment, in JSON or YAML; it is built when the job starts."""
    text = value.word.shown if value.word is not None else value.text
    best: tuple[int, int] | None = None
    for match in _RUNTIME.finditer(text[:65_536]):
        rank = 0 if match[1] == "packages" else 1
        line = value.line + text.count("\n", 0, match.start())
        if best is None or rank < best[0]:
            best = (rank, line)
    if best is not None:
        yield Finding(
            "package_install",
            "refuse",
            best[1],
            "the runtime environment installs packages when the job starts",
            MEND,
            file,
        )


def find_in_code(code: Code) -> Iterator[Finding]:
    """`os.system("pip install ...")`, `subprocess.run([sys.executable, "-m", "pip", "install", ...])`."""
    for call in code.calls:
        name = call.name
        if name.endswith(_STARTS):
            said = " pip " * name.startswith("pip") + " ".join(_strings(call.node))
            if _IN_TEXT.search(" " + said):
                why = "the script installs packages"
                yield Finding("package_install", "refuse", code.at(call.node), why, MEND, code.file)
        else:
            for keyword in call.node.keywords:
                if keyword.arg != "runtime_env" and not name.endswith("RuntimeEnv"):
                    continue
                yield from _in_dict(keyword, code)


def _in_dict(keyword: ast.keyword, code: Code) -> Iterator[Finding]:
    """`runtime_env={"pip": [...]}`, `RuntimeEnv(pip=[...])`."""
    why = "the runtime environment installs packages when the job starts"
    if keyword.arg in ("pip", "conda", "uv"):
        yield Finding("package_install", "refuse", code.at(keyword), why, MEND, code.file)
    for key in keyword.value.keys if isinstance(keyword.value, ast.Dict) else ():
        if isinstance(key, ast.Constant) and key.value in ("pip", "conda", "uv"):
            yield Finding("package_install", "refuse", code.at(key), why, MEND, code.file)


def _strings(node: ast.Call) -> Iterator[str]:
    for argument in node.args[:2]:
        items = argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else [argument]
        for item in items[:20]:
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                yield item.value
            elif isinstance(item, ast.JoinedStr):
                yield "".join(str(v.value) for v in item.values if isinstance(v, ast.Constant))
