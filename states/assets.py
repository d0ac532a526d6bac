"""What a run reads from outside its workspace, as the request states it: a path, a mount, a hub name, a URL.

    assets:
      - data/train.idx                          # a path: below the workspace, or anywhere on the cluster
      - {path: /share/weights/a.pt, to: weights/a.pt}   # the same, linked to where the command looks for it
      - gpfs://pool/corpus:/mnt/corpus          # a mount: goes to the mounts of the job
      - hf:org/name@v2                          # a model of the hub; hf:datasets/org/name a data set
      - {url: https://host/w.bin, to: weights/w.bin, sha256: ...}

What is on a cluster path already is mounted or linked, never copied; only what is missing is fetched (RULES D1).

Never: a credential (a URL with a password in it is refused, B4); a place outside the workspace to fetch to.
"""

from __future__ import annotations

import posixpath
import re
from typing import Self

from pydantic import model_validator

from states.reading import Frozen

HUB = re.compile(
    r"(?:(?P<kind>models|datasets|spaces)/)?(?P<name>[\w.-]{1,96}(?:/[\w.-]{1,96})?)(?:@(?P<revision>[\w./-]{1,100}))?",
    re.ASCII,
)
_URL = re.compile(r"https?://[^\s/]+/\S*", re.ASCII)
PLATFORM = re.compile(
    r"(?:(?P<libc>manylinux|musllinux)_(?P<major>\d+)_(?P<minor>\d+)|linux)_(?P<arch>[a-z0-9_]+)", re.ASCII
)
_MOUNT = re.compile(r".+:/[^:]*(?::r[ow])?")


class Hub(Frozen):
    """A repository of the model hub. kind: models, datasets or spaces; revision: "" for the newest."""

    kind: str
    name: str
    revision: str = ""

    @property
    def folder(self) -> str:
        """Its folder in a cache of the hub, below `hub/`: `models--org--name` (the hub's own layout)."""
        return f"{self.kind}--{self.name.replace('/', '--')}"


class Asset(Frozen):
    """One thing that must be in place before the submit. Exactly one of path, mount, hub and url.

    to: where the command looks for it, below the workspace: a URL is fetched to there (required), a path is linked.
    sha256: of what a URL gives, checked after the fetch. A short text says which of the four it is by its shape.
    """

    path: str = ""
    mount: str = ""
    hub: str = ""
    url: str = ""
    to: str = ""
    sha256: str = ""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: object) -> object:
        if not isinstance(data, str):
            return data
        if data.startswith("hf:"):
            return {"hub": data.removeprefix("hf:")}
        if data.startswith(("http://", "https://")):
            return {"url": data}
        return {"mount": data} if _MOUNT.fullmatch(data) else {"path": data}

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if sum(bool(form) for form in (self.path, self.mount, self.hub, self.url)) != 1:
            raise ValueError("an asset has exactly one of: path, mount, hub, url")
        if self.hub and not HUB.fullmatch(self.hub):
            raise ValueError(
                f"{self.hub!r} is no hub name; write hf:org/name or hf:datasets/org/name@revision"
            )
        if self.url and (not _URL.fullmatch(self.url) or "@" in self.url.split("/")[2]):
            raise ValueError("an asset's url is http(s)://host/path, without a user name or a password in it")
        if self.url and not self.to:
            raise ValueError(
                "an asset with a url needs `to`, the path below the workspace that it is fetched to"
            )
        if self.to and (self.mount or self.hub):
            raise ValueError("`to` is for a path (it is linked) or a url (it is fetched)")
        if self.to and (self.to.startswith("/") or posixpath.normpath(self.to).split("/")[0] in ("..", ".")):
            raise ValueError(f"`to` is a path below the workspace, not {self.to!r}")
        if self.sha256 and (not self.url or not re.fullmatch(r"[0-9a-f]{64}", self.sha256)):
            raise ValueError("`sha256` is the 64 hex digits of what a url gives")
        return self

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return f"hf:{self.hub}" if self.hub else self.path or self.mount or self.url.partition("?")[0]

    @property
    def can_be_fetched(self) -> bool:
        """Whether it comes from the network when it is not there."""
        return bool(self.hub or self.url)

    def repository(self) -> Hub:
        """The parts of a hub name. Raises ValueError for an asset that is none."""
        found = HUB.fullmatch(self.hub)
        if found is None:
            raise ValueError(f"{self.name} is no hub name")
        return Hub(kind=found["kind"] or "models", name=found["name"], revision=found["revision"] or "")


class PackageSet(Frozen):
    """A package set that was staged for the run (RULES D2). Paths are below the workspace.

        packages: {requirements: requirements.txt, wheels: wheels, python: "3.11", platform: manylinux_2_28_x86_64}

    requirements: a requirements.txt or a uv.lock. wheels: the folder of what is staged; "" checks what is installed
    in the run's environment. python: left out, the environment's, else the one that all wheels are for. platform:
    with the image's glibc (`manylinux_2_28_x86_64`) where it matters.
    """

    requirements: str = "requirements.txt"
    wheels: str = ""
    python: str = ""
    platform: str = "linux_x86_64"

    @model_validator(mode="after")
    def _is_a_target(self) -> Self:
        if self.python and not re.fullmatch(r"3\.\d{1,2}", self.python):
            raise ValueError(f"`python` is written as 3.11, not {self.python!r}")
        if not PLATFORM.fullmatch(self.platform):
            raise ValueError(
                f"`platform` is written as linux_x86_64 or manylinux_2_28_x86_64, not {self.platform!r}"
            )
        return self


def mount_target(mount: str) -> str:
    """Where a mount stands in the job: the last absolute path of `source:/target[:mode]`; "" where there is none."""
    parts = [part for part in mount.replace("//", "/").split(":") if part.startswith("/")]
    return posixpath.normpath(parts[-1]) if parts else ""


def mount_source(mount: str) -> str:
    """The absolute path that a mount takes from this machine's tree, as far as its words tell; "" else."""
    head = mount.removesuffix(":ro").removesuffix(":rw").removeprefix("host:")
    head = head.partition(":")[0]
    return posixpath.normpath(head) if head.startswith("/") else ""
