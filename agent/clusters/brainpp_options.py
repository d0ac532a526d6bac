"""What the settings may say of a Brain++ cluster; docs/clusters/brainpp.md explains each.

Never: hold a key or a proxy (keys come from the secrets, by name; proxies are dropped).
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from agent.clusters.brainpp_argv import KEYS, PrivateMachine
from agent.clusters.brainpp_cli import ENTRY_VARIABLE, PROXIES
from states.reading import Frozen


class Options(Frozen):
    """Times in seconds. storage: a path as people write it -> the source mounted there, "" where every job has it.

    entry, variables: for the tools' own process. creator: the account whose jobs are "mine" in `list`.
    log_settle_s: pause between reads of a log that has just ended. root: folder of the notes.
    """

    rjob: str = "rjob"
    brainctl: str = "brainctl"
    entry: str = ""
    variables: dict[str, str] = {}
    storage: dict[str, str] = {}
    wrapper: bool = True
    private_machine: PrivateMachine = "group"
    creator: str = ""
    timeout_s: float = Field(default=30.0, gt=0)
    submit_timeout_s: float = Field(default=60.0, gt=0)
    log_settle_s: float = Field(default=2.0, ge=0)
    root: Path | None = None

    @model_validator(mode="after")
    def _keeps_to_its_own(self) -> Self:
        if reserved := sorted({*KEYS, *PROXIES} & set(self.variables)):
            said = f"variables must not hold {', '.join(reserved)}"
            raise ValueError(f"{said}: keys go into `wk key set`, proxies nowhere")
        if odd := sorted(path for path in self.storage if not path.startswith("/")):
            raise ValueError(f"storage maps absolute paths; {odd[0]!r} is none")
        return self

    def for_the_tools(self) -> dict[str, str]:
        """Variables of the tools' process."""
        return {**self.variables, **({ENTRY_VARIABLE: self.entry} if self.entry else {})}
