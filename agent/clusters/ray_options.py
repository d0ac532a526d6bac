"""What the settings may say of a Ray cluster: where its dashboard answers, and what its nodes see.

    clusters:
      lab:
        kind: ray
        address: http://ray-head.example.org:8265
        workspace_visible: true

Never: a value that this site alone could know as a default (C5); a token's value (only the name of the key).
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from agent.clusters.wrapper import BEAT_S
from states.reading import Frozen


class Options(Frozen):
    """Only `address` must be given. Times in seconds.

    address: URL of the dashboard, which serves the Jobs API. token: name of the key (`wk key set NAME`) that is sent
    as a bearer token. headers: sent with every call, for a gateway; no secrets. ca_file: certificate authority of an
    https address. proxy: URL of a proxy on the way there; the agent's own proxy variables are not used.
    workspace_visible: the workspace is the same folder here and on the nodes, so the job starts in it, its log and
    the record of its end lie in it. working_dir: URI (s3, gs, https) of the files a job starts in. autoscales: nodes
    are added on demand, so what fits no node of today may still fit. image_uri: nodes can start a job in an image.
    heartbeat_s: between two signs of life of a run in a visible workspace. root: folder of notes on where runs lie.
    """

    address: str = Field(pattern=r"^https?://[^\s/?#]+(/[^\s?#]*)?$")
    token: str = Field(default="", pattern=r"^([A-Z][A-Z0-9_]*)?$")
    headers: dict[str, str] = {}
    ca_file: str = ""
    proxy: str = ""
    workspace_visible: bool = False
    working_dir: str = Field(default="", pattern=r"^([a-z0-9]+://\S+)?$")
    autoscales: bool = False
    image_uri: bool = False
    heartbeat_s: float = Field(default=BEAT_S, gt=0)
    root: Path | None = None
    timeout_s: float = Field(default=20.0, gt=0)
    submit_timeout_s: float = Field(default=45.0, gt=0)
