"""What a request wants to come true: conditions that end the run early (RULES E8), and outputs that must be there.

Each goal is a small declarative form, checked when the run is delegated: exactly one form, a bound that can be met,
a path that can be seen. Whether one is met is judged by `conditions`; a plateau's memory is a `Best` of the track.

Never: look at a file or a log; take a goal that can never be met for one that is not met yet.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from states.reading import Frozen

LESS_IS_BETTER = re.compile(r"loss|error|perplexity|(?:^|[^a-z])ppl(?:$|[^a-z])|损失|误差", re.IGNORECASE)
"""Metrics whose name tells that a lower value is the better one; of any other it has to be said."""

FORMS = ("metric", "step", "line", "file", "wall_s", "gpu_hours")
ABOUT_A_METRIC = ("above", "below", "plateau_steps", "min_delta", "better")


class StopCondition(Frozen):
    """One reason to stop. Exactly one of the forms is filled in; ValueError says what is wrong with it.

    metric with above or below: its last value crossed the bound. metric with plateau_steps: no gain of more than
    min_delta in so many steps of the main counter; better: which way is a gain (told by names with `loss`).
    step: the main counter reached it. line: a text seen in the log (plain, not a pattern). file: a path below the
    workspace or a mount, written since the run was delegated. wall_s: seconds of running, gpu_hours: GPUs times
    hours of running; both over all attempts together.
    """

    metric: str | None = Field(default=None, min_length=1)
    above: float | None = Field(default=None, allow_inf_nan=False)
    below: float | None = Field(default=None, allow_inf_nan=False)
    plateau_steps: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    min_delta: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    better: Literal["lower", "higher"] | None = None
    step: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    line: str | None = Field(default=None, min_length=1)
    file: str | None = Field(default=None, min_length=1)
    wall_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    gpu_hours: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [form for form in FORMS if getattr(self, form) is not None]
        if len(given) != 1:
            said = f"and this one has {', '.join(given)}" if given else "and this one has none"
            raise ValueError(f"a stop condition has exactly one of: {', '.join(FORMS)}; {said}")
        if self.metric is None:
            stray = [name for name in ABOUT_A_METRIC if name in self.model_fields_set]
            if stray:
                raise ValueError(f"{', '.join(stray)} belongs to a `metric`, not to `{given[0]}`")
            return self
        return self._of_a_metric()

    def _of_a_metric(self) -> Self:
        kinds = [kind for kind in ("above", "below", "plateau_steps") if getattr(self, kind) is not None]
        if len(kinds) != 1:
            raise ValueError("a metric condition has exactly one of: above, below, plateau_steps")
        if self.plateau_steps is None and {"min_delta", "better"} & self.model_fields_set:
            raise ValueError("min_delta and better belong to plateau_steps; a bound needs neither")
        if self.plateau_steps is not None and self.better is None and not self._says_less_is_better():
            raise ValueError(
                f"which way is a gain of {self.metric!r}? say `better: higher` or `better: lower`"
            )
        return self

    def _says_less_is_better(self) -> bool:
        return self.metric is not None and LESS_IS_BETTER.search(self.metric) is not None

    @property
    def key(self) -> str:
        """The name under which a plateau remembers its best value; the same goal has the same key."""
        return f"{self.metric}:{self.plateau_steps:g}:{self.min_delta:g}:{self.gain}"

    @property
    def gain(self) -> Literal["lower", "higher"]:
        """Which way the metric gets better."""
        return self.better or ("lower" if self._says_less_is_better() else "higher")

    @property
    def is_budget(self) -> bool:
        """Time or GPU-hours: a bound on the cost, and not a judgement on the work."""
        return self.wall_s is not None or self.gpu_hours is not None

    def in_words(self, language: Literal["en", "zh"] = "en") -> str:
        """The goal as a short phrase for reports and `show`."""
        english, chinese = self._words()
        return chinese if language == "zh" else english

    def _words(self) -> tuple[str, str]:
        if self.metric is not None:
            return self._words_of_a_metric(self.metric)
        if self.step is not None:
            return f"step {self.step:g} reached", f"到达第 {self.step:g} 步"
        if self.line is not None:
            return f"a line with {self.line!r}", f"出现包含 {self.line!r} 的一行"
        if self.file is not None:
            return f"the file {self.file} is there", f"出现文件 {self.file}"
        if self.gpu_hours is not None:
            return f"{self.gpu_hours:g} GPU-hours used", f"用掉 {self.gpu_hours:g} GPU 小时"
        return f"running for {self.wall_s:g} s", f"运行满 {self.wall_s:g} 秒"

    def _words_of_a_metric(self, metric: str) -> tuple[str, str]:
        if self.above is not None:
            return f"{metric} above {self.above:g}", f"{metric} 高于 {self.above:g}"
        if self.below is not None:
            return f"{metric} below {self.below:g}", f"{metric} 低于 {self.below:g}"
        delta = (
            (f" by more than {self.min_delta:g}", f"超过 {self.min_delta:g} 的")
            if self.min_delta
            else ("", "")
        )
        steps = f"{self.plateau_steps:g}"
        return f"{metric} no better{delta[0]} in {steps} steps", f"{metric} 在 {steps} 步内没有{delta[1]}改进"


def seen_from_here(file: str, *, workspace: str, mounts: Sequence[str]) -> str | None:
    """Where to look for a file of the job: a path on this machine; None for one outside of workspace and mounts.

    file: relative to the workspace, or absolute as the job sees it. mounts: as given (`/data`, `kind:/src:/dst:ro`);
    the first path of one is where it comes from, the second where the job has it; a store
    (`gpfs://...:/dst`) is looked for under the job's own path.
    """
    if ".." in file.split("/") or posixpath.normpath(file) == ".":
        return None
    path = posixpath.normpath(file)
    if not path.startswith("/"):
        return posixpath.join(workspace, path)
    if _below(path, workspace):
        return path
    for mount in mounts:
        places = [part for part in mount.split(":") if part.startswith("/")]
        rest = _below(path, places[-1]) if places else ""
        if rest:
            source = places[-1] if "://" in mount else places[0]
            return posixpath.join(source, rest)
    return None


def _below(path: str, folder: str) -> str:
    """What of an absolute path stands below the folder; "" if it does not."""
    home = posixpath.normpath(folder).rstrip("/") + "/" if folder.startswith("/") else ""
    return path[len(home) :] if home and path.startswith(home) else ""


def faults(
    conditions: Sequence[StopCondition],
    outputs: Sequence[str],
    *,
    gpu: int,
    workspace: str,
    mounts: Sequence[str],
) -> Iterator[str]:
    """What a delegation must refuse: goals that can never be met where they are looked for (E8, C11).

    outputs: paths or globs that must be there at the end; they are looked for below the workspace alone.
    """
    for condition in conditions:
        if condition.gpu_hours is not None and not gpu:
            yield "stop_when: a budget of GPU-hours needs GPUs; say `gpu`, or give `wall_s`"
        file = condition.file
        if file is not None and seen_from_here(file, workspace=workspace, mounts=mounts) is None:
            yield (
                f"stop_when: the file {file!r} is neither below the workspace nor below a mount; "
                "give a path that the run writes there"
            )
    for output in outputs:
        if seen_from_here(output, workspace=workspace, mounts=()) is None:
            yield f"outputs: {output!r} is outside of the workspace; outputs are looked for below it (C11)"
