"""Light, quick steps are told from work by a closed list; whatever is not certain is work (RULES C1)."""

from __future__ import annotations

from typing import Any

import pytest

from states.job import Job
from states.light import is_light, light_row
from tests.states import builders as b


def shell(line: str) -> tuple[str, ...]:
    return ("bash", "-c", line)


@pytest.mark.parametrize(
    "command",
    [
        ("nvidia-smi",),
        ("/usr/bin/ls", "-la"),
        ("python", "-c", "import torch; print(torch.__version__, torch.cuda.is_available())"),
        shell("df -h && free -g; uname -a | head -1"),
        shell("python3 -V"),
        shell("nvcc --version"),
        shell("pip list"),
        shell("python -m pip show torch"),
        shell("echo 'for a > b'"),
        shell("git status"),
    ],
)
def test_what_only_looks_around_is_light(command: tuple[str, ...]) -> None:
    assert is_light(command)


@pytest.mark.parametrize(
    "command",
    [
        ("python", "train.py"),
        ("bash", "look.sh"),
        ("python", "-c", "import train"),
        ("python", "-c", "import train; print(1)"),
        ("python", "-c", "import torch"),
        ("python", "-c", "print(sum(range(10**9)))"),
        ("python", "-c", "while True: print(1)"),
        ("python", "-m", "http.server"),
        shell("ls && python train.py"),
        shell("nvidia-smi -l 5"),
        shell("tail -f log.txt"),
        shell("pip install torch"),
        shell("echo $(python train.py)"),
        shell('echo "$(python train.py)"'),
        shell("for i in 1 2; do ls; done"),
        shell("ls > listing.txt"),
        shell("./train.sh --version"),
        shell("echo 'unfinished"),
        shell("sleep 3600"),
        shell("ls " + "x" * 500),
        shell(""),
        (),
    ],
)
def test_anything_else_is_work(command: tuple[str, ...]) -> None:
    assert not is_light(command)


class TestRow:
    def row(self, **asked: Any) -> tuple[str, str]:
        return self.of(b.new_job(request={"command": "pip list", "gpu": 0, **asked}, cluster="lab"))

    def of(self, job: Job) -> tuple[str, str]:
        row = light_row(job)
        return row.level, row.question

    def test_it_is_asked_about_with_the_advice(self) -> None:
        row = light_row(b.new_job(request={"command": "pip list", "gpu": 0}, cluster="lab"))
        assert (row.level, row.question, row.rule) == ("ask", "light", "C1")
        assert "Run it directly" in row.mend
        assert "pip list" in row.mend

    def test_who_insists_is_not_asked(self) -> None:
        assert self.row(insist=True) == ("fine", "")

    def test_a_gpu_cannot_be_had_directly(self) -> None:
        assert self.row(gpu=1) == ("note", "")

    def test_on_this_machine_it_is_direct_already(self) -> None:
        assert self.of(b.new_job(request={"command": "pip list", "gpu": 0})) == ("fine", "")

    @pytest.mark.parametrize("asked", [{"outputs": "list.txt"}, {"replicas": 2}, {"smoke": "true"}])
    def test_what_is_to_leave_something_behind_is_work(self, asked: dict[str, Any]) -> None:
        assert self.row(**asked) == ("fine", "")

    def test_a_stated_length_of_seconds_is_light_without_a_gpu(self) -> None:
        """Policy `light_s`."""
        assert self.row(command="python tiny.py", expected_s=60) == ("ask", "light")
        assert self.row(command="python tiny.py", expected_s=61) == ("fine", "")
        assert self.row(command="python tiny.py", expected_s=60, gpu=1) == ("fine", "")
