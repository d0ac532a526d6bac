"""The shape of the code: what may import what, what a file says of itself, and how long things get.

import-linter checks the layers (its contracts are in pyproject.toml); this file adds what it cannot express.
Each rule is also run on a wrong example, so that a rule that stopped biting is noticed.

Never: a rule without its reason, or an exception without one.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
"""Code lines; the docstring is not counted."""

LONG_FILES: dict[str, str] = {}
"""Files over FILE_LINES_MAX, each with the reason why it is one idea and not two."""

BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "misc"}
"""They say nothing of what is inside, so everything ends up there."""

STATES_MAY_IMPORT = {
    "__future__", "abc", "ast", "base64", "binascii", "bisect", "codecs", "collections", "copy", "dataclasses",
    "datetime", "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "importlib",
    "inspect", "itertools", "json", "keyword", "math", "operator", "posixpath", "re", "shlex", "statistics", "string",
    "textwrap", "tomllib", "types", "typing", "unicodedata",
    "packaging", "prompts", "pydantic", "pydantic_core", "states", "transitions", "typing_extensions",
}  # fmt: skip
"""Data modules only (DESIGN 3). Anything that reads a clock, a file, chance or the environment is absent."""

CLOCKS = {
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "clock_gettime", "sleep"},
    "uuid": {"uuid1", "uuid4"},
    "os": {"system", "popen"},
}
"""Ambient time and identity, by the name they are reached through."""
MAY_READ_A_CLOCK = {
    "agent/clock.py": "the port itself",
    "agent/staging/fetch.py": "runs in the job, where no port reaches",
    "agent/clusters/local_time.py": "the local cluster's own clock: its launcher outlives the agent",
}

SHARED_CLUSTER_MODULES = {"__init__", "base", "run", "wrapper", "logfile", "local_time"}
"""The seam and what clusters share: everything else in agent/clusters/ belongs to one concrete cluster."""
MAY_NAME_A_CLUSTER = {
    "agent/scenarios/scripts.py": "a scenario's cluster is the scripted one, by definition",
    "agent/scenarios/wellness.py": "its jobs know what they would have printed",
    "agent/scenarios/world.py": "so is the world's that it is played in",
}
"""The composition root (`agent/app.py`) names them as text, so that only the one that is used is imported."""


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def offenders(paths: Iterable[Path], fault: Callable[[Path], Any]) -> dict[str, Any]:
    """{file: what is wrong with it} of the files in which something is."""
    return {name_of(path): found for path in paths if (found := fault(path))}


PRODUCT = python_files("agent", "states", "prompts", "examples")
EVERYTHING = PRODUCT + python_files("tests", "docs")


# --- what may import what ----------------------------------------------------------------------------------


def test_the_import_contracts_hold() -> None:
    """In a process of its own: import-linter sets up the logging of whoever calls it."""
    lint = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    ran = subprocess.run(lint, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of the imports, wherever they stand in the file (ruff refuses relative ones)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def foreign_to_states(tree: ast.AST, may: set[str] = STATES_MAY_IMPORT) -> list[str]:
    return [name for name in imported(tree) if name.split(".")[0] not in may]


def test_states_imports_data_modules_only() -> None:
    def fault(path: Path) -> list[str]:
        may = STATES_MAY_IMPORT | ({"sys", "argparse"} if path.name == "__main__.py" else set())
        return foreign_to_states(tree_of(path), may)

    assert offenders(python_files("states"), fault) == {}


def test_the_states_rule_bites() -> None:
    wrong = "import os.path\ndef f():\n    from time import monotonic\nimport states.job\nfrom re import X"
    assert foreign_to_states(ast.parse(wrong)) == ["os.path", "time.monotonic"]


CONCRETE_CLUSTERS = {path.stem for path in python_files("agent/clusters")} - SHARED_CLUSTER_MODULES


def clusters_named(tree: ast.AST) -> set[str]:
    """Concrete clusters that a file imports."""
    parts = (name.split(".") for name in imported(tree) if name.startswith("agent.clusters."))
    return {part[2] for part in parts} & CONCRETE_CLUSTERS


def test_only_the_composition_root_names_a_cluster() -> None:
    named = offenders(python_files("agent"), lambda path: clusters_named(tree_of(path)))
    outside = {name for name in named if not name.startswith("agent/clusters/")}
    assert outside == set(MAY_NAME_A_CLUSTER)


# --- time, chance and identity are ports -------------------------------------------------------------------


def ambient(tree: ast.AST) -> list[str]:
    """Where a file reaches for a clock, chance or identity: `module.name` of each use."""
    found = [name for name in imported(tree) if name.split(".")[0] == "random"]
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="time" | "uuid" | "os" as module):
                found += [f"{module}.{alias.name}" for alias in node.names if alias.name in CLOCKS[module]]
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=attr):
                if attr in CLOCKS.get(owner, ()):
                    found.append(f"{owner}.{attr}")
    return found


def test_only_the_clock_tells_the_time() -> None:
    found = offenders(python_files("agent", "states"), lambda path: ambient(tree_of(path)))
    assert {name: uses for name, uses in found.items() if name not in MAY_READ_A_CLOCK} == {}
    assert set(MAY_READ_A_CLOCK) - set(found) == set(), "an exception that nothing needs any more"


def test_the_clock_rule_bites() -> None:
    wrong = (
        "import datetime as d, random\nfrom datetime import datetime\nfrom time import monotonic\n"
        "datetime.now(UTC)\nd.datetime.utcnow()\nuuid.uuid4().hex\nqueue.time\n"
    )
    assert sorted(ambient(ast.parse(wrong))) == [
        "datetime.now", "datetime.utcnow", "random", "time.monotonic", "uuid.uuid4",
    ]  # fmt: skip


# --- what a file says of itself, and how long it gets ------------------------------------------------------


def test_every_file_says_what_it_is_for() -> None:
    assert offenders(EVERYTHING, lambda path: not ast.get_docstring(tree_of(path))) == {}


def test_every_file_of_the_product_says_what_it_must_never_do() -> None:
    def fault(path: Path) -> bool:
        excused = path.name == "__main__.py" or "migrations" in path.parts
        return not excused and not re.search(
            r"^Never: ", ast.get_docstring(tree_of(path)) or "", re.MULTILINE
        )

    assert offenders(PRODUCT, fault) == {}


def test_no_file_is_a_drawer() -> None:
    assert (
        offenders(EVERYTHING, lambda path: BANNED_NAMES & {path.stem, *name_of(path).split("/")[:-1]}) == {}
    )


def test_no_file_is_too_long() -> None:
    def fault(path: Path) -> int:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        return lines if lines > FILE_LINES_MAX else 0

    assert set(offenders(EVERYTHING, fault)) == set(LONG_FILES)


def long_functions(tree: ast.AST) -> list[str]:
    """Functions with more code lines than FUNCTION_LINES_MAX, as `name (lines)`."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            if lines > FUNCTION_LINES_MAX:
                found.append(f"{node.name} ({lines})")
    return found


def test_no_function_is_too_long() -> None:
    assert offenders(EVERYTHING, lambda path: long_functions(tree_of(path))) == {}


def test_the_length_rule_bites() -> None:
    body = "    x = 1\n" * FUNCTION_LINES_MAX
    assert long_functions(ast.parse(f"def f():\n{body}")) == [f"f ({FUNCTION_LINES_MAX + 1})"]
    doc = '    """One.\n\n    Two.\n    """\n'
    assert long_functions(ast.parse(f"def f():\n{doc}{body[10:]}")) == []


# --- what no committed file may hold -----------------------------------------------------------------------

# In pieces, so that this file does not hold them itself.
HOSTS = (
    "pypi" + ".org", "files.python" + "hosted", "registry.npm" + "js", "registry.yarn" + "pkg",
    "deb." + "debian", "security." + "debian", "static." + "crates", "proxy." + "golang",
)  # fmt: skip
MACHINE_PATHS = ("wo" + "rk", "ro" + "ot", "opt/" + "wheels", "opt/" + "pypi")
TELLS_OF_A_MACHINE = re.compile(
    "|".join([*map(re.escape, HOSTS), rf"(?<![\w.~}})\]-])/(?:{'|'.join(MACHINE_PATHS)})(?![\w.-])"])
)


def committed() -> list[Path]:
    """What git holds, and what it would take: new files too, so that the rule speaks before the commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "-co", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    paths = {ROOT / name for name in listed.stdout.split("\0") if name}
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def test_no_file_names_a_registry_or_a_folder_of_one_machine() -> None:
    found = []
    for path in committed():
        text = path.read_bytes().decode("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if TELLS_OF_A_MACHINE.search(line):
                found.append(f"{name_of(path)}:{number}: {line.strip()[:100]}")
    assert found == []


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("cd /" + "work/main", True),
        ("HOME=/" + "root", True),
        ("https://" + HOSTS[0] + "/simple", True),
        ("runs/" + "work/main", False),
        ("{workspace}/" + "root/x", False),
        ("/" + "workspace/a", False),
        ("/" + "rootfs", False),
    ],
)
def test_the_machine_rule_bites(text: str, tells: bool) -> None:
    assert bool(TELLS_OF_A_MACHINE.search(text)) is tells


def test_the_locks_pin_every_line_by_hash() -> None:
    for lock in ("requirements.lock", "requirements-dev.lock"):
        pins = re.split(r"\n(?=\S)", (ROOT / lock).read_text(encoding="utf-8").strip())
        assert len(pins) > 20
        assert [
            pin for pin in pins if not re.match(r"[\w.-]+==\S+(?s:.*)--hash=sha256:[0-9a-f]{64}", pin)
        ] == []


def test_the_runtime_lock_is_part_of_the_one_for_tests() -> None:
    """`make test` after `make demo` adds packages and changes none."""
    runtime, dev = (
        set(re.findall(r"^\S+==[^\s;]+", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert runtime - dev == set()
