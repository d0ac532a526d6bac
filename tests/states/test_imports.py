"""What a command's Python imports: at once, later, or only maybe; and which of it is the job's own."""

from __future__ import annotations

import pytest

from agent.lint import scene
from states.imports import Import, Imports, imports_in, imports_of, is_module_name
from states.lint.scene import Tree


def found(
    command: str, files: dict[str, str] | None = None, *, complete: bool = True, **tops: str
) -> Imports:
    """files: by path; tops: modules beside the start, by name."""
    known: dict[str, str | None] = {**(files or {}), **{f"{name}.py": text for name, text in tops.items()}}
    tree = Tree(known, complete=complete)
    return imports_of(command, scene(tree=tree))


def test_what_runs_at_once_is_needed_and_the_rest_is_told_apart() -> None:
    code = (
        "import torch.nn as nn, json\n"
        "try:\n    import apex\nexcept ImportError:\n    import fallback\n"
        "try:\n    import surely\nexcept KeyError:\n    pass\n"
        "def late():\n    import wandering\n"
        "class C:\n    import inclass\n"
        "with open('x') as f:\n    import within\n"
        "if FLAG:\n    import maybe\n"
        "if __name__ == '__main__':\n    from yamlish import load\n"
    )
    seen = found("python train.py", train=code)
    assert seen.needed == ("torch.nn", "json", "surely", "inclass", "within", "yamlish")
    assert seen.later == ("wandering",)
    assert seen.optional == ("apex", "fallback", "maybe")
    assert seen.outside(frozenset({"json"})) == ("torch", "surely", "inclass", "within", "yamlish")


@pytest.mark.parametrize(
    "command",
    [
        "python a/train.py",
        "cd a && torchrun --nproc_per_node 2 train.py",
        "bash -c 'python -u a/train.py --x 1'",
    ],
)
def test_the_jobs_own_files_are_followed_and_not_counted(command: str) -> None:
    seen = found(
        command,
        {
            "a/train.py": "from lib.net import Net\nimport numpyish\n",
            "a/lib/__init__.py": "",
            "a/lib/net.py": "from . import blocks\nfrom ..outer import x\n",
            "a/lib/blocks.py": "import timmish.layers\n",
        },
    )
    assert seen.needed == ("timmish.layers", "numpyish")


def test_a_module_run_by_its_name_finds_what_lies_where_it_starts() -> None:
    files = {"pkg/__init__.py": "", "pkg/run.py": "from pkg import deep\n", "pkg/deep.py": "import far\n"}
    seen = found("python -m pkg.run", files)
    assert seen.needed == ("far",)


def test_what_an_own_file_imports_inside_a_function_is_no_need() -> None:
    seen = found("python t.py", t="def f():\n    import helperish\n", helperish="import far\n")
    assert (seen.needed, seen.later) == ((), ("far",))


def test_files_that_are_not_known_are_asked_for() -> None:
    seen = found("python t.py", complete=False, t="import helperish\n")
    assert "helperish.py" in seen.wanted
    assert found("python u.py", complete=False).wanted == ("u.py",)


def test_no_text_makes_it_fall() -> None:
    assert imports_in("def (:\n") is None
    assert imports_in("\0") is None
    assert found("python t.py", t="def (:\n").unread == ("t.py",)
    assert found("'").needed == ()
    assert not found("./run_it").seen


def test_files_that_import_each_other_end() -> None:
    assert found("python a.py", a="import b\n", b="import a\nimport far\n").needed == ("far",)


def test_an_import_tells_where_it_stands() -> None:
    assert imports_in("from ..x import y, z\n") == (Import("x", ("y", "z"), 2),)


def test_only_dotted_names_become_words_of_a_command() -> None:
    assert is_module_name("torch.utils.data")
    assert not any(is_module_name(text) for text in ("", "a;b", "a b", "a..b", "$(x)"))
