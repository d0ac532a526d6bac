"""What every tool works with: the service, who asks, what that person may, and how a run gets carried.

Never: a decision about a run; a credential taken in, kept or shown (RULES B6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mcp.server.mcpserver.exceptions import ToolError

from agent.clusters.base import Cluster, Ref
from agent.mcp import shapes
from agent.people import Role
from agent.service import Service, workspace_of
from agent.store import Unknown
from states.credentials import find_credentials, is_secret
from states.job import Job
from states.spec import Request

NOT_KEPT = frozenset({"cursor"})
"""Arguments that hold what a tool of this server gave, and that nothing is made of."""


class Caller(NamedTuple):
    """Who asks: a name for the history, and the role; None for nobody."""

    name: str
    role: Role | None


@dataclass(frozen=True)
class Desk:
    """One server's desk.

    caller: who asks now. carry: sees to it that somebody carries the run of this id; gives a note for the caller, ""
    normally. workspace: the setting, if there is one; cwd: what a relative folder is meant from.
    """

    service: Service
    caller: Callable[[], Caller]
    carry: Callable[[str], str]
    cwd: Path
    workspace: Path | None = None

    @property
    def by(self) -> str:
        """How the history names who asked."""
        return self.caller().name

    def admit(self, role: Role) -> None:
        """Raises ToolError for somebody who may not."""
        has = self.caller().role
        if has is None or not has.covers(role):
            raise ToolError(
                f"this token's role is {has or 'none'}, and that takes the role {role}; ask whoever runs "
                "Watchkeeper for a token that may"
            )

    def placed(self, request: Request) -> tuple[Request, str]:
        """The request with its workspace made absolute, and the workspace."""
        place = workspace_of(request, beside=None, default=self.workspace, cwd=self.cwd)
        return request.model_copy(update={"workspace": place}), place

    def ours(self, text: str) -> Job | None:
        """The run that is meant, if it is one."""
        try:
            return self.service.job(text)
        except Unknown:
            return None

    def meant(self, text: str, cluster: str) -> tuple[Job | None, Cluster, Ref]:
        """The run, if it is one, and how the job is known to its cluster. No call is made (A1)."""
        ours = self.ours(text)
        where, ref = self.service.resolve(ours.id if ours else text, cluster)
        return ours, where, ref

    def shown(self, run: str, note: str = "") -> shapes.Run:
        """The run as it stands now."""
        ports = self.service.ports
        job = ports.store.load(run)
        messages = ports.store.messages(run) if job.is_terminal else ()
        return shapes.run_of(job, ports.clock.now(), messages=messages, note=note)

    def carried(self, run: str) -> shapes.Run:
        """The same, after something was asked of it: somebody carries it from here on."""
        note = "" if self.service.job(run).is_terminal else self.carry(run)
        return self.shown(run, note)


def refuse_credentials(arguments: Mapping[str, Any]) -> None:
    """B6: raises ToolError, with the places and never a value, for arguments that carry a credential."""
    carrying = sorted({place for place, found in _texts(arguments, "", "") if found})
    if carrying:
        raise ToolError(
            f"{', '.join(carrying)}: that looks like a credential. Nothing was stored, sent or done. Credentials "
            "never go through a chat: their owner sets them with `wk key set NAME`, and a job reads its own from a "
            "file in the workspace or from the cluster's secrets. Take it out and call again."
        )


def _texts(value: Any, place: str, name: str) -> Iterator[tuple[str, bool]]:
    """Each text with its place (`env.HF_TOKEN`), and whether it is a credential by its name or its shape."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if place or key not in NOT_KEPT:
                yield from _texts(inner, f"{place}.{key}".strip("."), str(key))
    elif isinstance(value, list):
        for between in ("\n", " "):  # a flag and its value may be two words of a command
            yield place, bool(find_credentials(between.join(map(str, value))))
        for inner in value:
            yield from _texts(inner, place, "")
    elif isinstance(value, str):
        yield place, bool(find_credentials(value)) or is_secret(name, value)
