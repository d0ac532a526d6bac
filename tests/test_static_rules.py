"""The rules that no story can show, since they say what the code has no path for: A9, B5 and D5.

Each is looked for in the source itself, and each search is also run on a wrong example, so that one that stopped
biting is noticed.

Never: a rule that a scenario can show.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.clusters.base import Cluster
from states.rulebook import STATIC

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "agent").rglob("*.py"))

OPERATIONS = {"capacity", "submit", "find", "list", "observe", "logs", "events", "stop", "delete"}
"""The eight of the seed; `observe` and `find` are its `get`, for many jobs and by name."""
DRY = {"predict", "render"}
"""The dry runs of `submit`."""

MAY_START_A_PROCESS = {
    "agent/background.py",  # the resident agent: this program itself
    "agent/clusters/local_launcher.py",  # the person's own job, in the local cluster
    "agent/clusters/local_process.py",
    "agent/clusters/run.py",  # the one runner of cluster commands, by argv
    "agent/simulation/workers.py",  # this program itself, with another hash seed
}
CALLS_A_SHELL = {"system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell"}

IMAGE_TOOLS = {
    "apptainer", "buildah", "crane", "ctr", "docker", "enroot", "img", "kaniko", "nerdctl", "podman", "regctl",
    "singularity", "skopeo",
}  # fmt: skip


def test_each_static_rule_is_proved_here() -> None:
    named = {
        name.split("_")[1].upper() for name in globals() if name.startswith("test_") and name[6].isdigit()
    }
    assert named == STATIC


# --- A9: eight operations, and no shell line -----------------------------------------------------------------


def test_a9_a_cluster_has_the_eight_operations_and_their_dry_runs() -> None:
    offered = {
        name for name, _ in inspect.getmembers(Cluster, inspect.isfunction) if not name.startswith("_")
    }
    assert offered == OPERATIONS | DRY


def test_a9_no_text_becomes_a_shell_line() -> None:
    found = {f"{path.relative_to(ROOT)}: {what}" for path in SOURCES for what in shells_in(path.read_text())}
    assert found == set()


def test_a9_processes_are_started_in_a_few_places_by_argv() -> None:
    starting = {str(path.relative_to(ROOT)) for path in SOURCES if imports(path.read_text(), "subprocess")}
    assert starting <= MAY_START_A_PROCESS


@pytest.mark.parametrize(
    "wrong",
    ["run(line, shell=True)", "os.system(line)", "os.popen(line)", "asyncio.create_subprocess_shell(line)",
     "subprocess.run(f'sbatch {name}')", "subprocess.run('sbatch ' + name)", "Popen(line % name)"],
)  # fmt: skip
def test_a9_the_search_bites(wrong: str) -> None:
    assert list(shells_in(wrong))


def shells_in(source: str) -> Iterator[str]:
    """Calls that would hand a text to a shell, or start a process by one text instead of an argv."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in CALLS_A_SHELL or any(_is_true_shell(word) for word in node.keywords):
            yield ast.unparse(node)
        starts = ast.unparse(node.func) in {"subprocess.run", "subprocess.Popen", "Popen", "check_output"}
        if starts and node.args and isinstance(node.args[0], (ast.JoinedStr, ast.BinOp, ast.Constant)):
            yield ast.unparse(node)


def _is_true_shell(word: ast.keyword) -> bool:
    return word.arg == "shell" and not (isinstance(word.value, ast.Constant) and word.value.value is False)


# --- B5: a credential goes into the environment of the cluster's own process ---------------------------------

MAY_READ_A_SECRET = {
    "agent/app.py": "hands each cluster the look-up of its own names, and the model its key",
    "agent/clusters/brainpp_cli.py": "puts the keys into the environment of rjob and brainctl",
    "agent/clusters/brainpp_billing.py": "reads the group pairs, which go there too",
    "agent/clusters/brainpp_doctor.py": "says which are missing, by name",
    "agent/clusters/ray_http.py": "the bearer token of the person's own Ray, in its header",
    "agent/checks.py": "says which are missing, by name",
    "agent/doctor.py": "the same",
    "agent/perform/checks.py": "the same",
    "agent/perform/checks_billing.py": "the same",
    "agent/evaluate.py": "the model's key, for the model's client",
    "agent/cli/keys.py": "sets, lists by name and forgets them",
    "agent/cli/output.py": "words the error of a store that cannot be opened",
    "agent/scenarios/world.py": "canaries instead of keys",
    "agent/mcp/server.py": "words the error of a store that cannot be opened",
    "agent/channels/office.py": "the tokens of the person's own channels, for their clients",
    "agent/channels/inbound.py": "the secret that signs a webhook",
}
"""Who may ask for a value of the secrets, and what for."""


def test_b5_few_places_can_reach_a_secret() -> None:
    reaching = {str(path.relative_to(ROOT)) for path in SOURCES if _reaches_a_secret(path.read_text())}
    assert reaching - {"agent/secrets.py"} <= set(MAY_READ_A_SECRET)


def _reaches_a_secret(source: str) -> bool:
    return imports(source, "agent.secrets") or ".secrets.get(" in source


def test_b5_the_command_of_a_cluster_is_built_without_them() -> None:
    """Who builds an argv, a script, a manifest or a request body cannot reach a secret at all."""
    builders = [path for path in SOURCES if path.stem.endswith(("_argv", "_script", "_manifest", "_request"))]
    assert len(builders) >= 4
    assert [path.name for path in builders if imports(path.read_text(), "agent.secrets")] == []


# --- D5: no path builds, pulls or probes an image ------------------------------------------------------------


def test_d5_no_tool_of_images_is_ever_called() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {what}" for path in SOURCES for what in image_tools_in(path.read_text())
    }
    assert found == set()


@pytest.mark.parametrize("wrong", ["run(['docker', 'pull', image])", "argv = ('skopeo', 'inspect')"])
def test_d5_the_search_bites(wrong: str) -> None:
    assert list(image_tools_in(wrong))


def image_tools_in(source: str) -> Iterator[str]:
    """Words of an argv that are a tool for images."""
    for node in ast.walk(ast.parse(source)):
        words = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
        for word in words[:1]:
            if isinstance(word, ast.Constant) and word.value in IMAGE_TOOLS:
                yield str(word.value)


def imports(source: str, module: str) -> bool:
    """Whether the source imports the module or a name of it, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import) and any(name.name == module for name in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.module == module:
            return True
    return False
