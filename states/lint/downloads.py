"""Downloads at run time that could be staged before (RULES D1): by a tool, or by a hub name in an option.

One finding a name: the model's before its tokenizer's. Offline switches silence hub names, since they are then read
from the cache that is there.

Never: take a call to the machine itself, a local path, or a file that the tree has for a download.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from states.lint.environment import is_offline
from states.lint.facts import Run, Walked
from states.lint.finding import Finding, Level
from states.lint.hub_names import DATA_OPTIONS, MODEL_OPTIONS, is_hub_name
from states.lint.options import Option, names_output, options
from states.lint.scene import Scene
from states.lint.work import works

MEND = (
    "Stage it before the run: fetch it once below the workspace, give the run the path, and set HF_HUB_OFFLINE=1 "
    "(or the tool's own offline switch) so that it cannot reach out."
)
_REMOTE = re.compile(r"(?:https?|ftp|s3|gs|oss|hf|r2|az|abfss?)://", re.IGNORECASE)
_HERE = re.compile(r"https?://(?:localhost|127\.|0\.0\.0\.0|\[?::1|\$|169\.254|10\.\d)", re.IGNORECASE)
_URL_VARIABLE = re.compile(r"\$\w{0,40}(?:URL|LINK)", re.IGNORECASE)
_HOST_PATH = re.compile(r"(?:[\w.-]{1,64}@)?[\w.-]{2,64}:(?!//)\S")
_CONFIG_KEY = re.compile(
    r"^[ \t-]{0,60}[\"']?(model|name|model_name|model_id|model_path|model_name_or_path|base_model|pretrained"
    r"|pretrained_model_name_or_path|dataset|dataset_name|dataset_id|repo_id|path|hf_model|tokenizer|datasets)[\"']?"
    r"[ \t]{0,9}:[ \t]{0,9}[\"']?([A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95})[\"']?"
    r"[ \t]{0,9},?[ \t]{0,9}(?:#.{0,200})?$",
    re.MULTILINE | re.ASCII,
)
_TOOLS: dict[str, frozenset[str]] = {
    "huggingface-cli": frozenset({"download"}),
    "hf": frozenset({"download"}),
    "modelscope": frozenset({"download"}),
    "tune": frozenset({"download"}),
    "litgpt": frozenset({"download"}),
    "ollama": frozenset({"pull", "run"}),
    "kaggle": frozenset({"download"}),
    "dvc": frozenset({"pull", "fetch", "get", "import"}),
    "git": frozenset({"clone", "pull", "fetch", "lfs", "submodule"}),
    "docker": frozenset({"pull"}),
    "apptainer": frozenset({"pull", "build"}),
    "singularity": frozenset({"pull", "build"}),
    "pip": frozenset({"download", "wheel"}),
    "wandb": frozenset({"get"}),
    "gdown": frozenset(),
    "aria2c": frozenset(),
    "axel": frozenset(),
}


def find(walked: Walked, scene: Scene) -> Iterator[Finding]:
    """Downloads among the runs, one finding a name."""
    seen: set[str] = set()
    level: Level = "note" if scene.staging or (not scene.gpu and not works(walked)) else "warn"
    for run in walked.runs:
        for line, what in (*_by_tool(run), *_by_name(run, scene), *_by_image(run)):
            if what not in seen:
                seen.add(what)
                yield Finding(
                    "runtime_download",
                    level,
                    line,
                    f"{what} is fetched while the job runs",
                    MEND,
                    run.unit.file,
                )


def find_in_config(text: str, file: str, offset: int, scene: Scene) -> Iterator[Finding]:
    """Hub names in a configuration that the job carries or writes itself."""
    for match in _CONFIG_KEY.finditer(text[:262_144]):
        if is_hub_name(match[2], scene):
            line = offset + text.count("\n", 0, match.start(2)) + 1
            yield Finding("runtime_download", "warn", line, f"{match[2]} is a hub name", MEND, file)


def _by_tool(run: Run) -> Iterator[tuple[int, str]]:
    words = [arg.text for arg in run.args]
    if not words:
        return
    if run.python:
        if (
            run.module
            and words[0] in ("spacy", "nltk.downloader", "pip")
            and ("download" in words[1:2] or words[0] == "nltk.downloader")
        ):
            yield run.line, f"{words[0]} {words[-1]}"
        return
    name = run.name
    remote = [word for word in words[1:] if _REMOTE.match(word) and not _HERE.match(word)]
    if name in ("wget", "curl"):
        if remote and _keeps(run, name, words):
            yield run.args[0].line, remote[0]
        elif not remote and _keeps(run, name, words) and any(_URL_VARIABLE.search(w) for w in words[1:]):
            yield run.args[0].line, "a URL"
    elif name in _TOOLS:
        verbs = _TOOLS[name]
        plain = [word for word in words[1:] if not word.startswith("-")]
        if not verbs or verbs & set(plain[: 3 if name in ("kaggle", "wandb") else 1]):
            if name == "git" and plain[:1] == ["lfs"] and not {"pull", "fetch"} & set(plain):
                return
            if name == "git" and plain[:1] == ["submodule"] and "update" not in plain:
                return
            yield run.args[0].line, " ".join([name, *plain[:2]])
    elif name in ("aws", "gsutil", "gcloud", "rclone", "azcopy", "s5cmd", "mc", "ossutil", "ossutil64"):
        yield from _from_store(run, words)
    elif name in ("rsync", "scp") and len(words) > 2 and _HOST_PATH.match(words[-2]) and ":" not in words[-1]:
        yield run.args[0].line, words[-2]


def _keeps(run: Run, name: str, words: list[str]) -> bool:
    """Whether what is fetched is kept or run; a call to an interface is no download."""
    flags = " ".join(word for word in words[1:] if word.startswith("-"))
    if name == "wget":
        return "--spider" not in flags
    posts = re.search(r"(?:^| )(?:-X|--request|-d|--data|--data-raw|-F|--form|-I|--head)", flags)
    saved = (
        re.search(r"(?:^| )-(?:[A-Za-z]{0,6}[oO]\b|-output|-remote-name)", flags) and "/dev/null" not in words
    )
    piped = bool({"tar", "bash", "sh", "unzip", "gunzip", "zcat", "python", "tee"} & set(run.where.piped))
    into = any(
        r.operator in (">", ">>") and r.target is not None and r.target.literal != "/dev/null"
        for r in run.command.redirects
        if r.descriptor != "2"
    )
    return not posts and bool(saved or piped or into)


def _from_store(run: Run, words: list[str]) -> Iterator[tuple[int, str]]:
    """A copy whose source is remote and whose target is not."""
    plain = [word for word in words[1:] if not word.startswith("-")]
    if not {"cp", "sync", "copy", "mv", "rsync", "copyto", "mirror"} & set(plain[:3]) or len(plain) < 3:
        return
    remote = [bool(_REMOTE.match(w)) or (run.name in ("rclone", "mc") and ":" in w) for w in plain[-2:]]
    if remote[0] and not remote[1]:
        yield run.args[0].line, plain[-2]


def _by_image(run: Run) -> Iterator[tuple[int, str]]:
    for wrapper in run.via[len(run.unit.via) :]:
        for operand in wrapper.operands:
            if wrapper.name == "apptainer" and operand.text.startswith(
                ("docker://", "oras://", "library://")
            ):
                yield operand.line, operand.text


def _by_name(run: Run, scene: Scene) -> Iterator[tuple[int, str]]:
    if is_offline(run) or not (run.python or run.name in _READERS or _is_script(run)):
        return
    given = sorted(options(run), key=lambda option: "token" in option.name)
    for option in given:
        yield from _hub_option(option, run, scene)
    for n, arg in enumerate(run.args[1:], 1):
        word = arg.word
        var = (
            word.parts[0]
            if word is not None and len(word.parts) == 1 and word.parts[0].kind == "var"
            else None
        )
        value = run.env.get(var.text) if var is not None else None
        if var is None or value is None or run.args[n - 1].text.startswith("-"):
            continue
        if re.search(r"MODEL|DATASET|REPO|CKPT|PRETRAIN", var.text, re.IGNORECASE) and is_hub_name(
            arg.text, scene
        ):
            yield value.line, arg.text
    if (
        run.name in ("vllm", "sglang", "lmdeploy")
        and len(run.args) > 2
        and is_hub_name(run.args[2].text, scene)
    ):
        yield run.args[2].line, run.args[2].text


_READERS = frozenset(
    "lm_eval lm-eval vllm sglang lmdeploy trl tune llamafactory-cli swift axolotl xtuner composer evalplus.evaluate"
    " opencompass lighteval litgpt text-generation-launcher bigcodebench.evaluate mteb autotrain olive cellpose"
    " fairseq-train allennlp lmms-eval helm-run".split()
)


def _is_script(run: Run) -> bool:
    return run.args[:1] != () and run.args[0].text.endswith((".sh", ".bash", ".slurm"))


def _hub_option(option: Option, run: Run, scene: Scene) -> Iterator[tuple[int, str]]:
    value = option.value
    if value is None or names_output(option.name):
        return
    if option.name in ("model_args", "model_arg", "model_kwargs", "dataset_args"):
        for piece in value.text.split(","):
            key, _, text = piece.partition("=")
            if key in MODEL_OPTIONS and is_hub_name(text, scene, bare="model"):
                yield _set_at(option, run), text
        return
    if option.name in MODEL_OPTIONS or option.name.endswith(("model_name", "model_path", "name_or_path")):
        if is_hub_name(value.text, scene, bare="model"):
            yield _set_at(option, run), value.text
    elif option.name in DATA_OPTIONS:
        for piece in value.text.split(","):
            if is_hub_name(piece.strip(), scene, bare="data" if option.name == "dataset_name" else ""):
                yield _set_at(option, run), piece.strip()


def _set_at(option: Option, run: Run) -> int:
    """The line of the value: where its variable was set, if it stands in one."""
    value = option.value
    if value is None or value.word is None:
        return option.flag.line if value is None else value.line
    for part in value.word.parts:
        held = run.env.get(part.text) if part.kind == "var" else None
        if held is not None and value.text.split("=")[-1] in held.text:
            return held.line
    return value.line
