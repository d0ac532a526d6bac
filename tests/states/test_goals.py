"""Goals as they are written: one form each, checked when delegated, found where the job writes (E8, C11)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from states.goals import StopCondition, faults, seen_from_here


@pytest.mark.parametrize(
    ("form", "english", "chinese"),
    [
        ({"metric": "acc", "above": 0.9}, "acc above 0.9", "acc 高于 0.9"),
        ({"metric": "loss", "below": 2}, "loss below 2", "loss 低于 2"),
        (
            {"metric": "loss", "plateau_steps": 2000},
            "loss no better in 2000 steps",
            "loss 在 2000 步内没有改进",
        ),
        (
            {"metric": "acc", "plateau_steps": 9, "min_delta": 0.01, "better": "higher"},
            "acc no better by more than 0.01 in 9 steps",
            "acc 在 9 步内没有超过 0.01 的改进",
        ),
        ({"step": 300}, "step 300 reached", "到达第 300 步"),
        ({"line": "enough"}, "a line with 'enough'", "出现包含 'enough' 的一行"),
        ({"file": "done.flag"}, "the file done.flag is there", "出现文件 done.flag"),
        ({"wall_s": 60}, "running for 60 s", "运行满 60 秒"),
        ({"gpu_hours": 1.5}, "1.5 GPU-hours used", "用掉 1.5 GPU 小时"),
    ],
)
def test_every_form_is_said_in_both_languages(form: dict[str, Any], english: str, chinese: str) -> None:
    condition = StopCondition.model_validate(form)
    assert (condition.in_words(), condition.in_words("zh")) == (english, chinese)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({}, "exactly one of: metric, step, line, file, wall_s, gpu_hours; and this one has none"),
        ({"step": 3, "wall_s": 4}, "and this one has step, wall_s"),
        ({"metric": "loss"}, "exactly one of: above, below, plateau_steps"),
        ({"metric": "loss", "above": 1, "below": 2}, "exactly one of: above, below, plateau_steps"),
        ({"metric": "loss", "plateau_steps": 9, "below": 2}, "exactly one of"),
        ({"metric": "acc", "plateau_steps": 9}, "which way is a gain of 'acc'? say `better: higher`"),
        ({"metric": "loss", "below": 1, "min_delta": 0.1}, "belong to plateau_steps"),
        ({"step": 3, "above": 1}, "above belongs to a `metric`, not to `step`"),
        ({"wall_s": -1}, "greater than 0"),
        ({"gpu_hours": 0}, "greater than 0"),
        ({"metric": "loss", "above": float("nan")}, "finite"),
        ({"metric": "loss", "plateau_steps": 5, "min_delta": -1}, "greater than or equal to 0"),
        ({"line": ""}, "at least 1 character"),
        ({"metrics": "loss"}, "Extra inputs"),
    ],
)
def test_a_form_that_cannot_be_meant_is_refused_with_what_to_do(form: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=r".+") as caught:
        StopCondition.model_validate(form)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("metric", "gain"), [("val_loss", "lower"), ("eval/ppl", "lower"), ("apple", "higher")]
)
def test_a_name_with_a_loss_in_it_tells_which_way_is_better(metric: str, gain: str) -> None:
    given = {} if gain == "lower" else {"better": "higher"}
    assert StopCondition(metric=metric, plateau_steps=5, **given).gain == gain


@pytest.mark.parametrize(
    ("file", "mounts", "found"),
    [
        ("out/done", (), "/home/ann/p/out/done"),
        ("/home/ann/p/done", (), "/home/ann/p/done"),
        ("/data/done", ("/data",), "/data/done"),
        ("/in/job/done", ("/data/set:/in/job",), "/data/set/done"),
        ("/in/job/done", ("host:/data/set:/in/job:ro",), "/data/set/done"),
        ("/in/job/done", ("gpfs://fs1/set:/in/job",), "/in/job/done"),
        ("../done", (), None),
        ("out/../../done", (), None),
        ("/home/ann/other/done", (), None),
        ("/home/ann/p", (), None),
        ("/data", ("/data",), None),
        ("/database/done", ("/data",), None),
    ],
)
def test_a_file_is_looked_for_below_the_workspace_or_a_mount(
    file: str, mounts: tuple[str, ...], found: str | None
) -> None:
    assert seen_from_here(file, workspace="/home/ann/p", mounts=mounts) == found


def told(conditions: list[dict[str, Any]], outputs: tuple[str, ...] = (), *, gpu: int = 0) -> list[str]:
    forms = [StopCondition.model_validate(form) for form in conditions]
    return list(faults(forms, outputs, gpu=gpu, workspace="/home/ann/p", mounts=("/data",)))


def test_what_could_never_be_met_is_told_when_it_is_delegated() -> None:
    (budget,) = told([{"gpu_hours": 4}])
    assert "needs GPUs" in budget
    (file,) = told([{"file": "/elsewhere/done"}])
    assert "'/elsewhere/done' is neither below the workspace nor below a mount" in file
    (output,) = told([], ("/data/model.pt",))
    assert "'/data/model.pt' is outside of the workspace" in output
    assert (
        told([{"gpu_hours": 4}, {"file": "/data/done"}, {"file": "x"}], ("out/*.pt", "/home/ann/p/a"), gpu=1)
        == []
    )
