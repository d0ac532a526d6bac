"""What the class, the message and the path of an exception tell about the layer that failed.

For exceptions that no signature knows by its words: a missing file is data, a checkpoint or a config by its
name and by who asked for it; a time-out is the network's or a peer's by the library it came through.
Anything else is the program's own: `code.exception`.

Never: guess from the message alone where the frames say otherwise; look at more than one exception.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Kind(NamedTuple):
    """A reading of one exception: its cause and other readings that the same words allow."""

    cause: str
    also: tuple[str, ...] = ()


UNKNOWN = Kind("code.exception")

_ERRNO = re.compile(r"\[Errno (-?\d{1,4})\]|os error (\d{1,4})|Os \{ code: (\d{1,4})")
_PATH = re.compile(r"['\"]([^'\"\n]{1,600})['\"]|(?:^|[\s:])(/[^\s'\":,]{2,600})")
_CONFIG = re.compile(
    r"\.(?:ya?ml|toml|ini|cfg|conf)$|(?:config|settings|args)[^/]{0,40}\.json$|\.env$", re.ASCII
)
_WEIGHTS = re.compile(
    r"\.(?:safetensors|bin|pth|ckpt|pdparams|gguf|onnx|msgpack|distcp)$"
    r"|(?:checkpoint|ckpt|weights|global_step|iter_\d)[^/]{0,80}(?:/|$)|tokenizer[^/]{0,40}$|latest$",
    re.ASCII,
)
_DATA = re.compile(
    r"data|corpus|train|valid|test|imag|img|annot|label|coco|meta|\.(?:jsonl?|csv|tsv|txt|parquet|arrow|npy|npz|h5|idx|lmdb|tar|pkl|mp4|wav)$",
    re.IGNORECASE,
)
_LOADERS = (
    "torch/serialization",
    "load_checkpoint",
    "from_pretrained",
    "load_state_dict",
    "checkpointing",
    "modeling_utils",
)
_HTTP = (
    "requests/",
    "urllib3/",
    "httpx/",
    "httpcore/",
    "aiohttp/",
    "huggingface_hub",
    "urllib/request",
    "botocore",
    "openai/",
)
_PEERS = (
    "torch/distributed",
    "c10d",
    "gloo",
    "jax/_src/distributed",
    "deepspeed/comm",
    "rendezvous",
    "multiprocessing/connection",
)
_CONFIG_FRAMES = (
    "config.py",
    "configuration",
    "deepspeed.py",
    "hf_argparser",
    "argument",
    "omegaconf",
    "hydra",
    "yaml/",
)
_EXECUTES = ("_execute_child", "os.py in execv", "_posixsubprocess", "asyncio/subprocess")

ERRNO: dict[int, Kind] = {
    5: Kind("storage.io", ("mount.stale", "data.corrupt")),
    8: Kind("image.incompatible", ("command.bad_argument",)),
    12: Kind("memory.host"),
    13: Kind("mount.permission"),
    1: Kind("mount.permission", ("auth.denied",)),
    16: Kind("storage.io", ("mount.stale",)),
    19: Kind("mount.missing", ("storage.io",)),
    23: Kind("code.exception", ("storage.io",)),
    24: Kind("code.exception", ("storage.io",)),
    26: Kind("storage.io", ("code.exception",)),
    27: Kind("storage.full", ("storage.io",)),
    28: Kind("storage.full"),
    30: Kind("mount.permission", ("storage.io",)),
    52: Kind("mount.stale", ("storage.io",)),
    61: Kind("storage.io", ("data.missing",)),
    70: Kind("mount.stale"),
    107: Kind("mount.stale", ("storage.io",)),
    108: Kind("mount.stale", ("storage.io",)),
    112: Kind("mount.stale", ("network.timeout",)),
    116: Kind("mount.stale", ("storage.io",)),
    121: Kind("storage.io", ("mount.stale",)),
    122: Kind("storage.full", ("storage.io",)),
    512: Kind("mount.stale", ("storage.io",)),
    521: Kind("mount.stale", ("storage.io",)),
}
"""Linux error numbers (errno(3)) that name a layer by themselves."""

_BY_CLASS: dict[str, Kind] = {
    "ModuleNotFoundError": Kind("env.missing_module"),
    "ImportError": Kind("env.abi", ("env.missing_module", "code.exception")),
    "PackageNotFoundError": Kind("env.missing_module"),
    "DistributionNotFound": Kind("env.missing_module"),
    "VersionConflict": Kind("env.abi"),
    "PermissionError": Kind("mount.permission"),
    "MemoryError": Kind("memory.host"),
    "OutOfMemoryError": Kind("memory.gpu"),
    "KeyboardInterrupt": Kind("process.killed", ("none",)),
    "gaierror": Kind("network.dns"),
    "NameResolutionError": Kind("network.dns"),
    "ProxyError": Kind("network.proxy", ("network.timeout",)),
    "SSLError": Kind("network.proxy", ("network.timeout",)),
    "ConnectTimeout": Kind("network.timeout", ("network.proxy",)),
    "ReadTimeout": Kind("network.timeout"),
    "ReadTimeoutError": Kind("network.timeout"),
    "ConnectTimeoutError": Kind("network.timeout", ("network.proxy",)),
    "MaxRetryError": Kind("network.timeout", ("network.dns", "network.proxy")),
    "NewConnectionError": Kind("network.timeout", ("network.dns", "network.proxy")),
    "ChunkedEncodingError": Kind("network.timeout"),
    "IncompleteRead": Kind("network.timeout"),
    "ProtocolError": Kind("network.timeout", ("network.proxy",)),
    "RemoteProtocolError": Kind("network.timeout", ("network.proxy",)),
    "RemoteDisconnected": Kind("network.timeout", ("network.proxy",)),
    "IncompleteSnapshotError": Kind("network.timeout", ("data.missing",)),
    "LocalEntryNotFoundError": Kind("network.timeout", ("data.missing", "model.load")),
    "OfflineModeIsEnabled": Kind("data.missing", ("model.load", "network.timeout")),
    "GatedRepoError": Kind("auth.denied"),
    "RepositoryNotFoundError": Kind("model.load", ("auth.denied", "data.missing")),
    "RevisionNotFoundError": Kind("model.load", ("data.missing",)),
    "EntryNotFoundError": Kind("model.load", ("data.missing",)),
    "AuthenticationError": Kind("auth.denied"),
    "PermissionDeniedError": Kind("auth.denied"),
    "NoCredentialsError": Kind("auth.denied"),
    "RateLimitError": Kind("network.rate_limited"),
    "UnpicklingError": Kind("model.load", ("data.corrupt",)),
    "SafetensorError": Kind("model.load", ("data.corrupt",)),
    "BadZipFile": Kind("data.corrupt", ("model.load",)),
    "BadGzipFile": Kind("data.corrupt"),
    "LZMAError": Kind("data.corrupt"),
    "ZstdError": Kind("data.corrupt"),
    "UnidentifiedImageError": Kind("data.corrupt"),
    "DecompressionBombError": Kind("data.corrupt", ("code.exception",)),
    "UnicodeDecodeError": Kind("data.corrupt", ("code.exception",)),
    "ArrowInvalid": Kind("data.corrupt", ("code.exception",)),
    "ParserError": Kind("data.corrupt", ("code.exception",)),
    "EmptyDataError": Kind("data.corrupt", ("data.missing",)),
    "DataFilesNotFoundError": Kind("data.missing"),
    "EmptyDatasetError": Kind("data.missing", ("data.corrupt",)),
    "DatasetNotFoundError": Kind("data.missing", ("command.bad_argument", "code.exception")),
    "DatasetGenerationError": Kind("data.corrupt", ("code.exception",)),
    "NonMatchingSplitsSizesError": Kind("data.corrupt"),
    "MissingConfigException": Kind("config.missing", ("command.bad_argument",)),
    "ConfigCompositionException": Kind("command.bad_argument", ("config.missing",)),
    "ArgumentError": Kind("command.bad_argument"),
    "ActorUnschedulableError": Kind("scheduling.unsatisfiable", ("scheduling.capacity",)),
    "NodeDiedError": Kind("node.lost"),
    "RuntimeEnvSetupError": Kind("env.missing_module"),
}


def classify(name: str, message: str, frames: Sequence[str] = ()) -> Kind:
    """The layer that an exception speaks of. name: class without module; frames: `path in function`, outer first."""
    if name in ("JSONDecodeError", "ScannerError", "YAMLError"):
        return _parse_error(name, message, frames)
    number = _errno(message)
    if name in ("FileNotFoundError", "NotADirectoryError") or (number == 2 and "rror" in name):
        return missing_file(message, frames)
    if number in ERRNO and "rror" in name:
        return ERRNO[number]
    if name == "EOFError" or name in ("error", "UnpicklingError", "BadZipFile"):
        return _unreadable(name, frames)
    if name in (
        "TimeoutError",
        "Timeout",
        "ConnectionError",
        "ConnectionRefusedError",
        "ConnectionResetError",
    ):
        return _connection(name, frames)
    if name == "AttributeError" and message.startswith(("module '", "partially initialized module")):
        return Kind("code.exception", ("env.abi",))
    return _BY_CLASS.get(name, UNKNOWN)


def missing_file(message: str, frames: Sequence[str] = ()) -> Kind:
    """What kind of thing a missing path is: an executable, a config, a checkpoint, else data."""
    if any(word in frame for frame in frames[-2:] for word in _EXECUTES):
        return Kind("command.not_found", ("env.missing_module",))
    found = _PATH.search(message)
    path = (found[1] or found[2]) if found else ""
    also = ("mount.missing",) if path.startswith("/") else ()
    if path.endswith((".py", ".sh")):
        return Kind("command.not_found", ("data.missing", *also))
    if _CONFIG.search(path):
        return Kind("config.missing", ("data.missing", *also))
    if not path:
        return Kind("data.missing", ("model.load", "mount.missing"))
    if _WEIGHTS.search(path):
        return Kind("model.load", ("data.missing", *also))
    if not _DATA.search(path) and any(word in frame for frame in frames for word in _LOADERS):
        return Kind("model.load", ("data.missing", *also))
    return Kind("data.missing", (*also, "code.exception"))


def _errno(message: str) -> int:
    found = _ERRNO.search(message)
    return int(next(group for group in found.groups() if group)) if found else 0


def _parse_error(name: str, message: str, frames: Sequence[str]) -> Kind:
    if any(word in frame for frame in frames for word in _CONFIG_FRAMES) or name != "JSONDecodeError":
        return Kind("code.exception", ("data.corrupt", "command.bad_argument", "config.missing"))
    if any(word in frame for frame in frames for word in _LOADERS):
        return Kind("model.load", ("data.corrupt",))
    if any(word in frame for frame in frames for word in _HTTP):
        return Kind("network.timeout", ("code.exception", "network.proxy"))
    return Kind("data.corrupt", ("code.exception",))


def _unreadable(name: str, frames: Sequence[str]) -> Kind:
    if any(word in frame for frame in frames for word in _LOADERS):
        return Kind("model.load", ("data.corrupt",))
    if any("multiprocessing" in frame for frame in frames):
        return Kind("code.exception", ("process.killed", "memory.host"))
    if name == "EOFError" and not any(
        word in frame for frame in frames for word in ("pickle", "gzip", "load", "read")
    ):
        return UNKNOWN
    return Kind("data.corrupt", ("model.load",)) if name != "error" else UNKNOWN


def _connection(name: str, frames: Sequence[str]) -> Kind:
    if any(word in frame for frame in frames for word in _PEERS):
        cause = "comm.timeout" if "Timeout" in name else "comm.error"
        return Kind(cause, ("comm.rendezvous", "process.killed"))
    if any(word in frame for frame in frames for word in _HTTP) or name == "ConnectionError":
        return Kind("network.timeout", ("network.proxy",))
    return Kind("code.exception", ("network.timeout", "comm.error", "hang.silent"))
