"""Downloads that a Python script does: hub models and data sets, torchvision, weights of a library, a plain URL.

Never: take `load_dataset("parquet", data_files=...)`, a local folder or `local_files_only=True` for one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from states.lint.downloads import MEND
from states.lint.environment import OFF, OFFLINE, is_offline
from states.lint.facts import Run
from states.lint.finding import Finding
from states.lint.hub_names import BUILDERS, is_hub_name
from states.lint.python_code import Call, Code
from states.lint.scene import Scene

_SECONDARY = ("Tokenizer", "Config", "Processor", "FeatureExtractor", "ImageProcessor", "Scheduler")
_FETCHERS = (
    "snapshot_download hf_hub_download torch.hub.load torch.hub.load_state_dict_from_url nltk.download wget.download"
    " gdown.download urllib.request.urlretrieve urlretrieve load_state_dict_from_url load_url kaggle.api"
    " kagglehub.dataset_download download_url download_and_extract_archive spacy.cli.download tfds.load"
    " tensorflow_datasets.load clip.load whisper.load_model open_clip.create_model_and_transforms"
).split()


def find(code: Code, run: Run | None, scene: Scene) -> Iterator[Finding]:
    """One finding a name, the model's before its tokenizer's."""
    if is_offline(run) or any(code.settings.get(name, "").lower() not in OFF for name in OFFLINE):
        return
    found: dict[str, tuple[bool, int]] = {}
    for call in code.calls:
        what = _fetched(call, code, scene)
        if what is None:
            continue
        later = any(mark in call.name for mark in _SECONDARY)
        line = code.at(call.node)
        if what not in found or (found[what][0] and not later):
            found[what] = (later, line)
    for what, (_, line) in found.items():
        why = f"{what} is fetched while the job runs"
        yield Finding("runtime_download", "warn", line, why, MEND, code.file)


def _fetched(call: Call, code: Code, scene: Scene) -> str | None:
    """The name of what the call fetches, None if it fetches nothing."""
    name = call.name
    last = name.rsplit(".", 1)[-1]
    if last == "from_pretrained":
        return _hub_model(call, code, scene)
    if last in ("load_dataset", "load_dataset_builder"):
        return _data_set(call, code, scene)
    if last == "pipeline" and "transformers" in name:
        return _named(code.string(call.argument(1, "model")), scene) or "the pipeline's default model"
    if last == "SentenceTransformer" or name.endswith("evaluate.load"):
        text = code.string(call.argument(0, "model_name_or_path", "path"))
        return text if text and not _is_path(text, scene) else None
    if any(name == fetcher or name.endswith("." + fetcher) for fetcher in _FETCHERS):
        if call.keyword("source") and code.string(call.argument(9, "source")) == "local":
            return None
        return code.string(call.argument(0, "repo_id", "url", "repo_or_dir", "name")) or last
    return _by_flag(call, code)


def _by_flag(call: Call, code: Code) -> str | None:
    """`download=True`, `pretrained=True`, `weights="DEFAULT"`."""
    name = call.name
    download = call.keyword("download")
    if download is not None and _true(download.value):
        return name.rsplit(".", 1)[-1]
    if name.startswith(("torchvision.models", "timm.", "models.", "pretrainedmodels.")):
        pretrained = call.keyword("pretrained")
        if pretrained is not None and _true(pretrained.value):
            return code.string(call.argument(0)) or name.rsplit(".", 1)[-1]
        weights = call.keyword("weights")
        if weights is not None and not (
            isinstance(weights.value, ast.Constant) and weights.value.value is None
        ):
            return name.rsplit(".", 1)[-1]
    if ".applications." in name and name.startswith(("tensorflow", "keras", "tf.")):
        weights = call.keyword("weights")
        text = code.string(weights.value) if weights else "imagenet"
        return name.rsplit(".", 1)[-1] if text == "imagenet" else None
    return None


def _true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _hub_model(call: Call, code: Code, scene: Scene) -> str | None:
    local = call.keyword("local_files_only")
    if local is not None and _true(local.value):
        return None
    return _named(code.string(call.argument(0, "pretrained_model_name_or_path")), scene)


def _named(text: str | None, scene: Scene) -> str | None:
    if not text or "{}" in text or _is_path(text, scene):
        return None
    return text if "/" not in text or is_hub_name(text, scene) else None


def _is_path(text: str, scene: Scene) -> bool:
    return text.startswith(("/", ".", "~", "$")) or text.count("/") > 1 or scene.seen(text) == "there"


def _data_set(call: Call, code: Code, scene: Scene) -> str | None:
    text = code.string(call.argument(0, "path"))
    if not text or "{}" in text or _is_path(text, scene) or text.endswith(".py"):
        return None
    if text in BUILDERS:
        files = code.string(call.argument(-1, "data_files"))
        return files if files and files.startswith(("http", "hf://")) else None
    return text if "/" not in text or is_hub_name(text, scene) else None
