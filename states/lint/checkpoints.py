"""Checkpoints without a bound (RULES C11): the disk fills before the run ends.

Known forms: the Trainer's arguments, Lightning's and Keras's callbacks, a plain save in a loop whose file's name
changes with it, the same options on a command line, and in a configuration that the job carries.

Never: warn about one file that is overwritten, a bound that is stated, or saves that the loop itself prunes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from states.lint.facts import Run, Walked
from states.lint.finding import Finding
from states.lint.options import options
from states.lint.python_code import Call, Code, Loopish
from states.lint.scene import Scene

MEND = (
    "Bound it: keep the last few and the best (`save_total_limit=3`, `save_top_k=3`), or write one file over and "
    "over; put the interval where a restart costs minutes."
)
_ARGUMENTS = (
    "TrainingArguments",
    "SFTConfig",
    "DPOConfig",
    "GRPOConfig",
    "PPOConfig",
    "RewardConfig",
    "ORPOConfig",
    "KTOConfig",
)
_SAVERS = (
    "torch.save save_pretrained save_checkpoint save_weights save_state save_model np.save numpy.save joblib.dump"
    " pickle.dump save_file"
).split()
_PRUNES = ("os.remove", "os.unlink", "shutil.rmtree", "unlink", "rmtree", "remove_checkpoint", "send2trash")
_CONFIG = re.compile(
    r"^([ \t]{0,40})[\"']?(save_steps|save_strategy|save_every|save_interval)[\"']?[ \t]{0,9}:[ \t]{0,9}(\S{1,40})",
    re.MULTILINE,
)
_LIMITS = re.compile(
    r"save_total_limit|keep_last|max_to_keep|save_top_k|max_checkpoints|total_limit|max_keep|limit_all_saves"
)


def find(walked: Walked, scene: Scene) -> Iterator[Finding]:
    """Saving options on a command line without the one that bounds them."""
    for run in walked.runs:
        finding = _on_command_line(run)
        if finding is not None:
            yield finding


def _on_command_line(run: Run) -> Finding | None:
    given = {option.name: option for option in options(run)}
    if not (
        run.python
        or run.name.endswith((".sh", "-cli"))
        or run.name in ("trl", "swift", "tune", "fairseq-train")
    ):
        return None
    if any(
        _LIMITS.search(name) or name in ("keep_last_epochs", "no_epoch_checkpoints", "save_only_best")
        for name in given
    ):
        return None
    strategy = given.get("save_strategy") or (given.get("evaluation_strategy") and None)
    if strategy is not None and strategy.value is not None and strategy.value.text == "no":
        return None
    for name in ("save_steps", "save_strategy"):
        option = given.get(name)
        if option is None or option.value is None:
            continue
        figure = option.value.text.replace("_", "")
        if figure.isdigit() and int(figure) >= 10_000:
            return None
        return Finding(
            "checkpoint_unbounded", "warn", option.flag.line, "every checkpoint is kept", MEND, run.unit.file
        )
    return None


def find_in_config(text: str, file: str, offset: int) -> Iterator[Finding]:
    """`save_steps: 200` without a limit beside it."""
    match = _CONFIG.search(text[:262_144])
    if match is None or _LIMITS.search(text[:262_144]) or match[3].strip("\"'") == "no":
        return
    line = offset + text.count("\n", 0, match.start(2)) + 1
    yield Finding("checkpoint_unbounded", "warn", line, "every checkpoint is kept", MEND, file)


def find_in_code(code: Code) -> Iterator[Finding]:
    """The forms that a Python script has."""
    prunes = any(call.name.endswith(_PRUNES) for call in code.calls)
    plain_seen: set[str] = set()
    for call in code.calls:
        last = call.name.rsplit(".", 1)[-1]
        line: int | None = None
        if last.endswith(_ARGUMENTS):
            line = _trainer(call, code)
        elif last == "ModelCheckpoint":
            line = _callback(call, code)
        elif last in ("ProjectConfiguration", "CheckpointManager") and "save" in code.text:
            line = _manager(call, code, last)
        elif _saves(call) and not prunes:
            line = _in_loop(call, code)
            if line is not None and last in plain_seen:
                line = None
            elif line is not None:
                plain_seen.add(last)
        if line is not None:
            yield Finding("checkpoint_unbounded", "warn", line, "every checkpoint is kept", MEND, code.file)


def _trainer(call: Call, code: Code) -> int | None:
    """The Trainer keeps everything unless a limit is given; the place is what makes it save."""
    if any(keyword.arg is None for keyword in call.node.keywords):
        return None
    limit = call.keyword("save_total_limit")
    if limit is not None and not (isinstance(limit.value, ast.Constant) and limit.value.value is None):
        return None
    strategy = call.keyword("save_strategy")
    if strategy is not None and code.string(strategy.value) == "no":
        return None
    if strategy is not None and code.string(strategy.value) == "best":
        return None
    steps = call.keyword("save_steps")
    figure = code.number(steps.value) if steps is not None else None
    if figure is not None and figure >= 10_000:
        return None
    place = steps or strategy
    return code.at(place) if place is not None else code.at(call.node)


def _callback(call: Call, code: Code) -> int | None:
    """Lightning: `save_top_k=-1` keeps all. Keras: an epoch in the file's name and not only the best."""
    top = call.keyword("save_top_k")
    if top is not None:
        return code.at(top) if code.number(top.value) == -1 else None
    if (
        "keras" in call.name
        or "tensorflow" in call.name
        or call.keyword("save_best_only", "save_weights_only")
    ):
        path = code.string(call.argument(0, "filepath")) or ""
        best = call.keyword("save_best_only")
        only_best = best is not None and isinstance(best.value, ast.Constant) and best.value.value is True
        varies = "epoch" in path or "{" in path or "val" in path
        if (
            varies
            and not only_best
            and call.argument(0, "filepath") is not None
            and not call.keyword("monitor", "dirpath")
        ):
            return code.at(call.node)
    return None


def _manager(call: Call, code: Code, last: str) -> int | None:
    if last == "CheckpointManager":
        most = call.argument(2, "max_to_keep")
        unbounded = isinstance(most, ast.Constant) and most.value is None
        return code.at(call.node) if unbounded else None
    if call.keyword("total_limit") or not call.keyword("automatic_checkpoint_naming"):
        return None
    return code.at(call.node)


def _saves(call: Call) -> bool:
    return any(call.name == saver or call.name.endswith("." + saver.rsplit(".", 1)[-1]) for saver in _SAVERS)


def _in_loop(call: Call, code: Code) -> int | None:
    """A save whose place changes with a loop around it, there or where its function is called."""
    place = _place(call)
    if place is None:
        return None
    names = _names(place, code)
    if call.loops:
        return code.at(call.node) if names & _changing(call.loops) and not _rare(call, code) else None
    function = call.function
    if function is None:
        return None
    parameters = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
    for other in code.calls:
        if other.name.rsplit(".", 1)[-1] != function.name or not other.loops:
            continue
        given = dict(zip([p for p in parameters if p != "self"], other.node.args, strict=False))
        given.update({k.arg: k.value for k in other.node.keywords if k.arg})
        for parameter, value in given.items():
            if parameter in names and _names(value, code) & _changing(other.loops):
                return code.at(call.node)
    return None


def _place(call: Call) -> ast.expr | None:
    """The argument that says where to."""
    last = call.name.rsplit(".", 1)[-1]
    if last == "save" and call.name in ("torch.save",):
        return call.argument(1, "f")
    if last in ("dump", "save_file"):
        return call.argument(1, "filename", "file")
    if last == "save_checkpoint" and len(call.node.args) > 1:
        return ast.Tuple([*call.node.args, *(k.value for k in call.node.keywords)], ast.Load())
    return call.argument(0, "save_directory", "output_dir", "filepath", "path", "save_dir", "tag")


def _names(node: ast.AST, code: Code, depth: int = 0) -> set[str]:
    """Names that the expression depends on, through plain assignments."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            found.add(inner.id)
            for value in code.names.get(inner.id, [])[:4] if depth < 3 else ():
                found |= _names(value, code, depth + 1)
        elif isinstance(inner, ast.Attribute):
            found.add(inner.attr)
    return found


def _changing(loops: tuple[Loopish, ...]) -> set[str]:
    """What changes from round to round: targets of `for`, names counted up inside."""
    found: set[str] = set()
    for loop in loops:
        if isinstance(loop, (ast.For, ast.AsyncFor)):
            found |= {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        for statement in loop.body:
            for inner in ast.walk(statement):
                if isinstance(inner, ast.AugAssign):
                    found |= {n.id for n in ast.walk(inner.target) if isinstance(n, ast.Name)}
                    found |= {n.attr for n in ast.walk(inner.target) if isinstance(n, ast.Attribute)}
    return found - {"_"}


def _rare(call: Call, code: Code) -> bool:
    """A loop over a written-out list of a few things saves a few files."""
    for loop in call.loops:
        if isinstance(loop, (ast.For, ast.AsyncFor)) and isinstance(loop.iter, (ast.List, ast.Tuple)):
            return len(call.loops) == 1 and len(loop.iter.elts) <= 5
    return False
