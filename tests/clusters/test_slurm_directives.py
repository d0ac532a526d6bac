"""Which word of a command is a person's batch script, and which of its lines count."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.clusters.slurm_directives import directives, script_of, script_path


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("train.sbatch --lr 1", "train.sbatch"),
        ("bash train.sh", "train.sh"),
        ("/bin/bash -l train.sh -x", "train.sh"),
        ("/opt/local/bin/bash -eux train.sh", "train.sh"),
        ("bash -euo pipefail train.sh", "train.sh"),
        ("bash -e -o pipefail +x train.sh", "train.sh"),
        ("bash --login --noprofile train.sh", "train.sh"),
        ("/usr/bin/env bash train.sh", "train.sh"),
        ("/usr/bin/env -S bash -e train.sh", "train.sh"),
        ("zsh -f train.sh", "train.sh"),
        ("tcsh train.csh", "train.csh"),
        ("python3.11 -u train.py", "train.py"),
        ("bash -c train.sh", ""),
        ("bash -lc train.sh", ""),
        ("bash -s train.sh", ""),
        ("python -m train", ""),
        ("bash", ""),
        ("bash -", ""),
        ("", ""),
    ],
)
def test_the_word_that_is_the_script(command: str, path: str) -> None:
    assert script_path(command.split()) == path


def test_only_a_script_that_can_be_read_is_one(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_bytes(b"#!/bin/sh\n#SBATCH -c 2\n\xff\n")
    (tmp_path / "data").write_bytes(b"\x7fELF")
    assert script_of(("bash", "a.sh"), str(tmp_path)).startswith("#!/bin/sh\n#SBATCH -c 2\n")
    assert script_of((str(tmp_path / "a.sh"),), "/") != ""
    for other in ("data", "absent", ".", "nul\0"):
        assert script_of(("bash", other), str(tmp_path)) == ""


def test_lines_count_up_to_the_first_command() -> None:
    text = "#!/bin/sh\n   # indented\n\n#SBATCH -c 2 --output=x  # why\n#SBATCH --wait\ncd x\n#SBATCH -c 9\n"
    assert directives(text).kept == ("-c", "2")
    assert directives(text).set_aside == ("--output=x", "--wait")
